"""What every chat adapter does. A case lines up the model's answer and checks the adapter's reply."""

from __future__ import annotations

from typing import Any, Protocol

from retain.errors import InvalidInput, UpstreamFailed
from retain.json_text import JsonObject
from retain.models.chat import ChatMessage, ChatModel, ChatReply, ChatRequest, ToolCall, ToolSpec, Usage, usage_of
from tests.ports import raises

FORECAST = ToolSpec("forecast", "Tell the weather.", {"type": "object", "properties": {"city": {"type": "string"}}})
ASKED = [ChatMessage("system", "Be brief."), ChatMessage("user", "How is the weather in Oslo?")]
CITY = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "degrees": {"type": "integer"}},
    "required": ["city"],
    "additionalProperties": False,
}


class Stage(Protocol):
    """An adapter and its model."""

    @property
    def model(self) -> ChatModel:
        """The adapter."""
        ...

    def say(self, reply: ChatReply) -> None:
        """Line up the model's next answer."""
        ...

    @property
    def asked(self) -> int:
        """How often the model was asked."""
        ...


class Heard:
    """Collects a streamed text."""

    def __init__(self) -> None:
        self.pieces: list[str] = []

    async def __call__(self, text: str) -> None:
        assert text, "a piece is never empty"
        self.pieces.append(text)

    @property
    def text(self) -> str:
        return "".join(self.pieces)


async def both(stage: Stage, answer: ChatReply, request: ChatRequest | None = None) -> ChatReply:
    """Return the reply; require that it is the same streamed, and that the pieces are its text."""
    request = request or ChatRequest(ASKED, [FORECAST])
    stage.say(answer)
    whole = await stage.model.complete(request)
    stage.say(answer)
    heard = Heard()
    assert await stage.model.complete(request, heard) == whole
    assert heard.text == whole.content
    return whole


def shown(reply: ChatReply) -> list[tuple[str, Any]]:
    return [(call.name, call.arguments) for call in reply.tool_calls]


async def check_text_is_the_reply(stage: Stage) -> None:
    text = 'Cold \u2014 \u22123 \u00b0C,\n  "snow" \U0001f328 and { braces }. '
    reply = await both(stage, ChatReply(text, usage=Usage(12, 34, 5)))
    assert (reply.content, reply.tool_calls, reply.finish_reason) == (text, (), "stop")
    assert reply.usage.input_tokens > 0
    assert reply.usage.output_tokens > 0


async def check_text_streams_in_pieces(stage: Stage) -> None:
    stage.say(ChatReply("It will be cold in Oslo, and it will snow."))
    heard = Heard()
    await stage.model.complete(ChatRequest(ASKED), heard)
    assert len(heard.pieces) > 3


async def check_what_the_model_thought_before_its_answer_is_not_the_reply(stage: Stage) -> None:
    thought = ChatReply(
        "<think>\nThey ask <b>me</b>. {1}</think>\n\nIt will be <think>cold</think>.", usage=Usage(1, 1)
    )
    assert (await both(stage, thought)).content == "It will be <think>cold</think>."
    answer = ChatReply('<think>Hm.</think>\n{"city": "Oslo"}', usage=Usage(1, 1))
    assert (await both(stage, answer, ChatRequest(ASKED, schema=CITY))).structured == {"city": "Oslo"}


async def check_a_call_of_a_tool_is_the_reply(stage: Stage) -> None:
    arguments: JsonObject = {
        "city": "Troms\u00f8",
        "days": 2,
        "units": ["\u00b0C"],
        "exact": True,
        "note": None,
        "at": {"h": 1.5},
    }
    reply = await both(stage, ChatReply("", (ToolCall("a", "forecast", arguments),), Usage(1, 1)))
    assert (reply.content, reply.finish_reason) == ("", "tool_calls")
    assert shown(reply) == [("forecast", arguments)]


async def check_several_calls_keep_their_order_after_the_text(stage: Stage) -> None:
    calls = (
        ToolCall("a", "forecast", {"city": "Oslo"}),
        ToolCall("b", "forecast", {}),
        ToolCall("c", "tide", {"x": 1}),
    )
    reply = await both(stage, ChatReply("One moment.", calls, Usage(1, 1)))
    assert reply.content == "One moment."
    assert shown(reply) == [("forecast", {"city": "Oslo"}), ("forecast", {}), ("tide", {"x": 1})]
    ids = [call.id for call in reply.tool_calls]
    assert all(ids)
    assert len(set(ids)) == 3


async def check_calls_get_ids_that_the_conversation_does_not_have(stage: Stage) -> None:
    earlier = ToolCall("a", "forecast", {})
    talk = [*ASKED, ChatMessage("assistant", "", (earlier,)), ChatMessage("tool", "{}", (), "a")]
    for ids in (("", ""), ("b", "b"), ("a", "b"), ("call_2_2", "")):
        calls = tuple(ToolCall(one, "forecast", {"n": n}) for n, one in enumerate(ids))
        reply = await both(stage, ChatReply("", calls, Usage(1, 1)), ChatRequest(talk, [FORECAST]))
        assert shown(reply) == [("forecast", {"n": 0}), ("forecast", {"n": 1})]
        assert len({"a", "", *(call.id for call in reply.tool_calls)}) == 4


