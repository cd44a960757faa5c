"""The schedules of one instance: created, paused, deleted, and begun when they are due.

A due schedule puts its run into the instance's queue. The run and the schedule's next time are written in one transaction,
so no crash begins a run twice, or none. What was due several times while the object was away begins once.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial

from retain.agents.calls.run_request import RunRequest
from retain.agents.calls.schedule import NamedSchedule, NewSchedule, Schedule
from retain.agents.identity import InstanceIdentity
from retain.agents.instance_ports import InstancePorts
from retain.agents.queueing.queueing import Queueing
from retain.agents.schedules.owed import DropSchedule, KeepSchedule
from retain.agents.schedules.schedule_table import ScheduleTable
from retain.agents.versions.own_agent import OwnAgent
from retain.errors import Conflict, InvalidInput, NotFound, QuotaExceeded, RateLimited, RetainError, Unavailable
from retain.identifiers import new_id
from retain.outbox import Outbox
from retain.retention import DAY_MS

MAX_SCHEDULES = 50
"""Most schedules of an instance that have not ended."""
RETRY_MS = 60_000
"""How soon a run that could not begin is tried again: when its queue was full, the instance was being erased, or D1 away."""
RETRIED_MS = 3_600_000
"""For how long it is."""
ENDED_KEPT_MS = 7 * DAY_MS
"""How long a schedule is kept after it has ended: it is listed, and a repeated request to create it gets it."""

# The rows of an erased user or tenant are gone only when the erasure reaches them.
_OF_INSTANCE = """
FROM schedules s WHERE tenant_id = ? AND agent_type = ? AND instance_id = ?
  AND NOT EXISTS (SELECT 1 FROM erased_tenants e WHERE e.tenant_id = s.tenant_id AND s.schedule_id <= e.last_run_id)
  AND NOT EXISTS (SELECT 1 FROM erased_users e
                  WHERE e.tenant_id = s.tenant_id AND e.user_id = s.user_id AND s.schedule_id <= e.last_run_id)
