"""The schedules of one instance: the table `schedules` in the object's SQLite. Nothing here reaches D1."""

from __future__ import annotations

import json
from functools import cached_property

from retain.agents.calls.schedule import Schedule
from retain.ports import ObjectSql

SCHEMA = """
CREATE TABLE schedules (
  schedule_id TEXT PRIMARY KEY,
  idempotency_key TEXT UNIQUE,
  request TEXT NOT NULL,
  cron TEXT,
  timezone TEXT,
  at_ms INTEGER,
  state TEXT NOT NULL,
  next_at_ms INTEGER,
  due_at_ms INTEGER,
  last_run_id TEXT,
  last_at_ms INTEGER,
  last_error TEXT,
  created_at_ms INTEGER NOT NULL,
  updated_at_ms INTEGER NOT NULL
) WITHOUT ROWID
"""


class ScheduleTable:
    """Reads and writes the rows."""

    def __init__(self, local: ObjectSql) -> None:
        self._local = local

    @cached_property
    def _due(self) -> dict[str, int | None]:
        """When something is to be done for each schedule: the object reads the table once."""
        rows = self._local.run("SELECT schedule_id, due_at_ms FROM schedules").rows
        return {row["schedule_id"]: None if row["due_at_ms"] is None else int(row["due_at_ms"]) for row in rows}

    def keep(self, schedule: Schedule) -> None:
        """Write the row of a schedule, new or changed. One whose key another schedule has by now is kept without it."""
        request, timing = schedule.request, schedule.timing
        due = {**self._due, schedule.schedule_id: schedule.due_at_ms}
        key = None if schedule.schedule_id in self._due else request.idempotency_key  # a row's key never changes
        if key is not None and self.asked_with(key) is not None:
            key = None
        self._local.run(
            "INSERT INTO schedules (schedule_id, idempotency_key, request, cron, timezone, at_ms, state,"
            " next_at_ms, due_at_ms, last_run_id, last_at_ms, last_error, created_at_ms, updated_at_ms)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
            " ON CONFLICT (schedule_id) DO UPDATE SET state = excluded.state, next_at_ms = excluded.next_at_ms,"
            " due_at_ms = excluded.due_at_ms, last_run_id = excluded.last_run_id, last_at_ms = excluded.last_at_ms,"
            " last_error = excluded.last_error, updated_at_ms = excluded.updated_at_ms",
            schedule.schedule_id,
            key,
            json.dumps(request.to_json()),
            timing.cron,
            timing.timezone,
            timing.at_ms,
            schedule.state,
            schedule.next_at_ms,
            schedule.due_at_ms,
            schedule.last_run_id,
            schedule.last_at_ms,
            schedule.last_error,
            schedule.created_at_ms,
            schedule.updated_at_ms,
        )
        self._due = due

    def get(self, schedule_id: str) -> Schedule | None:
        """Return a schedule, None when the object does not have it."""
        if schedule_id not in self._due:
            return None
        rows = self._local.run("SELECT * FROM schedules WHERE schedule_id = ?", schedule_id).rows
        return Schedule.of_row(rows[0]) if rows else None

    def asked_with(self, idempotency_key: str) -> Schedule | None:
        """Return the schedule that was created with this key, or None."""
        rows = self._local.run("SELECT * FROM schedules WHERE idempotency_key = ?", idempotency_key).rows
        return Schedule.of_row(rows[0]) if rows else None

    def remove(self, schedule_id: str) -> None:
        """Remove a row, if there is one."""
        if schedule_id in self._due:
            self._local.run("DELETE FROM schedules WHERE schedule_id = ?", schedule_id)
            self._due = {name: due for name, due in self._due.items() if name != schedule_id}

    def due(self, now_ms: int) -> list[Schedule]:
        """Return the schedules that are due or to be forgotten, those that have been for longest first."""
        due = sorted((at_ms, name) for name, at_ms in self._due.items() if at_ms is not None and at_ms <= now_ms)
        found = (self.get(name) for _, name in due)
        return [schedule for schedule in found if schedule is not None]

    def next_due_ms(self) -> int | None:
        """Return when the next one is due, or is to be forgotten; None when there is neither."""
        return min((at_ms for at_ms in self._due.values() if at_ms is not None), default=None)

    def open(self) -> int:
        """Return how many schedules have not ended."""
        return int(self._local.run("SELECT COUNT(*) AS n FROM schedules WHERE state <> 'ended'").rows[0]["n"])

    def texts(self) -> list[tuple[str, str | None, str]]:
        """Return the id, the user and the request of each, as it is stored."""
        if not self._due:
            return []
        rows = self._local.run(
            "SELECT schedule_id, json_extract(request, '$.user.id') AS user_id, request FROM schedules"
        ).rows
        return [(row["schedule_id"], row["user_id"], row["request"]) for row in rows]
