"""An erasure takes a waiting run's copy from D1 as well: nothing of it is left, and nobody rebuilds it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing
from typing import Any

import pytest

from retain.agents.calls.client import InstanceClient
from retain.agents.conversations.deletion import delete_conversation
from retain.agents.identity import instance_of
from retain.errors import NotFound
from retain.lifecycle.erasure.eraser import Erasure, Outcome
from tests.agents.conftest import agent
from tests.e2e.puppet import order
from tests.lifecycle.world import World
from tests.support.instances import LocalInstances, Upstream, catalogue
from tests.support.obedient_chat import ObedientChat

SECRET = "canary-4711"
NAME = "clerk:acme:main"


@asynccontextmanager
async def waiting() -> AsyncIterator[tuple[World, str]]:
    """Yield a deployment in which a run for Sue that names the secret waits for a person, and the run's id."""
    model = ObedientChat()
    agents = catalogue(agent("clerk", tools=["pay"], approval=["pay"]))
    with closing(World(agents, lambda definition: model)) as world:
        world.upstreams["pay"] = Upstream("pay", idempotent=False)
        await world.sql.run("INSERT INTO tenants (tenant_id, created_at_ms) VALUES ('acme', 0)")
        asked = order(("pay", {"order": SECRET}), say="paid")
        report = await world.run("clerk", asked, user={"id": "sue"})
        await world.settled()
        yield world, report["run_id"]


async def _of_user(world: World) -> Outcome:
    return await Erasure(world.stores()).erase_user("acme", "sue")


async def _by_mention(world: World) -> Outcome:
    return await Erasure(world.stores()).erase_subject("acme", SECRET, "mention")


async def _of_tenant(world: World) -> Outcome:
    return await Erasure(world.stores()).erase_tenant("acme")


ERASURES = [
    pytest.param(_of_user, id="of the user"),
    pytest.param(_by_mention, id="by mention"),
    pytest.param(_of_tenant, id="of the tenant"),
]


@pytest.mark.parametrize("erase", ERASURES)
@pytest.mark.parametrize("lost", [False, True], ids=["its instance has it", "its instance has lost it"])
async def test_an_erased_waiting_run_leaves_no_copy_and_is_not_rebuilt(
    erase: Callable[[World], Awaitable[Outcome]], lost: bool
) -> None:
    async with waiting() as (world, run_id):
        assert [row["run_id"] for row in await world.rows("SELECT run_id FROM parked_runs")] == [run_id]
        if lost:
            await world.lose(NAME)
        outcome = await world.completed(lambda: erase(world))
        await world.settled()
        assert await world.rows("SELECT * FROM parked_runs") == []
        assert lost or outcome.receipt.counts.get("durable_objects") == 1
        await _check_unknown(world, run_id)


@pytest.mark.parametrize("lost", [False, True], ids=["its instance has it", "its instance has lost it"])
async def test_a_deleted_conversation_leaves_no_copy_of_its_waiting_run(lost: bool) -> None:
    async with waiting() as (world, run_id):
        if lost:
            await world.lose(NAME)
        await _conversation(world)
        assert await world.rows("SELECT * FROM parked_runs") == []
        await _check_unknown(world, run_id)


async def _conversation(world: World) -> None:
    await delete_conversation(world.sql, InstanceClient(LocalInstances(world), instance_of("acme", "clerk", "main")))


@pytest.mark.parametrize(
    "erase",
    [
        pytest.param(_of_user, id="of the user"),
        pytest.param(_by_mention, id="by mention"),
        pytest.param(_conversation, id="of the conversation"),
    ],
)
async def test_what_an_erased_waiting_run_had_spent_stays_in_the_costs_and_in_the_quota(
    erase: Callable[[World], Awaitable[object]],
) -> None:
    async with waiting() as (world, _):
        [spent] = await world.rows("SELECT model, input_tokens, output_tokens FROM agent_runs")
        assert spent["input_tokens"] > 0
        quota = await world.rows("SELECT runs, tokens FROM tenant_use")
        assert quota == [{"runs": 1, "tokens": spent["input_tokens"] + spent["output_tokens"]}]
        await erase(world)
        await world.settled()
        assert await world.rows("SELECT model, input_tokens, output_tokens FROM model_use") == [spent]
        assert await world.rows("SELECT runs, tokens FROM tenant_use") == quota


async def _check_unknown(world: World, run_id: str) -> None:
    fields: dict[str, Any] = {"run_id": run_id, "call": "1.0", "approved": True, "by": "ann", "reason": None}
    with pytest.raises(NotFound):
        await world.ask("clerk", "answer", **fields)
    await world.settled()
    assert world.upstreams["pay"].asked == []
