"""`MemoryClient` over layered tiers: the catalogue on D1, and tiers of three methods each."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from retain.host.kv import SqliteKv
from retain.items.builder import MemoryBuilder
from retain.items.client import MemoryClient
from retain.items.placement import MATRIX, ItemPlacement
from retain.items.rekeying.backfill import Backfill
from retain.items.rekeying.sources import AdoptingSource, LegacySource, WarmSource
from retain.items.tiers.sql_warm import SqlWarm
from retain.items.tiers.stores import KvHot, ObjectsCold
from retain.namespace import Namespace
from tests.items.rekeying.deployment import Deployment, Isolate
from tests.items.rekeying.stores import DictStore, Watched, flags, layer

NAMESPACE = Namespace("crm", "acme", "s1")
COMBINATIONS = ((False, False), (False, True), (True, True), (True, False))
# By the patterns of these tests, a cart may be under both legacy keys; here it belongs in the warm tier.
CARTS = {**MATRIX, "cart": ItemPlacement("warm", prefix="carts/")}


@pytest.fixture
async def deployment() -> AsyncIterator[Deployment]:
    made = Deployment()
    yield made
    made.close()


def _client(deployment: Deployment, isolate: Isolate, kv: SqliteKv) -> MemoryClient:
    cold = ObjectsCold(deployment.objects)
    builder = MemoryBuilder(NAMESPACE, deployment.clock).with_hot(KvHot(kv)).with_warm(isolate.warm()).with_cold(cold)
    builder.with_rules(read_fallback=True, promote_on_read=True, write_through=True, hot_reads="checked")
    return builder.with_placements(CARTS).build()


@pytest.mark.parametrize("both", COMBINATIONS, ids=str)
async def test_a_client_writes_reads_and_removes_items_under_every_combination_of_flags(
    deployment: Deployment, both: tuple[bool, bool]
) -> None:
    await SqlWarm(deployment.sql, "acme", deployment.clock).upsert("acme:s1:cart:active", "old")
    await deployment.to_phase_2()
    kv = SqliteKv.open(deployment.clock)
    memory = _client(deployment, deployment.isolate(*both), kv)
    assert await memory.get("cart", "active") == (None if both == (True, False) else "old")
    await memory.put("cart", "active", "new", user_id="ann")
    assert await memory.get("cart", "active") == "new"
    assert await _client(deployment, deployment.isolate(True, True), kv).get("cart", "active") == "new"
    assert await memory.delete("cart", "active")
    for other in COMBINATIONS:
        assert await _client(deployment, deployment.isolate(*other), kv).get("cart", "active") is None
    kv.close()


async def test_the_backfill_lets_rows_point_to_objects_under_legacy_keys(deployment: Deployment) -> None:
    await deployment.objects.put("acme:s1:order_history:o1", b"an old order")
    isolate, kv = await deployment.to_phase_2(), SqliteKv.open(deployment.clock)
    sources: dict[str, LegacySource] = {
        "warm": WarmSource(deployment.sql, deployment.clock),
        "cold": AdoptingSource(deployment.sql, deployment.objects, deployment.clock, isolate.flags),
    }
    backfill = Backfill(deployment.sql, deployment.clock, isolate.flags, sources)
    for _ in range(2):
        while not await backfill.step():
            pass
        await backfill.again()
    memory = _client(deployment, deployment.isolate(True, False), kv)
    found = await memory.find("order_history", "o1")
    assert found is not None
    assert (found.value, found.tier) == ("an old order", "cold")
    assert await memory.delete("order_history", "o1")
    assert (await deployment.objects.list("")).keys == []
    while not await backfill.step():
        pass
    assert await memory.get("order_history", "o1") is None
    kv.close()


class _Warm:
    """A warm tier of three methods over a layer."""

    def __init__(self, store: DictStore, both: tuple[bool, bool]) -> None:
        inner = layer("warm", store, flags(*both), Watched())
        self.read, self.upsert, self.delete = inner.read, inner.upsert, inner.delete


@pytest.mark.parametrize("both", COMBINATIONS, ids=str)
async def test_a_client_can_be_built_from_a_layered_warm_tier_of_three_methods(
    deployment: Deployment, both: tuple[bool, bool]
) -> None:
    store = DictStore(**{"acme:s1:cart:active": "old"})
    matrix = {"cart": ItemPlacement("warm", prefix="carts/")}
    builder = MemoryBuilder(NAMESPACE, deployment.clock).with_warm(_Warm(store, both))
    memory = builder.with_placements(matrix).build()
    assert await memory.get("cart", "active") == (None if both == (True, False) else "old")
    await memory.put("cart", "active", "new")
    assert await memory.get("cart", "active") == "new"
    await memory.delete("cart", "active")
    assert await memory.get("cart", "active") is None
