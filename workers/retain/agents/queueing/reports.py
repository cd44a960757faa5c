"""The report of any run of an instance: in its queue, under way, waiting, or ended."""

from __future__ import annotations

from retain.agents.calls.report import RunReport, RunStanding
from retain.agents.execution.live_text import LiveText
from retain.agents.identity import InstanceIdentity
from retain.agents.queueing.run_queue import RunQueue
from retain.agents.runs.journal import Journal
from retain.models.retry import Sleep

WAIT_S = 0.25
WAIT_TURNS = 100
"""How long, and how often, a second call with the same idempotency key waits for the first one to end."""
CANCEL_WAIT_TURNS = 20
"""How often a cancellation checks whether the run has stopped."""


class Reports:
    """Reports the runs of one instance."""

    def __init__(
        self, identity: InstanceIdentity, journal: Journal, queue: RunQueue, live: LiveText, sleep: Sleep
    ) -> None:
        self._identity = identity
        self._journal = journal
        self._queue = queue
        self._live = live
        self._sleep = sleep

    def of(self, run_id: str) -> RunReport:
        """Return the run's result, or its state so far. Raises: NotFound (code `no_such_run`)."""
        position = self._queue.position(run_id)
        if position is None:
            return self._journal.report(run_id)
        by = self._queue.started_by(run_id)
        return RunStanding(run_id, self._identity.instance_id, "queued", queue_position=position, by=by)

    async def stopped(self, run_id: str) -> None:
        """Return as soon as a run that is resumed in the background is not under way any more, or after a short while."""
        await self._live.news(lambda: run_id not in self._journal.runs.running(), WAIT_S)

    async def awaited(self, run_id: str, turns: int = WAIT_TURNS) -> RunReport:
        """Return the report of a run that another call executes, when it is neither queued nor under way, or after a while.

        Raises: NotFound (code `no_such_run`).
        """
        for _ in range(turns):
            if run_id not in self._queue and run_id not in self._journal.runs.running():
                break
            await self._sleep(WAIT_S)
        return self.of(run_id)
