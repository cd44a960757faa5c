"""The schedules of a tenant as D1 has them: read and listed, the newest first; and those that an object may have lost."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from retain.agents.calls.client import InstanceClient
from retain.agents.calls.schedule import NamedSchedule, Schedule, ScheduleState
from retain.agents.duties.overdue import ask_each
from retain.agents.identity import InstanceIdentity, instance_of
from retain.errors import InvalidInput, NotFound
from retain.identifiers import ULID
from retain.json_text import Json
from retain.limits.pages import cut, sized
from retain.ports import AgentInstances, Clock, Row, Sql, SqlValue

LATE_MS = 3_600_000
"""How long after something was due the daily work asks the instance for the schedule."""
OVERDUE_AT_ONCE = 50
_LAST = "~"
"""Sorts after every id."""
_ONE = "SELECT * FROM schedules WHERE tenant_id = ? AND schedule_id = ?"
# Each is due again, so that one that fails comes after all others, an hour later.
_OVERDUE = """
UPDATE schedules SET due_at_ms = ?1 WHERE schedule_id IN (
  SELECT schedule_id FROM schedules WHERE due_at_ms < ?2 ORDER BY due_at_ms, schedule_id LIMIT ?3)
RETURNING schedule_id, tenant_id, agent_type, instance_id
"""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WantedSchedules:
    """Which schedules to list. None: any. instance_id: needs the agent_type."""

    agent_type: str | None = None
    instance_id: str | None = None
    user_id: str | None = None
    state: ScheduleState | None = None

    def __post_init__(self) -> None:
        """Raises: InvalidInput (code `invalid_query`)."""
        if (self.instance_id is None) is not (self.agent_type is None):
            raise InvalidInput("name an instance by its agent_type and its instance_id", code="invalid_query")


@dataclass(frozen=True, slots=True)
class ListedSchedule:
    """A schedule and its instance."""

    schedule: Schedule
    instance: InstanceIdentity

    def to_json(self) -> dict[str, Json]:
        """Return the schedule as HTTP answers have it."""
        return shown(self.instance, self.schedule.to_json())


@dataclass(frozen=True, slots=True)
class SchedulePage:
    """Schedules, the newest first, and the cursor of the next page: None on the last."""

    schedules: Sequence[ListedSchedule]
    cursor: str | None


def shown(instance: InstanceIdentity, schedule: dict[str, Json]) -> dict[str, Json]:
    """Return an instance's schedule as HTTP answers have it."""
    return {"agent_type": instance.agent_type, "instance_id": instance.instance_id, **schedule}


async def schedule_page(
    sql: Sql, tenant_id: str, wanted: WantedSchedules, *, limit: int, cursor: str | None
) -> SchedulePage:
    """Return a page of schedules. Raises: InvalidInput (code `invalid_cursor`); Unavailable."""
    if cursor is not None and ULID.fullmatch(cursor) is None:
        raise InvalidInput("the cursor is not valid", code="invalid_cursor")
    given = {
        "tenant_id": tenant_id,
        "agent_type": wanted.agent_type,
        "instance_id": wanted.instance_id,
        "user_id": wanted.user_id,
        "state": wanted.state,
    }
    conditions = {name: value for name, value in given.items() if value is not None}
    where = " AND ".join(f"{name} = ?" for name in conditions)
    page = f"""
    SELECT * FROM schedules INDEXED BY {_index(wanted)} WHERE {where} AND schedule_id < ?
    ORDER BY schedule_id DESC LIMIT ?
    """  # noqa: S608
    values: tuple[SqlValue, ...] = (*conditions.values(), cursor or _LAST, limit + 1)
    rows, more = cut((await sql.run(sized(page, "schedule_id DESC", "request"), *values)).rows, limit)
    schedules = [_listed(row) for row in rows]
    return SchedulePage(schedules, schedules[-1].schedule.schedule_id if more else None)


async def schedule_of(sql: Sql, tenant_id: str, schedule_id: str) -> ListedSchedule:
    """Return a schedule. Raises: NotFound (code `no_such_schedule`); Unavailable."""
    rows = (await sql.run(_ONE, tenant_id, schedule_id)).rows
    if not rows:
        raise NotFound("there is no such schedule", code="no_such_schedule")
    return _listed(rows[0])


async def ask_for_overdue_schedules(sql: Sql, instances: AgentInstances, clock: Clock) -> dict[str, int]:
    """Ask the instances for schedules that were due an hour ago; return how many were asked for, and failed.

    An instance that has lost its storage has lost its alarm as well: asked for the schedule, it rebuilds both.
    """
    now = clock()

    async def ask(row: Row) -> None:
        await InstanceClient(instances, _instance(row)).change_schedule(NamedSchedule(row["schedule_id"]))

    rows = (await sql.run(_OVERDUE, now, now - LATE_MS, OVERDUE_AT_ONCE)).rows
    return await ask_each(rows, ask, clock, "a schedule that is overdue", "schedule_id")


def _index(wanted: WantedSchedules) -> str:
    """Return the index that fits best: an instance has few schedules, and a user has fewer than a tenant."""
    if wanted.instance_id is not None:
        return "schedules_of_instance"
    if wanted.user_id is not None:
        return "schedules_of_user"
    return "schedules_of_tenant" if wanted.state is None else "schedules_by_state"


def _listed(row: Row) -> ListedSchedule:
    return ListedSchedule(Schedule.of_row(row), _instance(row))


def _instance(row: Row) -> InstanceIdentity:
    return instance_of(row["tenant_id"], row["agent_type"], row["instance_id"])
