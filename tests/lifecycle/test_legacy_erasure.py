"""An erasure reaches every key under which a value of an item can be, in every phase of the migration of keys."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from retain.items.entry import Draft
from retain.items.tiers.sql_warm import SqlWarm
from tests.lifecycle.legacy import ANN, PHASES, backfilled, erased, memory
from tests.lifecycle.world import World, living

KINDS = ("preferences", "order_history", "cart")
PLAIN = Draft("warm", "older", 5)


@pytest.fixture
def world() -> Iterator[World]:
    with living() as world:
        yield world


async def _left(world: World, tenant: str = "acme") -> list[str]:
    """Return the keys with a value of the tenant's items, in all stores."""
    rows = world.sql_now("SELECT key FROM memory_items WHERE tenant_id = ? AND NOT deleted", tenant)
    listed = [*(await world.kv.list("")).keys, *(await world.objects_store.list("")).keys]
    return [row["key"] for row in rows] + [key for key in listed if tenant in key and not key.startswith("tenants/")]


@pytest.mark.parametrize("both", PHASES, ids=str)
@pytest.mark.parametrize("match", ["subject", "user", "mention", "tenant"])
async def test_no_value_of_an_erased_item_is_left_or_read_again(
    world: World, match: str, both: tuple[bool, bool]
) -> None:
    inner = SqlWarm(world.sql, "acme", world.clock)
    for kind in KINDS:
        await inner.write(f"acme:s-1:{kind}:ann", PLAIN)
        await inner.write(f"old/acme/{kind}/ann", PLAIN)
        await world.kv.put(f"old/acme/{kind}/ann", "older")
        await world.objects_store.put(f"acme:s-1:{kind}:ann", b"older")
        await memory(world, both).put(kind, "ann", f"of {ANN}", user_id=ANN)
        assert await memory(world, both).get(kind, "ann") == f"of {ANN}"
    if both != (True, False):
        await memory(world, both).put("preferences", "sealed", f'{{"email": "{ANN}"}}', user_id=ANN)
    outcome = await erased(world, match)
    assert outcome.receipt.state == "completed"
    assert await _left(world) == []
    if match != "tenant":
        await backfilled(world)
        for other in PHASES:
            for kind in KINDS:
                assert await memory(world, other).get(kind, "ann") is None


@pytest.mark.parametrize("both", PHASES[:3], ids=str)
async def test_a_value_under_a_legacy_key_alone_is_erased_with_its_owner(world: World, both: tuple[bool, bool]) -> None:
    inner = SqlWarm(world.sql, "acme", world.clock)
    await inner.write("acme:s-1:preferences:ann", Draft("warm", "new", 3, user_id=ANN))
    await inner.write("old/acme/preferences/ann", PLAIN)
    assert await memory(world, both).get("preferences", "ann") == "new"
    assert await world.kv.get("shop:acme:s-1:preferences:ann")
    await erased(world, "subject")
    assert await _left(world) == []
    assert await memory(world, both).get("preferences", "ann") is None


@pytest.mark.parametrize("tier", ["warm", "cold"])
async def test_what_another_user_stored_for_the_same_item_stays(world: World, tier: str) -> None:
    kind = {"warm": "preferences", "cold": "order_history"}[tier]
    await memory(world, (False, True)).put(kind, "x", "of Ann", user_id=ANN)
    await memory(world, (True, True)).put(kind, "x", "of Bob", user_id="bob")
    await erased(world, "subject")
    assert await memory(world, (True, True)).get(kind, "x") == "of Bob"
    rows = world.sql_now("SELECT user_id FROM memory_items")
    assert [row["user_id"] for row in rows] == ["bob"]
    assert len((await world.objects_store.list("")).keys) == (tier == "cold")


@pytest.mark.parametrize("match", ["subject", "mention", "tenant"])
async def test_an_object_that_the_backfill_adopted_is_erased_and_not_adopted_again(world: World, match: str) -> None:
    await world.objects_store.put("acme:s-1:order_history:o-1", f"of {ANN}".encode())
    await world.objects_store.put("other:s-1:order_history:o-1", f"of {ANN}".encode())
    await backfilled(world)
    assert await memory(world, (True, True)).get("order_history", "o-1") == f"of {ANN}"
    world.sql_now("UPDATE memory_items SET user_id = ? WHERE tenant_id = 'acme'", ANN)
    await erased(world, match)
    assert await _left(world) == []
    assert await world.objects_store.get("other:s-1:order_history:o-1") is not None
    await backfilled(world)
    assert await _left(world) == []


@pytest.mark.parametrize("match", ["mention", "tenant"])
async def test_what_no_row_knows_is_erased_by_mention_and_with_the_tenant(world: World, match: str) -> None:
    for tenant in ("acme", "other"):
        for number in range(90):
            name = f"{tenant}:s-1:cart:c-{number:03d}"
            await world.kv.put(name, f"of {ANN}")
            await world.objects_store.put(name, f"of {ANN}".encode())
        await world.kv.put(f"old/{tenant}/cart/{ANN}", "value")
        await world.objects_store.put(f"old/{tenant}/cart/joann", b"of Joann")
    outcome = await erased(world, match)
    assert await _left(world) == ([] if match == "tenant" else ["old/acme/cart/joann"])
    assert len(await _left(world, "other")) == 182
    assert outcome.receipt.counts == {"kv": 91, "r2": 90 if match == "mention" else 91}


async def test_a_legacy_value_that_is_sealed_is_searched_for_a_mention(world: World) -> None:
    await memory(world, (False, False)).put("preferences", "p", f'{{"phone": "1", "note": "{ANN}"}}')
    await erased(world, "mention")
    assert await _left(world) == []
