"""Whatever a server answers, an adapter returns a reply that can be used, or raises an error of Retain's."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retain.errors import RetainError
from retain.models.chat import ChatMessage, ChatReply, ChatRequest, usage_of
from retain.models.endpoint import failure, failure_within
from retain.models.providers import anthropic, anthropic_stream, openai, openai_stream, workers_ai
from retain.models.providers.delivery import Delivery
from retain.models.providers.tool_calls import usable
from retain.server_sent_events import ServerSentEvent
from tests.models.chat_contract import Heard

REQUEST = ChatRequest([ChatMessage("user", "?")])
WORDS = st.sampled_from(
    ["", " ", "hi", "\ud83d", "{", '{"a": NaN}', '{"a": 1e999}', "[1]", "stop", "length", "text", "tool_use", "error"]
)
scalars = st.none() | st.booleans() | st.integers(-5, 10**30) | st.floats() | WORDS
NAMES = st.sampled_from(
    (
        "choices message delta content refusal tool_calls function id name arguments finish_reason usage prompt_tokens "
        "completion_tokens index error errors code type text input content_block stop_reason input_tokens output_tokens "
        "partial_json response detail cache_read_input_tokens"
    ).split()
)
anything = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4), max_leaves=12
)


def shaped(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Return objects that have each of these fields, or lack it, or have anything instead of it."""
    return st.fixed_dictionaries({}, optional={name: field | anything for name, field in fields.items()})


counts = shaped(prompt_tokens=st.integers(0, 9), completion_tokens=st.integers(0, 9), input_tokens=st.integers(0, 9))
call = shaped(id=WORDS, index=st.integers(0, 3), function=shaped(name=WORDS, arguments=WORDS))
message = shaped(content=WORDS, tool_calls=st.lists(call | anything, max_size=3))
choice = shaped(message=message, delta=message, finish_reason=WORDS)
block = shaped(type=WORDS, text=WORDS, id=WORDS, name=WORDS, input=WORDS)
KINDS = (
    *("message_start", "content_block_start", "content_block_delta", "message_delta", "message_stop", "error", "ping"),
)
FORMATS: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    "openai": shaped(choices=st.lists(choice, max_size=2), usage=counts, error=block),
    "anthropic": shaped(content=st.lists(block, max_size=3), stop_reason=WORDS, usage=counts),
    "workers_ai": shaped(response=WORDS, tool_calls=st.lists(call | block, max_size=2), usage=counts),
}
READERS: dict[str, Callable[[Mapping[str, Any]], ChatReply]] = {
    "openai": openai.from_wire,
    "anthropic": anthropic.from_wire,
    "workers_ai": lambda answer: workers_ai.from_wire(answer, 1),
}
EVENTS: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    "openai": FORMATS["openai"],
    "anthropic": shaped(
        type=st.sampled_from(KINDS),
        index=st.integers(0, 2),
        content_block=block,
        delta=shaped(type=st.sampled_from(["text_delta", "input_json_delta"]), text=WORDS, partial_json=WORDS),
        message=shaped(usage=counts),
        usage=counts,
    ),
    "workers_ai": FORMATS["workers_ai"] | FORMATS["openai"],
}


def check_usable(reply: ChatReply) -> None:
    """Check that the next request can repeat the reply, and that what it cost is a count."""
    sent = usable(reply, REQUEST)
    messages = [*REQUEST.messages, ChatMessage("assistant", sent.content, sent.tool_calls)]
    request = ChatRequest([*messages, *(ChatMessage("tool", "{}", (), one.id) for one in sent.tool_calls)])
    wires: list[dict[str, Any]] = [
        openai.to_wire(request, model="m", limit_field="max_tokens"),
        anthropic.to_wire(request, model="m"),
        workers_ai.to_wire(request),
    ]
    for wire in wires:
        json.dumps(wire, ensure_ascii=False, allow_nan=False).encode()
    assert all(0 <= count < 2**53 for count in (reply.usage.input_tokens, reply.usage.output_tokens))
    ids = [one.id for one in sent.tool_calls]
    assert all(ids)
    assert len(set(ids)) == len(ids)


def check_cost(error: RetainError) -> None:
    cost = usage_of(error)
    assert all(0 <= count < 2**53 for count in (cost.input_tokens, cost.output_tokens))


@pytest.mark.parametrize("provider", READERS)
@settings(max_examples=150)
@given(data=st.data())
def test_any_whole_answer_is_a_usable_reply_or_an_error(provider: str, data: st.DataObject) -> None:
    try:
        check_usable(READERS[provider](data.draw(FORMATS[provider])))
    except RetainError as error:
        check_cost(error)


@pytest.mark.parametrize("provider", READERS)
@settings(max_examples=150)
@given(data=st.data())
async def test_any_stream_is_a_usable_reply_or_an_error(provider: str, data: st.DataObject) -> None:
    chunks = data.draw(st.lists(EVENTS[provider], max_size=5))

    async def events() -> AsyncIterator[ServerSentEvent]:
        for chunk in chunks:
            yield ServerSentEvent(json.dumps(chunk))
        yield ServerSentEvent('{"type": "message_stop"}' if provider == "anthropic" else "[DONE]")

    module: Any = {"openai": openai_stream, "anthropic": anthropic_stream, "workers_ai": workers_ai}[provider]
    heard = Heard()
    delivery = Delivery(heard)
    try:
        reply = READERS[provider](await module.assembled(events(), delivery))
        await delivery.end()
        check_usable(reply)
    except RetainError as error:
        check_cost(error)
    heard.text.encode()


@given(answer=anything, status=st.integers(300, 599), headers=st.dictionaries(st.just("retry-after"), WORDS))
def test_any_failure_is_an_error_without_the_key(answer: object, status: int, headers: dict[str, str]) -> None:
    body = json.dumps({"error": answer, "key": "sk-a-very-secret-key"}).encode()
    for error in (failure(status, body, headers, "sk-a-very-secret-key"), failure_within({"error": answer}, "k")):
        assert isinstance(error, RetainError)
        json.dumps(dict(error.details)).encode()
