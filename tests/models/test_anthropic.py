"""What Anthropic's Messages API is sent, and what its answers mean."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retain.errors import UpstreamFailed
from retain.models.chat import ChatMessage, ChatReply, ChatRequest, ToolCall, ToolSpec, Usage
from retain.models.providers.anthropic import from_wire, to_wire
from retain.models.providers.openai import MAX_TOKENS
from tests.models.chat_contract import CITY, FORECAST
from tests.support.anthropic_server import AnthropicServer, _complaint

LOOK, ASK = ToolCall("a", "look", {"at": 1}), ToolCall("b", "ask", {})


def test_a_conversation_becomes_turns_with_all_results_of_a_turn_together() -> None:
    talk = [
        ChatMessage("system", "Be brief."),
        ChatMessage("user", "Look and ask."),
        ChatMessage("assistant", "I do.", (LOOK, ASK)),
        ChatMessage("tool", "seen", (), "a"),
        ChatMessage("tool", "heard", (), "b"),
        ChatMessage("system", "It is late."),
        ChatMessage("user", "And?"),
    ]
    assert to_wire(ChatRequest(talk, [FORECAST], 50, 0.5), model="m") == {
        "model": "m",
        "max_tokens": 50,
        "temperature": 0.5,
        "system": "Be brief.\n\nIt is late.",
        "tools": [
            {
                "name": "forecast",
                "description": "Tell the weather.",
                "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}},
            }
        ],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Look and ask."}]},
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "I do."},
                    {"type": "tool_use", "id": "a", "name": "look", "input": {"at": 1}},
                    {"type": "tool_use", "id": "b", "name": "ask", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "a", "content": "seen"},
                    {"type": "tool_result", "tool_use_id": "b", "content": "heard"},
                    {"type": "text", "text": "And?"},
                ],
            },
        ],
    }


def test_what_a_model_thought_before_its_calls_is_sent_back_as_it_wrote_it() -> None:
    content = [
        {"type": "thinking", "thinking": "Hm.", "signature": "s"},
        {"type": "redacted_thinking", "data": "x"},
        {"type": "text", "text": "I do."},
        {"type": "tool_use", "id": "a", "name": "look", "input": {"at": 1}},
        {"type": "tool_use", "id": "b", "name": "ask", "input": {}},
    ]
    reply = from_wire({"content": content, "stop_reason": "tool_use"})
    assert (reply.content, [call.name for call in reply.tool_calls]) == ("I do.", ["look", "ask"])
    talk = [ChatMessage("user", "?"), ChatMessage("assistant", reply.content, reply.tool_calls)]
    messages: Any = to_wire(ChatRequest(talk), model="m")["messages"]
    assert messages[1]["content"] == content
    assert from_wire({"content": [content[0], content[2]]}) == ChatReply("I do.")


def test_what_is_not_set_is_not_sent() -> None:
    payload = to_wire(ChatRequest([ChatMessage("user", "hello")]), model="m")
    assert set(payload) == {"model", "messages", "max_tokens"}


def test_a_schema_is_asked_for_in_the_system_prompt() -> None:
    system = to_wire(
        ChatRequest([ChatMessage("system", "Be brief."), ChatMessage("user", "?")], schema=CITY), model="m"
    )["system"]
    assert isinstance(system, str)
    assert system.startswith("Be brief.\n\n")
    assert '"additionalProperties": false' in system


turns = st.lists(
    st.one_of(
        st.builds(ChatMessage, st.sampled_from(["system", "user"]), st.text(min_size=1).filter(str.strip)),
        st.builds(ChatMessage, st.just("assistant"), st.text()),
        st.tuples(st.text(), st.text()),
    )
)


@given(turns)
def test_every_conversation_that_begins_with_the_user_is_one_that_the_api_takes(
    parts: list[ChatMessage | tuple[str, str]],
) -> None:
    talk = [ChatMessage("user", "hello")]
    for number, part in enumerate(parts):
        if isinstance(part, ChatMessage):
            talk.append(part)
        else:
            calls = (ToolCall(f"{number}-1", "look", {}), ToolCall(f"{number}-2", "look", {}))
            talk += [ChatMessage("user", "look"), ChatMessage("assistant", part[0], calls)]
            talk += [ChatMessage("tool", part[1], (), call.id) for call in calls]
    assert _complaint(to_wire(ChatRequest(talk), model="m")) is None


def answer(*content: object, **more: object) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": list(content), "stop_reason": "end_turn", **more}


def text(words: str) -> dict[str, object]:
    return {"type": "text", "text": words}


USE: dict[str, object] = {"type": "tool_use", "id": "1", "name": "look", "input": {}}
UNDERSTOOD = {
    "no usage": (answer(text("hello")), ChatReply("hello")),
    "input that is null": (answer({**USE, "input": None}), ChatReply("", (ToolCall("1", "look", {}),))),
    "no id": (answer({**USE, "id": ""}), ChatReply("", (ToolCall("", "look", {}),))),
    "input that is a list": (
        answer({**USE, "input": [1]}),
        ChatReply("", (ToolCall("1", "look", {}, "the arguments are not a JSON object: [1]"),)),
    ),
    "no name": (
        answer({**USE, "name": None}),
        ChatReply("", (ToolCall("1", "unnamed", {}, "the call names no tool"),)),
    ),
    "several texts": (answer(text("hel"), text("lo")), ChatReply("hello")),
    "thoughts": (answer({"type": "thinking", "thinking": "Hm.", "signature": "x"}, text("hello")), ChatReply("hello")),
    "nothing": (answer(), ChatReply("")),
    "a stop sequence": (answer(text("hello"), stop_reason="stop_sequence"), ChatReply("hello")),
    "the window is full": (
        answer(text("hel"), stop_reason="model_context_window_exceeded"),
        ChatReply("hel", cut="length"),
    ),
    "a refusal": (answer(text("hel"), stop_reason="refusal"), ChatReply("hel", cut="content_filter")),
    "what the cache holds was read too": (
        answer(
            text("hello"),
            usage={
                "input_tokens": 1,
                "cache_creation_input_tokens": 20,
                "cache_read_input_tokens": 300,
                "output_tokens": 4,
            },
        ),
        ChatReply("hello", usage=Usage(321, 4, 300)),
    ),
    "usage without numbers": (
        answer(text("hello"), usage={"input_tokens": 1, "cache_read_input_tokens": None}),
        ChatReply("hello", usage=Usage(1, 0)),
    ),
}


@pytest.mark.parametrize(("wire", "expected"), UNDERSTOOD.values(), ids=UNDERSTOOD)
def test_an_answer_is_understood(wire: dict[str, Any], expected: ChatReply) -> None:
    assert from_wire(wire) == expected


MALFORMED: dict[str, tuple[dict[str, Any], str]] = {
    "no content": ({"type": "message"}, "malformed_answer"),
    "content that is text": ({**answer(), "content": "hello"}, "malformed_answer"),
    "a block that is text": (answer("hello"), "malformed_answer"),
    "a text without text": (answer({"type": "text"}), "malformed_answer"),
    "cut within a call": (answer(text("I"), USE, stop_reason="max_tokens"), "answer_cut"),
    "refused at once": (answer(stop_reason="refusal"), "content_filtered"),
}


@pytest.mark.parametrize(("wire", "code"), MALFORMED.values(), ids=MALFORMED)
def test_an_answer_that_is_not_a_message_is_a_failure_of_the_server(wire: dict[str, Any], code: str) -> None:
    with pytest.raises(UpstreamFailed) as caught:
        from_wire(wire)
    assert caught.value.code == code


arguments = st.dictionaries(st.text(), st.none() | st.booleans() | st.integers() | st.text() | st.lists(st.text()))
calls = st.lists(st.builds(ToolCall, st.text(min_size=1), st.text(min_size=1), arguments), max_size=3).map(tuple)


@given(st.builds(ChatReply, st.text(), calls, st.builds(Usage, st.integers(0, MAX_TOKENS), st.integers(0, MAX_TOKENS))))
def test_a_reply_survives_the_wire(reply: ChatReply) -> None:
    assert from_wire(dict(AnthropicServer().written(reply))) == reply


def test_a_tool_without_parameters_is_described_all_the_same() -> None:
    payload: Any = to_wire(ChatRequest([ChatMessage("user", "?")], [ToolSpec("now", "", {})]), model="m")
    assert payload["tools"] == [{"name": "now", "description": "", "input_schema": {}}]


@pytest.mark.parametrize("words", ["", " \n"], ids=["nothing", "white space"])
def test_a_blank_input_is_sent_as_words_because_the_server_refuses_it(words: str) -> None:
    payload: Any = to_wire(ChatRequest([ChatMessage("system", "Be brief."), ChatMessage("user", words)]), model="m")
    assert payload["messages"] == [{"role": "user", "content": [{"type": "text", "text": "(no text)"}]}]


def test_a_conversation_that_the_assistant_begins_has_a_user_before_it() -> None:
    calls = (ToolCall("1", "look", {}),)
    talk = [
        ChatMessage("user", ""),
        ChatMessage("assistant", "", calls),
        ChatMessage("tool", "no", (), "1", failed=True),
    ]
    payload: Any = to_wire(ChatRequest(talk), model="m")
    assert [message["role"] for message in payload["messages"]] == ["user", "assistant", "user"]


@pytest.mark.parametrize("failed", [True, False])
def test_a_tool_that_failed_is_an_error_for_the_model(failed: bool) -> None:
    talk = [ChatMessage("user", "?"), ChatMessage("tool", "no", (), "1", failed=failed)]
    payload: Any = to_wire(ChatRequest(talk), model="m")
    assert payload["messages"][0]["content"][1].get("is_error", False) is failed
