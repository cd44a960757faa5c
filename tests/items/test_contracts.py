"""The tiers on the host and in memory fulfil the contracts of the protocols."""

from __future__ import annotations

import pytest

from retain.errors import InvalidInput
from retain.items.tiers.plain_catalogue import PlainCatalogue
from retain.items.tiers.sql_warm import SqlWarm
from retain.items.tiers.stores import KvHot, ObjectsCold
from retain.testing.in_memory_tiers import InMemoryCold, InMemoryHot, InMemoryWarm
from tests.items.world import Tiered
from tests.ports import Case, cases, catalogue, cold_memory, hot_memory, warm_memory


@pytest.mark.parametrize("adapter", ["host", "memory"])
@pytest.mark.parametrize("case", cases(hot_memory).values(), ids=cases(hot_memory).keys())
async def test_hot(world: Tiered, case: Case, adapter: str) -> None:
    hot = KvHot(world.kv) if adapter == "host" else InMemoryHot(world.clock)
    await case(hot)
    await case(hot)


@pytest.mark.parametrize("adapter", ["host", "memory", "plain"])
@pytest.mark.parametrize("case", cases(warm_memory).values(), ids=cases(warm_memory).keys())
async def test_warm(world: Tiered, case: Case, adapter: str) -> None:
    made = {
        "host": SqlWarm(world.sql, "acme", world.clock),
        "memory": InMemoryWarm(),
        "plain": PlainCatalogue(InMemoryWarm(), world.clock),
    }
    await case(made[adapter])
    await case(made[adapter])


@pytest.mark.parametrize("adapter", ["host", "plain"])
@pytest.mark.parametrize("case", cases(catalogue).values(), ids=cases(catalogue).keys())
async def test_catalogue(world: Tiered, case: Case, adapter: str) -> None:
    plain = PlainCatalogue(InMemoryWarm(), world.clock)
    made = SqlWarm(world.sql, "acme", world.clock) if adapter == "host" else plain
    await case(made)
    await case(made)


@pytest.mark.parametrize("adapter", ["host", "memory"])
@pytest.mark.parametrize("case", cases(cold_memory).values(), ids=cases(cold_memory).keys())
async def test_cold(world: Tiered, case: Case, adapter: str) -> None:
    cold = ObjectsCold(world.objects) if adapter == "host" else InMemoryCold()
    await case(cold)
    await case(cold)


@pytest.mark.parametrize("adapter", ["host", "memory"])
async def test_a_hot_value_lives_for_fifteen_minutes_unless_a_time_is_given(world: Tiered, adapter: str) -> None:
    hot = KvHot(world.kv) if adapter == "host" else InMemoryHot(world.clock)
    for key, ttl in (("shop:acme:s:cart:one", None), ("shop:acme:s:cart:two", 3600)):
        await hot.set(key, "value", ttl=ttl)
    world.clock.advance(899_000)
    assert await hot.get("shop:acme:s:cart:one") == "value"
    world.clock.advance(2_000)
    assert await hot.get("shop:acme:s:cart:one") is None
    assert await hot.get("shop:acme:s:cart:two") == "value"


async def test_a_hot_copy_lives_for_fifteen_minutes_unless_the_rules_say_otherwise(world: Tiered) -> None:
    await world.memory().put("preferences", "one", "value")
    world.clock.advance(899_000)
    assert await world.hot("shop:acme:s-1:preferences:one") == "value"
    world.clock.advance(2_000)
    assert await world.hot("shop:acme:s-1:preferences:one") is None


async def test_a_hot_value_in_memory_expires(world: Tiered) -> None:
    hot = InMemoryHot(world.clock)
    await hot.set("shop:acme:s:cart:one", "value", ttl=60)
    world.clock.advance(59_999)
    assert await hot.get("shop:acme:s:cart:one") == "value"
    world.clock.advance(1)
    assert await hot.get("shop:acme:s:cart:one") is None


async def test_an_object_that_is_not_text_is_refused(world: Tiered) -> None:
    await world.objects.put("bytes", b"\xff\xfe")
    with pytest.raises(InvalidInput):
        await ObjectsCold(world.objects).download_text("bytes")


async def test_a_canonical_key_names_its_namespace_and_a_legacy_one_does_not(world: Tiered) -> None:
    warm = SqlWarm(world.sql, "acme", world.clock)
    await warm.upsert("shop:acme:s-1:cart:active", "value")
    await warm.upsert("cart:acme", "legacy")
    assert {row["key"]: (row["namespace_key"], row["kind"]) for row in world.rows()} == {
        "shop:acme:s-1:cart:active": ("shop:acme:s-1", "cart"),
        "cart:acme": ("", ""),
    }
