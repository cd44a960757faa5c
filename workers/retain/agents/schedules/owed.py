"""What a schedule owes to D1: its row, from which it is listed, and rebuilt where the object has lost its storage."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import ClassVar

from retain.agents.calls.schedule import Schedule
from retain.agents.identity import InstanceIdentity
from retain.outbox import OwedStatement


@dataclass(frozen=True, slots=True)
class KeepSchedule(OwedStatement):
    """The row of a schedule as it is now. A late copy does not replace a newer one. request: as JSON."""

    NAME: ClassVar[str] = "keep_schedule"
    SQL: ClassVar[str] = """
        INSERT INTO schedules
          (schedule_id, tenant_id, agent_type, instance_id, user_id, request, cron, timezone, at_ms, state, next_at_ms,
           due_at_ms, last_run_id, last_at_ms, last_error, created_at_ms, updated_at_ms)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        ON CONFLICT (schedule_id) DO UPDATE SET
          state = excluded.state, next_at_ms = excluded.next_at_ms, due_at_ms = excluded.due_at_ms,
          last_run_id = excluded.last_run_id, last_at_ms = excluded.last_at_ms, last_error = excluded.last_error,
          updated_at_ms = excluded.updated_at_ms
        WHERE excluded.updated_at_ms >= schedules.updated_at_ms
    """

    schedule_id: str
    tenant_id: str
    agent_type: str
    instance_id: str
    user_id: str | None
    request: str
    cron: str | None
    timezone: str | None
    at_ms: int | None
    state: str
    next_at_ms: int | None
    due_at_ms: int | None
    last_run_id: str | None
    last_at_ms: int | None
    last_error: str | None
    created_at_ms: int
    updated_at_ms: int

    @classmethod
    def of(cls, identity: InstanceIdentity, schedule: Schedule) -> KeepSchedule:
        """Return the row of an instance's schedule."""
        timing = schedule.timing
        return cls(
            schedule_id=schedule.schedule_id,
            tenant_id=identity.scope.tenant_id,
            agent_type=identity.agent_type,
            instance_id=identity.instance_id,
            user_id=schedule.request.user_id,
            request=json.dumps(schedule.request.to_json()),
            cron=timing.cron,
            timezone=timing.timezone,
            at_ms=timing.at_ms,
            state=schedule.state,
            next_at_ms=schedule.next_at_ms,
            due_at_ms=schedule.due_at_ms,
            last_run_id=schedule.last_run_id,
            last_at_ms=schedule.last_at_ms,
            last_error=schedule.last_error,
            created_at_ms=schedule.created_at_ms,
            updated_at_ms=schedule.updated_at_ms,
        )


@dataclass(frozen=True, slots=True)
class DropSchedule(OwedStatement):
    """The schedule was deleted. A trigger removes writes of it that were put aside (0063_late_and_repeated.sql)."""

    NAME: ClassVar[str] = "drop_schedule"
    SQL: ClassVar[str] = "INSERT INTO dropped_schedules (schedule_id) VALUES (?)"

    schedule_id: str
