"""What a run owes D1 is written once if it ends soon, and soon if it does not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from retain.agents.catalogue import AgentCatalogue
from retain.agents.duties.deferral import Deferral
from tests.agents.stepped_chat import SteppedChat
from tests.support.instances import Deployment

Agents = Callable[..., AgentCatalogue]
Deploy = Callable[..., Deployment]
RUNS = "SELECT status FROM agent_runs"
NEVER_S = 3600


def batches(deployment: Deployment) -> int:
    return sum(point == "sql.batch" for _, point in deployment.faults.trace)


async def test_a_run_that_ends_soon_is_one_batch_of_d1(deploy: Deploy, agents: Agents) -> None:
    deployment = deploy(agents(clerk={}), chat=SteppedChat())
    await deployment.run("clerk", "hello")
    await deployment.settled()
    assert batches(deployment) == 2, "one reads what came before, one writes all of it"
    assert [row["status"] for row in await deployment.rows(RUNS)] == ["completed"]


async def test_a_run_that_takes_longer_is_in_d1_while_it_is_under_way(deploy: Deploy, agents: Agents) -> None:
    chat = SteppedChat(hold=True)
    deployment = deploy(agents(clerk={}), chat=chat)
    run = asyncio.create_task(deployment.run("clerk", "hello"))
    await chat.asked.wait()
    assert await deployment.rows(RUNS) == []
    await deployment.background.settled()
    assert [row["status"] for row in await deployment.rows(RUNS)] == ["running"]
    chat.let_go()
    await run
    await deployment.settled()
    assert [row["status"] for row in await deployment.rows(RUNS)] == ["completed"]


async def test_a_run_in_the_background_is_written_when_it_begins(deploy: Deploy, agents: Agents) -> None:
    chat = SteppedChat(hold=True)
    deployment = deploy(agents(clerk={}), chat=chat)
    await deployment.ask("clerk", "start", input="hello", metadata={})
    await chat.asked.wait()
    while not await deployment.rows(RUNS):
        await asyncio.sleep(0)
    assert batches(deployment) == 2
    chat.let_go()
    await deployment.settled()


async def test_a_run_whose_object_dies_before_anything_is_written_is_resumed_and_then_in_d1(
    deploy: Deploy, agents: Agents
) -> None:
    chat = SteppedChat(hold=True)
    deployment = deploy(agents(clerk={}), chat=chat)
    run = asyncio.create_task(deployment.run("clerk", "hello"))
    await chat.asked.wait()
    assert await deployment.rows(RUNS) == []
    deployment.faults.kill()
    chat.let_go()
    await asyncio.gather(run, return_exceptions=True)
    await deployment.recover()
    assert [row["status"] for row in await deployment.rows(RUNS)] == ["completed"]
    assert len(chat.requests) == 2


async def test_work_is_deferred_until_it_is_ended() -> None:
    deferral = Deferral(NEVER_S)
    assert not deferral.end()
    deferred = deferral.begin()
    assert not deferred.done()
    assert deferral.end()
    await deferred
    assert not deferral.end()


async def test_work_is_deferred_for_a_time_at_most() -> None:
    deferral = Deferral(0)
    await deferral.begin()
    assert not deferral.end()


async def test_the_next_work_ends_what_was_put_off_before() -> None:
    deferral = Deferral(NEVER_S)
    first = deferral.begin()
    second = deferral.begin()
    assert (first.done(), second.done()) == (True, False)
    assert deferral.end()
