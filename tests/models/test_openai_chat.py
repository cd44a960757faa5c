import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retain.errors import Misconfigured, Unavailable, UnusableAnswer, UpstreamFailed
from retain.host.fetch import HostFetch
from retain.models.chat import ChatMessage, ChatReply, ChatRequest, ToolCall, ToolSpec, Usage, usage_of
from retain.models.openai_endpoint import OpenAiEndpoint
from retain.models.providers.openai import (
    MAX_TOKENS,
    OpenAiChat,
    from_wire,
    limit_field_at,
    to_wire,
    usage_from_wire,
)
from retain.models.providers.structured import CheckedChat
from retain.models.requests import model_requests_allowed
from retain.models.retry import Retries
from retain.models.scripted.chat import Script
from retain.ports import HttpResponse
from tests.models.chat_contract import Heard
from tests.support.model_server import Failure, ModelServer, chat_reply_to_wire, chat_request_from_wire

EndpointOf = Callable[..., OpenAiEndpoint]

WEATHER: Script = {
    "name": "weather",
    "rules": [
        {
            "rule": "look it up",
            "when": {"last": "user", "find": {"user": r"in (?P<city>\w+)"}},
            "reply": {
                "text": "One moment.",
                "calls": [{"tool": "forecast", "arguments": {"city": "{city}", "days": 2, "units": ["\u00b0C"]}}],
            },
        },
        {
            "rule": "tell it",
            "when": {"tool": "forecast", "find": {"result": r'"degrees": (?P<degrees>-?\d+)'}},
            "reply": {"text": "It will be {degrees} \u00b0C."},
        },
    ],
}
FORECAST = ToolSpec("forecast", "Tell the weather.", {"type": "object", "properties": {"city": {"type": "string"}}})


@pytest.fixture
def model(server: ModelServer, endpoint_of: EndpointOf) -> OpenAiChat:
    server.scripts = {"gpt-test": WEATHER}
    return OpenAiChat(endpoint_of(server), model="gpt-test")


async def test_a_conversation_with_a_tool_goes_over_the_wire_and_back(server: ModelServer, model: OpenAiChat) -> None:
    messages = [ChatMessage("system", "Be brief."), ChatMessage("user", "How is the weather in Oslo?")]
    first = await model.complete(ChatRequest(messages, [FORECAST], max_output_tokens=50, temperature=0.0))
    assert first.content == "One moment."
    assert first.tool_calls == (ToolCall("call_1_1", "forecast", {"city": "Oslo", "days": 2, "units": ["\u00b0C"]}),)
    assert first.usage.input_tokens > 0
    messages += [
        ChatMessage("assistant", first.content, first.tool_calls),
        ChatMessage("tool", '{"degrees": -3}', tool_call_id="call_1_1"),
    ]
    second = await model.complete(ChatRequest(messages, [FORECAST]))
    assert (second.content, second.tool_calls) == ("It will be -3 \u00b0C.", ())
    sent = server.received[0].body
    assert (sent["model"], sent["max_tokens"], sent["temperature"]) == ("gpt-test", 50, 0.0)
    assert sent["tools"] == [
        {
            "type": "function",
            "function": {
                "name": "forecast",
                "description": "Tell the weather.",
                "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
            },
        }
    ]
    assert server.received[1].body["messages"][2]["content"] == "One moment."
    assert server.received[1].body["messages"][3] == {
        "role": "tool",
        "content": '{"degrees": -3}',
        "tool_call_id": "call_1_1",
    }


@pytest.mark.parametrize(
    ("base_url", "field"),
    [
        ("https://api.openai.com/v1", "max_completion_tokens"),
        ("https://eu.API.openai.com:443/v1", "max_completion_tokens"),
        ("https://shop.openai.azure.com/openai/v1", "max_completion_tokens"),
        ("https://shop.services.ai.azure.com/openai/v1", "max_completion_tokens"),
        ("https://gateway.ai.cloudflare.com/v1/account/gateway/openai", "max_completion_tokens"),
        ("https://gateway.ai.cloudflare.com/v1/openai/gateway/mistral", "max_tokens"),
        ("https://api.mistral.ai/v1", "max_tokens"),
        ("http://127.0.0.1:11434/v1", "max_tokens"),
        ("https://api.openai.com.example/v1", "max_tokens"),
        ("http://[", "max_tokens"),
    ],
)
def test_the_output_limit_has_the_name_that_the_server_reads(base_url: str, field: str) -> None:
    assert limit_field_at(base_url) == field


