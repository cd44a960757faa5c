"""When an instance has to wake up: for a run that was interrupted, waits, is queued or planned; for what it owes."""

from __future__ import annotations

from retain.agents.duties.owed_deliveries import OwedDeliveries
from retain.agents.execution.control import Control
from retain.agents.execution.executor import LEASE_MS
from retain.agents.instance_ports import InstancePorts
from retain.agents.queueing.queueing import Queueing
from retain.agents.queueing.schedules import Schedules
from retain.agents.runs.journal import Journal
from retain.memory.working import WorkingMemory
from retain.outbox import Outbox

IDLE_MS = 24 * 3600 * 1000
"""How long the object keeps a run that has ended, and its working state after the last run."""


class Wakeups:
    """Sets the alarm of one instance."""

    def __init__(
        self,
        ports: InstancePorts,
        journal: Journal,
        control: Control,
        queueing: Queueing,
        outbox: Outbox,
        working: WorkingMemory,
        deliveries: OwedDeliveries,
        schedules: Schedules,
    ) -> None:
        self._alarm = ports.alarm
        self._clock = ports.clock
        self._journal = journal
        self._control = control
        self._queueing = queueing
        self._outbox = outbox
        self._working = working
        self._deliveries = deliveries
        self._schedules = schedules

    async def schedule(self, *, active: bool) -> None:
        """Set the alarm for the next thing that is due. active: whether a run is under way.

        A busy instance need not wake up for each run that it may forget: two days after the first of them are soon enough.
        """
        now = self._clock()
        due: list[int] = []
        if active or self._queueing.queue or self._journal.runs.running():
            due += [now + LEASE_MS, *[max(deadline, now + 1000) for deadline in self._control.deadlines()]]
        soonest = (
            self._journal.runs.next_due_ms(),
            self._outbox.next_due_ms(),
            self._working.next_due_ms(),
            self._journal.pending.next_due_ms(),
            self._deliveries.next_due_ms(),
        )
        due += [max(at_ms, now + 1000) for at_ms in soonest if at_ms is not None]
        newest = self._journal.runs.newest(1)
        if newest and not due:
            due.append(newest[0].updated_at_ms + IDLE_MS)
        ended = self._journal.runs.first_end_ms()
        if ended is not None and self._outbox.next_due_ms() is None:  # what D1 does not have yet is not forgotten
            due.append(max(ended + 2 * IDLE_MS, now + 1000))
        planned = self._schedules.next_due_ms()
        if planned is not None:  # however far away, it does not keep the working state
            due.append(max(planned, now + 1000))
        if due:
            await self._alarm.set(min(due))

    def idle(self) -> bool:
        """Return whether the instance has had no run for as long as it keeps its working state."""
        newest = self._journal.runs.newest(1)
        return bool(newest) and self._clock() - newest[0].updated_at_ms >= IDLE_MS
