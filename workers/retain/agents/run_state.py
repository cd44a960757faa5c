"""The state of a run as the fold of its events, and the decision what comes next.

Pure: no clock, no input, no output.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass, replace

from retain.agents.events import (
    ModelAnswered,
    ModelAsked,
    RunCompleted,
    RunEvent,
    RunFailed,
    ToolAnswered,
    ToolCalled,
)
from retain.models.chat import ToolCall


@dataclass(frozen=True, slots=True)
class Turn:
    """One answer of the model, and the answers of the tools it called so far, in the order of the calls."""

    answer: ModelAnswered
    results: tuple[ToolAnswered, ...] = ()


@dataclass(frozen=True, slots=True)
class RunState:
    """Where a run stands.

    pending: a side effect that began and of which no end is known. closed: how the run ended, None while it goes on.
    """

    turns: tuple[Turn, ...] = ()
    pending: ModelAsked | ToolCalled | None = None
    closed: RunCompleted | RunFailed | None = None


@dataclass(frozen=True, slots=True)
class AskModel:
    """Ask the model for this turn."""

    turn: int


@dataclass(frozen=True, slots=True)
class CallTool:
    """Make the turn's tool call number `index`. repeated: it may have been made before a crash and is idempotent."""

    turn: int
    index: int
    call: ToolCall
    repeated: bool = False


@dataclass(frozen=True, slots=True)
class GiveUpTool:
    """Tell the model that this call may or may not have happened: it is not idempotent and its end is unknown."""

    turn: int
    index: int
    call: ToolCall


@dataclass(frozen=True, slots=True)
class Complete:
    """End the run with this answer."""

    turn: int
    output: str


@dataclass(frozen=True, slots=True)
class Fail:
    """End the run without an answer."""

    turn: int
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Closed:
    """There is nothing to do: the run has ended."""


Step = AskModel | CallTool | GiveUpTool | Complete | Fail | Closed


def apply(state: RunState, event: RunEvent) -> RunState:
    """Return the state after the event."""
    match event:
        case ModelAsked() | ToolCalled():
            return replace(state, pending=event)
        case ModelAnswered():
            return replace(state, turns=(*state.turns, Turn(event)), pending=None)
        case ToolAnswered():
            last = state.turns[-1]
            turn = replace(last, results=(*last.results, event))
            return replace(state, turns=(*state.turns[:-1], turn), pending=None)
        case RunCompleted() | RunFailed():
            return replace(state, closed=event, pending=None)


def fold(events: Iterable[RunEvent]) -> RunState:
    """Return the state after all the events, from the beginning."""
    state = RunState()
    for event in events:
        state = apply(state, event)
    return state


def next_step(state: RunState, *, max_turns: int, idempotent: Set[str]) -> Step:
    """Decide what a run does next.

    max_turns: how many answers of the model a run may have. idempotent: names of the tools that may be called again.
    A model call is repeated after a crash: it has no side effect. A tool call whose end is unknown is repeated only if
    the tool is idempotent.
    """
    if state.closed is not None:
        return Closed()
    if not state.turns:
        return AskModel(1)
    number, turn = len(state.turns), state.turns[-1]
    done = len(turn.results)
    if done < len(turn.answer.calls):
        call = turn.answer.calls[done]
        interrupted = isinstance(state.pending, ToolCalled)
        if interrupted and call.name not in idempotent:
            return GiveUpTool(number, done, call)
        return CallTool(number, done, call, repeated=interrupted)
    if not turn.answer.calls:
        return Complete(number, turn.answer.content)
    if number >= max_turns:
        return Fail(number, "turn_limit", f"the run did not end within {max_turns} turns")
    return AskModel(number + 1)
