"""The state of a run as the fold of its events, and the decision on what comes next.

Pure: no clock, no input, no output.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass, replace

from retain.agents.calls.run_request import RunReference
from retain.agents.runs.events import (
    AnswerDropped,
    ApprovalAnswered,
    ApprovalRequested,
    CallRetried,
    CancelRequested,
    Closing,
    ModelAnswered,
    ModelAsked,
    ModelUnavailable,
    RunCancelled,
    RunCompleted,
    RunEvent,
    RunFailed,
    RunForked,
    RunRecovered,
    RunResumed,
    RunSuspended,
    ToolAnswered,
    ToolCalled,
)
from retain.errors.codes import Code, ForeignCode
from retain.models.chat import ToolCall

MAX_ANSWERS = 3
"""How many answers that cannot be used a turn may get before its run fails."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One answer of the model, and the answers of the tools it called so far, in the order of the calls."""

    answer: ModelAnswered
    results: tuple[ToolAnswered, ...] = ()


@dataclass(frozen=True, slots=True)
class RunState:
    """The state of a run.

    pending: a side effect that began and whose result is not known. asked, decision: what a person was asked about the
    next call, and the answer. suspended: the pending call waits for its delegate. suspensions: how often the pending call
    was suspended. waited_for: the delegate for which it waits, or did last. waited: whether the run ever waited. dropped:
    answers that could not be used. outage: the last failure of a server that has not answered since. awaiting_model: the run
    waits for that server. recovered: the last interruption since which nothing was achieved. forked, inherited: what the run
    began with, and the state that this made; what that had spent is not the run's. cancel: the first cancellation. closed:
    how the run ended, None while it is open.
    """

    turns: tuple[Turn, ...] = ()
    pending: ModelAsked | ToolCalled | None = None
    asked: ApprovalRequested | None = None
    decision: ApprovalAnswered | None = None
    suspended: RunSuspended | None = None
    suspensions: int = 0
    waited_for: RunReference | None = None
    waited: bool = False
    dropped: tuple[AnswerDropped, ...] = ()
    outage: ModelUnavailable | None = None
    awaiting_model: bool = False
    recovered: RunRecovered | None = None
    forked: RunForked | None = None
    inherited: RunState | None = None
    cancel: CancelRequested | None = None
    closed: Closing | None = None

    @property
    def waiting(self) -> bool:
        """Whether nothing can be done until somebody answers, or the model's server may be back."""
        if self.closed is not None or self.cancel is not None:
            return False
        return self.asked is not None or self.suspended is not None or self.awaiting_model

    @property
    def turn(self) -> int:
        """The number of the turn that the run is in, from 1."""
        if self.pending is not None:
            return self.pending.turn
        return max(len(self.turns), 1) if self.outage is None else self.outage.turn

    @property
    def results(self) -> tuple[ToolAnswered, ...]:
        """What the run's own tool calls answered, in order."""
        inherited = () if self.inherited is None else self.inherited.results
        return tuple(result for turn in self.turns for result in turn.results)[len(inherited) :]

    @property
    def own_turns(self) -> int:
        """How many of the turns are the run's own, and not those of the run that it was forked from."""
        return len(self.turns) - (0 if self.inherited is None else len(self.inherited.turns))

    @property
    def carried_turns(self) -> int:
        """How many whole turns the run took over: the run that it was forked from has their episodes."""
        return 0 if self.forked is None else self.forked.turns

    @property
    def input_tokens(self) -> int:
        """Tokens that the run's own model read, also for answers that were dropped."""
        answers = sum(turn.answer.input_tokens for turn in self._answered())
        return answers + sum(answer.input_tokens for answer in self.dropped)

    @property
    def output_tokens(self) -> int:
        """Tokens that the run's own model wrote, also in answers that were dropped."""
        answers = sum(turn.answer.output_tokens for turn in self._answered())
        return answers + sum(answer.output_tokens for answer in self.dropped)

    @property
    def cached_input_tokens(self) -> int:
        """Tokens that the run's own model read and that its server's cache supplied, a part of `input_tokens`."""
        answers = sum(turn.answer.cached_input_tokens for turn in self._answered())
        return answers + sum(answer.cached_input_tokens for answer in self.dropped)

    @property
    def delegated_tokens(self) -> int:
        """Tokens that the run's delegates read and wrote."""
        return sum(result.tokens for result in self.results)

    @property
    def tokens(self) -> int:
        """Tokens that the run and its delegates read and wrote."""
        return self.input_tokens + self.output_tokens + self.delegated_tokens

    @property
    def delegations(self) -> int:
        """Runs that the run and its delegates started."""
        return sum(result.delegations for result in self.results)

    def call_key(self, turn: int, index: int) -> str | None:
        """Return the key of a call that was under way when the run was forked, None for any other."""
        called = None if self.inherited is None else self.inherited.pending
        if self.forked is None or not isinstance(called, ToolCalled) or (called.turn, called.index) != (turn, index):
            return None
        return self.forked.call_key

    def _answered(self) -> tuple[Turn, ...]:
        """Return the turns whose answers the run itself asked for."""
        return self.turns[len(self.turns) - self.own_turns :]


@dataclass(frozen=True, slots=True)
class Policy:
    """What decides in addition to the events.

    max_turns: how many answers of the model a run may ask for. idempotent: names of the tools that may be called again.
    approvals: names of the tools whose calls a person approves. max_tokens: how many tokens the run and its delegates
    may read and write, None for no bound. max_delegations: how many runs they may start.
    """

    max_turns: int
    idempotent: Set[str]
    approvals: Set[str] = frozenset()
    max_tokens: int | None = None
    max_delegations: int = 0


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
    """Tell the model that this call may or may not have happened: it is not idempotent and its result is unknown."""

    turn: int
    index: int
    call: ToolCall


