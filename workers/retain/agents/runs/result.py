"""The report of a run, from its state: its result, and what it waits for."""

from __future__ import annotations

from retain.agents.calls.report import (
    ApprovalAwaited,
    Awaited,
    BegunCall,
    DelegateAwaited,
    EndStatus,
    ModelAwaited,
    RunError,
    RunMemory,
    RunResult,
    RunStanding,
    RunUsage,
)
from retain.agents.runs.events import (
    ApprovalRequested,
    Closing,
    ModelUnavailable,
    RunCancelled,
    RunCompleted,
    RunEvent,
    RunFailed,
    RunSuspended,
    ToolCalled,
)
from retain.agents.runs.open_run import OpenRun
from retain.agents.runs.run_state import RunState

RECHECK_MS = 60_000
MAX_RECHECK_MS = 3_600_000
"""How soon a suspended run checks on its delegate without being woken: one minute, doubling to an hour."""


def status_of(event: Closing) -> EndStatus:
    """Return the status of a run closed by this event."""
    match event:
        case RunCompleted():
            return "completed"
        case RunFailed():
            return "failed"
        case RunCancelled():
            return "cancelled"


def error_of(event: Closing) -> RunError | None:
    """Return why a run ended without an answer, None for a completed run."""
    match event:
        case RunCompleted():
            return None
        case RunFailed():
            return RunError(event.code, event.message, server=event.server)
        case RunCancelled():
            return RunError("cancelled", event.reason or "the run was cancelled", event.by)


def result_of(run: OpenRun, instance_id: str, event: Closing) -> RunResult:
    """Return the result of a run closed by this event. run: before the event."""
    state = run.state
    completed = isinstance(event, RunCompleted)
    recalled = {record_id for turn in state.turns for result in turn.results for record_id, _ in result.recalled}
    return RunResult(
        run_id=run.run_id,
        instance_id=instance_id,
        status=status_of(event),
        output=event.output if isinstance(event, RunCompleted) else None,
        steps=steps_of(state),
        usage=RunUsage(
            input_tokens=state.input_tokens,
            output_tokens=state.output_tokens,
            delegated_tokens=state.delegated_tokens,
            delegations=state.delegations,
            cached_input_tokens=state.cached_input_tokens,
        ),
        memory=RunMemory(run.episodes_used, run.records_used + len(recalled), run.messages_used),
        procedure=run.procedure,
        error=error_of(event),
        begun=begun_calls(state) if _stopped(event) else None,
        finish_reason=state.turns[-1].answer.finish_reason if completed and state.turns else None,
        by=run.request.by,
    )


def _stopped(event: Closing) -> bool:
    """Return whether the run was stopped while it might have been doing something."""
    return isinstance(event, RunCancelled) or (isinstance(event, RunFailed) and event.code == "run_deadline")


def standing_of(run: OpenRun, instance_id: str) -> RunStanding:
    """Return the report of a run that has not ended."""
    state = run.state
    return RunStanding(
        run.run_id,
        instance_id,
        "waiting" if state.waiting else "running",
        awaited=awaited(state),
        cancelling=state.cancel is not None,
        by=run.request.by,
    )


def steps_of(state: RunState) -> int:
    """Return how many steps the run has made: answers of the model, and of tools."""
    return state.own_turns + len(state.results)


def begun_calls(state: RunState) -> tuple[BegunCall, ...]:
    """Return the tool calls that were begun, in order."""
    ended = [
        BegunCall(f"{result.turn}.{result.index}", result.name, "failed" if result.failed else "done")
        for result in state.results
    ]
    pending = state.pending
    if isinstance(pending, ToolCalled):
        ended.append(BegunCall(f"{pending.turn}.{pending.index}", pending.name, "unknown"))
    return tuple(ended)


def awaited(state: RunState) -> Awaited | None:
    """Return what the run waits for, None when it does not wait."""
    if not state.waiting:
        return None
    asked, suspended = state.asked, state.suspended
    if asked is not None:
        return ApprovalAwaited(f"{asked.turn}.{asked.index}", asked.name, asked.arguments, asked.expires_at_ms)
    if suspended is not None:
        return DelegateAwaited(f"{suspended.turn}.{suspended.index}", suspended.waiting_for)
    down = state.outage
    if down is not None:
        return ModelAwaited(down.code, down.message, down.retry_at_ms, down.gives_up_at_ms, down.server)
    return None


def due_of(event: RunEvent, now_ms: int) -> int:
    """Return when a run that waits after this event resumes without an answer."""
    match event:
        case ApprovalRequested():
            return event.expires_at_ms
        case RunSuspended():
            return now_ms + min(RECHECK_MS << min(event.times, 20), MAX_RECHECK_MS)
        case ModelUnavailable():
            return event.retry_at_ms
        case _:
            return now_ms
