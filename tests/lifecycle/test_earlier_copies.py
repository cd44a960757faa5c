"""A copy in KV of an item's earlier user: whatever ends the put for another user, their erasure removes it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

import pytest

from retain.errors import RetainError, Unavailable
from retain.items.builder import MemoryBuilder
from retain.items.client import MemoryClient
from retain.items.earlier_copies import GRACE_MS
from retain.items.entry import Draft
from retain.items.rekeying.flags import namespacing
from retain.items.tiers.sql_warm import SqlWarm
from retain.items.tiers.stores import KvHot, ObjectsCold
from retain.lifecycle.erasure.earlier_copies import copies_of
from retain.lifecycle.erasure.eraser import Erasure, Outcome
from retain.lifecycle.stores import Stores
from retain.namespace import Namespace
from retain.settings import NamespaceSettings
from tests.lifecycle.world import World, living
from tests.support.faults import Crash, Fault

ANN, BOB = "ann@shop.example", "bob"
CART = "shop:acme:s-1:cart:c-1"
PATTERN = {"template": "{tenantId}:{sessionId}:{memoryKind}:{entityId}", "service": "shop"}
LEGACY = namespacing(NamespaceSettings(False, True, json.dumps([PATTERN])))
KINDS = ("cart", "preferences", "order_history")


@pytest.fixture
def world() -> Iterator[World]:
    with living() as world:
        yield world


def _memory(world: World, *, write_through: bool = True) -> MemoryClient:
    """Return a client each call of which may fail."""
    wrap, life = world.faults.wrap, world.faults.life("client")
    builder = MemoryBuilder(Namespace("shop", "acme", "s-1"), world.clock).with_hot(KvHot(wrap("kv", world.kv, life)))
    builder = builder.with_warm(SqlWarm(wrap("sql", world.sql, life), "acme", world.clock))
    builder = builder.with_cold(ObjectsCold(wrap("objects", world.objects_store, life)))
    return builder.with_rules(write_through=write_through).build()


async def _passed_on(world: World, kind: str, fault: Fault | None, *, write_through: bool = True) -> bool:
    """Give Ann's item, of which there is a copy in KV, to Bob, with a fault; return whether the fault happened."""
    memory = _memory(world, write_through=write_through)
    await memory.put(kind, "c-1", f"of {ANN}", user_id=ANN)
    await memory.get(kind, "c-1")
    world.clock.advance(1000)
    if fault is not None:
        world.faults.plan(fault)
    with suppress(RetainError, Crash):
        await memory.put(kind, "c-1", "Bob's", user_id=BOB)
    happened = not world.faults.pending
    world.faults.cancel()
    world.faults.down.clear()
    return happened


async def _erase(world: World, match: str, stores: Stores | None = None) -> Outcome:
    erasure = Erasure(stores or world.stores())
    if match == "user":
        return await erasure.erase_user("acme", ANN)
    if match == "tenant":
        return await erasure.erase_tenant("acme")
    return await erasure.erase_subject("acme", ANN, match)  # type: ignore[arg-type]


async def _erased(world: World, match: str, stores: Stores | None = None) -> Outcome:
    return await world.completed(lambda: _erase(world, match, stores))


@pytest.mark.parametrize("match", ["user", "subject", "mention", "tenant"])
@pytest.mark.parametrize("error", [Unavailable("down"), Crash("planned")], ids=["failure", "crash"])
async def test_the_copy_that_a_put_for_another_user_left_is_erased(
    world: World, error: BaseException, match: str
) -> None:
    await _passed_on(world, "cart", Fault(error, point="kv.put", outage=isinstance(error, Unavailable)))
    assert ANN in str(await world.kv.get(CART))
    outcome = await _erased(world, match)
    assert await world.kv.get(CART) is None
    assert outcome.receipt.counts["kv"] == 1
    assert world.sql_now("SELECT * FROM memory_item_earlier_users") == []
    assert await _memory(world).get("cart", "c-1") == (None if match == "tenant" else "Bob's")


