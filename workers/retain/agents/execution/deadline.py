"""How long a run may work: the deadline that its definition names.

The loop checks it before each new step. The alarm, which fires every half minute while a run is under way, checks it during
a step: whoever waits for a model, a tool or a delegate then stops waiting. The waits that have a bound of their own (for a
person, for a delegate that waits for one, for a model's server that is down) do not count, and neither does the time until
a run whose wait has ended is executed: its instance may be busy with another run.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from retain.agents.definitions import AgentDefinition
from retain.agents.runs.events import (
    ApprovalAnswered,
    ApprovalRequested,
    CancelRequested,
    ModelUnavailable,
    RunResumed,
    RunSuspended,
    name_of,
)
from retain.agents.runs.journal import Journal
from retain.agents.runs.open_run import OpenRun
from retain.ports import Clock

DEADLINE = "deadline"
"""Who stops a run that has worked for too long."""
_WAITS = tuple(map(name_of, (ApprovalRequested, ApprovalAnswered, RunSuspended, RunResumed, ModelUnavailable)))
"""After these events a run does not work until the next one."""


@dataclass(frozen=True, slots=True)
class RunDeadline:
    """Until when a run may work, in epoch milliseconds, if it does not wait before. run_minutes: how long it may in all."""

    run_id: str
    at_ms: int
    run_minutes: float

    def overdue(self, run: OpenRun) -> CancelRequested:
        """Return the event that stops the run."""
        reason = f"the run did not end within {self.run_minutes:g} minutes of work"
        return CancelRequested(run.state.turn, DEADLINE, reason)


class Deadlines:
    """The deadline of the run that an instance executes. The other runs of the instance do not work meanwhile.

    current: None while no run is executed, or while the one that is executed is being stopped.
    """

    def __init__(self, journal: Journal, clock: Clock) -> None:
        self._journal = journal
        self._clock = clock
        self.current: RunDeadline | None = None

    @contextmanager
    def executing(self, run_id: str, definition: AgentDefinition) -> Iterator[RunDeadline]:
        """Yield the deadline of a run that is executed from now on. Raises: NotFound."""
        waited_ms = self._journal.log.between_ms(run_id, _WAITS, self._clock())
        at_ms = self._journal.runs.created_ms(run_id) + waited_ms + allowed_ms(definition)
        self.current = deadline = RunDeadline(run_id, at_ms, definition.limits.run_minutes)
        try:
            yield deadline
        finally:
            self.current = None


def allowed_ms(definition: AgentDefinition) -> int:
    """Return how long a run may work, without what it waits."""
    return int(definition.limits.run_minutes * 60_000)


def is_overdue(run: OpenRun) -> bool:
    """Return whether the run is stopped by its deadline."""
    cancel = run.state.cancel
    return cancel is not None and cancel.by == DEADLINE
