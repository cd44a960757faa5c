"""When an instance has to wake up: for a run that was interrupted, waits, is queued or planned; for what it owes."""

from __future__ import annotations

from retain.agents.duties.instance_alarm import InstanceAlarm
from retain.agents.duties.owed_deliveries import OwedDeliveries
from retain.agents.execution.control import Control
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
        alarm: InstanceAlarm,
        journal: Journal,
        control: Control,
        queueing: Queueing,
        outbox: Outbox,
        working: WorkingMemory,
        deliveries: OwedDeliveries,
        schedules: Schedules,
    ) -> None:
        self._alarm = alarm
        self._clock = ports.clock
        self._journal = journal
        self._control = control
        self._queueing = queueing
        self._outbox = outbox
        self._working = working
        self._deliveries = deliveries
        self._schedules = schedules

    def fired(self) -> None:
        """Record that the alarm fired."""
        self._alarm.fired()

    async def schedule(self, *, active: bool) -> None:
        """Set the alarm for the next thing that is due. active: whether a run is under way.

        A busy instance need not wake up for each run that it may forget: two days after the first of them are soon enough.
        """
        now = self._clock()
        due: list[int] = []
        if active or self._queueing.queue or self._journal.runs.running():
            due.append(self._alarm.lease_ms())
        times, outbox_ms = self._journal.runs.times(), self._outbox.next_due_ms()
        soonest = (
            times.next_due_ms,
            outbox_ms,
            self._control.deadline_ms(),
            self._working.next_due_ms(),
            self._journal.pending.next_due_ms(),
            self._deliveries.next_due_ms(),
        )
        due += [max(at_ms, now + 1000) for at_ms in soonest if at_ms is not None]
        if times.newest_ms is not None and not due:
            due.append(times.newest_ms + IDLE_MS)
        if times.first_end_ms is not None and outbox_ms is None:  # what D1 does not have yet is not forgotten
            due.append(max(times.first_end_ms + 2 * IDLE_MS, now + 1000))
        planned = self._schedules.next_due_ms()
        if planned is not None:  # however far away, it does not keep the working state
            due.append(max(planned, now + 1000))
        if due:
            await self._alarm.set(min(due))

    def idle(self) -> bool:
        """Return whether the instance has had no run for as long as it keeps its working state."""
        newest_ms = self._journal.runs.times().newest_ms
        return newest_ms is not None and self._clock() - newest_ms >= IDLE_MS
