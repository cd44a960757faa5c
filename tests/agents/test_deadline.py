"""The deadline of a run: it ends the run between steps and during one, and does not count the run's waits."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from retain.agents.catalogue import AgentCatalogue
from retain.agents.runs.result import RECHECK_MS
from retain.models.chat import ChatReply, ChatRequest, OnText
from tests.agents.remembered import check_d1_agrees
from tests.agents.stepped_chat import SteppedChat, calls, says
from tests.agents.test_cancel import SlowTool, cancel, the_run
from tests.support.instances import Deployment, Upstream

Deploy = Callable[..., Deployment]
Agents = Callable[..., AgentCatalogue]
MINUTE_MS = 60_000
BRIEF = {"run_minutes": 1}
LATE = {"code": "run_deadline", "message": "the run did not end within 1 minutes of work"}
DESK = "clerk:acme:main"


class PassingTool(Upstream):
    """A tool during which time passes. deployment: whose clock; set after it exists."""

    deployment: Deployment

    async def call(self, arguments: Any, idempotency_key: str) -> tuple[int, bytes]:
        """Answer after a minute."""
        self.deployment.clock.advance(MINUTE_MS)
        return await super().call(arguments, idempotency_key)


class PassingChat(SteppedChat):
    """A model that takes a minute. deployment: whose clock; set after it exists."""

    deployment: Deployment

    async def complete(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
        """Answer after a minute."""
        self.deployment.clock.advance(MINUTE_MS)
        return await super().complete(request, on_text)


async def at_the_deadline(deployment: Deployment) -> None:
    """Let the alarm fire as often as it is set until a minute has passed."""
    ends_at_ms = deployment.clock() + MINUTE_MS
    while deployment.clock() < ends_at_ms:
        at_ms = await deployment.next_alarm_ms()
        assert at_ms is not None
        assert at_ms <= ends_at_ms
        deployment.clock.set(at_ms)
        await deployment.fire_alarms()


async def test_a_run_whose_model_hangs_ends_at_its_deadline(deploy: Deploy, agents: Agents) -> None:
    chat = SteppedChat(hold=True)
    deployment = deploy(agents(clerk={"limits": BRIEF}), chat=chat)
    run = asyncio.create_task(deployment.run("clerk", "hello"))
    await chat.asked.wait()
    await at_the_deadline(deployment)
    result = await run
    assert (result["status"], result["error"], result["done"]) == ("failed", LATE, [])
    chat.let_go()
    assert (await deployment.run("clerk", "again"))["status"] == "completed"
    await deployment.settled()
    await check_d1_agrees(deployment)


async def test_the_alarm_is_set_to_a_deadline_before_the_lease_ends_and_never_to_the_past(
    deploy: Deploy, agents: Agents
) -> None:
    chat = SteppedChat(hold=True)
    deployment = deploy(agents(clerk={"limits": BRIEF}), chat=chat)
    begun_ms = deployment.clock()
    run = asyncio.create_task(deployment.run("clerk", "hello"))
    await chat.asked.wait()
    found = []
    for after_ms in (40_000, 59_500):  # once in time for the deadline, and once almost too late
        deployment.clock.set(begun_ms + after_ms)
        await deployment.fire_alarms()
        at_ms = await deployment.next_alarm_ms()
        assert at_ms is not None
        found.append(at_ms - begun_ms)
        await deployment.storages[DESK].alarm.set(deployment.clock())
    assert found == [MINUTE_MS, 60_500]
    chat.let_go()
    assert (await run)["status"] == "completed"


async def test_a_run_whose_tool_hangs_ends_at_its_deadline_and_does_not_know_the_outcome(
    deploy: Deploy, agents: Agents
) -> None:
    slow = SlowTool("slow")
    chat = SteppedChat(calls(("slow", {})))
    deployment = deploy(agents(clerk={"tools": ["slow"], "limits": BRIEF}), upstreams=[slow], chat=chat)
    run = asyncio.create_task(deployment.run("clerk", "hello"))
    await slow.called.wait()
    await at_the_deadline(deployment)
    result = await run
    assert (result["status"], result["error"]) == ("failed", LATE)
    assert result["done"] == [{"call": "1.0", "tool": "slow", "outcome": "unknown"}]
    await deployment.settled()
    await check_d1_agrees(deployment)


async def test_a_cancellation_lets_the_tool_under_way_finish_and_its_deadline_does_not(
    deploy: Deploy, agents: Agents
) -> None:
    slow = SlowTool("slow")
    chat = SteppedChat(calls(("slow", {})))
    deployment = deploy(agents(clerk={"tools": ["slow"], "limits": BRIEF}), upstreams=[slow], chat=chat)
    run = asyncio.create_task(deployment.run("clerk", "hello"))
    await slow.called.wait()
    wish = asyncio.create_task(cancel(deployment, await the_run(deployment)))
    while not deployment.local(DESK, "SELECT 1 FROM run_log WHERE kind = 'cancel_requested'"):
        await asyncio.sleep(0)
    assert not run.done()
    slow.end.set()
    assert (await run)["done"] == [{"call": "1.0", "tool": "slow", "outcome": "done"}]
    assert (await wish)["status"] == "cancelled"


async def test_no_step_begins_after_the_deadline(deploy: Deploy, agents: Agents) -> None:
    tool = PassingTool("slow", idempotent=False)
    chat = SteppedChat(calls(("slow", {}), ("slow", {})))
    deployment = tool.deployment = deploy(
        agents(clerk={"tools": ["slow"], "limits": BRIEF}), upstreams=[tool], chat=chat
    )
    result = await deployment.run("clerk", "hello")
    assert (result["error"], len(tool.asked), len(chat.requests)) == (LATE, 1, 1)
    assert result["done"] == [{"call": "1.0", "tool": "slow", "outcome": "done"}]


async def test_an_answer_that_arrived_is_the_runs_answer(deploy: Deploy, agents: Agents) -> None:
    chat = PassingChat(says("in the nick of time"))
    deployment = chat.deployment = deploy(agents(clerk={"limits": BRIEF}), chat=chat)
    assert (await deployment.run("clerk", "hello"))["output"] == "in the nick of time"


@pytest.mark.parametrize("after_ms", [0, MINUTE_MS], ids=["in time", "late"])
async def test_the_wait_for_a_person_does_not_count(deploy: Deploy, agents: Agents, after_ms: int) -> None:
    pay = PassingTool("pay", idempotent=False)
    limits = {"run_minutes": 1.5, "approval_hours": 48}
    deployment = pay.deployment = deploy(
        agents(clerk={"tools": ["pay"], "approval": ["pay"], "limits": limits}),
        upstreams=[pay],
        chat=SteppedChat(calls(("pay", {})), calls(("pay", {})) if after_ms else says("paid")),
    )
    shown = await deployment.run("clerk", "hello")
    for turn in (1, 2) if after_ms else (1,):
        deployment.clock.advance(24 * 60 * MINUTE_MS)
        by = "ann@example.com"
        await deployment.ask("clerk", "answer", run_id=shown["run_id"], call=f"{turn}.0", approved=True, by=by)
        await deployment.settled()
    result = await deployment.ask("clerk", "show", run_id=shown["run_id"])
    if after_ms:
        assert (result["error"]["code"], len(pay.asked)) == ("run_deadline", 2)
    else:
        assert (result["output"], len(pay.asked)) == ("paid", 1)


async def test_the_time_that_an_approved_run_waits_for_its_instance_does_not_count(
    deploy: Deploy, agents: Agents
) -> None:
    pay = Upstream("pay", False)
    chat = SteppedChat(calls(("pay", {})), says("other"), says("paid"))
    clerk = {"tools": ["pay"], "approval": ["pay"], "limits": {**BRIEF, "busy": "queue"}}
    deployment = deploy(agents(clerk=clerk), upstreams=[pay], chat=chat)
    run = await deployment.run("clerk", "hello")
    chat.hold()
    other = asyncio.create_task(deployment.run("clerk", "something else"))
    await chat.asked.wait()
    await deployment.ask("clerk", "answer", run_id=run["run_id"], call="1.0", approved=True, by="ann@example.com")
    deployment.clock.advance(MINUTE_MS - 1)  # the other run takes a minute
    alarm = asyncio.create_task(deployment.fire_alarms())
    for _ in range(50):
        await asyncio.sleep(0)
    deployment.clock.advance(1)
    chat.let_go()
    assert (await other)["status"] == "completed"
    await alarm
    await deployment.settled()
    assert (await deployment.ask("clerk", "show", run_id=run["run_id"]))["output"] == "paid"
    assert len(pay.asked) == 1


async def test_a_resumed_run_that_waits_for_its_delegate_again_is_stopped_by_its_deadline(
    deploy: Deploy, agents: Agents
) -> None:
    helper = SteppedChat(calls(("pay", {})))
    chats = {"boss": SteppedChat(calls(("delegate", {"agent": "helper", "input": "pay"}))), "helper": helper}
    definitions = {
        "boss": {"delegates": ["helper"], "limits": BRIEF},
        "helper": {"tools": ["pay"], "approval": ["pay"]},
    }
    deployment = deploy(agents(**definitions), upstreams=[Upstream("pay", False)], chat=chats)
    run = await deployment.run("boss", "hello")
    [delegate] = await deployment.rows("SELECT run_id FROM agent_runs WHERE agent_type = 'helper'")
    helper.hold()
    answer = {"run_id": delegate["run_id"], "call": "1.0", "approved": True, "by": "ann@example.com"}
    await deployment.ask("helper", "answer", instance=f"{run['run_id']}.helper", **answer)
    await helper.asked.wait()
    deployment.clock.advance(RECHECK_MS)
    del deployment.naps[:]
    alarms = [asyncio.create_task(deployment.fire_alarms())]
    while not deployment.naps:  # the run waits for its delegate, which works by now
        await asyncio.sleep(0)
    deployment.clock.advance(MINUTE_MS)
    alarms.append(asyncio.create_task(deployment.fire_alarms()))
    await asyncio.gather(*alarms)
    await deployment.settled()
    assert (await deployment.ask("boss", "show", run_id=run["run_id"]))["error"] == LATE


async def test_the_deadline_stops_the_delegate_that_works_for_the_run(deploy: Deploy, agents: Agents) -> None:
    slow = SteppedChat(hold=True)
    chats = {"boss": SteppedChat(calls(("delegate", {"agent": "helper", "input": "dig"}))), "helper": slow}
    deployment = deploy(agents(boss={"delegates": ["helper"], "limits": BRIEF}, helper={}), chat=chats)
    run = asyncio.create_task(deployment.run("boss", "hello"))
    await slow.asked.wait()
    deployment.clock.advance(MINUTE_MS)
    await deployment.fire_alarms()
    assert (await run)["error"] == LATE
    await deployment.settled()
    [helper] = [name for name in deployment.objects() if name.startswith("helper:")]
    [row] = deployment.local(helper, "SELECT result FROM turn_state")
    assert json.loads(row["result"])["error"] == LATE, "stopped by the same deadline"


async def test_an_interrupted_run_is_stopped_by_the_alarm_that_would_resume_it(deploy: Deploy, agents: Agents) -> None:
    chat = SteppedChat(hold=True)
    deployment = deploy(agents(clerk={"limits": BRIEF}), chat=chat)
    asyncio.create_task(deployment.run("clerk", "hello")).add_done_callback(lambda task: task.exception())
    await chat.asked.wait()
    run_id = await the_run(deployment)
    deployment.faults.kill()
    deployment.clock.advance(MINUTE_MS)
    await deployment.fire_alarms()
    await deployment.settled()
    assert (await deployment.ask("clerk", "show", run_id=run_id))["error"] == LATE
    assert len(chat.requests) == 1


async def test_a_run_of_an_agent_that_was_removed_is_given_up_as_before(deploy: Deploy, agents: Agents) -> None:
    chat = SteppedChat(hold=True)
    deployment = deploy(agents(clerk={"limits": BRIEF}), chat=chat)
    asyncio.create_task(deployment.run("clerk", "hello")).add_done_callback(lambda task: task.exception())
    await chat.asked.wait()
    run_id = await the_run(deployment)
    deployment.faults.kill()
    deployment.catalogue = agents()
    deployment.clock.advance(MINUTE_MS)
    await deployment.fire_alarms()
    await deployment.settled()
    shown = await deployment.ask("clerk", "show", run_id=run_id)
    assert shown["error"]["code"] == "unknown_agent"
    assert deployment.alarm_failures == []
