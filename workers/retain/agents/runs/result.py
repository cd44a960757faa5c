"""What a run is shown as: its result once it has ended, and what it waits for until then."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from retain.agents.runs.events import Closing, RunCancelled, RunCompleted, RunFailed, ToolCalled
from retain.agents.runs.run_state import RunState


def status_of(event: Closing) -> str:
    """Return the status of a run that this event closed."""
    match event:
        case RunCompleted():
            return "completed"
        case RunFailed():
            return "failed"
        case RunCancelled():
            return "cancelled"


def error_of(event: Closing) -> dict[str, Any] | None:
    """Return why a run ended without an answer."""
    match event:
        case RunCompleted():
            return None
        case RunFailed():
            return {"code": event.code, "message": event.message}
        case RunCancelled():
            return {"code": "cancelled", "message": event.reason or "the run was cancelled", "by": event.by}


def result_of(
    run_id: str,
    instance_id: str,
    state: RunState,
    event: Closing,
    *,
    episodes_used: int,
    records_used: int,
    procedure: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Return the run's result as the interface shows it.

    state: before the event. steps: model calls and tool calls made. A cancelled run says in `done` what it did before.
    """
    recalled = {record_id for turn in state.turns for result in turn.results for record_id, _ in result.recalled}
    result: dict[str, Any] = {
        "run_id": run_id,
        "instance_id": instance_id,
        "status": status_of(event),
        "output": event.output if isinstance(event, RunCompleted) else None,
        "steps": sum(1 + len(turn.results) for turn in state.turns),
        "usage": {
            "input_tokens": sum(turn.answer.input_tokens for turn in state.turns),
            "output_tokens": sum(turn.answer.output_tokens for turn in state.turns),
            "delegated_tokens": sum(result.tokens for turn in state.turns for result in turn.results),
            "delegations": state.delegations,
        },
        "memory": {"episodes_used": episodes_used, "records_used": records_used + len(recalled)},
    }
    if procedure is not None:
        result["procedure"] = dict(procedure)
    error = error_of(event)
    if error is not None:
        result["error"] = error
    if isinstance(event, RunCancelled):
        result["done"] = done(state)
    return result


def done(state: RunState) -> list[dict[str, Any]]:
    """Return the tool calls that were begun, in order: {"call", "tool", "outcome"}.

    outcome: `done`, `failed`, or `unknown` for one whose end is not known.
    """
    calls = [
        {"call": f"{result.turn}.{result.index}", "tool": result.name, "outcome": "failed" if result.failed else "done"}
        for turn in state.turns
        for result in turn.results
    ]
    if isinstance(state.pending, ToolCalled):
        pending = state.pending
        calls.append({"call": f"{pending.turn}.{pending.index}", "tool": pending.name, "outcome": "unknown"})
    return calls


def waiting_for(state: RunState) -> dict[str, Any] | None:
    """Return what the run waits for: a person's answer about a call, or a delegate; None when it does not wait."""
    if not state.waiting:
        return None
    if state.asked is not None:
        asked = state.asked
        return {
            "kind": "approval",
            "call": f"{asked.turn}.{asked.index}",
            "tool": asked.name,
            "arguments": dict(asked.arguments),
            "expires_at_ms": asked.expires_at_ms,
        }
    assert state.suspended is not None
    suspended = state.suspended
    return {"kind": "delegate", "call": f"{suspended.turn}.{suspended.index}", **suspended.waiting_for}