async def check_a_call_of_a_tool_with_an_unusual_name_can_be_repeated(stage: Stage) -> None:
    reply = await both(stage, ChatReply("", (ToolCall("a", "functions.look up", {}),), Usage(1, 1)))
    assert shown(reply) == [("functions_look_up", {})]


async def check_a_conversation_with_results_continues(stage: Stage) -> None:
    stage.say(ChatReply("", (ToolCall("a", "forecast", {"city": "Oslo"}), ToolCall("b", "forecast", {})), Usage(1, 1)))
    first = await stage.model.complete(ChatRequest(ASKED, [FORECAST]))
    one, two = first.tool_calls
    results = [ChatMessage("tool", '{"degrees": -3}', (), one.id), ChatMessage("tool", "{}", (), two.id)]
    talk = [
        *ASKED,
        ChatMessage("assistant", first.content, first.tool_calls),
        *results,
        ChatMessage("user", "And tomorrow?"),
    ]
    assert (await both(stage, ChatReply("Cold.", usage=Usage(1, 1)), ChatRequest(talk, [FORECAST]))).content == "Cold."


async def check_text_that_reached_the_limit_says_so(stage: Stage) -> None:
    answer = ChatReply("Once upon a ", usage=Usage(5, 3), cut="length")
    reply = await both(stage, answer, ChatRequest(ASKED, max_output_tokens=3))
    assert (reply.content, reply.finish_reason) == ("Once upon a ", "length")


async def check_a_call_that_reached_the_limit_is_an_error_and_no_call(stage: Stage) -> None:
    answer = ChatReply("", (ToolCall("a", "forecast", {"city": "Oslo"}),), Usage(1, 1), "length")
    for heard in (None, Heard()):
        stage.say(answer)
        with raises(UpstreamFailed, code="answer_cut"):
            await stage.model.complete(ChatRequest(ASKED, [FORECAST], max_output_tokens=1), heard)


async def check_what_the_caller_raises_ends_the_call_and_is_not_repeated(stage: Stage) -> None:
    class GoneError(Exception):
        pass

    async def refuse(text: str) -> None:
        raise GoneError

    before = stage.asked
    stage.say(ChatReply("It will be cold."))
    try:
        await stage.model.complete(ChatRequest(ASKED), refuse)
    except GoneError:
        assert stage.asked == before + 1
    else:
        raise AssertionError("nothing was raised")


async def check_an_answer_by_a_schema_is_an_object(stage: Stage) -> None:
    answer = ChatReply('{"city": "Oslo", "degrees": -3}', usage=Usage(1, 1))
    reply = await both(stage, answer, ChatRequest(ASKED, schema=CITY))
    assert reply.structured == {"city": "Oslo", "degrees": -3}


async def check_a_fence_around_an_answer_by_a_schema_is_removed(stage: Stage) -> None:
    answer = ChatReply('```json\n{"city": "Oslo"}\n```', usage=Usage(1, 1))
    reply = await both(stage, answer, ChatRequest(ASKED, schema=CITY))
    assert (reply.content, reply.structured) == ('{"city": "Oslo"}', {"city": "Oslo"})


async def check_an_answer_that_does_not_match_its_schema_is_an_error_after_one_more_try(stage: Stage) -> None:
    for text in ("Oslo", "[1]", '{"degrees": -3}', '{"city": "Oslo", "more": 1}', '{"city": "Os'):
        before = stage.asked
        heard = Heard()
        for _ in range(2):
            stage.say(ChatReply(text, usage=Usage(1, 1)))
        try:
            await stage.model.complete(ChatRequest(ASKED, schema=CITY), heard)
        except UpstreamFailed as error:
            assert error.code == "schema_mismatch"
            assert usage_of(error).input_tokens > 1, "both answers cost something"
        else:
            raise AssertionError("the answer does not match")
        assert (heard.pieces, stage.asked - before) == ([], 2)


async def check_a_call_of_a_tool_need_not_match_the_schema(stage: Stage) -> None:
    answer = ChatReply("", (ToolCall("a", "forecast", {}),), Usage(1, 1))
    reply = await both(stage, answer, ChatRequest(ASKED, [FORECAST], schema=CITY))
    assert (shown(reply), reply.structured) == ([("forecast", {})], None)


async def check_an_answer_by_a_schema_that_reached_the_limit_is_an_error(stage: Stage) -> None:
    stage.say(ChatReply('{"city": "Os', usage=Usage(1, 3), cut="length"))
    with raises(UpstreamFailed, code="answer_cut"):
        await stage.model.complete(ChatRequest(ASKED, max_output_tokens=3, schema=CITY))


async def check_an_invalid_schema_is_the_callers_mistake(stage: Stage) -> None:
    before = stage.asked
    with raises(InvalidInput, code="invalid_schema"):
        await stage.model.complete(ChatRequest(ASKED, schema={"type": "city"}))
    assert stage.asked == before