@pytest.mark.parametrize("write_through", [True, False])
@pytest.mark.parametrize("kind", KINDS)
async def test_wherever_the_put_ends_nothing_of_the_earlier_user_is_left_and_all_of_the_other(
    kind: str, write_through: bool
) -> None:
    for nth in range(1, 30):
        with living() as world:
            happened = await _passed_on(
                world, kind, Fault(Crash("planned"), nth, owner="client"), write_through=write_through
            )
            [row] = world.sql_now("SELECT user_id FROM memory_items")
            held = await world.kv.get(f"shop:acme:s-1:{kind}:c-1")
            await _erased(world, "user")
            assert [key for key in (await world.kv.list("")).keys if ANN in str(await world.kv.get(key))] == []
            if row["user_id"] == BOB and not (kind == "cart" and not write_through and ANN in str(held)):
                found = await _memory(world, write_through=write_through).get(kind, "c-1")
                assert found == "Bob's"
            if not happened:
                break
    assert 2 < nth < 29


async def test_an_erasure_does_not_end_while_a_read_could_still_leave_the_copy(world: World) -> None:
    await _passed_on(world, "cart", None)
    outcome = await _erase(world, "user")
    assert outcome.retry_after_ms
    await world.kv.put(CART, f"retain1 1 0\nof {ANN}")  # a read that was under way, which ended before it looked again
    await _erased(world, "user")
    assert await world.kv.get(CART) is None


async def test_an_erasure_that_stops_anywhere_resumes_and_removes_the_copy() -> None:
    nth = 0
    while True:
        nth += 1
        with living() as world:
            await _passed_on(world, "cart", Fault(Crash("planned"), point="kv.put"))
            world.faults.plan(Fault(Crash("planned"), nth, owner="lifecycle"))
            with suppress(Crash):
                await _erased(world, "subject")
            happened = not world.faults.pending
            world.faults.cancel()
            await _erased(world, "subject")
            assert (await world.kv.list("")).keys == []
            assert world.sql_now("SELECT * FROM memory_item_earlier_users") == []
            receipts = world.sql_now("SELECT json_extract(counts, '$.kv') AS kv FROM erasure_receipts")
            assert sum(row["kv"] or 0 for row in receipts) == 1
        if not happened:
            break
    assert nth > 10


async def test_a_user_s_erasure_does_not_end_while_a_note_of_theirs_is_left(world: World) -> None:
    """The item is given to another user after the step that looks for notes."""
    await _memory(world).put("cart", "c-1", f"of {ANN}", user_id=ANN)
    outcome = await _erase(world, "user")
    assert outcome.retry_after_ms
    world.sql_now("UPDATE erasure_receipts SET step = 'finish', cursor = NULL")
    world.faults.plan(Fault(Crash("planned"), point="kv.put"))
    with suppress(Crash):
        await _memory(world).put("cart", "c-1", "Bob's", user_id=BOB)
    await world.kv.put(CART, f"retain1 1 0\nof {ANN}")
    outcome = await _erase(world, "user")
    assert outcome.receipt.state == "running"
    await _erased(world, "user")
    assert await world.kv.get(CART) is None


async def test_an_item_under_a_legacy_key_has_its_copy_under_the_canonical_one(world: World) -> None:
    for user in (ANN, BOB):
        await SqlWarm(world.sql, "acme", world.clock).write("acme:s-1:cart:c-1", Draft("warm", user, 3, user_id=user))
    await world.kv.put(CART, f"retain1 1 0\nof {ANN}")
    world.clock.advance(GRACE_MS)
    assert await copies_of(replace(world.stores(), namespacing=lambda: LEGACY)).remove_due() == 1
    assert await world.kv.get(CART) is None


