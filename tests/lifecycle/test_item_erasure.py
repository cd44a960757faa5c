"""Erasing a user, a mention or a tenant covers all tiers, and is in the receipt."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from retain.errors import Misconfigured, RetainError
from retain.host.crypto import HostCrypto
from retain.items.builder import MemoryBuilder
from retain.items.client import MemoryClient
from retain.items.tiers.sql_warm import SqlWarm
from retain.items.tiers.stores import KvHot, ObjectsCold
from retain.lifecycle.erasure.eraser import Erasure, Outcome
from retain.lifecycle.stores import Stores
from retain.namespace import Namespace
from retain.sealing.pii import Sealer
from tests.items.world import KEY
from tests.lifecycle.world import World, living
from tests.support.faults import Crash, Fault

ANN = "ann@shop.example"
SEALER = Sealer(HostCrypto(), KEY)


@pytest.fixture
def world() -> Iterator[World]:
    with living() as world:
        yield world


def _stores(world: World) -> Stores:
    return replace(world.stores(), sealer=SEALER)


def _memory(world: World, tenant: str = "acme", session: str = "s-1", *, write_through: bool = True) -> MemoryClient:
    builder = MemoryBuilder(Namespace("shop", tenant, session), world.clock).with_hot(KvHot(world.kv)).with_pii(SEALER)
    builder = builder.with_warm(SqlWarm(world.sql, tenant, world.clock)).with_cold(ObjectsCold(world.objects_store))
    return builder.with_rules(write_through=write_through).build()


async def _fill(world: World, tenant: str) -> None:
    """Store items of Ann, of Bob and of no user in every tier."""
    memory = _memory(world, tenant)
    for user in (ANN, "bob"):
        name = user.split("@")[0]
        await memory.put("cart", name, f"{name}'s lamps", user_id=user)
        await _memory(world, tenant, "s-2", write_through=False).put("cart", name, f"{name}'s", user_id=user)
        await memory.put("preferences", name, f'{{"email": "{user}"}}', user_id=user)
        await memory.put("order_history", name, f"{name}'s order", user_id=user)
        await memory.put("order_history", name, f"{name}'s second order", user_id=user)
        assert await memory.get("order_history", name)
    await memory.put("conversation", "c-1", f"nobody's, about {ANN}, and Joann@shop.example.com")
    await memory.put("preferences", "c-2", f'{{"phone": "1", "note": "{ANN}"}}')
    await memory.put("system_logs", "l-1", f"seen: {ANN}")
    await _memory(world, tenant, write_through=False).put("session_state", "s", f"for {ANN}")
    await memory.put("conversation", "c-3", "nobody's")


async def _erased(world: World, match: str | None = "subject", subject: str = ANN) -> Outcome:
    erasure = Erasure(_stores(world))
    if match is None:
        return await world.completed(lambda: erasure.erase_tenant("acme"))
    return await world.completed(lambda: erasure.erase_subject("acme", subject, match))  # type: ignore[arg-type]


def _items(world: World, tenant: str) -> set[str]:
    rows = world.sql_now("SELECT key FROM memory_items WHERE tenant_id = ?", tenant)
    return {row["key"].split(":", 2)[2] for row in rows}


async def test_a_users_items_are_erased_from_every_tier_and_counted_in_the_receipt(world: World) -> None:
    for tenant in ("acme", "other"):
        await _fill(world, tenant)
    before = _items(world, "other")
    outcome = await _erased(world)
    assert _items(world, "acme") == {item for item in before if not item.endswith(":ann")}
    assert _items(world, "other") == before
    assert [key for key in (await world.kv.list("")).keys if ":acme:" in key and key.endswith(":ann")] == []
    assert [key for key in (await world.objects_store.list("")).keys if ":acme:" in key and ":ann@" in key] == []
    counts = outcome.receipt.counts
    assert (counts["d1.memory_items"], counts["kv"], counts["r2"]) == (4, 3, 2)
    for session, kind in (("s-1", "cart"), ("s-2", "cart"), ("s-1", "preferences"), ("s-1", "order_history")):
        assert await _memory(world, session=session).get(kind, "ann") is None
    assert await _memory(world).get("order_history", "bob") == "bob's second order"


async def test_by_mention_what_names_the_user_is_erased_in_every_tier_sealed_or_not(world: World) -> None:
    await _fill(world, "acme")
    await _erased(world, "mention")
    assert _items(world, "acme") == {
        *(f"s-1:{kind}:bob" for kind in ("cart", "preferences", "order_history")),
        "s-2:cart:bob",
        "s-1:conversation:c-3",
    }
    assert "r2/objects" not in world.mentions(ANN)
    assert "kv/kv" not in world.mentions(ANN)


@pytest.mark.parametrize("match", ["subject", "mention"])
async def test_old_values_of_overwritten_items_are_erased_from_the_cold_tier(world: World, match: str) -> None:
    for tenant in ("acme", "other"):
        memory = _memory(world, tenant)
        await memory.put("order_history", "o-1", f"of {ANN}", user_id=ANN)
        await memory.put("order_history", "o-1", "new", user_id="bob")
    outcome = await _erased(world, match)
    assert await _memory(world).get("order_history", "o-1") == "new"
    keys = (await world.objects_store.list("")).keys
    contents = {await world.objects_store.get(key) for key in keys if ":acme:" in key}
    assert contents == {b"new"}
    assert len(keys) == 3
    assert outcome.receipt.counts == ({"r2": 1} if match == "mention" else {})


@pytest.mark.parametrize("owner", [ANN, None])
async def test_an_old_value_that_names_nobody_may_be_anybodys_and_is_removed(world: World, owner: str | None) -> None:
    await _memory(world).put("order_history", "o-1", "old", user_id=owner)
    await _memory(world).put("order_history", "o-1", "new")
    outcome = await _erased(world, "mention")
    assert [await world.objects_store.get(key) for key in (await world.objects_store.list("")).keys] == [b"new"]
    assert not outcome.receipt.counts.get("r2")


async def test_an_erasure_completes_while_a_cold_item_is_written_all_the_time(world: World) -> None:
    for _ in range(90):
        await _memory(world).put("order_history", "o-1", "x")
        outcome = await Erasure(_stores(world)).erase_subject("acme", ANN, "mention")
        if outcome.receipt.state == "completed":
            return
        world.clock.advance(1000)
    raise AssertionError("the erasure never completes")


async def test_a_mention_cannot_be_erased_while_there_are_items_that_cannot_be_opened(world: World) -> None:
    await _fill(world, "acme")
    with pytest.raises(Misconfigured):
        await Erasure(world.stores()).erase_subject("acme", ANN, "mention")


async def test_a_tenants_items_are_erased_with_it_and_nothing_is_orphaned(world: World) -> None:
    for tenant in ("acme", "other"):
        await world.sql.run("INSERT OR IGNORE INTO tenants (tenant_id, created_at_ms) VALUES (?, 0)", tenant)
        await _fill(world, tenant)
    orphan = await SqlWarm(world.sql, "acme", world.clock).new_object(
        "shop:acme:s-9:order_history:x", "orders-archive/"
    )
    await world.objects_store.put(orphan, b"of a write that did not end")
    outcome = await _erased(world, None)
    assert {
        name for name, rows in world.everything().items() if any("acme:s-" in str(v) for r in rows for v in r)
    } == set()
    assert len(_items(world, "other")) == 13
    assert outcome.receipt.counts["r2"] == 6
    with pytest.raises(RetainError) as refused:
        await _memory(world).put("preferences", "one", "late")
    assert refused.value.code == "tenant_erased"


async def test_a_copy_that_a_read_leaves_during_the_erasure_is_erased_as_well(world: World) -> None:
    await _memory(world).put("preferences", "ann", "tea", user_id=ANN)
    outcome = await Erasure(_stores(world)).erase_subject("acme", ANN, "subject")
    assert outcome.retry_after_ms
    await world.kv.put("shop:acme:s-1:preferences:ann", "retain1 1 0\ntea")
    await _erased(world)
    assert (await world.kv.list("")).keys == []


async def test_an_erasure_that_stops_anywhere_resumes_and_counts_once() -> None:
    nth = 0
    while True:
        nth += 1
        with living() as world:
            await _memory(world).put("preferences", "ann", "tea", user_id=ANN)
            await _memory(world).put("order_history", "ann", "tea", user_id=ANN)
            world.faults.plan(Fault(Crash("planned"), nth))
            happened = True
            try:
                for _ in range(9):
                    outcome = await Erasure(_stores(world)).erase_subject("acme", ANN, "subject")
                    world.clock.advance(outcome.retry_after_ms or 0)
                happened = False
            except Crash:
                outcome = await _erased(world)
            else:
                world.faults.cancel()
                outcome = await _erased(world)
            assert _items(world, "acme") == set()
            assert (await world.objects_store.list("")).keys == []
            assert (await world.kv.list("")).keys == []
            if outcome.receipt.counts:  # otherwise the first erasure had completed, and this one found nothing
                assert outcome.receipt.counts == {"d1.memory_items": 2, "kv": 1, "r2": 1}
        if not happened:
            break
    assert nth > 10
