"""Runs that were interrupted: each ends, and none blocks its instance."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress

import pytest

from retain.agents.catalogue import AgentCatalogue
from retain.agents.execution.executor import MAX_OTHER_RESUMPTIONS, MAX_RESUMPTIONS
from retain.agents.runs.events import ModelAnswered, RunEvent, ToolCalled, kind_of, to_json
from retain.errors import Unavailable
from retain.models.chat import ChatReply, ToolCall
from tests.agents.remembered import check_d1_agrees
from tests.agents.stepped_chat import SteppedChat, calls, says
from tests.support.faults import Crash, Fault
from tests.support.instances import Deployment, Upstream

Deploy = Callable[..., Deployment]
Agents = Callable[..., AgentCatalogue]
DESK = "sdr:acme:main"


async def test_an_interrupted_run_whose_agent_was_removed_fails_and_does_not_block_the_instance(
    deploy: Deploy, agents: Agents
) -> None:
    chat = SteppedChat(hold=True)
    with_agent, without = agents(helper={}), agents()
    deployment = deploy(with_agent, chat=chat)
    run = asyncio.create_task(deployment.run("helper", "hello", key="k"))
    await chat.asked.wait()
    deployment.faults.kill()
    chat.let_go()
    with pytest.raises(Crash):
        await run
    deployment.catalogue = without
    await deployment.recover()
    await check_d1_agrees(deployment)
    answer = await deployment.run("helper", "hello", key="k")
    assert (answer["status"], answer["error"]["code"]) == ("failed", "unknown_agent")
    deployment.catalogue = with_agent
    await deployment.evict()
    assert (await deployment.run("helper", "hello again"))["status"] == "completed"


async def test_an_interrupted_run_waits_for_the_gateway_and_the_alarm_is_set_again(
    deploy: Deploy, agents: Agents
) -> None:
    deployment = deploy(agents(buyer={"tools": ["order"]}), upstreams=[Upstream("order", True)], chat=SteppedChat())
    deployment.faults.plan(Fault(Crash(), point="chat.complete"))
    with pytest.raises(Crash):
        await deployment.run("buyer", "hello")
    await deployment.restart()
    for _ in range(10):  # more often than the platform repeats an alarm that fails
        at_ms = await deployment.next_alarm_ms()
        assert at_ms is not None
        deployment.clock.set(at_ms)
        deployment.faults.plan(Fault(Unavailable("no"), point="tool.describe"))
        assert await deployment.fire_alarms() == 1
        assert deployment.alarm_failures == []
        assert deployment.local("buyer:acme:main", "SELECT status FROM turn_state") == [{"status": "running"}]
    await deployment.recover()
    await check_d1_agrees(deployment)


async def interrupted(deployment: Deployment, point: str, times: int) -> None:
    """Let the alarm resume what was interrupted, and everything die again at this point, so many times."""
    for _ in range(times):
        await deployment.restart()
        at_ms = await deployment.next_alarm_ms()
        assert at_ms is not None
        deployment.clock.set(max(at_ms, deployment.clock()))
        deployment.faults.plan(Fault(Crash(), point=point))
        with suppress(Crash):
            await deployment.fire_alarms()
    await deployment.restart()


async def test_a_run_that_is_interrupted_each_time_is_given_up(deploy: Deploy) -> None:
    deployment = deploy(chat=SteppedChat())
    deployment.faults.plan(Fault(Crash(), point="chat.complete"))
    with pytest.raises(Crash):
        await deployment.run("sdr", "hello", key="k")
    await interrupted(deployment, "chat.complete", MAX_OTHER_RESUMPTIONS)
    assert deployment.local(DESK, "SELECT status FROM turn_state") == [{"status": "running"}]
    await interrupted(deployment, "chat.complete", 1)
    result = await deployment.run("sdr", "hello", key="k")
    assert (result["status"], result["error"]["code"]) == ("failed", "resumed_too_often")
    await deployment.settled()
    rows = await deployment.rows("SELECT data FROM run_events WHERE kind = 'run_recovered' ORDER BY seq")
    assert [json.loads(row["data"])["times"] for row in rows] == list(range(1, MAX_OTHER_RESUMPTIONS + 1))


async def test_a_function_tool_that_kills_its_object_is_given_up_sooner(deploy: Deploy, agents: Agents) -> None:
    chat = SteppedChat(calls(("quote", {"order": "A"})))
    deployment = deploy(agents({"quote": "tests.agents.declared_functions"}, clerk={"functions": ["quote"]}), chat=chat)
    deployment.faults.plan(Fault(Crash(), point="chat.complete done"))
    with pytest.raises(Crash):
        await deployment.run("clerk", "hello", key="k")
    await deployment.restart()
    name = "clerk:acme:main"
    storage = deployment.storages[name]
    [row] = deployment.local(name, "SELECT run_id FROM turn_state")
    answer = ModelAnswered(1, "", (ToolCall("1", "quote", {"order": "A"}),), 1, 1)
    events: tuple[RunEvent, ...] = (answer, ToolCalled(1, 0, "quote", {"order": "A"}))
    for seq, event in enumerate(events, start=2):  # as if the function had ended the process
        storage.run(
            "INSERT INTO run_log VALUES (?, ?, 1, ?, ?, 0)",
            row["run_id"],
            seq,
            kind_of(event),
            json.dumps(to_json(event)),
        )
    storage.run("UPDATE turn_state SET resumed = ?", MAX_RESUMPTIONS)
    storage.commit()
    await deployment.recover()
    result = await deployment.run("clerk", "hello", key="k")
    assert (result["status"], result["error"]["code"]) == ("failed", "resumed_too_often")


async def test_what_a_model_thought_is_sent_back_by_a_run_that_was_interrupted(deploy: Deploy, agents: Agents) -> None:
    thought = ToolCall("1", "get_working_memory", {}, reasoning={"reasoning_content": "Hm."})
    chat = SteppedChat(ChatReply("", (thought,)), says("done"))
    deployment = deploy(agents(clerk={"working_memory": True}), chat=chat)
    deployment.faults.plan(Fault(Crash(), point="chat.complete", nth=2))
    with pytest.raises(Crash):
        await deployment.run("clerk", "hello", key="k")
    await deployment.restart()
    await deployment.recover()
    assert (await deployment.run("clerk", "hello", key="k"))["output"] == "done"
    assert chat.requests[-1].messages[-2].tool_calls == (thought,)
    await check_d1_agrees(deployment)


async def test_interruptions_count_only_since_the_last_progress(deploy: Deploy, agents: Agents) -> None:
    steps = 5
    talk = [calls(("get_working_memory", {})) for _ in range(steps)]
    deployment = deploy(agents(clerk={"working_memory": True, "limits": {"max_turns": 20}}), chat=SteppedChat(*talk))
    deployment.faults.plan(Fault(Crash(), point="chat.complete"))
    with pytest.raises(Crash):
        await deployment.run("clerk", "hello", key="k")
    for _ in range(steps):  # more interruptions together than a run may have, and an answer after each few
        await interrupted(deployment, "chat.complete", MAX_OTHER_RESUMPTIONS - 1)
        deployment.faults.plan(Fault(Crash(), point="chat.complete", nth=2))
        at_ms = await deployment.next_alarm_ms()
        assert at_ms is not None
        deployment.clock.set(max(at_ms, deployment.clock()))
        with suppress(Crash):
            await deployment.fire_alarms()
    await deployment.recover()
    assert (await deployment.run("clerk", "hello", key="k"))["status"] == "completed"
    await check_d1_agrees(deployment)


async def test_a_resumption_after_a_crash_is_in_the_timeline_and_one_after_a_wait_is_not(deploy: Deploy) -> None:
    down = Unavailable("down", code="model_unavailable")
    deployment = deploy(chat=SteppedChat(down, says("done")))
    deployment.faults.plan(Fault(Crash(), point="chat.complete"))
    with pytest.raises(Crash):
        await deployment.run("sdr", "hello", key="k")
    await deployment.recover()
    assert (await deployment.run("sdr", "hello", key="k"))["status"] == "completed"
    await deployment.settled()
    kinds = [row["kind"] for row in await deployment.rows("SELECT kind FROM run_events ORDER BY seq")]
    asked = ["model_asked", "run_recovered", "model_asked", "model_unavailable", "run_resumed", "model_asked"]
    assert kinds == [*asked, "model_answered", "run_completed"]
    await check_d1_agrees(deployment)
