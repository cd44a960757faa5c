"""The run's state and the decision what comes next: tables, and laws over runs that are interrupted anywhere."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retain.agents.calls.report import ServerReport
from retain.agents.calls.run_request import RunReference
from retain.agents.runs.events import (
    KINDS,
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
    from_json,
    kind_of,
    to_json,
)
from retain.agents.runs.replay import Diverged, replay
from retain.agents.runs.result import begun_calls
from retain.agents.runs.run_state import (
    AskApproval,
    AskModel,
    CallTool,
    Cancel,
    Closed,
    Complete,
    Fail,
    GiveUpTool,
    Policy,
    RefuseTool,
    RejectCall,
    RunState,
    Step,
    Wait,
    apply,
    fold,
    next_step,
)
from retain.errors.codes import Code
from retain.json_text import JsonObject
from retain.models.chat import FinishReason, ToolCall

LOOK = ToolCall("c1", "look", {"at": "it"})
PAY = ToolCall("c2", "pay", {"amount": 5})
IDEMPOTENT = frozenset({"look"})


def answered(turn: int, *calls: ToolCall, content: str = "") -> ModelAnswered:
    return ModelAnswered(turn, content, calls, 10, 2)


BAD = ToolCall("c3", "pay", {}, "the arguments are not a JSON object: {")


def dropped(code: Code = "empty_answer", turn: int = 1) -> AnswerDropped:
    return AnswerDropped(turn, code, "no use", 10, 0)


DOWN = ModelUnavailable(1, "model_unavailable", "down", 5_000, 60_000)


def called(turn: int, index: int, call: ToolCall) -> ToolCalled:
    return ToolCalled(turn, index, call.name, call.arguments)


def result(turn: int, index: int, call: ToolCall) -> ToolAnswered:
    return ToolAnswered(turn, index, call.name, "seen")


@pytest.mark.parametrize(
    ("events", "step"),
    [
        pytest.param([], AskModel(1), id="a new run asks the model"),
        pytest.param([ModelAsked(1)], AskModel(1), id="an interrupted question is asked again"),
        pytest.param([answered(1, content="hi")], Complete(1, "hi"), id="an answer without calls ends the run"),
        pytest.param([answered(1)], Complete(1, ""), id="an empty answer ends the run too"),
        pytest.param([answered(1, LOOK, PAY)], CallTool(1, 0, LOOK), id="the first call comes first"),
        pytest.param(
            [answered(1, LOOK, PAY), called(1, 0, LOOK), result(1, 0, LOOK)],
            CallTool(1, 1, PAY),
            id="calls are made in order",
        ),
        pytest.param(
            [answered(1, LOOK), called(1, 0, LOOK)],
            CallTool(1, 0, LOOK, repeated=True),
            id="an interrupted idempotent call is repeated",
        ),
        pytest.param(
            [answered(1, PAY), called(1, 0, PAY)],
            GiveUpTool(1, 0, PAY),
            id="an interrupted call that must not be repeated is given up",
        ),
        pytest.param(
            [answered(1, PAY, LOOK), called(1, 0, PAY), result(1, 0, PAY)],
            CallTool(1, 1, LOOK),
            id="after a call was given up the next one is made",
        ),
        pytest.param(
            [answered(1, LOOK), called(1, 0, LOOK), result(1, 0, LOOK)],
            AskModel(2),
            id="after the tools the model is asked again",
        ),
        pytest.param(
            [
                answered(1, LOOK),
                result(1, 0, LOOK),
                answered(2, LOOK),
                result(2, 0, LOOK),
                answered(3, LOOK),
                result(3, 0, LOOK),
            ],
            Fail(3, "turn_limit", "the run did not end within 3 turns"),
            id="the turn limit fails the run",
        ),
        pytest.param(
            [answered(1, LOOK), result(1, 0, LOOK), answered(2, LOOK), result(2, 0, LOOK), answered(3, content="done")],
            Complete(3, "done"),
            id="an answer in the last turn is in time",
        ),
        pytest.param([answered(1, BAD)], RejectCall(1, 0, BAD), id="a call that cannot be made is answered"),
        pytest.param([answered(1, BAD), result(1, 0, BAD)], AskModel(2), id="and the model is asked again"),
        pytest.param([ModelAsked(1), dropped()], AskModel(1), id="an answer that cannot be used is asked for again"),
        pytest.param([dropped(), dropped(), dropped("answer_cut")], Fail(1, "answer_cut", "no use"), id="twice"),
        pytest.param(
            [dropped(), dropped(), answered(1, LOOK), result(1, 0, LOOK), dropped(turn=2)],
            AskModel(2),
            id="in each turn",
        ),
        pytest.param([dropped("stream_interrupted")] * 5, AskModel(1), id="streams that break off do not count"),
        pytest.param([ModelAsked(1), DOWN], Wait(), id="a run waits for a server that is down"),
        pytest.param([ModelAsked(1), DOWN, RunResumed(1, None)], AskModel(1), id="after the wait it is asked again"),
        pytest.param(
            [ModelAsked(1), DOWN, CancelRequested(1, "a")], Cancel(1, "a", None, None), id="a wait can be cancelled"
        ),
        pytest.param([ModelAsked(1), RunRecovered(1, 1)], AskModel(1), id="an interruption decides nothing"),
        pytest.param([answered(1), RunCompleted(1, "")], Closed(), id="a completed run is closed"),
        pytest.param([ModelAsked(1), RunFailed(1, "unavailable", "no")], Closed(), id="a failed run is closed"),
    ],
)
def test_the_next_step_follows_from_the_events(events: list[RunEvent], step: Step) -> None:
    assert next_step(fold(events), Policy(3, IDEMPOTENT)) == step


ASKED = ApprovalRequested(1, 0, "pay", PAY.arguments, 1000)
APPROVED = ApprovalAnswered(1, 0, True, "ann@example.com")
REJECTED = ApprovalAnswered(1, 0, False, "ann@example.com", "no")
STOP = CancelRequested(1, "ann@example.com", "enough")
SUSPENDED = RunSuspended(1, 0, RunReference("child", "clerk", "main"))


@pytest.mark.parametrize(
    ("events", "step"),
    [
        pytest.param([answered(1, PAY)], AskApproval(1, 0, PAY), id="a call that needs approval is asked about"),
        pytest.param([answered(1, LOOK)], CallTool(1, 0, LOOK), id="another call is not"),
        pytest.param([answered(1, PAY), ASKED], Wait(), id="nothing is done until somebody answers"),
        pytest.param([answered(1, PAY), ASKED, APPROVED], CallTool(1, 0, PAY), id="an approved call is made"),
        pytest.param([answered(1, PAY), ASKED, REJECTED], RefuseTool(1, 0, PAY, REJECTED), id="a rejected call is not"),
        pytest.param(
            [answered(1, PAY), ASKED, APPROVED, called(1, 0, PAY)],
            GiveUpTool(1, 0, PAY),
            id="an approved call that was interrupted is given up",
        ),
        pytest.param(
            [answered(1, PAY, PAY), ASKED, APPROVED, called(1, 0, PAY), result(1, 0, PAY)],
            AskApproval(1, 1, PAY),
            id="an approval is for one call",
        ),
        pytest.param([answered(1, LOOK), called(1, 0, LOOK), SUSPENDED], Wait(), id="a suspended call waits"),
        pytest.param(
            [answered(1, LOOK), called(1, 0, LOOK), SUSPENDED, RunResumed(1, 0)],
            CallTool(1, 0, LOOK, repeated=True),
            id="a resumed call is made again",
        ),
        pytest.param([STOP], Cancel(1, STOP.by, STOP.reason, None), id="a run is stopped before it begins"),
        pytest.param([ModelAsked(1), STOP], Cancel(1, STOP.by, STOP.reason, None), id="while the model is asked"),
        pytest.param([answered(1, LOOK), STOP], Cancel(1, STOP.by, STOP.reason, None), id="before a call"),
        pytest.param([answered(1), STOP], Cancel(1, STOP.by, STOP.reason, None), id="before it ends"),
        pytest.param([answered(1, PAY), ASKED, STOP], Cancel(1, STOP.by, STOP.reason, None), id="while it waits"),
        pytest.param(
            [answered(1, PAY), ASKED, STOP, APPROVED], Cancel(1, STOP.by, STOP.reason, None), id="whatever is answered"
        ),
        pytest.param(
            [answered(1, LOOK), called(1, 0, LOOK), STOP],
            Cancel(1, STOP.by, STOP.reason, called(1, 0, LOOK)),
            id="in the middle of a call, which it names",
        ),
        pytest.param(
            [STOP, CancelRequested(1, "bob@example.com")], Cancel(1, STOP.by, STOP.reason, None), id="by the first"
        ),
        pytest.param([STOP, RunCancelled(1, STOP.by)], Closed(), id="a cancelled run is closed"),
        pytest.param(
            [answered(1, LOOK), ToolAnswered(1, 0, "look", "x", tokens=88)],
            Fail(2, "token_budget", "the run and its delegates used their 100 tokens"),
            id="delegates' tokens count against the budget",
        ),
        pytest.param(
            [answered(1, LOOK), ToolAnswered(1, 0, "look", "x", tokens=87)], AskModel(2), id="one token is left"
        ),
        pytest.param(
            [answered(1), ToolAnswered(1, 0, "look", "x", tokens=88)], Complete(1, ""), id="ending costs no tokens"
        ),
    ],
)
def test_approval_cancellation_and_budget_decide(events: list[RunEvent], step: Step) -> None:
    policy = Policy(3, IDEMPOTENT, approvals=frozenset({"pay"}), max_tokens=100)
    assert next_step(fold(events), policy) == step
    assert (next_step(fold(events), policy) == Wait()) is fold(events).waiting


def test_a_side_effect_is_pending_from_its_start_to_its_result() -> None:
    state = apply(RunState(), ModelAsked(1))
    assert state.pending == ModelAsked(1)
    state = apply(state, answered(1, LOOK))
    assert state.pending is None
    state = apply(state, called(1, 0, LOOK))
    assert state.pending == called(1, 0, LOOK)
    state = apply(state, result(1, 0, LOOK))
    assert (state.pending, len(state.turns), state.turns[0].results) == (None, 1, (result(1, 0, LOOK),))


class Interrupted(Exception):
    """The run stops here; only its log is left."""


@dataclass
class Driver:
    """Executes a run as the loop does: one event before a side effect, one after it.

    turns: for each turn the tools that the model calls; after the last it answers. interruptions: at which of the places
    between an event and a side effect the run stops, counted over all its lives. approvals: tools that a person approves;
    rejected: positions of the calls that the person rejects. cancelled_at: after how many events somebody cancels it.
    """

    turns: Sequence[Sequence[str]]
    max_turns: int
    interruptions: frozenset[int] = frozenset()
    approvals: frozenset[str] = frozenset()
    rejected: frozenset[tuple[int, int]] = frozenset()
    cancelled_at: int | None = None
    log: list[str] = field(default_factory=list)
    effects: Counter[tuple[int, int]] = field(default_factory=Counter)
    places: int = 0
    lives: int = 1

    def finish(self) -> RunState:
        """Resume the run until it is closed."""
        while True:
            try:
                return self._live()
            except Interrupted:
                self.lives += 1

    @property
    def policy(self) -> Policy:
        """Return what decides besides the events."""
        return Policy(self.max_turns, IDEMPOTENT, self.approvals)

    def events(self) -> list[RunEvent]:
        """Return the log as read back from its JSON."""
        return [from_json(kind, data) for kind, data in map(json.loads, self.log)]

    def _live(self) -> RunState:
        state = fold(self.events())
        while True:
            due = self.cancelled_at is not None and len(self.log) >= self.cancelled_at
            if due and state.cancel is None and state.closed is None:
                state = self._append(state, CancelRequested(1, "ann"))
            step = next_step(state, self.policy)
            match step:
                case Closed():
                    return state
                case AskModel(turn):
                    state = self._append(state, ModelAsked(turn))
                    calls = self.turns[turn - 1] if turn <= len(self.turns) else ()
                    made = tuple(ToolCall(f"{turn}.{n}", name, {"n": n}) for n, name in enumerate(calls))
                    state = self._append(state, ModelAnswered(turn, f"turn {turn}", made, 1, 1))
                case CallTool(turn, index, call, repeated):
                    if not repeated:
                        state = self._append(state, ToolCalled(turn, index, call.name, call.arguments))
                    self.effects[turn, index] += 1
                    self._place()
                    state = self._append(state, ToolAnswered(turn, index, call.name, f"{turn}.{index}"))
                case GiveUpTool(turn, index, call):
                    state = self._append(state, ToolAnswered(turn, index, call.name, "unknown", failed=True))
                case AskApproval(turn, index, call):
                    state = self._append(state, ApprovalRequested(turn, index, call.name, call.arguments, 0))
                case Wait():
                    assert state.asked is not None
                    place = (state.asked.turn, state.asked.index)
                    state = self._append(state, ApprovalAnswered(*place, place not in self.rejected, "ann"))
                case RefuseTool(turn, index, call):
                    state = self._append(state, ToolAnswered(turn, index, call.name, "rejected", failed=True))
                case Cancel(turn, by, reason):
                    state = self._append(state, RunCancelled(turn, by, reason))
                case Complete(turn, output):
                    state = self._append(state, RunCompleted(turn, output))
                case Fail(turn, code, message):
                    state = self._append(state, RunFailed(turn, code, message))

    def _append(self, state: RunState, event: RunEvent) -> RunState:
        self._place()
        self.log.append(json.dumps([kind_of(event), to_json(event)]))
        self._place()
        return apply(state, event)

    def _place(self) -> None:
        self.places += 1
        if self.places in self.interruptions:
            raise Interrupted


def runs(tools: Sequence[str]) -> st.SearchStrategy[list[list[str]]]:
    return st.lists(st.lists(st.sampled_from(tools), min_size=1, max_size=3), max_size=4)


interruptions = st.frozensets(st.integers(1, 60), max_size=8)


def without_repeated_questions(events: list[RunEvent]) -> list[RunEvent]:
    """Return the events without the questions that were asked again: a model call has no side effect."""
    following = [*events[1:], None]
    return [e for e, after in zip(events, following, strict=True) if not (isinstance(e, ModelAsked) and e == after)]


@given(turns=runs(["look"]), interrupted_at=interruptions, max_turns=st.integers(1, 5))
def test_a_run_with_idempotent_tools_ends_the_same_wherever_it_is_interrupted(
    turns: list[list[str]], interrupted_at: frozenset[int], max_turns: int
) -> None:
    undisturbed, disturbed = Driver(turns, max_turns), Driver(turns, max_turns, interrupted_at)
    assert disturbed.finish() == undisturbed.finish()
    assert without_repeated_questions(disturbed.events()) == undisturbed.events()


@given(turns=runs(["look", "pay"]), max_turns=st.integers(1, 5), data=st.data())
def test_folding_a_prefix_and_then_the_rest_is_folding_the_whole(
    turns: list[list[str]], max_turns: int, data: st.DataObject
) -> None:
    driver = Driver(turns, max_turns)
    end = driver.finish()
    events = driver.events()
    cut = data.draw(st.integers(0, len(events)))
    state = fold(events[:cut])
    for event in events[cut:]:
        state = apply(state, event)
    assert state == end


@given(turns=runs(["look", "pay", "unknown"]), interrupted_at=interruptions, max_turns=st.integers(1, 5))
def test_a_call_that_is_not_idempotent_is_never_made_twice(
    turns: list[list[str]], interrupted_at: frozenset[int], max_turns: int
) -> None:
    driver = Driver(turns, max_turns, interrupted_at)
    end = driver.finish()
    for number, turn in enumerate(end.turns, start=1):
        for index, call in enumerate(turn.answer.calls):
            made = driver.effects[number, index]
            assert made <= 1 or call.name in IDEMPOTENT
            assert made == 1 or call.name in IDEMPOTENT or turn.results[index].failed


@given(turns=runs(["look", "pay"]), interrupted_at=interruptions, max_turns=st.integers(1, 5))
def test_a_run_ends_once_and_within_its_turns(
    turns: list[list[str]], interrupted_at: frozenset[int], max_turns: int
) -> None:
    driver = Driver(turns, max_turns, interrupted_at)
    end = driver.finish()
    assert len(end.turns) <= max_turns
    closing = [event for event in driver.events() if isinstance(event, RunCompleted | RunFailed)]
    assert closing == [end.closed] == driver.events()[-1:]
    assert isinstance(end.closed, RunFailed) == (len(turns) >= max_turns)
    assert all(len(turn.results) == len(turn.answer.calls) for turn in end.turns)


@given(
    turns=runs(["look", "pay"]),
    interrupted_at=interruptions,
    rejected=st.frozensets(st.tuples(st.integers(1, 4), st.integers(0, 2)), max_size=6),
)
def test_no_call_that_needs_approval_is_made_without_it(
    turns: list[list[str]], interrupted_at: frozenset[int], rejected: frozenset[tuple[int, int]]
) -> None:
    driver = Driver(turns, 5, interrupted_at, frozenset({"pay"}), rejected)
    end = driver.finish()
    assert isinstance(end.closed, RunCompleted)
    for number, turn in enumerate(end.turns, start=1):
        for index, call in enumerate(turn.answer.calls):
            if call.name == "pay":
                assert driver.effects[number, index] <= ((number, index) not in rejected)
                assert driver.effects[number, index] == 1 or turn.results[index].failed
    asked = [(e.turn, e.index) for e in driver.events() if isinstance(e, ApprovalRequested)]
    assert len(asked) == len(set(asked)), "a crash asks nobody twice"


@given(turns=runs(["look", "pay"]), interrupted_at=interruptions, cancelled_at=st.integers(0, 20))
def test_after_a_cancellation_no_side_effect_begins(
    turns: list[list[str]], interrupted_at: frozenset[int], cancelled_at: int
) -> None:
    driver = Driver(turns, 5, interrupted_at, frozenset({"pay"}), cancelled_at=cancelled_at)
    end = driver.finish()
    events = driver.events()
    wishes = [place for place, event in enumerate(events) if isinstance(event, CancelRequested)]
    if wishes:
        assert isinstance(end.closed, RunCancelled)
        begun = (ModelAsked, ToolCalled, ApprovalRequested)
        assert not [event for event in events[wishes[0] :] if isinstance(event, begun)]
        before_the_end = fold(events[:-1])  # a result is made from this: the closing event clears what was under way
        outcomes = {one.call: one.outcome for one in begun_calls(before_the_end)}
        assert {f"{n}.{i}" for (n, i), made in driver.effects.items() if made} <= outcomes.keys()


@given(
    turns=runs(["look", "pay"]),
    interrupted_at=interruptions,
    max_turns=st.integers(1, 5),
    rejected=st.frozensets(st.tuples(st.integers(1, 4), st.integers(0, 2)), max_size=6),
    cancelled_at=st.none() | st.integers(0, 20),
)
def test_a_run_replayed_from_its_log_takes_the_same_decisions(
    turns: list[list[str]],
    interrupted_at: frozenset[int],
    max_turns: int,
    rejected: frozenset[tuple[int, int]],
    cancelled_at: int | None,
) -> None:
    driver = Driver(turns, max_turns, interrupted_at, frozenset({"pay"}), rejected, cancelled_at)
    end = driver.finish()
    again = replay(driver.events(), driver.policy)
    assert again.state == end
    written = [e for e in driver.events() if isinstance(e, ModelAsked | ToolCalled | ApprovalRequested | Closing)]
    refused = [step for step in again.steps if isinstance(step, RefuseTool)]
    assert len(again.steps) == len(written) + len(refused)


def test_a_log_that_nobody_would_write_diverges_at_the_wrong_event() -> None:
    events: list[RunEvent] = [ModelAsked(1), answered(1, PAY), called(1, 0, PAY), result(1, 0, PAY), ModelAsked(2)]
    policy = Policy(3, IDEMPOTENT)
    assert [type(step) for step in replay(events, policy).steps] == [AskModel, CallTool, AskModel]
    others: list[tuple[int, RunEvent]] = [
        (3, called(1, 0, LOOK)),
        (3, called(1, 1, PAY)),
        (5, ModelAsked(3)),
        (5, RunCompleted(1, "done")),
    ]
    for seq, other in others:
        with pytest.raises(Diverged) as raised:
            replay([*events[: seq - 1], other, *events[seq:]], policy)
        assert raised.value.seq == seq
    with pytest.raises(Diverged):
        replay(events, Policy(3, IDEMPOTENT, approvals=frozenset({"pay"})))


texts = st.text(st.characters(), max_size=20)
numbers = st.integers(0, 2**53)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)
arguments = st.dictionaries(texts, json_values, max_size=3)
calls = st.lists(
    st.builds(ToolCall, texts, texts, arguments, st.none() | texts, st.none() | arguments), max_size=3
).map(tuple)
reports = st.builds(ServerReport, *(st.none() | one for one in (numbers, texts, texts, numbers)))
scores = st.floats(-1, 1)
EVENTS: dict[type[RunEvent], st.SearchStrategy[RunEvent]] = {
    ModelAsked: st.builds(ModelAsked, numbers, st.lists(numbers, max_size=3).map(tuple)),
    ModelAnswered: st.builds(
        ModelAnswered, numbers, texts, calls, numbers, numbers, st.none() | st.sampled_from(get_args(FinishReason))
    ),
    AnswerDropped: st.builds(AnswerDropped, numbers, texts, texts, numbers, numbers, texts),
    CallRetried: st.builds(CallRetried, numbers, st.none() | numbers, texts, numbers, reports),
    ModelUnavailable: st.builds(ModelUnavailable, numbers, texts, texts, numbers, numbers, numbers, reports),
    ToolCalled: st.builds(ToolCalled, numbers, numbers, texts, arguments),
    ToolAnswered: st.builds(
        ToolAnswered,
        numbers,
        numbers,
        texts,
        texts,
        st.booleans(),
        st.lists(st.tuples(texts, scores), max_size=3).map(tuple),
        st.none() | texts,
        numbers,
        numbers,
        st.none() | texts,
    ),
    ApprovalRequested: st.builds(ApprovalRequested, numbers, numbers, texts, arguments, numbers),
    ApprovalAnswered: st.builds(ApprovalAnswered, numbers, numbers, st.booleans(), texts, st.none() | texts),
    RunSuspended: st.builds(RunSuspended, numbers, numbers, st.builds(RunReference, texts, texts, texts), numbers),
    RunResumed: st.builds(RunResumed, numbers, st.none() | numbers),
    RunRecovered: st.builds(RunRecovered, numbers, numbers),
    RunForked: st.builds(RunForked, numbers, texts, numbers, st.none() | texts),
    CancelRequested: st.builds(CancelRequested, numbers, texts, st.none() | texts),
    RunCancelled: st.builds(RunCancelled, numbers, texts, st.none() | texts),
    RunCompleted: st.builds(RunCompleted, numbers, texts),
    RunFailed: st.builds(RunFailed, numbers, texts, texts, reports),
}


OLD: dict[str, tuple[str, JsonObject, RunEvent]] = {
    "an answer": (
        "model_answered",
        {
            "turn": 1,
            "content": "",
            "calls": [{"id": "c1", "name": "look", "arguments": {"at": "it"}}],
            "input_tokens": 10,
            "output_tokens": 2,
        },
        answered(1, LOOK),
    ),
    "a resumed run": ("run_resumed", {"turn": 1, "index": 0}, RunResumed(1, 0)),
    "a failed run": (
        "run_failed",
        {"turn": 1, "code": "model_refused", "message": "no"},
        RunFailed(1, "model_refused", "no"),
    ),
}


@pytest.mark.parametrize(("kind", "data", "event"), OLD.values(), ids=OLD)
def test_the_events_of_version_0_1_are_read(kind: str, data: JsonObject, event: RunEvent) -> None:
    assert from_json(kind, data) == event


def test_tokens_of_dropped_answers_count_against_the_budget() -> None:
    events: list[RunEvent] = [dropped(), answered(1, LOOK), result(1, 0, LOOK)]
    state = fold(events)
    assert (state.input_tokens, state.output_tokens, state.tokens) == (20, 2, 22)
    assert isinstance(next_step(state, Policy(3, IDEMPOTENT, max_tokens=22)), Fail)


def test_every_kind_of_event_is_tried() -> None:
    assert EVENTS.keys() == set(KINDS.values())


@given(event=st.one_of(list(EVENTS.values())))
def test_an_event_survives_its_json(event: RunEvent) -> None:
    assert from_json(kind_of(event), json.loads(json.dumps(to_json(event)))) == event
