"""A failure or crash between any two calls: acknowledged writes stay, and all others are whole or absent."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

from retain.errors import RetainError, Unavailable
from retain.items.client import MemoryClient
from tests.items.world import DAY_MS, Tiered
from tests.support.faults import Crash, Fault

KINDS = ["cart", "preferences", "order_history"]
MAX_CALLS = 12


async def _attempt(world: Tiered, memory: MemoryClient, kind: str, what: str, fault: Fault) -> bool | None:
    """Run it with the fault; return whether it was acknowledged, None when the fault was not reached."""
    world.faults.plan(fault)
    try:
        await (memory.put(kind, "one", "new") if what == "put" else memory.delete(kind, "one"))
    except (RetainError, Crash):
        assert not world.faults.pending
        return False
    happened = not world.faults.pending
    world.faults.cancel()
    return True if happened else None


@pytest.mark.parametrize("write_through", [True, False])
@pytest.mark.parametrize("error", [Unavailable("down"), Crash("planned")], ids=["failure", "crash"])
@pytest.mark.parametrize("what", ["put", "delete"])
@pytest.mark.parametrize("kind", KINDS)
async def test_a_write_that_fails_between_two_calls_is_whole_or_was_not_acknowledged(
    kind: str, what: str, error: BaseException, write_through: bool
) -> None:
    outcomes = []
    for nth in range(1, MAX_CALLS):
        world = Tiered()
        await world.memory(write_through=write_through).put(kind, "one", "old")
        world.clock.advance(1000)
        acknowledged = await _attempt(world, world.memory(write_through=write_through), kind, what, Fault(error, nth))
        if acknowledged is None:
            world.close()
            break
        outcomes.append(acknowledged)
        checked = "checked" if write_through else "session"
        after: Any = await world.memory(write_through=write_through, hot_reads=checked).get(kind, "one")
        new = "new" if what == "put" else None
        assert after == new if acknowledged else after in ("old", new)
        again = world.memory(write_through=write_through, hot_reads=checked)  # the caller retries, and it succeeds
        await (again.put(kind, "one", "new") if what == "put" else again.delete(kind, "one"))
        assert await world.memory(write_through=write_through, hot_reads=checked).get(kind, "one") == new
        world.close()
    assert len(outcomes) >= 2
    assert False in outcomes


@pytest.mark.parametrize("kind", KINDS)
async def test_a_hot_tier_that_is_down_fails_no_operation_on_what_other_tiers_decide(world: Tiered, kind: str) -> None:
    world.faults.plan(Fault(Unavailable("down"), point="kv.put", outage=True))
    world.faults.plan(Fault(Unavailable("down"), point="kv.delete", outage=True))
    memory = world.memory()
    await memory.put(kind, "one", "value")
    assert await memory.get(kind, "one") == "value"
    assert await memory.delete(kind, "one")
    assert await memory.get(kind, "one") is None


@pytest.mark.parametrize(
    ("kind", "point"),
    [
        ("preferences", "kv.put"),
        ("order_history", "kv.put"),
        ("order_history", "sql.run"),
        ("preferences", "kv.delete"),
    ],
)
async def test_a_promotion_that_fails_does_not_fail_the_read(world: Tiered, kind: str, point: str) -> None:
    await world.memory(write_through=False).put(kind, "one", "value")
    world.clock.advance(2 * 3_600_000)
    nth = 2 if point == "sql.run" else 1  # the first statement is the read itself
    world.faults.plan(Fault(Unavailable("down"), nth, point=point, outage=True))
    assert await world.memory().get(kind, "one") == "value"


async def test_a_warm_tier_that_is_down_is_an_error_and_not_a_miss(world: Tiered) -> None:
    await world.memory().put("preferences", "one", "value")
    await world.kv.delete("shop:acme:s-1:preferences:one")
    world.faults.plan(Fault(Unavailable("down"), point="sql.run", outage=True))
    with pytest.raises(Unavailable):
        await world.memory().get("preferences", "one")


async def test_a_hot_tier_with_the_only_value_that_is_down_is_an_error_and_not_a_miss(world: Tiered) -> None:
    await world.memory(write_through=False).put("cart", "one", "value")
    world.faults.plan(Fault(Unavailable("down"), point="kv.get"))
    with pytest.raises(Unavailable):
        await world.memory(write_through=False).get("cart", "one")


async def test_a_hot_copy_that_could_not_be_replaced_is_not_shown_to_a_session_that_saw_a_newer_one(
    world: Tiered,
) -> None:
    first, second = world.memory(), world.memory(hot_reads="checked")
    await first.put("preferences", "one", "old")
    world.faults.plan(Fault(Unavailable("down"), point="kv.put", outage=True))
    await first.put("preferences", "one", "new")
    world.faults.down.clear()
    assert await world.hot("shop:acme:s-1:preferences:one") in (None, "old")
    assert await first.get("preferences", "one") == "new"
    assert await second.get("preferences", "one") == "new"


@pytest.mark.parametrize("error", [Unavailable("down"), Crash("planned")], ids=["failure", "crash"])
async def test_demotion_that_stops_anywhere_loses_nothing_and_leaves_no_orphaned_object(error: BaseException) -> None:
    nth = 0
    while True:
        nth += 1
        world = Tiered()
        await world.memory().put("preferences", "one", "value")
        world.clock.advance(DAY_MS)
        world.faults.plan(Fault(error, nth, owner="cron"))
        with contextlib.suppress(RetainError, Crash):
            await world.demotion(lambda item, _: "keep" if item.tier == "cold" else "demote").run()
        happened = not world.faults.pending
        world.faults.cancel()
        assert await world.memory(hot_reads="checked").get("preferences", "one") == "value"
        for _ in range(2):
            world.clock.advance(DAY_MS)
            await world.demotion(lambda item, _: "keep" if item.tier == "cold" else "demote").run()
        [row] = world.rows()
        assert list(await world.cold()) == [row["object_key"]]
        assert await world.memory(promote_on_read=False, hot_reads="checked").get("preferences", "one") == "value"
        world.close()
        if not happened:
            break
    assert nth > 5
