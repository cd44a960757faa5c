"""Tenants whose applications chose the same names, of users, instances, keys and conversations, have nothing in common."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from retain.agents.calls.client import InstanceClient
from retain.agents.conversations.deletion import delete_conversation
from retain.agents.identity import instance_of
from retain.errors import NotFound
from retain.lifecycle.backups.backing_up import Backups
from retain.lifecycle.erasure.eraser import Erasure
from tests.e2e.puppet import order
from tests.lifecycle.of_users import ANN, erased, fill, forgotten, shop
from tests.lifecycle.world import World
from tests.ports import raises
from tests.support.instances import LocalInstances

TENANTS = ("acme", "beta")


@pytest.fixture
async def world() -> AsyncIterator[World]:
    world = shop()
    try:
        for tenant in TENANTS:
            await world.sql.run("INSERT INTO tenants (tenant_id, created_at_ms) VALUES (?, 0)", tenant)
            await fill(world, ANN, tenant)
            key = f"shop:{tenant}:session-ann:cart:9"
            world.plant("memory_item_earlier_users", tenant_id=tenant, user_id=ANN, key=key)
            await world.kv.put(key, "retain1 1 0\nof Ann once")
            world.plant("ingest_uploads", tenant_id=tenant, upload_id=f"broken off in {tenant}", message_index=0)
            cron: dict[str, Any] = {"cron": "0 9 * * *", "timezone": "UTC", "at_ms": None}
            request = {"input": "again", "metadata": {}, "user": {"id": ANN}, "idempotency_key": "k"}
            await world.ask("clerk", "schedule", tenant=tenant, instance="desk-ann", request=request, **cron)
            await world.run("clerk", order(say="once"), tenant=tenant, instance="desk-ann", key="k", user={"id": ANN})
            await world.settled()
            while (await Backups(world.stores(), 14).advance(tenant)).state == "running":
                pass
        for table in ("outbox_failures", "ingest_jobs", "ingest_messages"):
            world.sql_now(f"DELETE FROM {table}")
        yield world
    finally:
        world.close()


def of_beta(world: World) -> dict[str, list[tuple[Any, ...]]]:
    """Return every row, object and key of the other tenant, by store and table."""
    return {
        table: rows
        for table, all_rows in world.everything().items()
        if (
            rows := [
                row
                for row in all_rows
                if "object clerk:beta" in table or "object helper:beta" in table or "beta" in str(row)
            ]
        )
    }


async def _user(world: World) -> None:
    await erased(world, ANN)


async def _mention(world: World) -> None:
    await forgotten(world, ANN)


async def _subject(world: World) -> None:
    await world.completed(lambda: Erasure(world.stores()).erase_subject("acme", ANN, "subject"))


async def _tenant(world: World) -> None:
    await world.completed(lambda: Erasure(world.stores()).erase_tenant("acme"))


async def _conversation(world: World) -> None:
    await delete_conversation(
        world.sql, InstanceClient(LocalInstances(world), instance_of("acme", "clerk", "desk-ann"))
    )


@pytest.mark.parametrize("remove", [_user, _mention, _subject, _tenant, _conversation])
async def test_what_is_removed_in_one_stays_in_the_other(
    world: World, remove: Callable[[World], Awaitable[None]]
) -> None:
    before = of_beta(world)
    assert len(before) > 20
    assert "r2/objects" in before
    await remove(world)
    assert of_beta(world) == before


async def test_an_instance_that_serves_a_user_in_the_other_does_not_serve_them_here(world: World) -> None:
    served: dict[str, dict[str, Any]] = {"acme": {}, "beta": {"user": {"id": ANN}}}
    for tenant, more in served.items():
        await world.run("clerk", order(say="in the hall"), tenant=tenant, instance="hall", **more)
    await world.settled()
    while (await Backups(world.stores(), 14).advance("acme")).state == "running":
        pass
    here = world.local("clerk:acme:hall", "SELECT * FROM turn_state")
    await erased(world, ANN)
    assert world.local("clerk:acme:hall", "SELECT * FROM turn_state") == here
    for table, count in {"agent_runs": 1, "conversation_messages": 2, "memory_episodes": 1}.items():
        rows = world.sql_now(f"SELECT 1 FROM {table} WHERE tenant_id = 'acme' AND instance_id = 'hall'")
        assert len(rows) == count, table
    backed_up = await world.objects_store.list("backups/acme/pages/")
    pages = [str(await world.objects_store.get(key)) for key in backed_up.keys]
    assert any("in the hall" in page for page in pages)


async def test_the_same_erasure_is_another_one_in_each(world: World) -> None:
    erasure = Erasure(world.stores())
    first = await erasure.erase_user("beta", ANN)
    assert first.receipt.state == "running"
    mine = await erased(world, ANN)
    assert (mine.receipt.tenant_id, mine.receipt.state) == ("acme", "completed")
    assert (await erasure.receipt("beta", first.receipt.receipt_id)).counts == first.receipt.counts
    listed, _ = await erasure.receipts("acme", before=None, limit=10)
    assert [one.receipt_id for one in listed] == [mine.receipt.receipt_id]
    with raises(NotFound, code="no_such_receipt"):
        await erasure.receipt("acme", first.receipt.receipt_id)
    gone = await world.completed(lambda: erasure.erase_tenant("beta"))
    await _tenant(world)
    assert (await erasure.erase_tenant("beta")).receipt == gone.receipt
