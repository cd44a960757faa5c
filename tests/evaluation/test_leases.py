"""A worker keeps its run for as long as it lives, and for half a minute after it has died."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing

import pytest

from retain.errors import Unavailable
from retain.evaluation.runner import RENEW_MS, RETRY_MS
from retain.evaluation.runs import LEASE_MS
from tests.agents.stepped_chat import SteppedChat
from tests.evaluation.test_runner import APPROVED
from tests.evaluation.world import TENANT, EvaluationWorld, dataset
from tests.support.faults import Crash, Fault


@pytest.fixture
def world() -> Iterator[EvaluationWorld]:
    with closing(EvaluationWorld()) as made:
        yield made


async def begun(world: EvaluationWorld, chat: SteppedChat) -> tuple[str, asyncio.Task[object]]:
    """Start an evaluation whose model thinks; return its id, and the call that works on it."""
    world._chat = lambda _: chat
    run_id = await world.started(dataset(APPROVED, agent="refund_decision"))
    working: asyncio.Task[object] = asyncio.create_task(world.runner().advance(TENANT, run_id))
    await chat.asked.wait()
    return run_id, working


async def passes(world: EvaluationWorld, ms: int) -> None:
    """Let time pass while a worker works."""
    for _ in range(ms // RENEW_MS):
        world.clock.advance(RENEW_MS)
        for _ in range(50):
            await asyncio.sleep(0)


async def test_a_case_that_takes_longer_than_the_lease_keeps_it(world: EvaluationWorld) -> None:
    chat = SteppedChat(hold=True)
    run_id, working = await begun(world, chat)
    await passes(world, 3 * LEASE_MS)
    assert await world.runner().open(10) == []
    other = await world.runner().advance(TENANT, run_id)
    assert (other.retry_after_ms, other.run.results[0].state) == (RETRY_MS, "running")
    [row] = world.sql_now("SELECT attempts FROM eval_results")
    assert row["attempts"] == 1
    chat.let_go()
    await working
    assert (await world.finished(run_id)).state == "completed"
    [row] = world.sql_now("SELECT lease_until_ms FROM eval_runs")
    assert row["lease_until_ms"] == 0, "nothing takes it again once it was released"


async def test_after_the_death_of_a_worker_another_continues_within_half_a_minute(world: EvaluationWorld) -> None:
    world.faults.plan(Fault(Crash(), point="chat.complete"))
    run_id = await world.started(dataset(APPROVED, agent="refund_decision"))
    with pytest.raises(Crash):
        await world.runner().advance(TENANT, run_id)
    await world.restart()
    world.clock.advance(LEASE_MS - 1)
    assert await world.runner().open(10) == []
    world.clock.advance(1)
    assert await world.runner().open(10) == [(TENANT, run_id)]
    assert LEASE_MS == 30_000


async def test_a_lease_that_cannot_be_renewed_is_tried_again(world: EvaluationWorld) -> None:
    chat = SteppedChat(hold=True)
    run_id, working = await begun(world, chat)
    world.faults.plan(Fault(Unavailable("down"), point="sql.batch"))
    await passes(world, LEASE_MS + RENEW_MS)
    assert await world.runner().open(10) == []
    chat.let_go()
    await working
    assert (await world.finished(run_id)).state == "completed"
