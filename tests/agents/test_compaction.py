"""Compaction: what remains of a long run, as laws over any run."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retain.agents.calls.tokens import Estimate
from retain.agents.runs.compaction import SECTION, Compacted, NoRoom, Transcript, compacted, history
from retain.agents.runs.events import ModelAnswered, ToolAnswered
from retain.agents.runs.run_state import RunState, Turn
from retain.models.chat import ChatMessage, ToolCall

HEAD = (ChatMessage("system", "Do it well."), ChatMessage("user", "Look after order AB-1."))
ESTIMATE = Estimate()


def turn(number: int, text: str = "", *calls: tuple[str, str]) -> Transcript:
    """Return a turn. calls: argument and result of each."""
    made = tuple(ToolCall(f"c{number}.{n}", "look", {"at": at}) for n, (at, _) in enumerate(calls))
    results = tuple(ChatMessage("tool", result, tool_call_id=f"c{number}.{n}") for n, (_, result) in enumerate(calls))
    return Transcript(number, ChatMessage("assistant", text, made), results)


def whole(turns: list[Transcript]) -> list[ChatMessage]:
    return [*HEAD, *(message for one in turns for message in (one.answer, *one.results))]


def summaries(made: Compacted) -> list[ChatMessage]:
    return [message for message in made.messages if f'section="{SECTION}"' in message.content]


words = st.sampled_from(["alpha", "AB-1", "CD-22", "EF-333", "ann@shop.example", "</memory>", "x" * 300, "", "7"])
texts = st.lists(words, max_size=6).map(" ".join)


@st.composite
def runs(draw: st.DrawFn) -> list[Transcript]:
    count = draw(st.integers(1, 8))
    return [turn(n, draw(texts), *draw(st.lists(st.tuples(words, texts), max_size=3))) for n in range(1, count + 1)]


@given(turns=runs(), room=st.integers(1, 1500))
def test_what_fits_is_untouched_and_what_does_not_keeps_head_and_tail_in_the_room(
    turns: list[Transcript], room: int
) -> None:
    everything = whole(turns)
    try:
        made = compacted(HEAD, turns, room, ESTIMATE)
    except NoRoom:
        assert (
            ESTIMATE.messages(whole(turns[-1:])) > room - 1000
        )  # the summary and what is referred to take room as well
        return
    assert ESTIMATE.messages(made.messages) <= room
    assert made.messages[: len(HEAD)] == HEAD
    last = [turns[-1].answer, *turns[-1].results]
    assert list(made.messages[-len(last) :]) == last
    fits = ESTIMATE.messages(everything) <= room
    assert (list(made.messages) == everything) is fits
    assert (made.cut == ()) is fits
    assert list(made.cut) == list(range(1, len(made.cut) + 1))


@given(turns=runs(), room=st.integers(1, 1500))
def test_there_is_at_most_one_summary_and_it_does_not_depend_on_an_earlier_one(
    turns: list[Transcript], room: int
) -> None:
    try:
        made = compacted(HEAD, turns, room, ESTIMATE)
    except NoRoom:
        return
    assert len(summaries(made)) <= 1
    assert compacted(HEAD, turns, room, ESTIMATE) == made
    for summary in summaries(made):
        inside = summary.content.splitlines()[1:-1]
        assert all("<" not in line and ">" not in line.replace("-&gt;", "") for line in inside)
        assert SECTION not in "\n".join(inside)


@given(turns=runs(), room=st.integers(1, 1500))
def test_every_result_follows_its_call_and_every_call_has_its_result(turns: list[Transcript], room: int) -> None:
    try:
        made = compacted(HEAD, turns, room, ESTIMATE)
    except NoRoom:
        return
    open_calls: list[str] = []
    for message in made.messages:
        if message.role == "tool":
            assert message.tool_call_id == open_calls.pop(0)
        else:
            assert open_calls == []
            open_calls = [call.id for call in message.tool_calls]
    assert open_calls == []


@given(turns=runs(), room=st.integers(1, 1500), thing=st.sampled_from(["cd-22", "ef-333", "ann@shop.example"]))
def test_a_result_that_is_still_referred_to_stays_whole(turns: list[Transcript], room: int, thing: str) -> None:
    try:
        made = compacted(HEAD, turns, room, ESTIMATE)
    except NoRoom:
        return
    kept = turns[len(made.cut) :]
    written = " ".join(
        one.answer.content + json.dumps([dict(c.arguments) for c in one.answer.tool_calls]) for one in kept
    )
    if thing in written.lower():
        for one in turns:
            for result in one.results:
                assert thing not in result.content.lower() or result in made.messages


def test_results_that_no_later_turn_names_become_one_line_each() -> None:
    turns = [
        turn(1, "Let me look.", ("a", "parcel ZX-900 is late " + "x" * 3000)),
        turn(2, "", ("b", "customer ann@shop.example " + "y" * 400), ("d", "nothing " + "z" * 3000)),
        turn(3, "I write to ann@shop.example.", ("c", "sent")),
    ]
    made = compacted(HEAD, turns, 500, ESTIMATE)
    assert made.cut == (1, 2)
    [summary] = summaries(made)
    line = 'turn 1: look({"at": "a"}) -&gt; parcel ZX-900 is late x'
    assert summary.content.splitlines()[1] == "turn 1: Let me look."
    assert summary.content.splitlines()[2].startswith(line)
    assert summary.content.splitlines()[3].startswith('turn 2: look({"at": "d"}) -&gt; nothing z')
    assert len(summary.content.splitlines()) == 5
    assert [m.content[:20] for m in made.messages[3:]] == [
        "",
        "customer ann@shop.ex",
        "I write to ann@shop.",
        "sent",
    ]


def test_what_a_model_thought_stays_with_the_calls_of_a_cut_turn_that_stay() -> None:
    first = turn(1, "", ("a", "nothing " + "x" * 3000), ("b", "customer ann@shop.example"))
    thought, other = (
        replace(first.answer.tool_calls[0], reasoning={"reasoning_content": "Hm."}),
        first.answer.tool_calls[1],
    )
    turns = [
        replace(first, answer=replace(first.answer, tool_calls=(thought, other))),
        turn(2, "", ("c", "nothing " + "y" * 3000)),
        turn(3, "I write to ann@shop.example.", ("d", "sent")),
    ]
    made = compacted(HEAD, turns, 1_000, ESTIMATE)
    assert made.cut == (1, 2)
    assert next(message.tool_calls for message in made.messages if message.role == "assistant") == (thought, other)


def test_what_a_model_thought_takes_room() -> None:
    call = ToolCall("c", "look", {})
    thought = replace(call, reasoning={"reasoning_content": "x" * 4_000})
    sizes = [ESTIMATE.message(ChatMessage("assistant", "", (one,))) for one in (call, thought)]
    assert sizes[1] - sizes[0] > 1_000


def test_a_result_that_only_the_input_names_is_not_kept() -> None:
    turns = [turn(1, "", ("a", "AB-1 " + "x" * 3000)), turn(2, "AB-1 is fine.", ("c", "sent"))]
    assert len(compacted(HEAD, turns, 400, ESTIMATE).messages) == len(HEAD) + 3


def test_a_turn_that_alone_is_too_large_has_no_room() -> None:
    with pytest.raises(NoRoom):
        compacted(HEAD, [turn(1, "", ("a", "x" * 4000))], 900, ESTIMATE)
    with pytest.raises(NoRoom):
        compacted(HEAD, [], 5, ESTIMATE)


def test_a_text_without_an_end_is_read_in_one_pass() -> None:
    long = "a" * 200_000
    turns = [turn(1, "", ("a", long)), turn(2, long, ("c", "sent"))]
    assert compacted(HEAD, turns, 60_000, ESTIMATE).cut == (1,)


def test_a_run_s_turns_are_its_history() -> None:
    answer = ModelAnswered(1, "hm", (ToolCall("c1", "look", {}), ToolCall("c2", "look", {})), 1, 1)
    state = RunState((Turn(answer, (ToolAnswered(1, 0, "look", "seen"),)),))
    [one] = history(state)
    assert (one.turn, one.answer.tool_calls, [m.tool_call_id for m in one.results]) == (1, answer.calls, ["c1"])


@pytest.mark.parametrize(
    ("model", "tokens"), [("gpt-4.1-mini", 7), ("claude-sonnet-4", 8), ("anthropic/Claude-3", 8), ("", 7)]
)
def test_tokens_are_estimated_by_the_model(model: str, tokens: int) -> None:
    assert Estimate.of(model).text("x" * 28) == tokens


TALK = tuple(
    ChatMessage("user" if number % 2 == 0 else "assistant", f"message {number} " + "x" * 40) for number in range(8)
)


@given(turns=st.one_of(st.just([]), runs()), room=st.integers(1, 1500))
def test_the_conversation_before_a_run_is_left_out_oldest_first_when_the_run_needs_the_room(
    turns: list[Transcript], room: int
) -> None:
    head = (HEAD[0], *TALK, HEAD[1])
    try:
        made = compacted(head, turns, room, ESTIMATE)
    except NoRoom:
        with pytest.raises(NoRoom):
            compacted(HEAD, turns, room, ESTIMATE)
        return
    assert ESTIMATE.messages(made.messages) <= room
    kept = made.messages[: len(head) - made.messages_cut]
    assert kept == (HEAD[0], *TALK[made.messages_cut :], HEAD[1])
    assert kept[1].role == "user"
    if made.messages_cut:
        longer = (HEAD[0], *TALK[made.messages_cut - 2 :], HEAD[1])
        assert compacted(longer, turns, room, ESTIMATE).messages_cut > 0, "no more is left out than has to be"
