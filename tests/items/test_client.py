"""Where a put leaves a value, which tier a read asks, and what a delete removes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from retain.errors import InvalidInput, LimitExceeded, RetainError, UpstreamFailed
from retain.items.builder import MemoryBuilder
from retain.items.placement import MATRIX, ItemPlacement
from retain.items.tiers.sql_warm import SqlWarm
from retain.namespace import Namespace
from retain.testing.in_memory_tiers import InMemoryCold, InMemoryHot, InMemoryWarm
from tests.items.world import DAY_MS, NAMESPACE, Tiered

CART = "shop:acme:s-1:cart:active"
ORDER = "shop:acme:s-1:order_history:o-1"
WISH = "shop:acme:s-1:preferences:theme"


async def test_a_value_is_placed_by_its_data_type(world: Tiered) -> None:
    memory = world.memory()
    cart = await memory.put("cart", "active", "2 lamps")
    wish = await memory.put("preferences", "theme", "dark")
    order = await memory.put("order_history", "o-1", "a lamp")
    assert [(it.key, it.tier, it.hot_copy) for it in (cart, wish, order)] == [
        (CART, "warm", True),
        (WISH, "warm", True),
        (ORDER, "cold", False),
    ]
    rows = {row["key"]: row for row in world.rows()}
    assert {key: (row["tier"], row["value"]) for key, row in rows.items()} == {
        CART: ("warm", "2 lamps"),
        WISH: ("warm", "dark"),
        ORDER: ("cold", None),
    }
    assert {row["namespace_key"] for row in rows.values()} == {"shop:acme:s-1"}
    assert rows[CART]["expires_at_ms"] == world.clock() + DAY_MS
    assert rows[WISH]["expires_at_ms"] is None
    [(object_key, content)] = (await world.cold()).items()
    assert object_key == rows[ORDER]["object_key"]
    assert object_key.startswith(f"orders-archive/{ORDER}@")
    assert content == "a lamp"
    assert (await world.hot(CART), await world.hot(WISH), await world.hot(ORDER)) == ("2 lamps", "dark", None)


@pytest.mark.parametrize("kind", ["cart", "preferences", "order_history"])
@pytest.mark.parametrize("rules", [{}, {"write_through": False}, {"read_fallback": False}, {"promote_on_read": False}])
async def test_what_is_put_is_read_replaced_and_deleted(world: Tiered, kind: str, rules: dict[str, Any]) -> None:
    memory = world.memory(**rules)
    assert await memory.get(kind, "one") is None
    first = await memory.put(kind, "one", "first")
    assert await memory.get(kind, "one") == "first"
    second = await memory.put(kind, "one", "second")
    assert second.version > first.version
    for reader in (memory, world.memory(**rules)):
        assert [await reader.get(kind, "one") for _ in range(3)] == ["second"] * 3
    assert await memory.delete(kind, "one")
    assert not await memory.delete(kind, "one")
    for reader in (memory, world.memory(**rules)):
        assert await reader.get(kind, "one") is None
    assert [text for text in (await world.cold()).values() if text == "second"] == []
    assert await memory.put(kind, "one", "third")
    assert await memory.get(kind, "one") == "third"


async def test_without_write_through_only_the_hot_tier_has_what_belongs_there(world: Tiered) -> None:
    memory = world.memory(write_through=False)
    assert (await memory.put("cart", "active", "2 lamps")).tier == "hot"
    [row] = world.rows()
    assert (row["tier"], row["value"]) == ("hot", None)
    assert await world.hot(CART) == "2 lamps"
    await memory.put("preferences", "theme", "dark")
    assert await world.hot(WISH) is None


async def test_a_read_is_promoted_and_the_next_one_is_hot(world: Tiered) -> None:
    memory = world.memory()
    await memory.put("order_history", "o-1", "a lamp")
    tiers = [found.tier for _ in range(2) if (found := await memory.find("order_history", "o-1"))]
    assert tiers == ["cold", "hot"]
    [row] = world.rows()
    assert (row["tier"], row["value"]) == ("cold", "a lamp")
    await world.kv.delete(ORDER)
    found = await memory.find("order_history", "o-1")
    assert found is not None
    assert found.tier == "warm"


async def test_without_promotion_a_read_moves_nothing(world: Tiered) -> None:
    memory = world.memory(promote_on_read=False)
    await memory.put("order_history", "o-1", "a lamp")
    assert [found.tier for _ in range(2) if (found := await memory.find("order_history", "o-1"))] == ["cold", "cold"]
    assert await world.hot(ORDER) is None


async def test_a_large_value_is_not_promoted(world: Tiered) -> None:
    memory = world.memory()
    await memory.put("product_images", "big", "x" * 1_000_001)
    assert await memory.get("product_images", "big") == "x" * 1_000_001
    assert world.rows()[0]["value"] is None
    assert (await world.kv.list("")).keys == []


async def test_what_expired_is_not_shown_by_any_tier(world: Tiered) -> None:
    every: list[dict[str, Any]] = [{}, {"write_through": False}]
    for rules in every:
        memory = world.memory(**rules)
        await memory.put("cart", "active", "2 lamps", ttl_s=90)
        world.clock.advance(89_999)
        assert await world.memory(**rules).get("cart", "active") == "2 lamps"
        world.clock.advance(1)
        for reader in (memory, world.memory(**rules)):
            assert await reader.get("cart", "active") is None


async def test_a_hot_copy_lives_as_long_as_the_rule_says(world: Tiered) -> None:
    await world.memory(hot_ttl=120).put("preferences", "theme", "dark")
    world.clock.advance(119_999)
    assert await world.hot(WISH) == "dark"
    world.clock.advance(1)
    assert await world.hot(WISH) is None
    assert await world.memory().get("preferences", "theme") == "dark"


async def test_a_hot_copy_lives_for_a_quarter_of_an_hour_by_default(world: Tiered) -> None:
    await world.memory().put("preferences", "theme", "dark")
    world.clock.advance(15 * 60_000 - 1)
    assert await world.hot(WISH) == "dark"
    world.clock.advance(1)
    assert await world.hot(WISH) is None


async def test_nothing_hot_is_left_of_an_item_with_less_than_a_minute_to_live(world: Tiered) -> None:
    await world.memory().put("cart", "active", "2 lamps", ttl_s=60)
    world.clock.advance(1000)
    await world.kv.delete(CART)
    assert await world.memory().get("cart", "active") == "2 lamps"
    assert await world.hot(CART) is None


async def test_namespaces_and_tenants_do_not_see_each_other(world: Tiered) -> None:
    await world.memory().put("cart", "active", "mine")
    for other in (
        Namespace("shop", "acme", "s-2"),
        Namespace("shop", "other", "s-1"),
        Namespace("desk", "acme", "s-1"),
    ):
        assert await world.builder(other).build().get("cart", "active") is None
        await world.builder(other).build().put("cart", "active", "theirs")
    assert await world.memory().get("cart", "active") == "mine"


async def test_a_catalogue_refuses_another_tenants_key(world: Tiered) -> None:
    with pytest.raises(InvalidInput, match="another tenant"):
        await SqlWarm(world.sql, "other", world.clock).read(CART)


@pytest.mark.parametrize(
    ("code", "kind", "entity", "value", "more"),
    [
        pytest.param("unknown_data_type", "carts", "a", "v", {}, id="a data type without placement"),
        pytest.param("invalid_namespace", "cart", "a:b", "v", {}, id="a delimiter in the id"),
        pytest.param("invalid_namespace", "cart", "", "v", {}, id="an empty id"),
        pytest.param("invalid_namespace", "cart", "*", "v", {}, id="a wildcard"),
        pytest.param("invalid_ttl", "cart", "a", "v", {"ttl_s": 59}, id="a ttl below a minute"),
        pytest.param("invalid_user", "cart", "a", "v", {"user_id": ""}, id="an empty user"),
        pytest.param("invalid_user", "cart", "a", "v", {"user_id": "u" * 257}, id="a long user"),
        pytest.param("unsupported_value", "cart", "a", "\ud800", {}, id="text that is not Unicode"),
        pytest.param("value_too_large", "preferences", "a", "x" * 2_000_001, {}, id="more than a row holds"),
    ],
)
async def test_a_bad_put_is_refused_and_nothing_is_written(
    world: Tiered, code: str, kind: str, entity: str, value: str, more: dict[str, str]
) -> None:
    with pytest.raises(InvalidInput) as refused:
        await world.memory().put(kind, entity, value, **more)  # type: ignore[arg-type]
    assert refused.value.code == code
    assert (world.rows(), (await world.kv.list("")).keys, await world.cold()) == ([], [], {})


async def test_too_large_a_value_for_the_hot_tier_alone_is_refused(world: Tiered) -> None:
    with pytest.raises(LimitExceeded):
        await world.memory(write_through=False).put("cart", "active", "x" * 1_000_001)
    assert world.rows() == []


async def test_a_lost_object_is_an_error_and_not_a_miss_until_its_retention_has_passed(world: Tiered) -> None:
    memory = world.memory(promote_on_read=False)
    await memory.put("system_logs", "l-1", "started")
    [key] = await world.cold()
    await world.objects.delete(key)
    with pytest.raises(UpstreamFailed) as lost:
        await memory.get("system_logs", "l-1")
    assert lost.value.code == "cold_value_missing"
    world.clock.advance(90 * DAY_MS)
    assert await memory.get("system_logs", "l-1") is None


@pytest.mark.parametrize("tier", ["hot", "warm", "cold"])
async def test_a_memory_of_one_tier_keeps_what_belongs_there(world: Tiered, tier: str) -> None:
    stores = {"hot": InMemoryHot(world.clock), "warm": InMemoryWarm(), "cold": InMemoryCold()}
    kinds = {"hot": "cart", "warm": "preferences", "cold": "order_history"}
    memory = getattr(MemoryBuilder(NAMESPACE, world.clock), f"with_{tier}")(stores[tier]).build()
    await memory.put(kinds[tier], "one", "first")
    await memory.put(kinds[tier], "one", "second")
    assert await memory.get(kinds[tier], "one") == "second"
    assert await memory.delete(kinds[tier], "one")
    assert await memory.get(kinds[tier], "one") is None
    for other in set(kinds) - {tier}:
        with pytest.raises(InvalidInput) as refused:
            await memory.put(kinds[other], "one", "value")
        assert refused.value.code == "tier_missing"
    with pytest.raises(InvalidInput) as refused:
        await memory.put(kinds[tier], "one", "value", user_id="ann")
    assert refused.value.code == "user_not_findable"


async def test_tiers_of_three_methods_each_make_a_memory(world: Tiered) -> None:
    warm, cold = InMemoryWarm(), InMemoryCold()
    builder = MemoryBuilder(NAMESPACE, world.clock).with_hot(InMemoryHot(world.clock)).with_warm(warm).with_cold(cold)
    memory = builder.with_rules(read_fallback=True, promote_on_read=True, write_through=True).build()
    for kind in ("cart", "preferences", "order_history"):
        await memory.put(kind, "one", "first")
        await memory.put(kind, "one", "second\nline")
        assert await builder.build().get(kind, "one") == "second\nline"
        assert await memory.delete(kind, "one")
        assert await builder.build().get(kind, "one") is None
    warm.values[WISH] = "written by somebody else"
    assert await memory.get("preferences", "theme") == "written by somebody else"


async def test_a_second_put_leaves_the_first_object_to_the_daily_work(world: Tiered) -> None:
    memory = world.memory()
    await memory.put("order_history", "o-1", "first")
    await memory.put("order_history", "o-1", "second")
    assert sorted((await world.cold()).values()) == ["first", "second"]
    assert (await world.demotion().run())["objects"] == 0  # it could belong to a write that is under way
    world.clock.advance(3_600_000)
    assert (await world.demotion().run())["objects"] == 1
    assert list((await world.cold()).values()) == ["second"]
    assert await world.memory().get("order_history", "o-1") == "second"


async def test_reads_are_recorded_once_an_hour(world: Tiered) -> None:
    memory = world.memory(promote_on_read=False, write_through=False)
    await memory.put("preferences", "theme", "dark")
    for _ in range(3):
        await memory.get("preferences", "theme")
        await memory.get("preferences", "theme")
        world.clock.advance(3_600_000)
    assert world.rows()[0]["read_hours"] == 3


async def test_a_session_can_be_passed_to_another_client(world: Tiered) -> None:
    first = world.memory()
    stored = await first.put("cart", "active", "2 lamps")
    assert first.session.known[CART].version == stored.version
    text = json.dumps({key: seen.version for key, seen in first.session.known.items()})
    assert json.loads(text) == {CART: stored.version}


async def test_a_closed_tenant_stores_no_items(world: Tiered) -> None:
    await world.sql.run("INSERT INTO erased_tenants VALUES ('acme', '', 1)")
    for kind in ("cart", "preferences", "order_history"):
        with pytest.raises(RetainError) as refused:
            await world.memory().put(kind, "one", "value")
        assert refused.value.code == "tenant_erased"
    assert await world.hot(CART) is None


async def test_a_configured_data_type_is_placed_as_configured(world: Tiered) -> None:
    matrix = {**MATRIX, "drafts": ItemPlacement("warm", ttl_s=600)}
    memory = world.memory(matrix=matrix)
    stored = await memory.put("drafts", "one", "Dear Ann")
    assert (stored.tier, stored.expires_at_ms) == ("warm", world.clock() + 600_000)