async def test_a_server_that_wants_the_newer_name_of_the_limit_is_asked_with_it_from_then_on(
    server: ModelServer, model: OpenAiChat
) -> None:
    server.fail(Failure(status=400, code="unsupported_parameter"))
    words = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
    server.error = lambda *_: {"error": {"message": words, "code": "unsupported_parameter"}}  # type: ignore[method-assign]
    for _ in range(2):
        server.say(ChatReply("hello"))
        assert (await model.complete(ChatRequest([ChatMessage("user", "?")]))).content == "hello"
    limits = [{name for name in received.body if name.startswith("max")} for received in server.received]
    assert limits == [{"max_tokens"}, {"max_completion_tokens"}, {"max_completion_tokens"}]


async def test_a_server_that_refuses_stream_options_is_asked_without_from_then_on(
    server: ModelServer, endpoint_of: EndpointOf, fetch: HostFetch
) -> None:
    model = OpenAiChat(replace(endpoint_of(server), fetch_stream=fetch.stream), model="m")
    server.fail(Failure(status=422))
    problem = {"type": "extra_forbidden", "loc": ["body", "stream_options"], "msg": "Extra inputs are not permitted"}
    server.error = lambda *_: {"object": "error", "message": {"detail": [problem]}}  # type: ignore[method-assign]
    for _ in range(2):
        server.say(ChatReply("hello"))
        assert (await model.complete(ChatRequest([ChatMessage("user", "?")]), Heard())).content == "hello"
    assert ["stream_options" in received.body for received in server.received] == [True, False, False]


CITY: dict[str, object] = {"type": "object", "properties": {"city": {"type": "string"}}}
WITH_A_SCHEMA = [ChatMessage("system", "Be brief."), ChatMessage("user", "?")]


async def test_a_schema_is_sent_as_one_and_next_to_tools_in_words_since_a_model_could_call_none(
    server: ModelServer, model: OpenAiChat
) -> None:
    for tools in ([], [FORECAST]):
        server.say(ChatReply("{}"))
        await model.complete(ChatRequest(WITH_A_SCHEMA, tools, schema=CITY))
    alone, with_tools = (received.body for received in server.received)
    assert alone["response_format"]["json_schema"]["schema"] == CITY
    assert [message["content"] for message in alone["messages"]] == ["Be brief.", "?"]
    assert "response_format" not in with_tools
    instructions, question = (message["content"] for message in with_tools["messages"])
    assert (instructions.startswith("Be brief.\n\n"), instructions.endswith(json.dumps(CITY)), question) == (
        True,
        True,
        "?",
    )


async def test_openai_takes_a_schema_next_to_tools(retries: Retries) -> None:
    sent: list[dict[str, Any]] = []

    async def fetch(*_: object, body: str | bytes | None, **__: object) -> HttpResponse:
        sent.append(json.loads(body or ""))
        return HttpResponse(200, {}, json.dumps(answer_with({"content": "{}"})).encode())

    model = OpenAiChat(OpenAiEndpoint("https://api.openai.com/v1", fetch, retries, "k"), model="m")
    with model_requests_allowed():  # nothing leaves the test
        await model.complete(ChatRequest(WITH_A_SCHEMA, [FORECAST], schema=CITY))
    assert sent[0]["response_format"]["json_schema"]["schema"] == CITY


async def test_a_server_that_refuses_schemas_is_asked_in_words_from_then_on(
    server: ModelServer, model: OpenAiChat
) -> None:
    server.fail(Failure(status=400, code="invalid_request_error"))
    request = ChatRequest([ChatMessage("user", "?")], schema=CITY)
    for _ in range(2):
        server.say(ChatReply("{}"))
        assert (await model.complete(request)).content == "{}"
    assert ["response_format" in received.body for received in server.received] == [True, False, False]
    assert [message["role"] for message in server.received[-1].body["messages"]] == ["system", "user"]
    server.fail(Failure(status=400))
    with pytest.raises(UpstreamFailed):
        await model.complete(request)
    assert len(server.received) == 4


def test_what_is_not_set_is_not_sent() -> None:
    payload = to_wire(ChatRequest([ChatMessage("user", "hello")]), model="m", limit_field="max_tokens")
    assert payload == {"model": "m", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 1024}


def test_a_tool_without_parameters_has_no_properties_rather_than_none() -> None:
    request = ChatRequest([ChatMessage("user", "?")], [ToolSpec("now", "Tell the time.", {"type": "object"}), FORECAST])
    payload: Any = to_wire(request, model="m", limit_field="max_tokens")
    sent = [tool["function"]["parameters"] for tool in payload["tools"]]
    assert sent == [{"type": "object", "properties": {}}, FORECAST.parameters]


