"""Streams as providers really send them, besides what the stand-in servers send."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from retain.errors import Misconfigured, RetainError, Unavailable, UpstreamFailed
from retain.json_text import Json
from retain.models.chat import ChatReply, ToolCall, Usage
from retain.models.providers import anthropic, anthropic_stream, openai, openai_stream, workers_ai
from retain.models.providers.delivery import AnswerText, Delivery, without_thought
from retain.models.providers.streamed_reasoning import StreamedReasoning
from retain.server_sent_events import ServerSentEvent
from tests.models.chat_contract import Heard


async def sent(*chunks: object) -> AsyncIterator[ServerSentEvent]:
    for chunk in chunks:
        yield ServerSentEvent(chunk if isinstance(chunk, str) else json.dumps(chunk))


def delta(finish_reason: str | None = None, **fields: object) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": finish_reason}]}


def call(index: int | None, arguments: object, **more: Any) -> dict[str, Any]:
    function = {"arguments": arguments} | ({"name": more.pop("name")} if "name" in more else {})
    return delta(tool_calls=[{"function": function, **({} if index is None else {"index": index}), **more}])


END = delta("stop")
TWO = ChatReply("", (ToolCall("a", "look", {"x": 1}), ToolCall("b", "ask", {})))
SIGNED = {"google": {"thought_signature": "c2lnbmVk"}}
DETAILS: list[Json] = [
    {"type": "reasoning.text", "index": 0, "text": "Hm.", "signature": "s"},
    {"type": "reasoning.encrypted", "index": 1, "data": "x"},
    {"type": "reasoning.text", "index": 2, "text": "So."},
]
OPENAI: dict[str, tuple[list[object], ChatReply]] = {
    "no end but the last word": ([delta(content="hi"), "[DONE]"], ChatReply("hi")),
    "no last word but an end": ([delta(content="hi"), END], ChatReply("hi")),
    "usage after the end": (
        [delta(content="hi"), END, {"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 2}}, "[DONE]"],
        ChatReply("hi", usage=Usage(1, 2)),
    ),
    "usage so far in each piece": (
        [{**delta(content="hi"), "usage": {"prompt_tokens": 1}}, {**END, "usage": {"prompt_tokens": 2}}],
        ChatReply("hi", usage=Usage(2, 0)),
    ),
    "reasoning is not the answer": ([delta(reasoning_content="Hm."), delta(content="hi"), END], ChatReply("hi")),
    "content in parts": (
        [delta(content=[{"type": "thinking", "thinking": []}]), delta(content=[{"type": "text", "text": "hi"}]), END],
        ChatReply("hi"),
    ),
    "a refusal in words": ([delta(refusal="I can"), delta(refusal="not."), END], ChatReply("I cannot.")),
    "no delta": ([{"choices": [{"index": 0}]}, delta(content=None), END], ChatReply("")),
    "whole calls, all numbered 0": (
        [call(0, '{"x": 1}', id="a", name="look"), call(0, "", id="b", name="ask"), END],
        TWO,
    ),
    "whole calls without numbers": (
        [call(None, '{"x": 1}', id="a", name="look"), call(None, "", id="b", name="ask"), END],
        TWO,
    ),
    "whole calls without numbers and ids": (
        [call(None, '{"x": 1}', name="look"), call(None, "", name="ask"), END],
        ChatReply("", (ToolCall("", "look", {"x": 1}), ToolCall("", "ask", {}))),
    ),
    "whole calls of one tool, all numbered 0 and without ids": (
        [call(0, '{"x": 1}', id="", name="look"), call(0, {"x": 2}, id="", name="look"), END],
        ChatReply("", (ToolCall("", "look", {"x": 1}), ToolCall("", "look", {"x": 2}))),
    ),
    "a name in every piece of a call without an id": (
        [call(0, '{"x"', name="look"), call(0, ": {}}", name="look"), call(0, "", name="look"), END],
        ChatReply("", (ToolCall("", "look", {"x": {}}),)),
    ),
    "a name in pieces": (
        [call(0, "", id="a", name="lo"), call(0, None, id="a", name="ok"), call(0, '{"x": 1}'), END],
        ChatReply("", (ToolCall("a", "look", {"x": 1}),)),
    ),
    "a name in every piece of a call with an id": (
        [call(0, "", id="a", name="look"), call(0, '{"x": 1', name="look"), call(0, "}", id="a", name="look"), END],
        ChatReply("", (ToolCall("a", "look", {"x": 1}),)),
    ),
    "an empty object before the arguments": (
        [call(0, "{}", id="a", name="look"), call(0, '{"x"'), call(0, ": 1}"), call(1, "{}", id="b", name="ask"), END],
        TWO,
    ),
    "events without data": (["", delta(content="hi"), " ", END], ChatReply("hi")),
    "an id in every piece": (
        [call(0, '{"x"', id="a", name="look"), call(0, ": 1}", id="a"), call(1, None, id="b", name="ask"), END],
        TWO,
    ),
    "a call that is closed by nothing": (
        [call(0, '{"x": 1}', id="a", name="look"), call(1, None, id="b", name="ask"), call(2, None, id=None), END],
        TWO,
    ),
    "a call without an id": ([call(0, "{}", name="look"), END], ChatReply("", (ToolCall("", "look", {}),))),
    "half a call": (
        [call(0, '{"x"', id="a", name="look"), END],
        ChatReply("", (ToolCall("a", "look", {}, 'the arguments are not a JSON object: {"x"'),)),
    ),
    "what DeepSeek wants to read again": (
        [delta(reasoning_content="H"), delta(reasoning_content="m."), call(0, '{"x": 1}', id="a", name="look"), END],
        ChatReply("", (ToolCall("a", "look", {"x": 1}, reasoning={"reasoning_content": "Hm."}),)),
    ),
    "what Gemini wants to read again": (
        [
            call(0, '{"x": 1}', id="a", name="look", extra_content=SIGNED),
            call(1, "", id="b", name="ask", extra_content=None),
            END,
        ],
        ChatReply("", (ToolCall("a", "look", {"x": 1}, reasoning={"extra_content": SIGNED}), TWO.tool_calls[1])),
    ),
    "what OpenRouter wants to read again": (
        [
            delta(reasoning_details=[{"type": "reasoning.text", "index": 0, "text": "H"}]),
            delta(reasoning_details=[{"type": "reasoning.text", "index": 0, "text": "m.", "signature": None}]),
            delta(reasoning_details=[{"type": "reasoning.text", "index": 0, "text": "", "signature": "s"}, "odd"]),
            delta(reasoning_details=[{"type": "reasoning.encrypted", "index": 1, "data": "x"}], reasoning_content=None),
            delta(reasoning_details=[{"type": "reasoning.text", "index": 2, "text": "So."}]),
            call(0, '{"x": 1}', id="a", name="look"),
            END,
        ],
        ChatReply("", (ToolCall("a", "look", {"x": 1}, reasoning={"reasoning_details": DETAILS}),)),
    ),
    "calls by turns": (
        [
            call(0, "", id="a", name="look"),
            call(1, "", id="b", name="ask"),
            call(0, '{"x":'),
            call(1, "{}"),
            call(0, "1}"),
            END,
        ],
        TWO,
    ),
}


@pytest.mark.parametrize(("chunks", "expected"), OPENAI.values(), ids=OPENAI)
async def test_the_habits_of_servers_in_openais_format(chunks: list[object], expected: ChatReply) -> None:
    heard = Heard()
    assert openai.from_wire(await openai_stream.assembled(sent(*chunks), Delivery(heard))) == expected
    assert heard.text == expected.content


FAILED: dict[str, tuple[list[object], type[RetainError], str]] = {
    "no end": ([delta(content="hi")], Unavailable, "upstream_unreachable"),
    "nothing": ([], Unavailable, "upstream_unreachable"),
    "half a call at the limit": (
        [call(0, '{"x"', id="a", name="look"), delta("length")],
        UpstreamFailed,
        "answer_cut",
    ),
    "no object": (["[1]"], UpstreamFailed, "malformed_answer"),
    "nested too deeply": (["[" * 5000], UpstreamFailed, "malformed_answer"),
    "content that is no text": ([delta(content=[{"type": "text"}])], UpstreamFailed, "malformed_answer"),
    "calls that are no list": ([delta(tool_calls={"0": {}})], UpstreamFailed, "malformed_answer"),
    "a call that is no object": ([delta(tool_calls=["look"])], UpstreamFailed, "malformed_answer"),
    "arguments that are a list": ([call(0, [], id="a", name="look")], UpstreamFailed, "malformed_answer"),
    "a choice that is none": ([{"choices": ["hi"]}], UpstreamFailed, "malformed_answer"),
    "overloaded": ([{"error": {"type": "server_error"}}], Unavailable, "model_unavailable"),
    "a status as code": ([{"error": {"code": 429}}], Unavailable, "model_rate_limited"),
    "a refused request": ([{"error": {"code": 400, "type": "BadRequestError"}}], UpstreamFailed, "model_refused"),
    "no credit": ([{"error": {"code": "insufficient_quota"}}], UpstreamFailed, "model_quota"),
    "a refused key": ([{"error": {"code": "invalid_api_key"}}], Misconfigured, "model_credentials"),
    "no end but an empty reason": ([delta("", content="hi")], Unavailable, "upstream_unreachable"),
    "an object that is an error": (
        [{"object": "error", "message": "too long", "type": "BadRequestError", "code": 400}, "[DONE]"],
        UpstreamFailed,
        "model_refused",
    ),
    "a context that is too long": (
        [{"error": {"code": 500, "type": "exceed_context_size_error", "n_ctx": 256}}],
        UpstreamFailed,
        "model_refused",
    ),
    "words alone": ([{"error": "it broke"}], Unavailable, "model_unavailable"),
}


@pytest.mark.parametrize(("chunks", "kind", "code"), FAILED.values(), ids=FAILED)
async def test_a_stream_that_fails_is_an_error(chunks: list[object], kind: type[RetainError], code: str) -> None:
    with pytest.raises(kind) as caught:
        openai.from_wire(await openai_stream.assembled(sent(*chunks), Delivery(Heard())))
    assert caught.value.code == code


async def test_an_event_that_is_named_as_an_error_is_one() -> None:
    async def failing() -> AsyncIterator[ServerSentEvent]:
        yield ServerSentEvent(json.dumps({"code": 429, "message": "slow down"}), "error")

    with pytest.raises(Unavailable) as caught:
        await openai_stream.assembled(failing(), Delivery(Heard()))
    assert (caught.value.code, caught.value.details["upstream_message"]) == ("model_rate_limited", "slow down")


def event(kind: str, **content: object) -> dict[str, object]:
    return {"type": kind, **content}


STOP = (event("message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": 9}), event("message_stop"))
USE = event("content_block_start", index=0, content_block={"type": "tool_use", "id": "a", "name": "b", "input": {}})
HALF = event("content_block_delta", index=0, delta={"type": "input_json_delta", "partial_json": '{"x"'})
THOUGHTS: list[Json] = [
    {"type": "thinking", "thinking": "Hm.", "signature": "s"},
    {"type": "redacted_thinking", "data": "x"},
]
ANTHROPIC: dict[str, tuple[list[object], ChatReply]] = {
    "usage in parts": (
        [event("message_start", message={"usage": {"input_tokens": 5, "output_tokens": 1}}), *STOP],
        ChatReply("", usage=Usage(5, 9)),
    ),
    "text in the beginning of a block": (
        [
            event("content_block_start", index=0, content_block={"type": "text", "text": "hi"}),
            event("content_block_delta", index=0, delta={"type": "text_delta", "text": "!"}),
            *STOP,
        ],
        ChatReply("hi!", usage=Usage(0, 9)),
    ),
    "thoughts, and what is new": (
        [
            event("ping"),
            event("content_block_start", index=0, content_block={"type": "thinking", "thinking": ""}),
            event("content_block_delta", index=0, delta={"type": "thinking_delta", "thinking": "Hm."}),
            event("content_block_delta", index=0, delta={"type": "signature_delta", "signature": "x"}),
            event("surprise", index=7),
            event("content_block_start", index=1, content_block={"type": "text", "text": ""}),
            event("content_block_delta", index=1, delta={"type": "text_delta", "text": "hi"}),
            *STOP,
        ],
        ChatReply("hi", usage=Usage(0, 9)),
    ),
    "thoughts before a call": (
        [
            event("content_block_start", index=0, content_block={"type": "thinking", "thinking": "", "signature": ""}),
            event("content_block_delta", index=0, delta={"type": "thinking_delta", "thinking": "H"}),
            event("content_block_delta", index=0, delta={"type": "thinking_delta", "thinking": "m."}),
            event("content_block_delta", index=0, delta={"type": "signature_delta", "signature": "s"}),
            event("content_block_start", index=1, content_block={"type": "redacted_thinking", "data": "x"}),
            USE,
            *STOP,
        ],
        ChatReply("", (ToolCall("a", "b", {}, reasoning={"thinking_blocks": THOUGHTS}),), Usage(0, 9)),
    ),
    "a call without input": (
        [
            event(
                "content_block_start", index=0, content_block={"type": "tool_use", "id": "a", "name": "b", "input": {}}
            ),
            event("content_block_delta", index=0, delta={"type": "input_json_delta", "partial_json": ""}),
            *STOP,
        ],
        ChatReply("", (ToolCall("a", "b", {}),), Usage(0, 9)),
    ),
    "every block numbered 0": (
        [
            event("content_block_start", index=0, content_block={"type": "text", "text": ""}),
            event("content_block_delta", index=0, delta={"type": "text_delta", "text": "hi"}),
            event("content_block_stop", index=0),
            *(
                USE,
                HALF,
                event("content_block_delta", index=0, delta={"type": "input_json_delta", "partial_json": ":1}"}),
            ),
            event(
                "content_block_start", index=0, content_block={"type": "tool_use", "id": "c", "name": "d", "input": {}}
            ),
            *STOP,
        ],
        ChatReply("hi", (ToolCall("a", "b", {"x": 1}), ToolCall("c", "d", {})), Usage(0, 9)),
    ),
    "half a call": (
        [USE, HALF, *STOP],
        ChatReply("", (ToolCall("a", "b", {}, 'the arguments are not a JSON object: {"x"'),), Usage(0, 9)),
    ),
}


@pytest.mark.parametrize(("events", "expected"), ANTHROPIC.values(), ids=ANTHROPIC)
async def test_the_events_of_anthropic(events: list[object], expected: ChatReply) -> None:
    heard = Heard()
    assert anthropic.from_wire(await anthropic_stream.assembled(sent(*events), Delivery(heard))) == expected
    assert heard.text == expected.content


class Unjoined(str):
    """A piece that fails when it is joined to what arrived before it: with every piece that takes time for all of them."""

    __slots__ = ()

    def __radd__(self, _: str) -> str:
        raise AssertionError("joined before the end")

    def __format__(self, _: str) -> str:
        raise AssertionError("joined before the end")


def test_what_a_model_thought_and_wrote_is_joined_once_at_the_end() -> None:
    block = anthropic_stream.AnthropicStreamAnswer()
    details = StreamedReasoning()
    for kind in ("thinking", "text"):
        block.take(event("content_block_start", index=0, content_block={"type": kind, kind: "0"}))
        for piece in map(Unjoined, "12"):
            block.take(event("content_block_delta", index=0, delta={"type": f"{kind}_delta", kind: piece}))
    for piece in map(Unjoined, "012"):
        details.add({"reasoning_details": [{"type": "reasoning.text", "index": 0, "text": piece}]})
    assert block.whole()["content"] == [{"type": "thinking", "thinking": "012"}, {"type": "text", "text": "012"}]
    assert details.whole() == {"reasoning_details": [{"type": "reasoning.text", "index": 0, "text": "012"}]}


ANTHROPIC_FAILED: dict[str, tuple[list[object], type[RetainError], str]] = {
    "no end": ([USE], Unavailable, "upstream_unreachable"),
    "half a call at the limit": (
        [USE, HALF, event("message_delta", delta={"stop_reason": "max_tokens"}), event("message_stop")],
        UpstreamFailed,
        "answer_cut",
    ),
    "a delta of no block": (
        [event("content_block_delta", index=3, delta={"type": "text_delta", "text": "x"})],
        UpstreamFailed,
        "malformed_answer",
    ),
    "a delta without text": (
        [USE, event("content_block_delta", index=0, delta={"type": "text_delta"})],
        UpstreamFailed,
        "malformed_answer",
    ),
    "overloaded": ([event("error", error={"type": "overloaded_error"})], Unavailable, "model_unavailable"),
    "too many": ([event("error", error={"type": "rate_limit_error"})], Unavailable, "model_rate_limited"),
    "refused": ([event("error", error={"type": "invalid_request_error"})], UpstreamFailed, "model_refused"),
}


@pytest.mark.parametrize(("events", "kind", "code"), ANTHROPIC_FAILED.values(), ids=ANTHROPIC_FAILED)
async def test_a_stream_of_anthropic_that_fails_is_an_error(
    events: list[object], kind: type[RetainError], code: str
) -> None:
    with pytest.raises(kind) as caught:
        anthropic.from_wire(await anthropic_stream.assembled(sent(*events), Delivery(Heard())))
    assert caught.value.code == code


FLAT = {"name": "look", "arguments": {"x": 1}}
LOOK = ChatReply("", (ToolCall("call_2_1", "look", {"x": 1}),))
WORKERS_AI: dict[str, tuple[list[object], ChatReply]] = {
    "text": (
        [{"response": "h"}, {"response": "i"}, {"response": "", "usage": {"prompt_tokens": 3}}, "[DONE]"],
        ChatReply("hi", usage=Usage(3, 0)),
    ),
    "a number in place of its text": ([{"response": 4}, {"response": 2.5}, "[DONE]"], ChatReply("42.5")),
    "a whole call": ([{"response": None, "tool_calls": [FLAT]}, {"response": ""}, "[DONE]"], LOOK),
    "a call in pieces": (
        [
            {"tool_calls": [{"index": 0, "id": "k", "function": {"name": "look"}}]},
            {"tool_calls": [{"index": 0, "function": {"arguments": '{"x"'}}]},
            {"tool_calls": [{"index": 0, "function": {"arguments": ": 1}"}}]},
            {"tool_calls": [{"index": 0, "id": None, "function": {"name": None, "arguments": ""}}]},
            "[DONE]",
        ],
        ChatReply("", (ToolCall("k", "look", {"x": 1}),)),
    ),
    "OpenAI's format": ([delta(content="hi"), END, "[DONE]"], ChatReply("hi")),
    "both at once": (
        [{**delta(content="hi"), "response": "hi"}, {"response": "", "usage": {"completion_tokens": 2}}, "[DONE]"],
        ChatReply("hi", usage=Usage(0, 2)),
    ),
}


@pytest.mark.parametrize(("chunks", "expected"), WORKERS_AI.values(), ids=WORKERS_AI)
async def test_the_streams_of_workers_ai(chunks: list[object], expected: ChatReply) -> None:
    heard = Heard()
    answer = await workers_ai.assembled(sent(*chunks), Delivery(heard))
    assert workers_ai.from_wire(answer, turn=2) == expected
    assert heard.text == expected.content


WHOLE: dict[str, tuple[dict[str, object], ChatReply]] = {
    "calls without ids": ({"response": None, "tool_calls": [FLAT]}, LOOK),
    "calls alone": ({"tool_calls": [FLAT]}, LOOK),
    "arguments as text": ({"tool_calls": [{"name": "look", "arguments": '{"x": 1}'}]}, LOOK),
    "a response that is an object": ({"response": {"city": "Oslo"}}, ChatReply('{"city": "Oslo"}')),
    "null for no calls": ({"response": "hi", "tool_calls": None}, ChatReply("hi")),
    "arguments that are no object": (
        {"tool_calls": [{"name": "look", "arguments": [1]}]},
        ChatReply("", (ToolCall("call_2_1", "look", {}, "the arguments are not a JSON object: [1]"),)),
    ),
    "no name": (
        {"tool_calls": [{"arguments": {}}]},
        ChatReply("", (ToolCall("call_2_1", "unnamed", {}, "the call names no tool"),)),
    ),
    "a call that is text": (
        {"tool_calls": ["look"]},
        ChatReply("", (ToolCall("", "unnamed", {}, "the call is not an object with a function"),)),
    ),
}


@pytest.mark.parametrize(("answer", "expected"), WHOLE.values(), ids=WHOLE)
def test_the_answers_of_workers_ai(answer: dict[str, object], expected: ChatReply) -> None:
    assert workers_ai.from_wire(answer, turn=2) == expected


MALFORMED: dict[str, tuple[dict[str, object], str]] = {
    "a ticket": ({"request_id": "1", "status": "queued"}, "malformed_answer"),
    "calls that are no list": ({"tool_calls": {"name": "look"}}, "malformed_answer"),
}


@pytest.mark.parametrize(("answer", "code"), MALFORMED.values(), ids=MALFORMED)
def test_an_invalid_answer_of_workers_ai_is_refused(answer: dict[str, object], code: str) -> None:
    with pytest.raises(UpstreamFailed) as caught:
        workers_ai.from_wire(answer, turn=1)
    assert caught.value.code == code


async def test_a_stream_of_workers_ai_without_its_last_event_is_broken() -> None:
    with pytest.raises(Unavailable):
        await workers_ai.assembled(sent({"response": "hi"}), Delivery(Heard()))


ASSEMBLED: dict[str, tuple[Any, list[object], list[object]]] = {
    "openai": (openai_stream.assembled, [delta(content="hi")], [END]),
    "anthropic": (
        anthropic_stream.assembled,
        [event("content_block_start", index=0, content_block={"type": "text", "text": "hi"})],
        [STOP[0]],
    ),
    "workers-ai": (workers_ai.assembled, [delta(content="hi")], [END]),
}


@pytest.mark.parametrize(("assembled", "begun", "end"), ASSEMBLED.values(), ids=ASSEMBLED)
async def test_what_breaks_after_the_end_of_an_answer_loses_nothing(
    assembled: Any, begun: list[object], end: list[object]
) -> None:
    async def breaking(*chunks: object) -> AsyncIterator[ServerSentEvent]:
        async for one in sent(*chunks):
            yield one
        raise Unavailable("the server did not answer in time", code="upstream_timeout")

    heard = Heard()
    assert "hi" in json.dumps(await assembled(breaking(*begun, *end), Delivery(heard)))
    assert heard.text == "hi"
    with pytest.raises(Unavailable) as caught:
        await assembled(breaking(*begun), Delivery(Heard()))
    assert caught.value.code == "upstream_timeout"


@pytest.mark.parametrize(("assembled", "begun", "end"), ASSEMBLED.values(), ids=ASSEMBLED)
async def test_a_listener_that_cannot_take_an_answer_any_more_ends_it(
    assembled: Any, begun: list[object], end: list[object]
) -> None:
    async def away(_: str) -> None:
        raise Unavailable("the listener is away", code="agent_instance_unavailable")

    with pytest.raises(Unavailable, match="away"):
        await assembled(sent(*end, *begun), Delivery(away))


SHOWN = {
    "": "",
    " \n": " \n",
    " hi": " hi",
    "<think>Hm.</think>\n\nhi </think>": "hi </think>",
    "\n <think>\n</think>hi": "hi",
    "<think></thin</think>": "",
    "<think>Hm.": "",
    "<th": "<th",
    "<thinking>Hm.</thinking>": "<thinking>Hm.</thinking>",
    "I <think>so</think>": "I <think>so</think>",
}


@pytest.mark.parametrize("size", [1, 2, 7, 100])
@pytest.mark.parametrize(("text", "shown"), SHOWN.items())
def test_thoughts_at_the_beginning_of_an_answer_are_left_out_however_it_is_divided(
    text: str, shown: str, size: int
) -> None:
    answer = AnswerText()
    pieces = [answer.take(text[start : start + size]) for start in range(0, len(text), size)]
    assert "".join([*pieces, answer.end()]) == without_thought(text) == shown


async def test_half_a_character_waits_for_the_other_half() -> None:
    heard = Heard()
    delivery = Delivery(heard)
    for piece in ("a\ud83e", "\udd80", "b\ud800", "c", "\ud83e"):
        await delivery.give(piece)
    await delivery.end()
    assert heard.pieces == ["a", "\U0001f980", "b", "\ufffdc", "\ufffd"]
