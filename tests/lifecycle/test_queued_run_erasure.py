"""An erasure takes queued runs as well: nothing of their texts is left, none of them begins, and nobody rebuilds them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing, suppress
from typing import Any

import pytest

from retain.agents.calls.client import InstanceClient
from retain.agents.conversations.deletion import delete_conversation
from retain.agents.identity import instance_of
from retain.agents.runs.owed import ParkRun, QueueRun
from retain.errors import Conflict, NotFound
from retain.lifecycle.erasure.eraser import Erasure, Outcome
from tests.agents.conftest import agent
from tests.agents.stepped_chat import SteppedChat
from tests.lifecycle.world import World
from tests.support.instances import LocalInstances, catalogue

SECRET = "canary-4711"
NAME = "clerk:acme:main"
SUE: dict[str, Any] = {"user": {"id": "sue"}}


@asynccontextmanager
async def queued() -> AsyncIterator[tuple[World, SteppedChat, str]]:
    """Yield a busy clerk with a queue, and the id of the run in it that is for Sue and names the secret."""
    model = SteppedChat(hold=True)
    agents = catalogue(agent("clerk", limits={"busy": "queue"}))
    with closing(World(agents, lambda definition: model)) as world:
        await world.sql.run("INSERT INTO tenants (tenant_id, created_at_ms) VALUES ('acme', 0)")
        first = asyncio.create_task(world.run("clerk", "hello"))
        await model.asked.wait()
        await world.run("clerk", "nothing in particular")
        report = await world.run("clerk", f"about {SECRET}", **SUE)
        while world.local(NAME, "SELECT 1 FROM outbox"):
            await asyncio.sleep(0)
        try:
            yield world, model, report["run_id"]
        finally:
            model.let_go()
            with suppress(NotFound):
                await first
            await world.settled()


async def _of_user(world: World) -> Outcome:
    return await Erasure(world.stores()).erase_user("acme", "sue")


async def _by_mention(world: World) -> Outcome:
    return await Erasure(world.stores()).erase_subject("acme", SECRET, "mention")


async def _of_tenant(world: World) -> Outcome:
    return await Erasure(world.stores()).erase_tenant("acme")


@pytest.mark.parametrize(
    ("erase", "others"),
    [
        pytest.param(_of_user, ["hello", "nothing in particular"], id="of the user"),
        pytest.param(_by_mention, ["hello", "nothing in particular"], id="by mention"),
        pytest.param(_of_tenant, ["hello"], id="of the tenant"),
    ],
)
async def test_an_erased_queued_run_leaves_nothing_and_does_not_begin(
    erase: Callable[[World], Awaitable[Outcome]], others: list[str]
) -> None:
    async with queued() as (world, model, run_id):
        assert len(await world.rows("SELECT 1 FROM parked_runs WHERE run_id = ?", run_id)) == 1
        with suppress(Conflict):  # the instance is busy
            await erase(world)
        with pytest.raises(NotFound):
            await world.ask("clerk", "show", run_id=run_id)
        model.let_go()
        while len(model.requests) < len(others) or world.local(
            NAME, "SELECT 1 FROM turn_state WHERE status = 'running'"
        ):
            await asyncio.sleep(0)
        await world.completed(lambda: erase(world))
        await world.settled()
        assert [request.messages[-1].content for request in model.requests] == others
        assert world.mentions(SECRET) == []
        assert await world.rows("SELECT 1 FROM parked_runs") == []


@pytest.mark.parametrize("erase", [pytest.param(_of_tenant, id="tenant"), pytest.param(_of_user, id="user")])
async def test_a_run_of_who_is_erased_is_cancelled_and_leaves_nothing(
    erase: Callable[[World], Awaitable[Outcome]],
) -> None:
    """It ran on, and streamed what it did, for as long as its model and its tools took."""
    model = SteppedChat(hold=True)
    with closing(World(catalogue(agent("clerk")), lambda definition: model)) as world:
        await world.sql.run("INSERT INTO tenants (tenant_id, created_at_ms) VALUES ('acme', 0)")
        run = asyncio.create_task(world.run("clerk", f"about {SECRET}", **SUE))
        await model.asked.wait()
        while world.local(NAME, "SELECT 1 FROM outbox"):
            await asyncio.sleep(0)
        assert (await erase(world)).receipt.state == "running"
        model.let_go()
        report = await run
        assert (report["status"], report["error"]["by"]) == ("cancelled", "erasure")
        await world.completed(lambda: erase(world))
        assert world.mentions(SECRET) == []
        assert await world.rows("SELECT 1 FROM agent_runs") == []


async def test_deleting_a_conversation_empties_the_queue_of_its_busy_instance() -> None:
    async with queued() as (world, model, run_id):
        client = InstanceClient(LocalInstances(world), instance_of("acme", "clerk", "main"))
        with pytest.raises(Conflict) as refused:
            await delete_conversation(world.sql, client)
        assert refused.value.code == "instance_busy"
        assert (await world.describe("clerk"))["queue"] == []
        model.let_go()
        while world.local(NAME, "SELECT 1 FROM turn_state WHERE status = 'running'"):
            await asyncio.sleep(0)
        await delete_conversation(world.sql, client)
        await world.settled()
        assert len(model.requests) == 1
        assert await world.rows("SELECT 1 FROM agent_runs") == []
        with pytest.raises(NotFound):
            await world.ask("clerk", "show", run_id=run_id)


async def test_erasing_one_user_leaves_the_queued_runs_of_an_instance_that_serves_another() -> None:
    model = SteppedChat(hold=True)
    with closing(World(catalogue(agent("clerk", limits={"busy": "queue"})), lambda definition: model)) as world:
        first = asyncio.create_task(world.run("clerk", "hello", **SUE))
        await model.asked.wait()
        await world.run("clerk", "again", **SUE)
        assert await world.ask("clerk", "erase", user_id="bob") == {"everything": False}
        assert len((await world.describe("clerk"))["queue"]) == 1
        model.let_go()
        await first
        await world.settled()
        assert len(model.requests) == 2


@pytest.mark.parametrize("begun", ["in the queue", "cancelled", "put aside"])
async def test_a_run_that_never_began_makes_nobody_s_conversation_no_user_s(begun: str) -> None:
    async with queued() as (world, model, run_id):
        if begun == "cancelled":
            await world.ask("clerk", "cancel", run_id=run_id, by="ann", reason=None)
        if begun == "put aside":  # D1 refused what is written of it
            world.sql_now("DELETE FROM parked_runs WHERE run_id = ?", run_id)
            world.sql_now("DELETE FROM agent_runs WHERE run_id = ?", run_id)
            for number, statement in enumerate((QueueRun.NAME, ParkRun.NAME)):
                parameters = json.dumps([run_id, "acme", "clerk", "main", SECRET, "sue"])
                entry: dict[str, Any] = {"entry_id": number, "statement": statement, "parameters": parameters}
                world.plant("outbox_failures", instance_key=NAME, tenant_id="acme", **entry)
        with suppress(Conflict):
            await _of_user(world)
        model.let_go()
        while len(model.requests) < 2 or world.local(NAME, "SELECT 1 FROM turn_state WHERE status = 'running'"):
            await asyncio.sleep(0)
        await world.completed(lambda: _of_user(world))
        await world.settled()
        assert world.mentions(SECRET) == []
        rows = await world.rows("SELECT content FROM conversation_messages WHERE role = 'user' ORDER BY message_id")
        assert [row["content"] for row in rows] == ["hello", "nothing in particular"]
        assert len(await world.rows("SELECT 1 FROM agent_runs")) == 2
