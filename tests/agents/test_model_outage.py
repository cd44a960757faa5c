"""A model's server that is down: the run waits for it durably, asks again, and gives up at a documented time."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from retain.agents.calls.report import report_from_json
from retain.agents.catalogue import AgentCatalogue
from retain.agents.execution.outage import FIRST_WAIT_MS, MAX_WAIT_MS, wait_ms
from retain.errors import StreamInterrupted, Unavailable
from retain.models.chat import ChatReply, ChatRequest, OnText
from retain.models.retry import Retries, with_retries
from tests.agents.remembered import check_d1_agrees
from tests.agents.stepped_chat import SteppedChat, calls, says
from tests.support.faults import Fault
from tests.support.instances import Deployment

Deploy = Callable[..., Deployment]
Agents = Callable[..., AgentCatalogue]
DESK = "sdr:acme:main"
MINUTE_MS = 60_000
BUSY: dict[str, Any] = {"status": 503, "upstream_code": "overloaded", "upstream_message": "Overloaded, try later."}
"""What a server reports when it cannot answer."""


def down(**details: Any) -> Unavailable:
    return Unavailable("the model's server cannot answer now", code="model_unavailable", **(BUSY | details))


async def timeline(deployment: Deployment) -> list[tuple[str, dict[str, Any]]]:
    """Return the kinds and data of every event in D1."""
    rows = await deployment.rows("SELECT kind, data FROM run_events ORDER BY run_id, seq")
    return [(row["kind"], json.loads(row["data"])) for row in rows]


async def ring(deployment: Deployment) -> None:
    """Advance to the next alarm and fire it."""
    at_ms = await deployment.next_alarm_ms()
    assert at_ms is not None
    deployment.clock.set(at_ms)
    await deployment.fire_alarms()


async def test_a_run_outlives_an_outage_of_minutes(deploy: Deploy) -> None:
    chat = SteppedChat(*[down()] * 6, says("back again"))
    deployment = deploy(chat=chat)
    begun = deployment.clock()
    waiting = await deployment.run("sdr", "hello", key="k")
    assert waiting["status"] == "waiting"
    awaited = waiting["waiting_for"]
    assert {name: awaited[name] for name in ("kind", "code", *BUSY)} == {
        "kind": "model",
        "code": "model_unavailable",
        **BUSY,
    }
    assert awaited["gives_up_at_ms"] == begun + 30 * MINUTE_MS
    assert report_from_json(waiting).to_json() == waiting
    await deployment.settled()
    [row] = await deployment.rows("SELECT status, waiting_for FROM agent_runs")
    assert (row["status"], json.loads(row["waiting_for"])) == ("waiting", awaited)
    for _ in range(6):
        await deployment.evict()
        await ring(deployment)
    result = await deployment.run("sdr", "hello", key="k")
    assert (result["status"], result["output"]) == ("completed", "back again")
    assert deployment.clock() - begun > 2 * MINUTE_MS
    await check_d1_agrees(deployment)
    events = await timeline(deployment)
    assert [kind for kind, _ in events].count("model_unavailable") == 6
    assert [data["times"] for kind, data in events if kind == "model_unavailable"] == list(range(6))
    assert [data["index"] for kind, data in events if kind == "run_resumed"] == [None] * 6


async def test_a_run_gives_up_at_the_end_of_its_patience_and_says_why(deploy: Deploy, agents: Agents) -> None:
    chat = SteppedChat(*[down(retry_after_ms=20_000)] * 100)
    deployment = deploy(agents(clerk={"limits": {"model_wait_minutes": 10}}), chat=chat)
    begun = deployment.clock()
    waiting = await deployment.run("clerk", "hello", key="k")
    while (await deployment.run("clerk", "hello", key="k"))["status"] == "waiting":
        await ring(deployment)
    assert deployment.clock() == waiting["waiting_for"]["gives_up_at_ms"] == begun + 10 * MINUTE_MS
    await deployment.settled()
    rows = await deployment.rows("SELECT at_ms, data FROM run_events WHERE kind = 'model_unavailable' ORDER BY seq")
    waits = [json.loads(row["data"])["retry_at_ms"] - row["at_ms"] for row in rows]
    assert all(20_000 <= wait <= MAX_WAIT_MS for wait in waits[:-1])
    assert len(chat.requests) == len(waits) + 1
    result = await deployment.run("clerk", "hello", key="k")
    message = "the model's server cannot answer now"
    assert result["status"] == "failed"
    assert result["error"] == {"code": "model_unavailable", "message": message, **BUSY, "retry_after_ms": 20_000}
    await check_d1_agrees(deployment)
    [row] = await deployment.rows("SELECT error FROM agent_runs")
    assert json.loads(row["error"]) == result["error"]
    kind, failed = (await timeline(deployment))[-1]
    assert (kind, failed["server"]) == ("run_failed", {**BUSY, "retry_after_ms": 20_000})


@pytest.mark.parametrize(
    ("minutes", "asked_ms"),
    [pytest.param(0, 0, id="no patience"), pytest.param(1, 61_000, id="the server asks for more")],
)
async def test_a_run_that_may_not_wait_so_long_fails_at_once(
    deploy: Deploy, agents: Agents, minutes: int, asked_ms: int
) -> None:
    chat = SteppedChat(down(retry_after_ms=asked_ms))
    deployment = deploy(agents(clerk={"limits": {"model_wait_minutes": minutes}}), chat=chat)
    result = await deployment.run("clerk", "hello")
    assert (result["status"], result["error"]["retry_after_ms"]) == ("failed", asked_ms)


async def test_another_run_of_the_instance_may_begin_and_end_meanwhile(deploy: Deploy) -> None:
    deployment = deploy(chat=SteppedChat(down(), says("second"), says("first")))
    waiting = await deployment.run("sdr", "one", key="one")
    assert (await deployment.run("sdr", "two"))["output"] == "second"
    await deployment.recover()
    result = await deployment.run("sdr", "one", key="one")
    assert (result["run_id"], result["output"]) == (waiting["run_id"], "first")
    await check_d1_agrees(deployment)


async def test_a_run_that_waits_for_its_model_can_be_cancelled(deploy: Deploy) -> None:
    chat = SteppedChat(down())
    deployment = deploy(chat=chat)
    waiting = await deployment.run("sdr", "hello")
    result = await deployment.ask("sdr", "cancel", run_id=waiting["run_id"], by="ann", reason=None)
    assert result["status"] == "cancelled"
    await deployment.recover()
    assert len(chat.requests) == 1
    await check_d1_agrees(deployment)


async def test_a_caller_waits_for_a_delegate_that_waits_for_its_model(deploy: Deploy, agents: Agents) -> None:
    boss = SteppedChat(calls(("delegate", {"agent": "clerk", "input": "do it"})), says("all done"))
    office = agents(boss={"delegates": ["clerk"]}, clerk={})
    deployment = deploy(office, chat={"boss": boss, "clerk": SteppedChat(down(), says("did it"))})
    waiting = await deployment.run("boss", "hello", key="k")
    assert (waiting["status"], waiting["waiting_for"]["kind"]) == ("waiting", "delegate")
    await deployment.recover()
    result = await deployment.run("boss", "hello", key="k")
    assert (result["status"], result["output"]) == ("completed", "all done")
    await check_d1_agrees(deployment)


async def test_a_waiting_run_is_listed_with_what_it_did_and_spent(deploy: Deploy) -> None:
    chat = SteppedChat(calls(("set_working_memory", {"key": "k", "value": 1})), down())
    deployment = deploy(chat=chat)
    await deployment.run("sdr", "hello")
    await deployment.settled()
    [row] = await deployment.rows("SELECT status, steps, input_tokens, output_tokens FROM agent_runs")
    assert dict(row) == {"status": "waiting", "steps": 2, "input_tokens": 3, "output_tokens": 2}


async def test_an_outage_ends_with_the_first_answer(deploy: Deploy) -> None:
    chat = SteppedChat(down(), calls(("set_working_memory", {"key": "k", "value": 1})), down(), says("done"))
    deployment = deploy(chat=chat)
    await deployment.run("sdr", "hello")
    await deployment.recover()
    outages = [data for kind, data in await timeline(deployment) if kind == "model_unavailable"]
    assert [(outage["turn"], outage["times"]) for outage in outages] == [(1, 0), (2, 0)]
    assert outages[1]["gives_up_at_ms"] > outages[0]["gives_up_at_ms"]


class BreakingChat(SteppedChat):
    """Writes the beginning of an answer, and breaks off, so many times."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self._left = times

    async def complete(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
        if self._left == 0 or on_text is None:
            return await super().complete(request, on_text)
        self._left -= 1
        self.requests.append(request)
        await on_text("Good m")
        raise StreamInterrupted("it broke off", status=200)


async def test_a_stream_that_breaks_off_is_begun_again_and_its_text_is_kept(deploy: Deploy, agents: Agents) -> None:
    chat = BreakingChat(2)
    deployment = deploy(agents(clerk={}), chat=chat)
    run = await deployment.ask("clerk", "start", input="hello", metadata={}, stream=True)
    await deployment.settled()
    result = await deployment.ask("clerk", "show", run_id=run["run_id"])
    assert (result["status"], result["output"], len(chat.requests)) == ("completed", "done", 3)
    dropped = [data for kind, data in await timeline(deployment) if kind == "answer_dropped"]
    assert [(one["code"], one["text"]) for one in dropped] == [("stream_interrupted", "Good m")] * 2
    assert all(one["input_tokens"] > 0 and one["output_tokens"] == 2 for one in dropped)
    assert result["usage"]["output_tokens"] == 2 + 2 + 2
    await check_d1_agrees(deployment)


async def test_a_stream_that_breaks_off_again_and_again_is_an_outage(deploy: Deploy, agents: Agents) -> None:
    deployment = deploy(agents(clerk={}), chat=BreakingChat(4))
    run = await deployment.ask("clerk", "start", input="hello", metadata={}, stream=True)
    await deployment.settled()
    waiting = await deployment.ask("clerk", "show", run_id=run["run_id"])
    assert (waiting["status"], waiting["waiting_for"]["code"]) == ("waiting", "stream_interrupted")
    await deployment.recover()
    assert (await deployment.ask("clerk", "show", run_id=run["run_id"]))["status"] == "completed"
    await check_d1_agrees(deployment)


class StumblingChat(SteppedChat):
    """Retries as an adapter does, twice, before it answers."""

    async def complete(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
        failures = [down(), down(retry_after_ms=300)]

        async def attempt() -> ChatReply:
            if failures:
                raise failures.pop(0)
            return await super(StumblingChat, self).complete(request, on_text)

        async def no_wait(delay_s: float, /) -> None:
            pass

        return await with_retries(attempt, Retries(no_wait, lambda: 0.5, base_ms=100))


async def test_the_retries_of_an_adapter_are_in_the_timeline(deploy: Deploy) -> None:
    deployment = deploy(chat=StumblingChat())
    assert (await deployment.run("sdr", "hello"))["status"] == "completed"
    await deployment.settled()
    retried = [data for kind, data in await timeline(deployment) if kind == "call_retried"]
    assert [(one["index"], one["code"], one["delay_ms"]) for one in retried] == [
        (None, "model_unavailable", 50),
        (None, "model_unavailable", 300),
    ]
    assert retried[0]["server"]["status"] == 503
    await check_d1_agrees(deployment)


async def test_a_delegation_that_is_repeated_is_in_the_timeline(deploy: Deploy, agents: Agents) -> None:
    boss = SteppedChat(calls(("delegate", {"agent": "clerk", "input": "do it"})), says("all done"))
    deployment = deploy(agents(boss={"delegates": ["clerk"]}, clerk={}), chat={"boss": boss, "clerk": SteppedChat()})
    deployment.faults.plan(Fault(Unavailable("gone", code="agent_instance_unavailable"), point="instances.call"))
    assert (await deployment.run("boss", "hello"))["output"] == "all done"
    await deployment.settled()
    retried = [data for kind, data in await timeline(deployment) if kind == "call_retried"]
    assert [(one["turn"], one["index"], one["code"]) for one in retried] == [(1, 0, "agent_instance_unavailable")]


def test_waits_double_up_to_the_longest_and_differ_between_runs() -> None:
    waits = [wait_ms("run", times, None) for times in range(30)]
    for times, wait in enumerate(waits):
        longest = min(FIRST_WAIT_MS * 2**times, MAX_WAIT_MS)
        assert longest / 2 <= wait <= longest
    assert len({wait_ms(f"run-{number}", 6, None) for number in range(100)}) > 90
    assert wait_ms("run", 0, 100_000) == 100_000
