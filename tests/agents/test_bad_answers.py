"""Answers of a model that cannot be used: fed back, asked for again or marked; never a silent end, always counted."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from retain.agents.catalogue import AgentCatalogue
from retain.agents.execution.asking import MAX_ANSWER_BYTES
from retain.agents.runs.run_state import MAX_ANSWERS
from retain.errors import RetainError, UnusableAnswer, UpstreamFailed
from retain.models.chat import ChatReply, ChatRequest, OnText, ToolCall, Usage
from retain.models.providers.structured import CheckedChat
from tests.agents.remembered import check_d1_agrees
from tests.agents.stepped_chat import SteppedChat, calls, says
from tests.support.instances import Deployment

Deploy = Callable[..., Deployment]
Agents = Callable[..., AgentCatalogue]
NOTE = ("set_working_memory", {"key": "k", "value": 1})


async def kinds(deployment: Deployment) -> list[str]:
    await deployment.settled()
    return [row["kind"] for row in await deployment.rows("SELECT kind FROM run_events ORDER BY seq")]


async def data_of(deployment: Deployment, kind: str) -> list[dict[str, Any]]:
    await deployment.settled()
    rows = await deployment.rows("SELECT data FROM run_events WHERE kind = ? ORDER BY seq", kind)
    return [json.loads(row["data"]) for row in rows]


async def test_a_malformed_call_is_fed_back_and_its_neighbours_are_made(deploy: Deploy) -> None:
    bad = ToolCall("call_9", "set_working_memory", {}, "the arguments are not a JSON object: {")
    chat = SteppedChat(ChatReply("", (bad, *calls(NOTE).tool_calls), Usage(10, 4)), says("done"))
    deployment = deploy(chat=chat)
    result = await deployment.run("sdr", "hello")
    assert (result["status"], result["output"], result["steps"]) == ("completed", "done", 4)
    assert (result["usage"]["input_tokens"], result["usage"]["output_tokens"]) == (13, 6)
    refused, made = chat.requests[1].messages[-2:]
    assert json.loads(refused.content) == {"error": {"code": "malformed_tool_call", "message": bad.problem}}
    assert (refused.tool_call_id, refused.failed, made.failed) == ("call_9", True, False)
    assert (await kinds(deployment)).count("tool_called") == 1
    await check_d1_agrees(deployment)


async def test_malformed_calls_without_end_are_bounded_by_the_turns(deploy: Deploy, agents: Agents) -> None:
    bad = ChatReply("", (ToolCall("", "look", {}, "no JSON"),), Usage(1, 1))
    deployment = deploy(agents(clerk={"limits": {"max_turns": 4}}), chat=CheckedChat(SteppedChat(*[bad] * 9)))
    result = await deployment.run("clerk", "hello")
    assert (result["error"]["code"], result["usage"]["input_tokens"]) == ("turn_limit", 4)


UNUSABLE: dict[str, tuple[ChatReply | Exception, str, str]] = {
    "nothing": (ChatReply("", (), Usage(5, 1)), "empty_answer", "was empty"),
    "white space": (ChatReply(" \n", (), Usage(5, 1)), "empty_answer", "was empty"),
    "cut too early": (
        UnusableAnswer("cut", code="answer_cut", input_tokens=5, output_tokens=1),
        "answer_cut",
        "reached its limit of 1024 tokens",
    ),
    "too many calls": (
        ChatReply("", tuple(ToolCall(f"c{number}", NOTE[0], {}) for number in range(33)), Usage(5, 1)),
        "too_many_tool_calls",
        "more tools at once than 32",
    ),
    "not in the format": (UnusableAnswer("what?", input_tokens=5, output_tokens=1), "malformed_answer", ""),
}


@pytest.mark.parametrize(("answer", "code", "reminder"), UNUSABLE.values(), ids=UNUSABLE)
async def test_an_answer_that_cannot_be_used_is_asked_for_again_and_counted(
    deploy: Deploy, answer: ChatReply | Exception, code: str, reminder: str
) -> None:
    chat = SteppedChat(calls(NOTE), answer, says("done"))
    deployment = deploy(chat=chat)
    result = await deployment.run("sdr", "hello")
    assert (result["status"], result["output"], result["steps"]) == ("completed", "done", 3)
    assert (result["usage"]["input_tokens"], result["usage"]["output_tokens"]) == (3 + 5 + 3, 2 + 1 + 2)
    [dropped] = await data_of(deployment, "answer_dropped")
    assert (dropped["turn"], dropped["code"], dropped["input_tokens"]) == (2, code, 5)
    last = chat.requests[-1].messages[-1]
    assert (reminder in last.content, last.role) == (True, "user" if reminder else "tool")
    await check_d1_agrees(deployment)


@pytest.mark.parametrize(("answer", "code", "reminder"), UNUSABLE.values(), ids=UNUSABLE)
async def test_a_model_that_never_gives_a_usable_answer_fails_the_run(
    deploy: Deploy, answer: ChatReply | Exception, code: str, reminder: str
) -> None:
    chat = SteppedChat(*[answer] * 9)
    deployment = deploy(chat=chat)
    result = await deployment.run("sdr", "hello")
    assert (result["status"], result["output"], result["error"]["code"]) == ("failed", None, code)
    assert (len(chat.requests), result["usage"]["input_tokens"]) == (MAX_ANSWERS, 5 * MAX_ANSWERS)
    await deployment.settled()
    [row] = await deployment.rows("SELECT input_tokens, output_tokens FROM agent_runs")
    assert dict(row) == {"input_tokens": 5 * MAX_ANSWERS, "output_tokens": MAX_ANSWERS}


async def test_as_many_calls_as_the_limit_allows_are_made(deploy: Deploy, agents: Agents) -> None:
    chat = SteppedChat(calls(*[NOTE] * 3), calls(*[NOTE] * 4), says("done"))
    deployment = deploy(agents(clerk={"limits": {"max_tool_calls": 3}}), chat=chat)
    result = await deployment.run("clerk", "hello")
    assert result["output"] == "done"
    assert len(await data_of(deployment, "tool_called")) == 3
    [dropped] = await data_of(deployment, "answer_dropped")
    assert dropped["message"] == "the model called 4 tools at once"


async def test_dropped_answers_count_against_the_budget_of_the_run(deploy: Deploy, agents: Agents) -> None:
    chat = SteppedChat(*[ChatReply("", (), Usage(50, 1))] * 9)
    deployment = deploy(agents(clerk={"limits": {"run_tokens": 100}}), chat=chat)
    result = await deployment.run("clerk", "hello")
    assert (result["error"]["code"], len(chat.requests)) == ("token_budget", 2)


@pytest.mark.parametrize("cut", ["length", "content_filter"])
async def test_an_answer_that_was_cut_is_marked(deploy: Deploy, cut: Any) -> None:
    deployment = deploy(chat=SteppedChat(ChatReply("Once upon a", (), Usage(3, 2), cut)))
    result = await deployment.run("sdr", "hello", key="k")
    assert (result["status"], result["output"], result["finish_reason"]) == ("completed", "Once upon a", cut)
    assert (await deployment.run("sdr", "hello", key="k")) == result
    assert (await data_of(deployment, "model_answered"))[0]["finish_reason"] == cut


REFUSALS: dict[str, tuple[RetainError, dict[str, Any]]] = {
    "a model that does not exist": (
        UpstreamFailed(
            "the model's server refused the request",
            code="model_refused",
            status=404,
            upstream_code="model_not_found",
            upstream_message="The model 'x' does not exist",
        ),
        {"status": 404, "upstream_code": "model_not_found", "upstream_message": "The model 'x' does not exist"},
    ),
    "an answer that was withheld": (
        UpstreamFailed("withheld", code="content_filtered", input_tokens=7, output_tokens=1),
        {},
    ),
}


@pytest.mark.parametrize(("error", "server"), REFUSALS.values(), ids=REFUSALS)
async def test_what_the_server_said_is_in_the_run_s_error_and_timeline(
    deploy: Deploy, error: RetainError, server: dict[str, Any]
) -> None:
    chat = SteppedChat(error)
    deployment = deploy(chat=chat)
    result = await deployment.run("sdr", "hello")
    assert result["error"] == {"code": error.code, "message": error.message, **server}
    assert (len(chat.requests), result["usage"]["input_tokens"]) == (1, error.details.get("input_tokens", 0))
    [failed] = await data_of(deployment, "run_failed")
    assert {name: value for name, value in failed["server"].items() if value is not None} == server
    await check_d1_agrees(deployment)


LARGE: dict[str, ChatReply] = {
    "text": says("x" * MAX_ANSWER_BYTES),
    "quotes": says('"' * (MAX_ANSWER_BYTES // 2)),
    "letters of four bytes": says("\U0001f980" * (MAX_ANSWER_BYTES // 12)),
    "what was thought": ChatReply(
        "", (ToolCall("1", "look", {}, reasoning={"reasoning_content": "x" * MAX_ANSWER_BYTES}),), Usage(3, 2)
    ),
    "arguments": calls(("set_working_memory", {"key": "k", "value": "x" * MAX_ANSWER_BYTES})),
}


@pytest.mark.parametrize("reply", LARGE.values(), ids=LARGE)
async def test_an_answer_that_is_too_large_to_be_logged_ends_the_run(deploy: Deploy, reply: ChatReply) -> None:
    chat = SteppedChat(reply)
    deployment = deploy(chat=chat)
    result = await deployment.run("sdr", "hello")
    assert (result["status"], result["error"]["code"]) == ("failed", "answer_too_large")
    assert (len(chat.requests), result["usage"]["output_tokens"]) == (1, 2)
    await deployment.settled()
    await check_d1_agrees(deployment)


@pytest.mark.parametrize("letter", ["x", '"', "\\", "\U0001f980"], ids=["x", "quote", "backslash", "crab"])
async def test_the_largest_answer_is_logged_and_reaches_d1(deploy: Deploy, letter: str) -> None:
    output = letter * ((MAX_ANSWER_BYTES - 500) // (len(json.dumps(letter)) - 2))
    deployment = deploy(chat=SteppedChat(says(output)))
    assert (await deployment.run("sdr", "hello"))["output"] == output
    await deployment.settled()
    await check_d1_agrees(deployment)


class HeldChat(SteppedChat):
    """Writes a beginning, and the rest when the test lets it."""

    async def complete(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
        assert on_text is not None
        await on_text("Good m")
        self.asked.set()
        await self._free.wait()
        await on_text("orning.")
        return says("Good morning.")


async def test_the_text_that_was_streamed_before_a_cancellation_is_kept(deploy: Deploy, agents: Agents) -> None:
    chat = HeldChat(hold=True)
    deployment = deploy(agents(clerk={}), chat=chat)
    run = await deployment.ask("clerk", "start", input="hello", metadata={}, stream=True)
    await chat.asked.wait()
    cancelling = asyncio.create_task(deployment.ask("clerk", "cancel", run_id=run["run_id"], by="ann", reason=None))
    await asyncio.sleep(0)
    chat.let_go()
    await cancelling
    await deployment.settled()
    result = await deployment.ask("clerk", "show", run_id=run["run_id"])
    assert (result["status"], result["usage"]["output_tokens"]) == ("cancelled", 2)
    [dropped] = await data_of(deployment, "answer_dropped")
    assert (dropped["code"], dropped["text"]) == ("cancelled", "Good m")
    await check_d1_agrees(deployment)


async def test_half_characters_never_reach_the_model_nor_the_answer(deploy: Deploy) -> None:
    chat = SteppedChat(calls(("nothing \ud83d", {"note": "y \ud83d"}), text="w \ud83d"), says("z \ud83d\ude00 \ud83d"))
    deployment = deploy(chat=CheckedChat(chat))
    result = await deployment.run("sdr", "x \ud83d y")
    assert (result["status"], result["output"]) == ("completed", "z \U0001f600 \ufffd")
    for request in chat.requests:
        for message in request.messages:
            json.dumps(
                [message.content, *(dict(call.arguments) for call in message.tool_calls)], ensure_ascii=False
            ).encode()
    assert chat.requests[0].messages[-1].content == "x \ufffd y"
    await deployment.settled()
    await check_d1_agrees(deployment)
