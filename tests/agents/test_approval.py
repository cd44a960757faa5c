"""Calls that a person approves: the run waits durably, others continue meanwhile, and the answer decides."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing, suppress
from typing import Any

import pytest

from retain.agents.catalogue import AgentCatalogue
from retain.agents.execution.control import EXPIRY
from retain.errors import Conflict, NotFound, RetainError
from tests.agents.conftest import agent
from tests.agents.remembered import check_d1_agrees, remembered
from tests.agents.stepped_chat import SteppedChat, calls, says
from tests.agents.test_crash_points import different
from tests.support.faults import Crash, Fault
from tests.support.instances import HOUR_MS, Deployment, Upstream, catalogue

Deploy = Callable[..., Deployment]
Agents = Callable[..., AgentCatalogue]
CLERK: dict[str, Any] = {"tools": ["pay"], "approval": ["pay"]}
PAY = ("pay", {"order": "AB-1"})
ANN = "ann@example.com"


async def answer(deployment: Deployment, run_id: str, *, approved: bool = True, call: str = "1.0", **more: Any) -> Any:
    fields = {"by": ANN, "reason": None, **more}
    return await deployment.ask("clerk", "answer", run_id=run_id, call=call, approved=approved, **fields)


def waiting_desk(deploy: Deploy, agents: Agents, *replies: Any) -> tuple[Deployment, Upstream, SteppedChat]:
    chat, pay = SteppedChat(calls(PAY), *(replies or (says("paid"),))), Upstream("pay", idempotent=False)
    return deploy(agents(clerk=CLERK), upstreams=[pay], chat=chat), pay, chat


async def test_a_waiting_run_says_what_it_waits_for_in_its_instance_and_in_d1(deploy: Deploy, agents: Agents) -> None:
    deployment, pay, _ = waiting_desk(deploy, agents)
    waiting = await deployment.run("clerk", "hello")
    await deployment.settled()
    assert (waiting["status"], pay.asked) == ("waiting", [])
    expires_at_ms = deployment.clock() + 24 * HOUR_MS
    asked = {"kind": "approval", "call": "1.0", "tool": "pay", "arguments": {"order": "AB-1"}}
    assert waiting["waiting_for"] == {**asked, "expires_at_ms": expires_at_ms}
    [row] = await deployment.rows("SELECT status, waiting_for, completed_at_ms FROM agent_runs")
    assert (row["status"], row["completed_at_ms"]) == ("waiting", None)
    assert json.loads(row["waiting_for"]) == waiting["waiting_for"]
    assert await deployment.ask("clerk", "show", run_id=waiting["run_id"]) == waiting


@pytest.mark.parametrize("approved", [True, False], ids=["approved", "rejected"])
async def test_the_answer_decides_and_is_in_the_timeline_with_who_gave_it(
    deploy: Deploy, agents: Agents, approved: bool
) -> None:
    deployment, pay, chat = waiting_desk(deploy, agents)
    waiting = await deployment.run("clerk", "hello")
    await deployment.evict()
    await answer(deployment, waiting["run_id"], approved=approved, reason="because")
    await deployment.settled()
    result = await deployment.ask("clerk", "show", run_id=waiting["run_id"])
    assert (result["status"], result["output"]) == ("completed", "paid")
    assert len(pay.asked) == approved
    [read] = [message.content for message in chat.requests[-1].messages if message.role == "tool"]
    if not approved:
        error = {"code": "rejected", "message": f"{ANN} rejected the call: because"}
        assert json.loads(read) == {"error": error}
    [recorded] = await deployment.rows("SELECT data FROM run_events WHERE kind = 'approval_answered'")
    fields = {"turn": 1, "index": 0, "approved": approved, "by": ANN, "reason": "because"}
    assert json.loads(recorded["data"]) == fields
    [row] = await deployment.rows("SELECT status, waiting_for FROM agent_runs")
    assert (row["status"], row["waiting_for"]) == ("completed", None)
    await check_d1_agrees(deployment)


async def test_the_same_answer_twice_counts_once_and_another_one_is_refused(deploy: Deploy, agents: Agents) -> None:
    deployment, pay, _ = waiting_desk(deploy, agents)
    run_id = (await deployment.run("clerk", "hello"))["run_id"]
    for _ in range(3):
        await answer(deployment, run_id)
        await deployment.settled()
    assert len(pay.asked) == 1
    with pytest.raises(Conflict) as refused:
        await answer(deployment, run_id, approved=False)
    assert (refused.value.code, refused.value.details["by"]) == ("already_answered", ANN)


async def test_an_answer_applies_to_the_call_that_it_names_and_to_no_other(deploy: Deploy, agents: Agents) -> None:
    deployment, pay, _ = waiting_desk(deploy, agents, calls(PAY), says("paid twice"))
    run_id = (await deployment.run("clerk", "hello"))["run_id"]
    for call in ("1.1", "2.0", "0.0"):
        with pytest.raises(Conflict) as refused:
            await answer(deployment, run_id, call=call)
        assert refused.value.code == "not_waiting"
    await answer(deployment, run_id)
    await deployment.settled()
    await answer(deployment, run_id)  # a repeated answer does not approve the second call
    await deployment.settled()
    assert (await deployment.ask("clerk", "show", run_id=run_id))["waiting_for"]["call"] == "2.0"
    assert len(pay.asked) == 1
    with pytest.raises(NotFound) as unknown:
        await answer(deployment, "01HZZZZZZZZZZZZZZZZZZZZZZZ")
    assert unknown.value.code == "no_such_run"


async def test_a_call_that_nobody_approves_is_rejected_when_its_question_expires(
    deploy: Deploy, agents: Agents
) -> None:
    deployment, pay, _ = waiting_desk(deploy, agents, says("nobody answered"))
    run_id = (await deployment.run("clerk", "hello"))["run_id"]
    await deployment.settled()
    at_ms = await deployment.next_alarm_ms()
    assert at_ms == deployment.clock() + 24 * HOUR_MS
    deployment.clock.set(at_ms - 1)
    await deployment.fire_alarms()
    assert (await deployment.ask("clerk", "show", run_id=run_id))["status"] == "waiting"
    deployment.clock.set(at_ms)
    await deployment.fire_alarms()
    result = await deployment.ask("clerk", "show", run_id=run_id)
    assert (result["status"], result["output"], pay.asked) == ("completed", "nobody answered", [])
    with pytest.raises(Conflict) as refused:
        await answer(deployment, run_id)
    assert refused.value.details["by"] == EXPIRY
    await check_d1_agrees(deployment)


async def test_the_alarm_waits_for_the_question_s_expiry_and_not_for_idleness(deploy: Deploy, agents: Agents) -> None:
    clerk = {**CLERK, "limits": {"approval_hours": 2.5}}
    chat, upstreams = SteppedChat(calls(PAY), says("rejected")), [Upstream("pay", idempotent=False)]
    deployment = deploy(agents(clerk=clerk), upstreams=upstreams, chat=chat)
    run_id = (await deployment.run("clerk", "hello"))["run_id"]
    await deployment.settled()
    at_ms = deployment.clock() + 5 * HOUR_MS // 2
    assert await deployment.next_alarm_ms() == at_ms
    deployment.clock.set(at_ms)
    await deployment.fire_alarms()
    assert (await deployment.ask("clerk", "show", run_id=run_id))["status"] == "completed"


async def test_a_run_that_is_answered_too_late_continues_as_rejected(deploy: Deploy, agents: Agents) -> None:
    deployment, pay, _ = waiting_desk(deploy, agents)
    run_id = (await deployment.run("clerk", "hello"))["run_id"]
    deployment.clock.advance(24 * HOUR_MS)
    with pytest.raises(Conflict) as refused:
        await answer(deployment, run_id)
    await deployment.settled()
    assert refused.value.code == "already_answered"
    assert ((await deployment.ask("clerk", "show", run_id=run_id))["status"], pay.asked) == ("completed", [])


async def test_a_waiting_run_outlives_the_idleness_of_its_instance(deploy: Deploy, agents: Agents) -> None:
    chat, pay = SteppedChat(calls(PAY), says("another run"), says("paid")), Upstream("pay", idempotent=False)
    clerk = {**CLERK, "limits": {"approval_hours": 72}}
    deployment = deploy(agents(clerk=clerk), upstreams=[pay], chat=chat)
    run_id = (await deployment.run("clerk", "hello"))["run_id"]
    other = await deployment.run("clerk", "something else")
    await deployment.settled()
    for _ in range(4):
        deployment.clock.advance(16 * HOUR_MS)
        await deployment.fire_alarms()
        await deployment.ports("clerk:acme:main").alarm.set(deployment.clock() + 1)
    with pytest.raises(NotFound):
        await deployment.ask("clerk", "show", run_id=other["run_id"])
    await answer(deployment, run_id)
    await deployment.settled()
    assert (await deployment.ask("clerk", "show", run_id=run_id))["output"] == "paid"


async def test_a_waiting_run_frees_its_instance_until_it_is_answered(deploy: Deploy, agents: Agents) -> None:
    deployment, _, _ = waiting_desk(deploy, agents, says("another run"), says("paid"))
    run_id = (await deployment.run("clerk", "hello", key="k"))["run_id"]
    other = await deployment.run("clerk", "something else")
    assert (other["status"], other["output"]) == ("completed", "another run")
    assert (await deployment.run("clerk", "hello", key="k"))["status"] == "waiting"
    deployment.clock.advance(23 * HOUR_MS)
    await deployment.fire_alarms()
    await answer(deployment, run_id)
    await deployment.settled()
    assert (await deployment.run("clerk", "hello", key="k"))["output"] == "paid"


async def test_a_run_that_is_answered_while_another_is_under_way_resumes_after_it(
    deploy: Deploy, agents: Agents
) -> None:
    import asyncio

    deployment, pay, _ = waiting_desk(deploy, agents, says("another run"), says("paid"))
    run_id = (await deployment.run("clerk", "hello"))["run_id"]
    chat = SteppedChat(says("another run"), says("paid"), hold=True)
    deployment._chat = lambda definition: chat
    other = asyncio.create_task(deployment.run("clerk", "something else"))
    await chat.asked.wait()
    assert (await answer(deployment, run_id))["status"] == "running"
    assert pay.asked == []
    chat.let_go()
    assert (await other)["output"] == "another run"
    await deployment.settled()
    assert (await deployment.ask("clerk", "show", run_id=run_id))["output"] == "paid"
    assert len(pay.asked) == 1


async def test_erasing_what_a_waiting_run_names_ends_it(deploy: Deploy, agents: Agents) -> None:
    deployment, pay, _ = waiting_desk(deploy, agents)
    run_id = (await deployment.run("clerk", "for ann@shop.example"))["run_id"]
    await deployment.settled()
    await deployment.ask("clerk", "erase", term="ann@shop.example")
    await deployment.settled()
    with pytest.raises(NotFound):
        await answer(deployment, run_id)
    [row] = await deployment.rows("SELECT status, waiting_for FROM agent_runs")
    assert (row["status"], row["waiting_for"], pay.asked) == ("cancelled", None, [])


class SteadyChat(SteppedChat):
    """Answers by the calls made so far, so that a run that is resumed in another life continues as it began."""

    async def complete(self, request: Any, on_text: Any = None) -> Any:
        results = [message for message in request.messages if message.role == "tool"]
        return says("it is done") if results else calls(PAY)


@asynccontextmanager
async def steady_desk(fault: Fault | None = None) -> AsyncIterator[Deployment]:
    agents = catalogue(agent("clerk", **CLERK))
    upstreams = [Upstream("pay", idempotent=True)]
    with closing(Deployment(agents, upstreams=upstreams, chat=lambda definition: SteadyChat())) as deployment:
        if fault is not None:
            deployment.faults.plan(fault)
        yield deployment


async def play(deployment: Deployment) -> tuple[dict[str, Any], int]:
    """Run, answer and ask for the result, each as often as needed.

    Return the result, and how many points were reached up to the second answer: a fault at any of them happens.
    """
    for _ in range(2):
        with suppress(Crash, RetainError):
            waiting = await deployment.run("clerk", "hello", key="k")
            assert waiting["status"] in ("waiting", "completed")
        with suppress(Crash):
            await deployment.settled()
            await deployment.recover(planned=True)
    [run_id] = [row["run_id"] for row in deployment.local("clerk:acme:main", "SELECT run_id FROM turn_state")]
    for _ in range(2):
        with suppress(Crash):
            await answer(deployment, run_id)
        with suppress(Crash):
            await deployment.settled()
        reached = len(deployment.faults.trace)
        with suppress(Crash):
            await deployment.recover(planned=True)
    assert not deployment.faults.pending
    await deployment.recover()
    return await deployment.ask("clerk", "show", run_id=run_id), reached


async def test_a_crash_at_any_point_of_asking_and_answering_loses_neither() -> None:
    async with steady_desk() as deployment:
        undisturbed, reached = await play(deployment)
        points = different(deployment.faults.trace[:reached])
        memory = await remembered(deployment)
        assert undisturbed["output"] == "it is done"
    for number, point in points:
        async with steady_desk(Fault(Crash(), number)) as deployment:
            result, _ = await play(deployment)
            assert (result["status"], result["output"]) == ("completed", "it is done"), point
            assert len({key for _, key in deployment.upstreams["pay"].asked}) == 1, point
            asked = deployment.local("clerk:acme:main", "SELECT 1 FROM run_log WHERE kind = 'approval_requested'")
            assert len(asked) == 1, point
            assert await remembered(deployment) == memory, point
            await check_d1_agrees(deployment)