def test_an_assistant_that_only_called_tools_has_no_content() -> None:
    request = ChatRequest([ChatMessage("assistant", "", (ToolCall("1", "forecast", {}),))])
    payload: Any = to_wire(request, model="m", limit_field="max_tokens")
    assert payload["messages"][0]["content"] is None


arguments = st.dictionaries(st.text(), st.none() | st.booleans() | st.integers() | st.text() | st.lists(st.text()))
calls = st.lists(st.builds(ToolCall, st.text(min_size=1), st.text(min_size=1), arguments), max_size=3).map(tuple)
messages = st.one_of(
    st.builds(ChatMessage, st.sampled_from(["system", "user"]), st.text()),
    st.builds(ChatMessage, st.just("assistant"), st.text(), calls),
    st.builds(ChatMessage, st.just("tool"), st.text(), st.just(()), st.text(min_size=1)),
)


parameters = st.builds(lambda more: {"type": "object", "properties": {}, **more}, arguments)


@given(st.lists(messages), st.lists(st.builds(ToolSpec, st.text(), st.text(), parameters)), st.integers(1, 10_000))
def test_a_request_survives_the_wire(sent: list[ChatMessage], tools: list[ToolSpec], limit: int) -> None:
    request = ChatRequest(sent, tools, limit, 0.5)
    wire = json.loads(json.dumps(to_wire(request, model="m", limit_field="max_completion_tokens")))
    assert chat_request_from_wire(wire) == request


@given(st.builds(ChatReply, st.text(), calls, st.builds(Usage, st.integers(0, MAX_TOKENS), st.integers(0, MAX_TOKENS))))
def test_a_reply_survives_the_wire(reply: ChatReply) -> None:
    assert from_wire(json.loads(json.dumps(chat_reply_to_wire(reply, "m")))) == reply


def answer_with(message: object, **more: object) -> dict[str, object]:
    return {"choices": [{"index": 0, "message": message, **more}]}


def call_with(**fields: object) -> dict[str, object]:
    call = {"id": "1", "type": "function", "function": {"name": "forecast", "arguments": "{}", **fields}}
    return answer_with({"role": "assistant", "content": None, "tool_calls": [call]})


THOUGHT: list[object] = [{"type": "thinking", "thinking": [{"type": "text", "text": "They greet me."}]}]
TOLERATED = {
    "no usage": (answer_with({"content": "hello"}), ChatReply("hello")),
    "a refusal in words": (answer_with({"content": None, "refusal": "I cannot."}), ChatReply("I cannot.")),
    "content in parts": (answer_with({"content": [*THOUGHT, {"type": "text", "text": "hello"}]}), ChatReply("hello")),
    "null for no calls": (answer_with({"content": "hello", "tool_calls": None}), ChatReply("hello")),
    "empty arguments": (call_with(arguments=""), ChatReply("", (ToolCall("1", "forecast", {}),))),
    "cut off at the limit": (answer_with({"content": "hel"}, finish_reason="length"), ChatReply("hel", cut="length")),
    "cut off at the end of the context": (
        answer_with({"content": "hel"}, finish_reason="model_length"),
        ChatReply("hel", cut="length"),
    ),
    "withheld in part, with a reason": (
        answer_with({"content": "hel"}, finish_reason="content_filter: RECITATION"),
        ChatReply("hel", cut="content_filter"),
    ),
    "usage without numbers": (
        {**answer_with({"content": "hello"}), "usage": {"prompt_tokens": None}},
        ChatReply("hello"),
    ),
}


@pytest.mark.parametrize(("answer", "expected"), TOLERATED.values(), ids=TOLERATED)
def test_the_habits_of_other_servers_are_understood(answer: dict[str, object], expected: ChatReply) -> None:
    assert from_wire(answer) == expected


def test_what_a_server_wants_to_read_again_with_its_calls_is_sent_back_as_it_wrote_it() -> None:
    function = {"name": "forecast", "arguments": "{}"}
    signed = {"google": {"thought_signature": "c2lnbmVk"}}
    message = {
        "role": "assistant",
        "content": None,
        "reasoning_content": "Hm.",
        "reasoning_details": [{"type": "reasoning.encrypted", "data": "x"}],
        "tool_calls": [
            {"id": "1", "type": "function", "function": function, "extra_content": signed},
            {"id": "2", "type": "function", "function": function},
        ],
    }
    reply = from_wire(answer_with(message))
    request = ChatRequest([ChatMessage("assistant", reply.content, reply.tool_calls)])
    assert to_wire(request, model="m", limit_field="max_tokens")["messages"] == [message]


