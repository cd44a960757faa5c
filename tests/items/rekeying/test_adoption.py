"""Which objects under legacy keys the backfill adopts: only those of items of which D1 knows nothing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from retain.items.demotion import AgedDemotion, Demotion
from retain.items.placement import MATRIX
from retain.items.tiers.sql_warm import SqlWarm
from retain.items.tiers.stores import ObjectsCold
from tests.items.world import DAY_MS
from tests.lifecycle.legacy import PHASES, backfilled, flags, memory
from tests.lifecycle.world import World, living

LEGACY = ("acme:s-1:order_history:one", "old/acme/order_history/one")


@pytest.fixture
def world() -> Iterator[World]:
    with living() as world:
        yield world


async def _days_pass(world: World, days: int = 3) -> None:
    for _ in range(days):
        world.clock.advance(DAY_MS)
        cold = ObjectsCold(world.objects_store)
        await Demotion(world.sql, cold, MATRIX, world.clock, AgedDemotion(), flags(True, True)).run()


async def _seen_nowhere(world: World, kind: str = "order_history") -> None:
    await backfilled(world)
    for both in PHASES:
        assert await memory(world, both).get(kind, "one") is None


@pytest.mark.parametrize("days", [0, 3], ids=["at once", "after the daily work"])
@pytest.mark.parametrize("row", LEGACY)
@pytest.mark.parametrize("under", LEGACY)
async def test_a_deleted_items_object_is_not_adopted(world: World, under: str, row: str, days: int) -> None:
    await world.objects_store.put(under, b"oldest")
    await SqlWarm(world.sql, "acme", world.clock).upsert(row, "old")
    assert await memory(world, (False, True)).delete("order_history", "one")
    await _days_pass(world, days)
    await _seen_nowhere(world)
    if days:
        assert (await world.objects_store.list("")).keys == []


@pytest.mark.parametrize("under", LEGACY)
async def test_an_expired_items_object_is_not_adopted(world: World, under: str) -> None:
    await world.objects_store.put(under, b"oldest")
    await memory(world, (False, True)).put("order_history", "one", "new", ttl_s=60)
    world.clock.advance(DAY_MS)
    await _seen_nowhere(world)
    await _days_pass(world)
    await _seen_nowhere(world)


async def test_an_object_of_a_data_type_that_is_never_cold_is_skipped(world: World) -> None:
    await world.objects_store.put("old/acme/cart/one", b"an old cart")
    assert await backfilled(world) == {"warm": 0, "cold": 0}
    await _seen_nowhere(world, "cart")
    counts = world.sql_now(
        "SELECT template, skipped FROM namespace_backfill WHERE tier = 'cold' AND template LIKE 'old%'"
    )
    assert [row["skipped"] for row in counts] == [1]


async def test_an_object_of_which_d1_knows_nothing_is_adopted(world: World) -> None:
    await world.objects_store.put(LEGACY[1], b"order")
    await backfilled(world)
    assert await memory(world, (True, False)).get("order_history", "one") == "order"


async def test_a_tenant_that_is_being_erased_does_not_stop_the_backfill_of_the_others(world: World) -> None:
    for tenant in ("acme", "other"):
        await SqlWarm(world.sql, tenant, world.clock).upsert(f"{tenant}:s-1:preferences:one", "old")
        await world.objects_store.put(f"old/{tenant}/order_history/one", b"order")
    world.plant("erased_tenants", tenant_id="acme", last_run_id="", closed=1)
    assert await backfilled(world) == {"warm": 0, "cold": 0}
    rows = world.sql_now("SELECT tenant_id FROM memory_items WHERE namespace_key <> '' ORDER BY key")
    assert [row["tenant_id"] for row in rows] == ["other", "other"]
    assert await memory(world, (True, True)).delete("preferences", "one")
