"""The daily work seals PII that lies unsealed in the warm tier, or reports it where there is no key."""

from __future__ import annotations

import json
from typing import Any

import pytest

from retain.host.crypto import HostCrypto
from retain.items import unsealed
from retain.items.demotion import AgedDemotion, Demotion
from retain.items.entry import Draft
from retain.items.placement import MATRIX
from retain.items.rekeying.flags import Namespacing, namespacing
from retain.items.tiers.sql_warm import SqlWarm
from retain.items.tiers.stores import ObjectsCold
from retain.sealing.pii import Sealer
from retain.settings import NamespaceSettings
from tests.items.world import DAY_MS, KEY, NO_PATTERNS, Tiered

PERSON = json.dumps({"contact": {"e-mail": "ann@shop.example"}})
PLAIN = json.dumps({"color": "green"})


async def _write(world: Tiered, name: str, value: str, *, key: str = "shop:acme:s-1:preferences:{}") -> None:
    """Write a value as version 0.1.0 copied it: unsealed."""
    warm = SqlWarm(world.sql, "acme", world.clock)
    await warm.write(key.format(name), Draft("warm", value, len(value), user_id="ann"))


async def _daily(world: Tiered, sealer: Sealer | None, namespaces: Namespacing = NO_PATTERNS) -> dict[str, Any]:
    world.clock.advance(DAY_MS)
    cold = ObjectsCold(world.objects)
    done = await Demotion(world.sql, cold, MATRIX, world.clock, AgedDemotion(), namespaces, sealer).run()
    return {name: count for name, count in done.items() if count}


def _readable(world: Tiered) -> list[str]:
    return [row["key"] for row in world.rows() if "ann@shop" in (row["value"] or "")]


async def test_values_with_pii_are_sealed_in_place_and_read_unchanged(world: Tiered) -> None:
    await _write(world, "ann", PERSON)
    await _write(world, "lamp", PLAIN)
    before = {row["key"]: row for row in world.rows()}
    assert await _daily(world, world.sealer()) == {"sealed": 1}
    assert _readable(world) == []
    after = {row["key"]: row for row in world.rows()}
    changed = {name for key, row in after.items() for name, value in row.items() if value != before[key][name]}
    assert changed == {"value", "key_id", "looked_at_ms"}, "version, owner and times stay"
    assert await world.memory().get("preferences", "ann") == PERSON
    assert await world.memory().get("preferences", "lamp") == PLAIN
    assert await _daily(world, world.sealer()) == {}


async def test_a_value_under_a_legacy_key_is_sealed_for_its_canonical_one(world: Tiered) -> None:
    patterns = json.dumps([{"template": "{tenantId}:{sessionId}:{memoryKind}:{entityId}", "service": "shop"}])
    await _write(world, "ann", PERSON, key="acme:s-1:preferences:{}")
    namespaces = namespacing(NamespaceSettings(False, True, patterns))
    assert await _daily(world, world.sealer(), namespaces) == {"sealed": 1}
    [row] = world.rows()
    assert await world.sealer().open("shop:acme:s-1:preferences:ann", row["value"]) == PERSON


@pytest.mark.parametrize("key", [None, ""], ids=["no sealer", "no key"])
async def test_without_a_key_they_stay_readable_and_are_reported_each_time(
    world: Tiered, key: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    await _write(world, "ann", PERSON)
    await _write(world, "lamp", PLAIN)
    for _ in range(2):
        assert await _daily(world, None if key is None else world.sealer(key)) == {"unsealed": 1}
    assert await world.memory().get("preferences", "ann") == PERSON
    assert [record.__dict__["values"] for record in caplog.records] == [{"memory_key_missing": 1}] * 2
    assert "ann@shop" not in caplog.text


async def test_a_value_that_cannot_be_searched_is_reported_and_the_rest_is_sealed(world: Tiered) -> None:
    await _write(world, "deep", "[" * 200_000)
    await _write(world, "ann", PERSON)
    assert await _daily(world, world.sealer()) == {"sealed": 1, "unsealed": 1}


async def test_a_run_reads_a_bounded_part_and_the_next_ones_continue(
    world: Tiered, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unsealed, "SEARCHED_CHARACTERS", 100)
    monkeypatch.setattr(unsealed, "PAGE_CHARACTERS", 60)
    for number in range(10):
        await _write(world, f"n-{number}", PERSON)
    runs = []
    while _readable(world):
        runs.append((await _daily(world, world.sealer()))["sealed"])
    assert runs == [3, 3, 3, 1]


async def test_a_value_that_is_written_meanwhile_is_not_overwritten(world: Tiered) -> None:
    await _write(world, "ann", PERSON)
    sealer = world.sealer()
    seal = sealer.seal

    async def writes_first(key: str, value: str) -> str:
        await _write(world, "ann", PLAIN)
        return await seal(key, value)

    sealer.seal = writes_first  # type: ignore[method-assign]
    assert await _daily(world, sealer) == {}
    assert await world.memory().get("preferences", "ann") == PLAIN


async def test_fields_that_are_declared_later_are_sealed_as_well(world: Tiered) -> None:
    await world.memory().put("preferences", "ann", json.dumps({"iban": "ann@shop.example"}))
    later = Sealer(HostCrypto(), KEY, fields=("iban",))
    assert await _daily(world, later) == {"sealed": 1}
    assert _readable(world) == []


async def test_an_item_that_was_sealed_is_not_demoted_in_the_same_run(world: Tiered) -> None:
    await _write(world, "ann", json.dumps({"email": "ann@shop.example", "text": "x" * 2000}))
    world.clock.advance(40 * DAY_MS)
    assert await _daily(world, world.sealer()) == {"sealed": 1}
    assert await world.cold() == {}
