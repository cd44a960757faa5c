"""What the built-in policy decides, and that a run is bounded and continued by the next."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from retain.errors import Unavailable
from retain.items.demotion import AgedDemotion, Decision, DemotionCandidate
from retain.items.placement import MATRIX, read_placements
from retain.ledgers.errors import list_errors
from retain.limits.d1_calls import budget
from tests.items.world import DAY_MS, UNHURRIED, Tiered
from tests.support.counted_d1 import CountedD1
from tests.support.faults import Fault

NOW = 1_700_000_000_000
WARM = DemotionCandidate(
    "warm", False, False, 5000, 0, 0, NOW - 40 * DAY_MS, NOW - 30 * DAY_MS, UNHURRIED["preferences"]
)
RARE = replace(UNHURRIED["preferences"], access="rare")
COLD = replace(WARM, tier="cold", copied=True, placement=MATRIX["order_history"])


@pytest.mark.parametrize(
    ("item", "decision"),
    [
        pytest.param(WARM, "demote", id="unused for thirty days"),
        pytest.param(replace(WARM, updated_at_ms=NOW - 29 * DAY_MS), "keep", id="used within thirty days"),
        pytest.param(replace(WARM, read_at_ms=NOW - DAY_MS), "keep", id="read yesterday"),
        pytest.param(replace(WARM, read_hours=100), "keep", id="read often before"),
        pytest.param(replace(WARM, size_bytes=1023), "keep", id="too small"),
        pytest.param(replace(WARM, size_bytes=100_000, updated_at_ms=NOW - 7 * DAY_MS), "demote", id="large, a week"),
        pytest.param(replace(WARM, size_bytes=100_000, updated_at_ms=NOW - 6 * DAY_MS), "keep", id="large, six days"),
        pytest.param(replace(WARM, placement=RARE, updated_at_ms=NOW - 7 * DAY_MS), "demote", id="rarely read, a week"),
        pytest.param(replace(WARM, placement=RARE, updated_at_ms=NOW - 6 * DAY_MS), "keep", id="rarely read, six days"),
        pytest.param(
            replace(WARM, placement=MATRIX["preferences"], size_bytes=1_000_000), "keep", id="the cold tier is too slow"
        ),
        pytest.param(replace(WARM, sealed=True), "keep", id="PII"),
        pytest.param(replace(WARM, placement=None), "keep", id="a legacy key"),
        pytest.param(replace(WARM, placement=MATRIX["cart"]), "keep", id="a type that may not be in the cold tier"),
        pytest.param(replace(WARM, tier="hot"), "keep", id="hot"),
        pytest.param(replace(WARM, updated_at_ms=NOW - 90 * DAY_MS), "remove", id="its retention has passed"),
        pytest.param(replace(WARM, sealed=True, updated_at_ms=NOW - 90 * DAY_MS), "remove", id="PII, retention passed"),
        pytest.param(
            replace(WARM, updated_at_ms=NOW - 90 * DAY_MS, read_at_ms=NOW - DAY_MS), "keep", id="old and still used"
        ),
        pytest.param(COLD, "drop_copy", id="a copy nobody reads"),
        pytest.param(replace(COLD, read_at_ms=NOW - DAY_MS), "keep", id="a copy that is read"),
        pytest.param(replace(COLD, copied=False), "keep", id="cold"),
        pytest.param(
            replace(COLD, updated_at_ms=NOW - 2557 * DAY_MS, read_at_ms=NOW - DAY_MS),
            "remove",
            id="cold for seven years",
        ),
    ],
)
def test_the_policy_decides_by_use_size_and_retention(item: DemotionCandidate, decision: Decision) -> None:
    assert AgedDemotion()(item, NOW) == decision


async def test_an_unused_item_moves_to_the_cold_tier_and_is_found_there(world: Tiered) -> None:
    await world.memory().put("preferences", "one", "x" * 2000)
    [before] = world.rows()
    world.clock.advance(30 * DAY_MS)
    assert (await world.demotion().run())["moved"] == 1
    [row] = world.rows()
    assert (row["tier"], row["value"], row["version"]) == ("cold", None, before["version"])
    assert await world.cold() == {row["object_key"]: "x" * 2000}
    assert row["object_key"].startswith("preferences/shop:acme:s-1:preferences:one@")
    found = await world.memory(promote_on_read=False).find("preferences", "one")
    assert found is not None
    assert (found.tier, found.value) == ("cold", "x" * 2000)
    await world.memory().put("preferences", "one", "new")
    assert world.rows()[0]["tier"] == "warm"


async def test_what_the_cold_tier_would_answer_too_late_stays_warm_whatever_the_policy_says(world: Tiered) -> None:
    await world.memory().put("preferences", "one", "x" * 200_000)
    world.clock.advance(60 * DAY_MS)
    assert "moved" not in await world.demotion(matrix=MATRIX).run()
    world.clock.advance(DAY_MS)
    assert (await world.demotion(lambda item, now_ms: "demote", MATRIX).run())["refused"] == 1
    assert ([row["tier"] for row in world.rows()], await world.cold()) == (["warm"], {})
    world.clock.advance(DAY_MS)
    slower = read_placements('{"preferences": {"latency_ms": 2000}}')
    assert (await world.demotion(matrix=slower).run())["moved"] == 1


async def test_a_run_is_bounded_and_the_next_one_continues(world: Tiered) -> None:
    for number in range(7):
        await world.memory().put("preferences", f"p-{number}", "x" * 2000)
    world.clock.advance(30 * DAY_MS)
    done = [await world.demotion().run(moves=3) for _ in range(4)]
    assert [(one.get("moved", 0), one.get("left", 0)) for one in done] == [(3, 4), (3, 1), (1, 0), (0, 0)]
    assert {row["tier"] for row in world.rows()} == {"cold"}


async def test_items_that_fail_come_after_all_others_even_where_they_use_up_the_calls_of_d1(world: Tiered) -> None:
    for number in range(10):
        await world.memory().put("preferences", f"p-{number}", '{"note": "' + "x" * 2000 + '"}')
    email = '{"email": "a@shop.example", "note": "' + "x" * 2000 + '"}'
    await world.sql.run("UPDATE memory_items SET value = ? WHERE key < 'shop:acme:s-1:preferences:p-8'", email)
    world.clock.advance(30 * DAY_MS)
    demotion = world.demotion()
    demotion._sql = CountedD1(world.sql)
    for failed, left, moved in ((7, 3, 0), (1, 0, 2)):
        with budget(15):
            done = await demotion.run()
        assert (done["failed"], done.get("left", 0), done.get("moved", 0)) == (failed, left, moved)


async def test_items_are_examined_in_turn(world: Tiered) -> None:
    for number in range(5):
        await world.memory().put("preferences", f"p-{number}", "x")
    world.clock.advance(DAY_MS)
    looked: list[Any] = []

    def policy(item: DemotionCandidate, now_ms: int) -> Decision:
        looked.append(now_ms)
        return "keep"

    for _ in range(4):
        await world.demotion(policy).run(looks=2)
    assert len(looked) == 5


async def test_an_item_that_fails_does_not_stop_the_others(world: Tiered) -> None:
    for number in range(3):
        await world.memory().put("preferences", f"p-{number}", "x" * 2000)
    world.clock.advance(30 * DAY_MS)
    world.faults.plan(Fault(Unavailable("down"), 2, point="objects.put"))
    done = await world.demotion().run()
    assert (done["moved"], done["failed"]) == (2, 1)
    [parked] = (await list_errors(world.sql, stage="demotion")).entries
    world.clock.advance(DAY_MS)
    assert (await world.demotion().run())["moved"] == 1
    assert len(await world.cold()) == 3
    [settled] = (await list_errors(world.sql, stage="demotion")).entries
    assert (parked.state, settled.state, settled.error_id) == ("parked", "replayed", parked.error_id)


async def test_what_expired_and_what_was_deleted_is_removed_finally(world: Tiered) -> None:
    memory = world.memory()
    await memory.put("cart", "one", "value")
    await memory.put("order_history", "o-1", "value")
    await memory.put("preferences", "p-1", "value")
    await memory.delete("order_history", "o-1")
    await memory.delete("preferences", "p-1")
    world.clock.advance(2 * DAY_MS)
    done = await world.demotion().run()
    assert (done["expired"], done["removed"]) == (1, 2)
    assert (world.rows(), world.rows("memory_item_objects"), await world.cold()) == ([], [], {})


async def test_an_object_that_cannot_be_removed_comes_after_the_others(world: Tiered) -> None:
    for number, key in enumerate(("locked", "one", "two")):
        await world.objects.put(key, b"value")
        await world.sql.run("INSERT INTO memory_item_objects VALUES (?, 'acme', 'an item', ?)", key, number)
    world.clock.advance(DAY_MS)
    world.faults.plan(Fault(Unavailable("a lock of the bucket"), point="objects.delete"))
    with pytest.raises(Unavailable):
        await world.demotion().run()
    world.clock.advance(DAY_MS)
    world.faults.plan(Fault(Unavailable("a lock of the bucket"), 3, point="objects.delete"))
    with pytest.raises(Unavailable):
        await world.demotion().run()
    assert list(await world.cold()) == ["locked"]


async def test_an_item_whose_retention_passed_is_removed_with_its_object(world: Tiered) -> None:
    await world.memory().put("system_logs", "l-1", "started")
    world.clock.advance(90 * DAY_MS)
    assert (await world.demotion().run())["removed"] == 1
    assert (world.rows(), await world.cold()) == ([], {})
