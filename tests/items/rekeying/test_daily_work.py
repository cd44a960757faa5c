"""The daily work while keys migrate: removing a row brings no older value back, and no object that is read is swept."""

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

PHASE_2 = (True, True)


@pytest.fixture
def world() -> Iterator[World]:
    with living() as world:
        yield world


async def _demoted(world: World, *, looks: int = 2000) -> dict[str, int]:
    cold = ObjectsCold(world.objects_store)
    demotion = Demotion(world.sql, cold, MATRIX, world.clock, AgedDemotion(), flags(*PHASE_2))
    return await demotion.run(looks=looks)


async def _read_nowhere(world: World, kind: str) -> None:
    await backfilled(world)
    for both in PHASES:
        assert await memory(world, both).get(kind, "one") is None


@pytest.mark.parametrize("both", PHASES, ids=str)
async def test_a_removed_expired_item_does_not_show_its_legacy_value_again(
    world: World, both: tuple[bool, bool]
) -> None:
    inner = SqlWarm(world.sql, "acme", world.clock)
    await inner.upsert("old/acme/cart/one", "oldest")
    if both[0]:
        await inner.upsert("acme:s-1:cart:one", "older")
    await memory(world, both).put("cart", "one", "new")
    world.clock.advance(DAY_MS)
    assert await memory(world, both).get("cart", "one") is None
    world.clock.advance(DAY_MS)
    assert (await _demoted(world))["expired"] == 1
    await _read_nowhere(world, "cart")
    assert world.sql_now("SELECT key FROM memory_items") == []


async def test_many_expired_items_are_removed_with_what_they_hide(world: World) -> None:
    inner = SqlWarm(world.sql, "acme", world.clock)
    for number in range(450):
        await inner.upsert(f"acme:s-1:cart:c-{number}", "old")
        await memory(world, PHASE_2).put("cart", f"c-{number}", "new", ttl_s=60 + number)
    world.clock.advance(DAY_MS)
    assert [(await _demoted(world, looks=300))["expired"] for _ in range(3)] == [300, 150, 0]
    assert world.sql_now("SELECT key FROM memory_items") == []


@pytest.mark.parametrize("kind", ["preferences", "order_history"])
async def test_an_item_whose_retention_has_passed_does_not_show_its_legacy_value_again(world: World, kind: str) -> None:
    await SqlWarm(world.sql, "acme", world.clock).upsert(f"acme:s-1:{kind}:one", "old")
    await world.objects_store.put(f"old/acme/{kind}/one", b"old")
    await memory(world, PHASE_2).put(kind, "one", "new")
    world.clock.advance(3000 * DAY_MS)
    assert (await _demoted(world))["removed"] == 1
    await _read_nowhere(world, kind)
    world.clock.advance(DAY_MS)
    await _demoted(world)
    assert (await world.objects_store.list("")).keys == []
    await _read_nowhere(world, kind)


async def test_a_tombstone_hides_what_a_stopped_delete_left_until_it_is_removed_too(world: World) -> None:
    inner = SqlWarm(world.sql, "acme", world.clock)
    await inner.upsert("acme:s-1:preferences:one", "old")
    await memory(world, PHASE_2).put("preferences", "one", "new")
    await inner.bury("shop:acme:s-1:preferences:one")  # and then the delete stopped
    world.clock.advance(3 * DAY_MS)
    await _demoted(world)
    await _read_nowhere(world, "preferences")


async def test_a_value_that_was_written_after_the_expired_one_is_not_removed_with_it(world: World) -> None:
    await memory(world, PHASE_2).put("cart", "one", "expired", ttl_s=60)
    world.clock.advance(DAY_MS)
    await SqlWarm(world.sql, "acme", world.clock).upsert("acme:s-1:cart:one", "new, its second write is under way")
    await _demoted(world)
    assert await memory(world, (False, True)).get("cart", "one") == "new, its second write is under way"


@pytest.mark.parametrize("both", PHASES, ids=str)
async def test_the_object_of_an_item_under_a_legacy_key_is_not_swept(world: World, both: tuple[bool, bool]) -> None:
    await memory(world, both).put("order_history", "one", "order")
    world.clock.advance(3 * DAY_MS)
    assert (await _demoted(world))["objects"] == 0
    assert await memory(world, both).get("order_history", "one") == "order"
