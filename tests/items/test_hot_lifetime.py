"""A hot value lives for 900 seconds unless something else is said. As literals: the constant must not move unnoticed."""

from __future__ import annotations

import pytest

from retain.host.clock import ManualClock
from retain.host.kv import SqliteKv
from retain.items.rules import MemoryRules
from retain.items.tiers.protocols import HOT_TTL_S, HotMemory
from retain.items.tiers.stores import KvHot
from retain.testing.in_memory_tiers import InMemoryHot
from tests.items.world import Tiered


@pytest.mark.parametrize(
    "made",
    [
        pytest.param(lambda clock: KvHot(SqliteKv.open(clock)), id="kv"),
        pytest.param(InMemoryHot, id="in memory"),
    ],
)
async def test_a_value_without_a_time_to_live_is_gone_after_900_seconds(made: type[InMemoryHot]) -> None:
    clock = ManualClock()
    hot: HotMemory = made(clock)
    await hot.set("shop:acme:s-1:cart:one", "value")
    clock.advance(899_999)
    assert await hot.get("shop:acme:s-1:cart:one") == "value"
    clock.advance(1)
    assert await hot.get("shop:acme:s-1:cart:one") is None


async def test_a_hot_copy_of_what_belongs_elsewhere_is_gone_after_900_seconds(world: Tiered) -> None:
    await world.memory().put("preferences", "one", "value")
    key = world.rows()[0]["key"]
    world.clock.advance(899_999)
    assert await world.hot(key) == "value"
    world.clock.advance(1)
    assert await world.hot(key) is None


def test_the_documented_default_is_that_of_the_code() -> None:
    assert (HOT_TTL_S, MemoryRules().resolved({"hot"}).hot_ttl) == (900, 900)