async def test_what_a_model_thought_is_sent_back_to_it_alone(server: ModelServer, endpoint_of: EndpointOf) -> None:
    call = {"id": "1", "type": "function", "function": {"name": "forecast", "arguments": "{}"}}
    server.say(answer_with({"content": None, "reasoning_content": "Hm.", "tool_calls": [call]}))
    models = [CheckedChat(OpenAiChat(endpoint_of(server), model=name)) for name in ("thinker", "other")]
    asked = ChatMessage("user", "?")
    reply = await models[0].complete(ChatRequest([asked], [FORECAST]))
    assert [one.reasoning for one in reply.tool_calls] == [{"model": "thinker", "reasoning_content": "Hm."}]
    talk = [asked, ChatMessage("assistant", "", reply.tool_calls), ChatMessage("tool", "{}", (), "1")]
    for model in models:
        server.say(ChatReply("cold"))
        await model.complete(ChatRequest(talk, [FORECAST]))
    sent = [received.body["messages"][1] for received in server.received[1:]]
    assert sent == [
        {**sent[1], "reasoning_content": "Hm."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
    ]


async def test_what_json_cannot_hold_of_what_a_model_thought_is_left_out(
    server: ModelServer, endpoint_of: EndpointOf
) -> None:
    call = {"id": "1", "type": "function", "function": {"name": "forecast", "arguments": "{}"}}
    details = [{"type": "reasoning.text", "score": float("nan")}]
    server.say(answer_with({"content": None, "reasoning_details": details, "tool_calls": [call]}))
    model = CheckedChat(OpenAiChat(endpoint_of(server), model="thinker"))
    reply = await model.complete(ChatRequest([ChatMessage("user", "?")], [FORECAST]))
    assert reply.tool_calls == (ToolCall("1", "forecast", {}),)


def test_what_was_thought_before_an_answer_in_words_is_not_kept() -> None:
    assert from_wire(answer_with({"content": "hello", "reasoning_content": "Hm."})) == ChatReply("hello")


NO_ID: dict[str, object] = {"type": "function", "function": {"name": "forecast", "arguments": "{}"}}
MALFORMED: dict[str, tuple[dict[str, object], str]] = {
    "no choices": ({}, "malformed_answer"),
    "empty choices": ({"choices": []}, "malformed_answer"),
    "no message": ({"choices": [{"index": 0}]}, "malformed_answer"),
    "parts that are texts": (answer_with({"content": ["hello"]}), "malformed_answer"),
    "a part whose text is none": (answer_with({"content": [{"type": "text", "text": 7}]}), "malformed_answer"),
    "calls that are no list": (answer_with({"content": None, "tool_calls": {"0": NO_ID}}), "malformed_answer"),
    "withheld without a message": (
        {"choices": [{"index": 0, "finish_reason": "content_filter: PROHIBITED_CONTENT"}]},
        "content_filtered",
    ),
    "withheld": (answer_with({"content": None}, finish_reason="content_filter"), "content_filtered"),
}


@pytest.mark.parametrize(("answer", "code"), MALFORMED.values(), ids=MALFORMED)
def test_an_answer_that_is_not_a_message_is_a_failure_of_the_server(answer: dict[str, object], code: str) -> None:
    usage = {"prompt_tokens": 7, "completion_tokens": 3}
    with pytest.raises(UpstreamFailed) as caught:
        from_wire({**answer, "usage": usage})
    assert (caught.value.code, usage_of(caught.value)) == (code, Usage(7, 3))
    assert isinstance(caught.value, UnusableAnswer) is (code == "malformed_answer")


@pytest.mark.parametrize("reason", ["error", "insufficient_system_resource"])
def test_an_answer_that_its_server_could_not_finish_may_be_asked_for_again(reason: str) -> None:
    with pytest.raises(Unavailable) as caught:
        from_wire(answer_with({"content": "It will"}, finish_reason=reason))
    assert caught.value.code == "model_unavailable"


OSLO = {"city": "Oslo"}
WRITTEN: dict[str, tuple[dict[str, object], ToolCall]] = {
    "arguments that are an object": (call_with(arguments=OSLO), ToolCall("1", "forecast", OSLO)),
    "null for no arguments": (call_with(arguments=None), ToolCall("1", "forecast", {})),
    "the word null for no arguments": (call_with(arguments=" null"), ToolCall("1", "forecast", {})),
    "no id": (answer_with({"content": None, "tool_calls": [NO_ID]}), ToolCall("", "forecast", {})),
    "arguments that are no JSON": (
        call_with(arguments='{"city": "Os'),
        ToolCall("1", "forecast", {}, 'the arguments are not a JSON object: {"city": "Os'),
    ),
    "arguments that are a list": (
        call_with(arguments="[1]"),
        ToolCall("1", "forecast", {}, "the arguments are not a JSON object: [1]"),
    ),
    "a number that JSON does not have": (
        call_with(arguments='{"degrees": NaN}'),
        ToolCall("1", "forecast", {}, 'the arguments are not a JSON object: {"degrees": NaN}'),
    ),
    "a number that is too large": (
        call_with(arguments='{"degrees": 1e999}'),
        ToolCall("1", "forecast", {}, 'the arguments are not a JSON object: {"degrees": 1e999}'),
    ),
    "arguments nested too deeply": (
        call_with(arguments="[" * 5000),
        ToolCall("1", "forecast", {}, f"the arguments are not a JSON object: {'[' * 200}\u2026"),
    ),
    "no name": (call_with(name=None), ToolCall("1", "unnamed", {}, "the call names no tool")),
    "no function": (
        answer_with({"content": None, "tool_calls": [{"id": "1"}]}),
        ToolCall("", "unnamed", {}, "the call is not an object with a function"),
    ),
    "no object": (
        answer_with({"content": None, "tool_calls": ["forecast"]}),
        ToolCall("", "unnamed", {}, "the call is not an object with a function"),
    ),
}


@pytest.mark.parametrize(("answer", "call"), WRITTEN.values(), ids=WRITTEN)
def test_a_malformed_call_is_a_call_with_a_problem(answer: dict[str, object], call: ToolCall) -> None:
    assert from_wire(answer).tool_calls == (call,)


async def test_transient_failures_are_retried(server: ModelServer, model: OpenAiChat) -> None:
    server.fail(Failure(status=429, retry_after="0"))
    server.fail(Failure("drop"))
    reply = await model.complete(ChatRequest([ChatMessage("user", "How is the weather in Oslo?")], [FORECAST]))
    assert (reply.tool_calls[0].name, len(server.received)) == ("forecast", 3)


async def test_a_server_that_does_not_answer_is_unavailable(server: ModelServer, endpoint_of: EndpointOf) -> None:
    server.fail(Failure("never"), times=3)
    with pytest.raises(Unavailable) as caught:
        await OpenAiChat(endpoint_of(server, timeout_ms=100), model="m").complete(
            ChatRequest([ChatMessage("user", "?")])
        )
    assert caught.value.code == "upstream_timeout"


async def test_refused_credentials_are_a_matter_of_configuration(server: ModelServer, endpoint_of: EndpointOf) -> None:
    with pytest.raises(Misconfigured) as caught:
        await OpenAiChat(endpoint_of(server, api_key="wrong"), model="m").complete(
            ChatRequest([ChatMessage("user", "?")])
        )
    assert caught.value.code == "model_credentials"


async def test_a_request_that_the_server_refuses_is_not_repeated(server: ModelServer, model: OpenAiChat) -> None:
    with pytest.raises(UpstreamFailed) as caught:
        await model.complete(ChatRequest([ChatMessage("user", "Sing!")]))
    assert (caught.value.details["status"], caught.value.details["upstream_code"]) == (400, "script_exhausted")
    assert len(server.received) == 1


@pytest.mark.parametrize("count", [-1_000_000, -1, True, 1.0, "12", None, 10**12])
def test_what_is_not_a_count_of_tokens_is_not_believed(count: object) -> None:
    assert usage_from_wire({"prompt_tokens": count, "completion_tokens": 5}) == Usage(0, 5)
    assert usage_from_wire({"prompt_tokens": 5, "completion_tokens": count}) == Usage(5, 0)
    assert usage_from_wire(count) == Usage()
    assert usage_from_wire({"prompt_tokens": 5, "completion_tokens": 5, "total_tokens": count}) == Usage(5, 5)


def test_what_a_model_thought_is_what_it_wrote_also_where_only_the_sum_has_it() -> None:
    assert usage_from_wire({"prompt_tokens": 32, "completion_tokens": 9, "total_tokens": 135}) == Usage(32, 103)