"""
_LOST = f"SELECT * {_OF_INSTANCE} AND schedule_id = ?"
_BY_KEY = f"SELECT schedule_id {_OF_INSTANCE} AND request ->> '$.idempotency_key' = ? ORDER BY schedule_id LIMIT 1"

_log = logging.getLogger(__name__)


class _Changed(Exception):
    """The schedule is another than when its run was about to begin."""


class Schedules:
    """The schedules of one instance."""

    def __init__(
        self,
        identity: InstanceIdentity,
        ports: InstancePorts,
        outbox: Outbox,
        queueing: Queueing,
        agent: OwnAgent,
        set_alarm: Callable[[], Awaitable[None]],
    ) -> None:
        self._identity = identity
        self._ports = ports
        self._outbox = outbox
        self._queueing = queueing
        self._agent = agent
        self._set_alarm = set_alarm
        self._table = ScheduleTable(ports.local)

    async def create(self, new: NewSchedule) -> Schedule:
        """Create a schedule, or return the one that was created with the same idempotency key.

        It is durable when this returns, and in D1 unless D1 is away. Raises: as `Queueing.check`; InvalidInput (code
            `invalid_cron`, `unknown_time_zone`, `invalid_at_ms`); QuotaExceeded (code `too_many_schedules`); Conflict (code
            `idempotency_key_reused`); Unavailable, when D1 does not say whether it has a schedule with the key.
        """
        known = self._known(new) or await self._lost(new)
        if known is None:
            await self._agent.ready()
            known = self._known(new)
        if known is not None:
            return known
        self._queueing.check(new.request)
        now = self._ports.clock()
        first_ms = new.timing.first_ms(now, self._ports.time_zones)
        if self._table.open() >= MAX_SCHEDULES:
            raise QuotaExceeded(
                f"an instance has at most {MAX_SCHEDULES} schedules", code="too_many_schedules", limit=MAX_SCHEDULES
            )
        made = Schedule(
            new_id(),
            new.request,
            new.timing,
            "active",
            first_ms,
            first_ms,
            None,
            None,
            None,
            created_at_ms=now,
            updated_at_ms=now,
        )
        await self._keep(made)
        return made

    async def change(self, named: NamedSchedule) -> Schedule:
        """Pause a schedule or let it be due again, from now on, and return it. Idempotent.

        What was due while it was paused does not begin. Raises: NotFound (code `no_such_schedule`); Conflict (code
            `schedule_ended`) for one that has ended, or whose one time has passed; Unavailable.
        """
        known = await self.show(named)
        if named.state in (None, known.state):
            return known
        if known.state == "ended":
            raise Conflict("the schedule has ended; create another one", code="schedule_ended")
        now, next_ms = self._ports.clock(), None
        if named.state == "active":
            try:
                next_ms = known.timing.first_ms(now, self._ports.time_zones)
            except InvalidInput as error:
                raise Conflict("the schedule's time has passed; create another one", code="schedule_ended") from error
        changed = replace(
            known,
            state=named.state or known.state,
            next_at_ms=next_ms,
            due_at_ms=next_ms,
            updated_at_ms=_changed_at(known, now),
        )
        await self._keep(changed)
        return changed

    async def show(self, named: NamedSchedule) -> Schedule:
        """Return a schedule, rebuilt from D1 if the object has lost it.

        Raises: NotFound (code `no_such_schedule`); Conflict (code `instance_busy`, `wrong_user`) for one that the object has
            lost and cannot take back; Unavailable.
        """
        known = self._table.get(named.schedule_id) or await self._restored(named.schedule_id)
        if known is None:
            raise NotFound("there is no such schedule", code="no_such_schedule")
        return known

    async def delete(self, named: NamedSchedule) -> None:
        """Delete a schedule, and with it what is known of its runs' times. Idempotent. Its runs stay."""
        self._ports.local.atomically(partial(self._drop, named.schedule_id))
        await self._set_alarm()
        await self._outbox.flush()

    def next_due_ms(self) -> int | None:
        """Return when something is to be done for a schedule, None when nothing is."""
        return self._table.next_due_ms()

    async def begin_due(self) -> None:
        """Queue a run for each schedule that is due, and forget those that ended a week ago.

        Raises nothing: what fails is noted, or due again later.
        """
        for schedule in self._table.due(self._ports.clock()):
            if schedule.state == "ended":
                self._ports.local.atomically(partial(self._drop, schedule.schedule_id))
                continue
            try:
                await self._queueing.take(_run_of(schedule), partial(self._begun, schedule))
            except _Changed:
                continue  # it was paused, deleted or erased meanwhile
            except RetainError as error:
                self._refused(schedule, error)

    def erase_to_come(self, names: Callable[[str], bool] | None = None, *, user_id: str | None = None) -> None:
        """Remove every schedule and queued run, or those with a text for which `names` returns True, or those of a user.

        Idempotent.
        """
        self._queueing.erase(names, user_id=user_id)
        for schedule_id, of_user, text in self._table.texts():
            if user_id is not None and of_user != user_id:
                continue
            if names is None or names(text):
                self._ports.local.atomically(partial(self._drop, schedule_id))

    def _known(self, new: NewSchedule) -> Schedule | None:
        """Return the schedule that was created with the key of another one, or None. Raises: Conflict."""
        key = new.request.idempotency_key
        known = None if key is None else self._table.asked_with(key)
        if known is not None and known.digest != new.digest:
            raise Conflict("the idempotency key was used for another schedule", code="idempotency_key_reused")
        return known

    async def _lost(self, new: NewSchedule) -> Schedule | None:
        """Rebuild the schedule with the key of a new one, if the object has lost it; return it, or None."""
        key, identity = new.request.idempotency_key, self._identity
        if key is None:
            return None
        place = (identity.scope.tenant_id, identity.agent_type, identity.instance_id)
        for row in (await self._ports.sql.run(_BY_KEY, *place, key)).rows:
            await self._restored(row["schedule_id"])
        return self._known(new)

    async def _restored(self, schedule_id: str) -> Schedule | None:
        """Rebuild a schedule that the object has lost; return it, or None when D1 has none."""
        if not await self._outbox.flush():  # the object may owe D1 the schedule's deletion
            raise Unavailable("the instance has not written everything to D1 yet; try again", code="outbox_waits")
        identity = self._identity
        place = (identity.scope.tenant_id, identity.agent_type, identity.instance_id)
        with suppress(NotFound):
            await self._agent.ready()
        rows = (await self._ports.sql.run(_LOST, *place, schedule_id)).rows
        known = self._table.get(schedule_id)
        if known is not None or not rows:
            return known
        lost = Schedule.of_row(rows[0])
        with suppress(NotFound, InvalidInput):  # of a removed agent: it can be deleted, and its next run says why
            self._queueing.check(lost.request)
        self._table.keep(lost)
        _log.warning("a schedule was rebuilt", extra={"schedule_id": schedule_id})
        await self._set_alarm()
        return lost

    async def _keep(self, schedule: Schedule) -> None:
        self._ports.local.atomically(partial(self._write, schedule))
        await self._set_alarm()
        await self._outbox.flush()

    def _begun(self, schedule: Schedule, run_id: str) -> None:
        """Note that a run is queued, in its transaction."""
        self._write(self._after(schedule, replace(schedule, last_run_id=run_id, last_error=None)))

    def _refused(self, schedule: Schedule, error: RetainError) -> None:
        """Note that the run did not begin: it is tried again for a while, if that may help."""
        if self._table.get(schedule.schedule_id) != schedule:
            return  # it was paused, deleted or erased meanwhile
        if error.code == "unknown_tenant":  # the tenant was erased when the schedule was created
            self._ports.local.atomically(partial(self._drop, schedule.schedule_id))
            return
        now, planned_ms = self._ports.clock(), schedule.next_at_ms or 0
        refused = replace(schedule, last_error=error.code)
        passing = isinstance(error, Unavailable | RateLimited) or error.code == "instance_busy"
        _log.warning("a schedule's run did not begin", extra={"schedule_id": schedule.schedule_id, "code": error.code})
        if passing and now < planned_ms + RETRIED_MS:
            changed = replace(refused, due_at_ms=now + RETRY_MS, updated_at_ms=_changed_at(schedule, now))
        else:
            changed = self._after(schedule, refused)
        self._ports.local.atomically(partial(self._write, changed))

    def _after(self, schedule: Schedule, noted: Schedule) -> Schedule:
        """Return what a schedule is after its time. Raises: _Changed when it is no longer what it was."""
        if self._table.get(schedule.schedule_id) != schedule:
            raise _Changed
        now, planned_ms = self._ports.clock(), schedule.next_at_ms or 0
        next_ms = schedule.timing.following_ms(max(now, planned_ms), self._ports.time_zones)
        return replace(
            noted,
            state="ended" if next_ms is None else "active",
            next_at_ms=next_ms,
            due_at_ms=now + ENDED_KEPT_MS if next_ms is None else next_ms,
            last_at_ms=planned_ms,
            updated_at_ms=_changed_at(schedule, now),
        )

    def _write(self, schedule: Schedule) -> None:
        self._table.keep(schedule)
        self._outbox.add(self._identity.scope.tenant_id, KeepSchedule.of(self._identity, schedule))

    def _drop(self, schedule_id: str) -> None:
        self._table.remove(schedule_id)
        self._outbox.add(self._identity.scope.tenant_id, DropSchedule(schedule_id))


def _changed_at(known: Schedule, now_ms: int) -> int:
    """Return the time of a change, later than the one before: clocks of machines differ, and D1 keeps the last change."""
    return max(now_ms, known.updated_at_ms + 1)


def _run_of(schedule: Schedule) -> RunRequest:
    """Return the request for the run that is due: the same for every try of it."""
    schedule_id = schedule.schedule_id
    key = f"schedule:{schedule_id}:{schedule.next_at_ms}"
    return replace(schedule.request, idempotency_key=key, schedule_id=schedule_id)
