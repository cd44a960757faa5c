"""Whatever a model and its server do, and wherever the process dies: a run ends, says how, and counts what it cost."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import closing, suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retain.agents.execution.asking import MAX_ANSWER_BYTES
from retain.agents.runs.events import from_json
from retain.agents.runs.replay import replay
from retain.agents.runs.run_state import Policy
from retain.errors import Misconfigured, RetainError, StreamInterrupted, Unavailable, UnusableAnswer, UpstreamFailed
from retain.models.chat import ChatReply, ChatRequest, OnText, ToolCall, Usage, usage_of
from retain.models.providers.structured import CheckedChat
from tests.agents.remembered import check_d1_agrees
from tests.agents.stepped_chat import SteppedChat, says
from tests.agents.test_crash_points import different
from tests.support.faults import Crash, Fault
from tests.support.instances import Deployment, catalogue

COST = Usage(7, 3)
PAID: dict[str, Any] = {"input_tokens": 7, "output_tokens": 3}
DOWN = Unavailable("down", code="model_unavailable", status=503)
MOODS: dict[str, ChatReply | Exception] = {
    "an answer": ChatReply("hello", (), COST),
    "a cut answer": ChatReply("hel", (), COST, "length"),
    "nothing": ChatReply("", (), COST),
    "half a letter": ChatReply("\ud83d", (), COST),
    "a call": ChatReply("", (ToolCall("a", "set_working_memory", {"key": "k", "value": 1}),), COST),
    "two calls with one id": ChatReply("", (ToolCall("a", "get_working_memory", {}),) * 2, COST),
    "a malformed call": ChatReply("so", (ToolCall("", "set_working_memory", {}, "no JSON"),), COST),
    "a call of no tool": ChatReply("", (ToolCall("b", "functions.nothing", {"x": "\ud83d"}),), COST),
    "too much": ChatReply("x" * MAX_ANSWER_BYTES, (), COST),
    "a cut call": UnusableAnswer("cut", code="answer_cut", **PAID),
    "not the format": UnusableAnswer("what?", code="malformed_answer", **PAID),
    "down": DOWN,
    "down for a minute": Unavailable("down", code="model_rate_limited", retry_after_ms=60_000),
    "down for a day": Unavailable("down", code="model_rate_limited", retry_after_ms=86_400_000),
    "broken off": StreamInterrupted("broke off", **PAID),
    "refused": UpstreamFailed("no", code="model_refused", status=400),
    "withheld": UpstreamFailed("no", code="content_filtered", **PAID),
    "a wrong key": Misconfigured("no", code="model_credentials", status=401),
    "a fault of the adapter": TypeError("unhashable type"),
}
CRASH = "a crash"


class MoodyChat(SteppedChat):
    """Shows each mood, then answers. spent: what that cost."""

    def __init__(self, moods: Sequence[str]) -> None:
        super().__init__()
        self._moods = list(moods)
        self.spent = Usage()
        self.deployment: Deployment | None = None

    async def complete(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
        json.dumps([message.content for message in request.messages], ensure_ascii=False).encode()
        mood = self._moods.pop(0) if self._moods else "an answer"
        if mood == CRASH:
            assert self.deployment is not None
            self.deployment.faults.kill()
            raise Crash(mood)
        shown = MOODS[mood]
        if isinstance(shown, Exception):
            self.spent += usage_of(shown) if isinstance(shown, RetainError) else Usage()
            if isinstance(shown, StreamInterrupted) and on_text is not None:
                await on_text("hel")
            raise shown
        self.spent += shown.usage
        if on_text is not None and shown.content.strip():
            await on_text(shown.content)
        return shown


async def ended(deployment: Deployment, **request: Any) -> dict[str, Any]:
    """Return the result of a run, however often it waits and dies."""
    for _ in range(40):
        with suppress(Crash):
            report = await deployment.run("clerk", "hello", key="k", **request)
            if report["status"] not in ("running", "waiting"):
                return report
        with suppress(Crash):
            await deployment.recover()
    raise AssertionError("the run does not end")


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from([*MOODS, CRASH, CRASH]), max_size=9), st.booleans())
async def test_a_run_ends_and_says_how_and_counts_what_it_cost(moods: list[str], stream: bool) -> None:
    chat = MoodyChat(moods)
    clerk = {"type": "clerk", "description": "Works.", "instructions": "Go.", "working_memory": True}
    with closing(Deployment(catalogue(clerk), chat=lambda _: CheckedChat(chat))) as deployment:
        chat.deployment = deployment
        result = await ended(deployment, stream=stream)
        await deployment.recover()
        await check_d1_agrees(deployment)
        usage = result["usage"]
        assert Usage(usage["input_tokens"], usage["output_tokens"]) == chat.spent
        if result["status"] == "completed":
            assert result["output"].strip()
            assert result["finish_reason"] in ("stop", "length")
        else:
            assert (result["status"], result["output"]) == ("failed", None)
            assert result["error"]["code"]
        rows = await deployment.rows("SELECT kind, data FROM run_events ORDER BY seq")
        events = [from_json(row["kind"], json.loads(row["data"])) for row in rows]
        replay(events, Policy(8, frozenset()))
        assert [row["kind"] for row in rows].count("run_recovered") <= moods.count(CRASH)


class PatientChat(SteppedChat):
    """Is down until a time, and answers."""

    def __init__(self, deployment: Deployment) -> None:
        super().__init__()
        self._deployment = deployment
        self._back_ms = deployment.clock() + 20_000

    async def complete(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
        if self._deployment.clock() < self._back_ms:
            raise DOWN
        return says("back again")


def waiting_deployment() -> Deployment:
    clerk = {"type": "clerk", "description": "Works.", "instructions": "Go."}
    models: list[PatientChat] = []
    deployment = Deployment(catalogue(clerk), chat=lambda _: models[0])
    models.append(PatientChat(deployment))
    return deployment


@pytest.mark.parametrize("asked_again", [False, True], ids=["nobody asks again", "the request is retried"])
async def test_invariant_4_a_crash_at_any_point_of_an_outage_changes_nothing_in_the_end(asked_again: bool) -> None:
    with closing(waiting_deployment()) as deployment:
        expected = await ended(deployment)
        assert expected["output"] == "back again"
        points = different(list(deployment.faults.trace))
    assert len(points) > 20
    for number, point in points:
        with closing(waiting_deployment()) as deployment:
            deployment.faults.plan(Fault(Crash(), number))
            if asked_again:
                result = await ended(deployment)
            else:
                with suppress(Crash):
                    await deployment.run("clerk", "hello", key="k")
                for _ in range(3):
                    with suppress(Crash):
                        await deployment.recover()
                result = await ended(deployment)
            assert (result["status"], result["output"]) == ("completed", "back again"), point
            await deployment.recover()
            await check_d1_agrees(deployment)
            assert len(await deployment.rows("SELECT 1 FROM agent_runs")) == 1, point
