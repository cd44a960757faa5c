"""Runs that were interrupted: each ends, and none blocks its instance."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

import pytest

from retain.agents.catalogue import AgentCatalogue
from retain.agents.execution.executor import MAX_RESUMPTIONS
from retain.errors import Unavailable
from tests.agents.remembered import check_d1_agrees
from tests.agents.stepped_chat import SteppedChat
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


async def test_a_run_that_kills_its_object_each_time_is_given_up(deploy: Deploy) -> None:
    deployment = deploy(chat=SteppedChat())
    deployment.faults.plan(Fault(Crash(), point="chat.complete"))
    with pytest.raises(Crash):
        await deployment.run("sdr", "hello")
    for _ in range(MAX_RESUMPTIONS + 1):
        await deployment.restart()
        at_ms = await deployment.next_alarm_ms()
        assert at_ms is not None
        deployment.clock.set(max(at_ms, deployment.clock()))
        deployment.faults.plan(Fault(Crash(), point="chat.complete"))
        with suppress(Crash):
            await deployment.fire_alarms()
    await deployment.restart()
    assert deployment.local(DESK, "SELECT status FROM turn_state") == [{"status": "failed"}]
