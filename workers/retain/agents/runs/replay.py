"""Replay: repeat a run's decisions from its log, and compare.

Pure. What came from outside (answers of the model, the tools and a person, a cancellation) is taken from the log; what
the runtime decided is decided again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from retain.agents.runs.events import (
    ApprovalRequested,
    ModelAsked,
    RunCancelled,
    RunCompleted,
    RunEvent,
    RunFailed,
    RunForked,
    ToolAnswered,
    ToolCalled,
)
from retain.agents.runs.run_state import (
    AskApproval,
    AskModel,
    CallTool,
    Cancel,
    Complete,
    Fail,
    GiveUpTool,
    Policy,
    RefuseTool,
    RejectCall,
    RunState,
    Step,
    apply,
    next_step,
)


class Diverged(Exception):
    """The log holds an event that would not be decided now. seq: the event's number, from 1."""

    def __init__(self, seq: int, event: RunEvent, step: Step) -> None:
        super().__init__(f"event {seq} is {event}, and the decision now is {step}")
        self.seq = seq
        self.event = event
        self.step = step


@dataclass(frozen=True, slots=True)
class Replay:
    """A replayed run: its decisions in order, and the state after them."""

    steps: tuple[Step, ...]
    state: RunState


def replay(events: Iterable[RunEvent], policy: Policy) -> Replay:
    """Return the decisions that the log shows, each repeated from the events before it.

    A decision that left no event, because a crash came first, is not among them. The end of a run whose model failed, or
    that was given up, came from outside, and so did what a fork begins with: another run decided that.
    Raises: Diverged at the first event that does not follow from the repeated decision.
    """
    log = list(events)
    given = next((seq for seq, event in enumerate(log, start=1) if isinstance(event, RunForked)), 0)
    state, steps = RunState(), list[Step]()
    for seq, event in enumerate(log, start=1):
        if seq > given and _decided(state, event):
            step = next_step(state, policy)
            if not _follows(event, step):
                raise Diverged(seq, event, step)
            steps.append(step)
        state = apply(state, event)
    return Replay(tuple(steps), state)


def _decided(state: RunState, event: RunEvent) -> bool:
    """Return whether the event records a decision, and not something from outside."""
    match event:
        case ModelAsked() | ToolCalled() | ApprovalRequested() | RunCompleted() | RunCancelled():
            return True
        case ToolAnswered():
            rejected = state.decision is not None and not state.decision.approved
            return rejected or not isinstance(state.pending, ToolCalled)
        case RunFailed():
            return event.code in ("turn_limit", "token_budget")
        case _:
            return False


def _follows(event: RunEvent, step: Step) -> bool:
    """Return whether executing the step writes this event."""
    match step, event:
        case AskModel(turn), ModelAsked():
            return event.turn == turn
        case CallTool(turn, index, call, False), ToolCalled():
            return (event.turn, event.index, event.name, event.arguments) == (turn, index, call.name, call.arguments)
        case AskApproval(turn, index, call), ApprovalRequested():
            return (event.turn, event.index, event.name, event.arguments) == (turn, index, call.name, call.arguments)
        case (
            (RefuseTool(turn, index, call) | GiveUpTool(turn, index, call) | RejectCall(turn, index, call)),
            ToolAnswered(),
        ):
            return (event.turn, event.index, event.name, event.failed) == (turn, index, call.name, True)
        case Complete(turn, output), RunCompleted():
            return (event.turn, event.output) == (turn, output)
        case Fail(turn, code, message), RunFailed():
            return (event.turn, event.code, event.message) == (turn, code, message)
        case Cancel(turn, by, reason), RunCancelled():
            return (event.turn, event.by, event.reason) == (turn, by, reason)
        case _:
            return False
