"""How long a run may work: the deadline that its definition names.

The loop checks it before each new step. The alarm, which fires every half minute while a run is under way, checks it during
a step: whoever waits for a model, a tool or a delegate then stops waiting. The waits that have a bound of their own (for a
person, for a delegate that waits for one, for a model's server that is down) do not count.
"""

from __future__ import annotations

from retain.agents.definitions import AgentDefinition
from retain.agents.runs.events import ApprovalRequested, CancelRequested, ModelUnavailable, RunSuspended, name_of
from retain.agents.runs.journal import Journal
from retain.agents.runs.open_run import OpenRun

DEADLINE = "deadline"
"""Who stops a run that has worked for too long."""
_WAITS = (name_of(ApprovalRequested), name_of(RunSuspended), name_of(ModelUnavailable))


def deadline_ms(journal: Journal, run_id: str, definition: AgentDefinition) -> int:
    """Return when a run that is not waiting has worked as long as it may, in epoch milliseconds. Raises: NotFound."""
    return _deadline_ms(journal, run_id, journal.runs.created_ms(run_id), definition)


def deadlines_ms(journal: Journal, definition: AgentDefinition) -> list[int]:
    """Return the deadlines of the runs that neither wait nor have ended, except of those that are being stopped already."""
    running = journal.runs.uncancelled(name_of(CancelRequested))
    return [_deadline_ms(journal, run_id, created_ms, definition) for run_id, created_ms in running]


def allowed_ms(definition: AgentDefinition) -> int:
    """Return how long a run may work, without what it waits."""
    return int(definition.limits.run_minutes * 60_000)


def _deadline_ms(journal: Journal, run_id: str, created_ms: int, definition: AgentDefinition) -> int:
    return created_ms + journal.log.between_ms(run_id, _WAITS) + allowed_ms(definition)


def overdue(run: OpenRun, definition: AgentDefinition) -> CancelRequested:
    """Return the event that stops a run whose deadline has passed."""
    reason = f"the run did not end within {definition.limits.run_minutes:g} minutes of work"
    return CancelRequested(run.state.turn, DEADLINE, reason)


def is_overdue(run: OpenRun) -> bool:
    """Return whether the run is stopped by its deadline."""
    cancel = run.state.cancel
    return cancel is not None and cancel.by == DEADLINE