@dataclass(frozen=True, slots=True)
class RejectCall:
    """Tell the model that this call cannot be made, and why: its `problem`."""

    turn: int
    index: int
    call: ToolCall


@dataclass(frozen=True, slots=True)
class AskApproval:
    """Ask a person whether this call may be made."""

    turn: int
    index: int
    call: ToolCall


@dataclass(frozen=True, slots=True)
class RefuseTool:
    """Tell the model that a person rejected this call."""

    turn: int
    index: int
    call: ToolCall
    decision: ApprovalAnswered


@dataclass(frozen=True, slots=True)
class Wait:
    """Do nothing until the wait ends, and release the instance."""


@dataclass(frozen=True, slots=True)
class Cancel:
    """End the run because somebody cancelled it. interrupted: a call that began and whose result is not known."""

    turn: int
    by: str
    reason: str | None
    interrupted: ToolCalled | None


@dataclass(frozen=True, slots=True)
class Complete:
    """End the run with this answer."""

    turn: int
    output: str


@dataclass(frozen=True, slots=True)
class Fail:
    """End the run without an answer."""

    turn: int
    code: Code | ForeignCode
    message: str


@dataclass(frozen=True, slots=True)
class Closed:
    """Do nothing: the run has ended."""


Step = (
    AskModel | CallTool | GiveUpTool | RejectCall | AskApproval | RefuseTool | Wait | Cancel | Complete | Fail | Closed
)


def apply(state: RunState, event: RunEvent) -> RunState:
    """Return the state after the event."""
    match event:
        case ModelAsked() | ToolCalled():
            return replace(state, pending=event)
        case ModelAnswered():
            turns = (*state.turns, Turn(event))
            return replace(state, turns=turns, pending=None, outage=None, awaiting_model=False, recovered=None)
        case AnswerDropped():
            return replace(state, dropped=(*state.dropped, event), pending=None, recovered=None)
        case ModelUnavailable():
            return replace(state, outage=event, awaiting_model=True, pending=None, waited=True, recovered=None)
        case CallRetried():
            return state
        case ToolAnswered():
            last = state.turns[-1]
            turn = replace(last, results=(*last.results, event))
            turns = (*state.turns[:-1], turn)
            answered = replace(state, turns=turns, pending=None, recovered=None)
            return replace(answered, asked=None, decision=None, suspended=None, suspensions=0, waited_for=None)
        case ApprovalRequested():
            return replace(state, asked=event, decision=None, waited=True)
        case ApprovalAnswered():
            return replace(state, asked=None, decision=event)
        case RunSuspended():
            suspended = replace(state, suspended=event, suspensions=state.suspensions + 1, waited=True)
            return replace(suspended, waited_for=event.waiting_for)
        case RunResumed():
            return replace(state, suspended=None, awaiting_model=False)
        case RunRecovered():
            return replace(state, recovered=event)
        case RunForked():
            return replace(state, forked=event, inherited=state)
        case CancelRequested():
            return replace(state, cancel=state.cancel or event)
        case RunCompleted() | RunFailed() | RunCancelled():
            return replace(state, closed=event, pending=None)


def fold(events: Iterable[RunEvent]) -> RunState:
    """Return the state after all the events, from the beginning."""
    state = RunState()
    for event in events:
        state = apply(state, event)
    return state


def next_step(state: RunState, policy: Policy) -> Step:
    """Return what a run does next.

    A cancellation comes first: no side effect begins after it. A model call is repeated after a crash: it has no side
    effect. A tool call whose result is unknown is repeated only if the tool is idempotent.
    """
    if state.closed is not None:
        return Closed()
    number = len(state.turns)
    if state.cancel is not None:
        interrupted = state.pending if isinstance(state.pending, ToolCalled) else None
        return Cancel(max(number, 1), state.cancel.by, state.cancel.reason, interrupted)
    if state.waiting:
        return Wait()
    if not state.turns:
        return _ask(state, 1, policy)
    turn = state.turns[-1]
    done = len(turn.results)
    if done < len(turn.answer.calls):
        return _call(state, number, done, turn.answer.calls[done], policy)
    if not turn.answer.calls:
        return Complete(number, turn.answer.content)
    if state.own_turns >= policy.max_turns:
        return Fail(number, "turn_limit", f"the run did not end within {policy.max_turns} turns")
    return _ask(state, number + 1, policy)


def _ask(state: RunState, turn: int, policy: Policy) -> Step:
    if policy.max_tokens is not None and state.tokens >= policy.max_tokens:
        message = f"the run and its delegates used their {policy.max_tokens} tokens"
        return Fail(turn, "token_budget", message)
    unusable = dropped_in(state, turn)
    if len(unusable) >= MAX_ANSWERS:
        return Fail(turn, unusable[-1].code, unusable[-1].message)
    return AskModel(turn)


def dropped_in(state: RunState, turn: int, *, broken: bool = False) -> list[AnswerDropped]:
    """Return the answers of a turn that could not be used; with `broken`, those whose stream broke off instead."""
    return [
        answer for answer in state.dropped if answer.turn == turn and (answer.code == "stream_interrupted") is broken
    ]


def _call(state: RunState, turn: int, index: int, call: ToolCall, policy: Policy) -> Step:
    if call.problem is not None:
        return RejectCall(turn, index, call)
    if isinstance(state.pending, ToolCalled):
        if call.name not in policy.idempotent:
            return GiveUpTool(turn, index, call)
        return CallTool(turn, index, call, repeated=True)
    if state.decision is not None and not state.decision.approved:
        return RefuseTool(turn, index, call, state.decision)
    if state.decision is None and call.name in policy.approvals:
        return AskApproval(turn, index, call)
    return CallTool(turn, index, call)
