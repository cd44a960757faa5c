"""PII in legacy values: sealed on every way to a canonical key; what cannot be sealed stays where it was."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from retain.errors import InvalidInput
from retain.items.entry import Draft
from retain.items.rekeying.layers import LayeredCold, LayeredHot, LayeredWarm
from retain.items.rekeying.sources import SqlItems
from retain.items.resealing import reseal
from retain.items.tiers.sql_warm import SqlWarm
from tests.items.rekeying.stores import FIRST, KEY, DictStore, Watched
from tests.items.rekeying.stores import flags as flags_of
from tests.lifecycle.legacy import ANN, SEALER, backfilled, flags, memory
from tests.lifecycle.world import World, living

PERSON = json.dumps({"contact": {"userEmail": ANN}})
LEGACY, CANONICAL = "acme:s-1:preferences:ann", "shop:acme:s-1:preferences:ann"
PHASE_2 = (True, True)


@pytest.fixture
def world() -> Iterator[World]:
    with living() as world:
        yield world


async def _legacy(world: World) -> None:
    await SqlWarm(world.sql, "acme", world.clock).write(LEGACY, Draft("warm", PERSON, len(PERSON), user_id="ann"))


@pytest.mark.parametrize("way", ["repair", "backfill"])
async def test_a_legacy_value_with_pii_is_sealed_when_it_is_copied(world: World, way: str) -> None:
    await _legacy(world)
    if way == "backfill":
        assert await backfilled(world) == {"cold": 0, "warm": 0}
    for _ in range(2):
        assert await memory(world, PHASE_2).get("preferences", "ann") == PERSON
    [row] = world.sql_now("SELECT * FROM memory_items WHERE key = ?", CANONICAL)
    assert ANN not in json.dumps(row)
    assert (row["key_id"], row["user_id"], row["tier"]) == (SEALER.key_id(), "ann", "warm")
    assert (await world.kv.list("")).keys == []


async def test_a_legacy_value_with_pii_is_not_promoted_where_nothing_is_copied(world: World) -> None:
    await _legacy(world)
    assert await memory(world, (False, True)).get("preferences", "ann") == PERSON
    assert (await world.kv.list("")).keys == []


async def test_without_a_sealer_a_value_with_pii_is_refused(world: World) -> None:
    await _legacy(world)
    items = SqlItems(world.sql, "acme", world.clock)
    for act in (items.copy(LEGACY, CANONICAL), items.add(CANONICAL, PERSON)):
        with pytest.raises(InvalidInput) as refused:
            await act
        assert refused.value.code == "pii_outside_warm"
    assert [row["key"] for row in world.sql_now("SELECT key FROM memory_items")] == [LEGACY]


async def test_a_value_that_is_added_is_sealed(world: World) -> None:
    assert await SqlItems(world.sql, "acme", world.clock, SEALER).add(CANONICAL, PERSON)
    assert await memory(world, PHASE_2).get("preferences", "ann") == PERSON
    assert ANN not in json.dumps(world.sql_now("SELECT * FROM memory_items"))


async def test_an_object_with_pii_is_not_adopted_and_is_counted_as_refused(world: World) -> None:
    await world.objects_store.put("acme:s-1:order_history:one", PERSON.encode())
    assert await backfilled(world) == {"cold": 1, "warm": 0}
    assert world.sql_now("SELECT * FROM memory_items") == []
    assert await world.objects_store.get("acme:s-1:order_history:one") == PERSON.encode()


@pytest.mark.parametrize("tier", ["hot", "warm", "cold"])
async def test_layers_copy_no_pii(tier: str) -> None:
    store = DictStore(**{FIRST: PERSON})
    layer = {"hot": LayeredHot, "warm": LayeredWarm, "cold": LayeredCold}[tier]
    made = layer(store, flags_of(*PHASE_2), Watched(), store.add)
    read = {"hot": "get", "warm": "read", "cold": "download_text"}[tier]
    assert await getattr(made, read)(KEY) == PERSON
    assert store.values == {FIRST: PERSON}


async def test_rotation_seals_an_item_under_a_legacy_key_for_its_canonical_one(world: World) -> None:
    await memory(world, (False, False)).put("preferences", "ann", PERSON)
    world.sql_now("UPDATE memory_items SET key_id = 'older'")
    assert (await reseal(world.sql, SEALER, "acme", flags(False, False))).left == 0
    assert await memory(world, PHASE_2).get("preferences", "ann") == PERSON