@pytest.mark.parametrize("match", ["user", "subject"])
async def test_a_copy_of_a_legacy_item_that_another_user_s_item_hides_is_erased(world: World, match: str) -> None:
    warm = SqlWarm(world.sql, "acme", world.clock)
    await warm.write("acme:s-1:cart:c-1", Draft("warm", f"of {ANN}", 3, user_id=ANN))
    await world.kv.put(CART, f"retain1 1 0\nof {ANN}")
    await warm.write(CART, Draft("warm", "Bob's", 5, user_id=BOB))
    await _erased(world, match, replace(world.stores(), namespacing=lambda: LEGACY))
    assert await world.kv.get(CART) is None
    assert await _memory(world).get("cart", "c-1") == "Bob's"


async def test_an_item_that_hides_a_legacy_one_and_is_in_the_hot_tier_alone_stays(world: World) -> None:
    warm = SqlWarm(world.sql, "acme", world.clock)
    await warm.write("acme:s-1:cart:c-1", Draft("warm", f"of {ANN}", 3, user_id=ANN))
    await _memory(world, write_through=False).put("cart", "c-1", "Bob's", user_id=BOB)
    await _erased(world, "user", replace(world.stores(), namespacing=lambda: LEGACY))
    assert await _memory(world, write_through=False).get("cart", "c-1") == "Bob's"


async def test_the_copy_is_removed_without_an_erasure_once_no_read_can_leave_it_again(world: World) -> None:
    await _passed_on(world, "cart", Fault(Crash("planned"), point="kv.put"))
    copies = copies_of(world.stores())
    world.clock.advance(GRACE_MS - 1)
    assert (await copies.remove_due(), await world.kv.get(CART) is None) == (0, False)
    world.clock.advance(1)
    world.faults.plan(Fault(Unavailable("down"), point="kv.delete"))
    with pytest.raises(Unavailable):
        await copies.remove_due()
    assert (await copies.remove_due(), await world.kv.get(CART)) == (1, None)
    assert await copies.remove_due() == 0
    assert await _memory(world).get("cart", "c-1") == "Bob's"


async def test_where_the_hot_tier_alone_has_the_value_no_put_loses_what_it_wrote(world: World) -> None:
    await _passed_on(world, "cart", None, write_through=False)
    world.clock.advance(GRACE_MS)
    assert await copies_of(world.stores()).remove_due() == 1
    assert await _memory(world, write_through=False).get("cart", "c-1") == "Bob's"


async def test_where_the_hot_tier_alone_has_the_value_an_older_one_is_removed_when_no_put_is_under_way(
    world: World,
) -> None:
    await _passed_on(world, "cart", Fault(Crash("planned"), point="kv.put"), write_through=False)
    world.clock.advance(GRACE_MS)
    world.faults.plan(Fault(Crash("planned"), point="kv.put"))
    with suppress(Crash):
        await _memory(world, write_through=False).put("cart", "c-1", "Bob's", user_id=BOB)
    assert await copies_of(world.stores()).remove_due() == 0
    assert ANN in str(await world.kv.get(CART))
    world.clock.advance(GRACE_MS)
    assert await copies_of(world.stores()).remove_due() == 1
    assert await world.kv.get(CART) is None


async def test_a_put_for_the_same_user_notes_nothing(world: World) -> None:
    memory = _memory(world)
    for user in (None, ANN, ANN):
        await memory.put("cart", "c-1", "x", user_id=user)
    assert world.sql_now("SELECT * FROM memory_item_earlier_users") == []
    for user in (BOB, ANN, BOB, None):
        world.clock.advance(1000)
        await memory.put("cart", "c-1", "x", user_id=user)
    notes = world.sql_now("SELECT user_id, noted_at_ms FROM memory_item_earlier_users ORDER BY user_id")
    assert notes == [
        {"user_id": ANN, "noted_at_ms": world.clock() - 1000},
        {"user_id": BOB, "noted_at_ms": world.clock()},
    ]
