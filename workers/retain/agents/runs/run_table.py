"""The runs of one instance: the table `turn_state` in the object's SQLite, with a row for each run."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from retain.agents.calls.answers import RunSummary
from retain.agents.calls.report import RunResult
from retain.agents.calls.run_request import input_text
from retain.agents.runs.events import CancelRequested
from retain.agents.runs.open_run import OpenRun
from retain.errors import NotFound
from retain.json_text import read_own_json
from retain.ports import ObjectSql


@dataclass(frozen=True, slots=True)
class KnownRun:
    """A run that was requested with an idempotency key. digest: of its request."""

    run_id: str
    digest: str


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A run and its status, as its row has it."""

    run_id: str
    status: str


@dataclass(frozen=True, slots=True)
class Exchange:
    """What was asked in a run, and its answer, None without one."""

    asked: str
    answered: str | None


@dataclass(frozen=True, slots=True)
class RunTimes:
    """When the first waiting run is due to resume, when the first run ended, and when the newest one last changed."""

    next_due_ms: int | None
    first_end_ms: int | None
    newest_ms: int | None


class RunTable:
    """Reads and writes the rows of runs, and the cancellations of runs that have none yet. Nothing here reaches D1."""

    def __init__(self, local: ObjectSql) -> None:
        self._local = local
        self._running: list[str] | None = None

    def insert(self, run: OpenRun, now_ms: int) -> None:
        """Write the row of a new run."""
        self._running = None
        self._local.run(
            "INSERT INTO turn_state (run_id, idempotency_key, request_hash, status, turn, request, context,"
            " created_at_ms, updated_at_ms) VALUES (?, ?, ?, 'running', 0, ?, ?, ?, ?)",
            run.run_id,
            run.request.idempotency_key,
            run.request.digest,
            json.dumps(run.request.to_json()),
            run.stored_context(),
            now_ms,
            now_ms,
        )

    def restore(self, run: OpenRun, *, turn: int, due_ms: int, created_at_ms: int, now_ms: int) -> None:
        """Write the row of a run that waits, as it was before the object lost it."""
        self.insert(run, created_at_ms)
        self.advance(run.run_id, turn, now_ms, progress=True)
        self.wait(run.run_id, due_ms)

    def knows(self, run_id: str) -> bool:
        """Return whether the run has a row."""
        return bool(self._local.run("SELECT 1 FROM turn_state WHERE run_id = ?", run_id).rows)

    def advance(self, run_id: str, turn: int, now_ms: int, *, progress: bool) -> None:
        """Record the turn of the run's newest event. progress: earlier interruptions no longer count."""
        resumed = "0" if progress else "resumed"
        self._local.run(
            f"UPDATE turn_state SET turn = ?, updated_at_ms = ?, resumed = {resumed} WHERE run_id = ?",  # noqa: S608
            turn,
            now_ms,
            run_id,
        )

    def wait(self, run_id: str, due_ms: int) -> None:
        """Let the run wait until it is resumed, at `due_ms` at the latest."""
        self._running = None
        self._local.run("UPDATE turn_state SET status = 'waiting', due_at_ms = ? WHERE run_id = ?", due_ms, run_id)

    def resume(self, run_id: str) -> None:
        """End the run's wait. Its next resumption is not counted."""
        self._running = None
        self._local.run(
            "UPDATE turn_state SET status = 'running', due_at_ms = NULL, resumed = -1 WHERE run_id = ?", run_id
        )

    def end(self, result: RunResult, now_ms: int) -> None:
        """Write the run's result."""
        self._running = None
        self._local.run(
            "UPDATE turn_state SET status = ?, result = ?, due_at_ms = NULL, updated_at_ms = ? WHERE run_id = ?",
            result.status,
            json.dumps(result.to_json()),
            now_ms,
            result.run_id,
        )

    def first(self, run_id: str) -> OpenRun:
        """Return the run before its first event. Raises: NotFound (code `no_such_run`)."""
        rows = self._local.run("SELECT request, context FROM turn_state WHERE run_id = ?", run_id).rows
        if not rows:
            raise _no_such_run()
        return OpenRun.stored(run_id, rows[0]["request"], rows[0]["context"])

    def created_ms(self, run_id: str) -> int:
        """Return when the run began. Raises: NotFound (code `no_such_run`)."""
        return int(self._column(run_id, "created_at_ms"))

    def result(self, run_id: str) -> RunResult | None:
        """Return the run's result, None while it is open. Raises: NotFound (code `no_such_run`)."""
        stored = self._column(run_id, "result")
        return None if stored is None else RunResult.from_json(read_own_json(stored))

    def asked_with(self, idempotency_key: str) -> KnownRun | None:
        """Return the run that was requested with this key, or None."""
        rows = self._local.run(
            "SELECT run_id, request_hash FROM turn_state WHERE idempotency_key = ?", idempotency_key
        ).rows
        return KnownRun(rows[0]["run_id"], rows[0]["request_hash"]) if rows else None

    def count_resumption(self, run_id: str) -> int:
        """Count that the run is about to be resumed; return how often it was, this time included."""
        rows = self._local.run(
            "UPDATE turn_state SET resumed = resumed + 1 WHERE run_id = ? RETURNING resumed", run_id
        ).rows
        return int(rows[0]["resumed"])

    def discount_resumption(self, run_id: str) -> None:
        """Undo `count_resumption`: the run did not end, but its object survived."""
        self._local.run("UPDATE turn_state SET resumed = resumed - 1 WHERE run_id = ?", run_id)

    def running(self) -> list[str]:
        """Return the ids of the runs that have not ended and do not wait, oldest first."""
        if self._running is None:
            rows = self._local.run("SELECT run_id FROM turn_state WHERE status = 'running' ORDER BY run_id").rows
            self._running = [row["run_id"] for row in rows]
        return list(self._running)

    def suspended(self, suspended: str) -> list[str]:
        """Return the ids of the waiting runs whose last event is of this kind, oldest first."""
        rows = self._local.run(
            "SELECT run_id FROM turn_state run WHERE status = 'waiting' AND"
            " (SELECT kind FROM run_log WHERE run_id = run.run_id ORDER BY seq DESC LIMIT 1) = ? ORDER BY run_id",
            suspended,
        ).rows
        return [row["run_id"] for row in rows]

    def due(self, now_ms: int) -> list[str]:
        """Return the ids of the waiting runs that are due to resume, oldest first."""
        sql = "SELECT run_id FROM turn_state WHERE status = 'waiting' AND due_at_ms <= ? ORDER BY run_id"
        return [row["run_id"] for row in self._local.run(sql, now_ms).rows]

    def times(self) -> RunTimes:
        """Return the times by which the instance wakes up, in one query."""
        [row] = self._local.run(
            "SELECT MIN(due_at_ms) FILTER (WHERE status = 'waiting') AS due,"
            " MIN(updated_at_ms) FILTER (WHERE status NOT IN ('running', 'waiting')) AS ended,"
            " (SELECT updated_at_ms FROM turn_state ORDER BY created_at_ms DESC, run_id DESC LIMIT 1) AS newest"
            " FROM turn_state"
        ).rows
        return RunTimes(*(None if row[name] is None else int(row[name]) for name in ("due", "ended", "newest")))

    def newest(self, limit: int) -> tuple[RunSummary, ...]:
        """Return the newest `limit` runs, newest first."""
        rows = self._local.run(
            "SELECT run_id, status, turn, created_at_ms, updated_at_ms, json_extract(request, '$.by') AS started_by"
            " FROM turn_state ORDER BY created_at_ms DESC, run_id DESC LIMIT ?",
            limit,
        ).rows
        return tuple(
            RunSummary(
                row["run_id"], row["status"], row["turn"], row["created_at_ms"], row["updated_at_ms"], row["started_by"]
            )
            for row in rows
        )

    def exchanged(self, limit: int) -> list[Exchange]:
        """Return what was asked and answered in the newest `limit` runs, oldest first."""
        rows = self._local.run(
            "SELECT request -> '$.input' AS asked, result ->> '$.output' AS answered FROM turn_state"
            " ORDER BY run_id DESC LIMIT ?",
            limit,
        ).rows
        return [Exchange(input_text(read_own_json(row["asked"])), row["answered"]) for row in reversed(rows)]

    def naming(self, names: Callable[[str], bool], logged: Callable[[str], Iterable[str]]) -> Iterator[StoredRun]:
        """Yield the runs with a text for which `names` returns True. logged: returns the texts of a run's events."""
        for row in self._local.run("SELECT * FROM turn_state").rows:
            texts = (row["request"], row["context"], row["result"] or "", row["idempotency_key"] or "")
            if any(map(names, (*texts, *logged(row["run_id"])))):
                yield StoredRun(row["run_id"], row["status"])

    def of_user(self, user_id: str) -> list[str]:
        """Return the ids of the runs for a user."""
        sql = "SELECT run_id FROM turn_state WHERE json_extract(request, '$.user.id') = ?"
        return [row["run_id"] for row in self._local.run(sql, user_id).rows]

    def remove(self, run_id: str) -> None:
        """Remove the run's row."""
        self._running = None
        self._local.run("DELETE FROM turn_state WHERE run_id = ?", run_id)

    def last_took_ms(self) -> int | None:
        """Return how long the run that ended last took, None when none has ended. A run that never began took none."""
        rows = self._local.run(
            "SELECT updated_at_ms - created_at_ms AS took FROM turn_state WHERE status NOT IN ('running', 'waiting')"
            " AND updated_at_ms > created_at_ms ORDER BY updated_at_ms DESC, run_id DESC LIMIT 1"
        ).rows
        return int(rows[0]["took"]) if rows else None

    def cancel_early(self, idempotency_key: str, asked_by: str, reason: str | None, at_ms: int) -> None:
        """Keep the cancellation of a run that has not arrived yet. A second one changes nothing."""
        values = (idempotency_key, asked_by, reason, at_ms)
        self._local.run("INSERT OR IGNORE INTO cancel_requests VALUES (?, ?, ?, ?)", *values)

    def early_cancellation(self, idempotency_key: str | None) -> CancelRequested | None:
        """Return the cancellation that arrived before the run with this key, or None."""
        if idempotency_key is None:
            return None
        sql = "SELECT asked_by, reason FROM cancel_requests WHERE idempotency_key = ?"
        rows = self._local.run(sql, idempotency_key).rows
        return CancelRequested(0, rows[0]["asked_by"], rows[0]["reason"]) if rows else None

    def use_cancellation(self, idempotency_key: str | None) -> None:
        """Remove the cancellation that the run with this key now has."""
        self._local.run("DELETE FROM cancel_requests WHERE idempotency_key = ?", idempotency_key)

    def forget_ended(self, before_ms: int) -> None:
        """Remove the row of every run that had ended by a time, and each cancellation whose run has not arrived since."""
        self._local.run("DELETE FROM cancel_requests WHERE at_ms <= ?", before_ms)
        self._local.run(
            "DELETE FROM turn_state WHERE status NOT IN ('running', 'waiting') AND updated_at_ms <= ?", before_ms
        )

    def clear(self) -> None:
        """Remove every row."""
        self._running = None
        self._local.run("DELETE FROM turn_state")
        self._local.run("DELETE FROM cancel_requests")

    def _column(self, run_id: str, column: Literal["created_at_ms", "result"]) -> Any:
        rows = self._local.run(f"SELECT {column} FROM turn_state WHERE run_id = ?", run_id).rows  # noqa: S608
        if not rows:
            raise _no_such_run()
        return rows[0][column]


def _no_such_run() -> NotFound:
    return NotFound("the instance has no such run", code="no_such_run")
