"""What a builder refuses, and which defaults it chooses."""

from __future__ import annotations

from typing import Any

import pytest

from retain.errors import InvalidInput, Misconfigured
from retain.host.clock import ManualClock
from retain.items.builder import MemoryBuilder
from retain.items.entry import Tier
from retain.items.placement import MATRIX, ItemPlacement
from retain.items.rules import MemoryRules, ResolvedRules
from retain.items.single_tier import ColdClient, HotClient
from retain.items.tiered_client import TieredClient
from retain.items.tiers.plain_catalogue import PlainCatalogue
from retain.items.tiers.protocols import HOT_TTL_S
from retain.namespace import Namespace
from retain.testing.in_memory_tiers import InMemoryCold, InMemoryHot, InMemoryWarm
from tests.items.world import NAMESPACE


def _builder(tiers: str, namespace: Namespace = NAMESPACE) -> MemoryBuilder:
    clock = ManualClock()
    builder = MemoryBuilder(namespace, clock)
    if "h" in tiers:
        builder = builder.with_hot(InMemoryHot(clock))
    if "w" in tiers:
        builder = builder.with_warm(InMemoryWarm())
    return builder.with_cold(InMemoryCold()) if "c" in tiers else builder


@pytest.mark.parametrize("tiers", ["h", "w", "c", "hw", "wc", "hwc"])
def test_a_single_tier_and_any_set_with_a_warm_one_make_a_memory(tiers: str) -> None:
    assert _builder(tiers).build().namespace == NAMESPACE


@pytest.mark.parametrize(
    ("tiers", "rules", "code"),
    [
        pytest.param("", {}, "no_tiers", id="no tier"),
        pytest.param("hc", {}, "tier_missing", id="hot and cold without warm"),
        pytest.param("w", {"read_fallback": True}, "contradictory_rules", id="a fallback to nothing"),
        pytest.param("h", {"promote_on_read": True}, "contradictory_rules", id="promotion from nowhere"),
        pytest.param("wc", {"write_through": True}, "contradictory_rules", id="write_through without hot"),
        pytest.param("h", {"write_through": True}, "contradictory_rules", id="write_through without warm"),
        pytest.param("wc", {"hot_ttl": 60}, "contradictory_rules", id="hot_ttl without hot"),
        pytest.param("hwc", {"hot_ttl": 59}, "contradictory_rules", id="hot_ttl below a minute"),
        pytest.param(
            "hwc", {"read_fallback": False, "promote_on_read": True}, "contradictory_rules", id="promotion unread"
        ),
        pytest.param("hwc", {"read_fallback": False, "write_through": True}, "contradictory_rules", id="copies unread"),
        pytest.param("hwc", {"hot_reads": "never"}, "contradictory_rules", id="an unknown kind of read"),
        pytest.param("wc", {"hot_reads": "checked"}, "contradictory_rules", id="checked reads without hot"),
        pytest.param(
            "hwc", {"hot_reads": "checked", "write_through": False}, "contradictory_rules", id="checked against nothing"
        ),
    ],
)
def test_missing_tiers_and_contradictory_rules_are_refused(tiers: str, rules: dict[str, Any], code: str) -> None:
    with pytest.raises(Misconfigured) as refused:
        _builder(tiers).with_rules(**rules).build()
    assert refused.value.code == code


def test_a_rule_that_does_not_exist_is_refused() -> None:
    with pytest.raises(TypeError, match="promote"):
        _builder("hwc").with_rules(promote=True)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("tiers", "kind"),
    [("h", HotClient), ("c", ColdClient), ("w", TieredClient), ("hw", TieredClient), ("hwc", TieredClient)],
)
def test_the_tiers_decide_which_client_is_built(tiers: str, kind: type) -> None:
    assert type(_builder(tiers).build()) is kind


@pytest.mark.parametrize(
    ("tiers", "resolved"),
    [
        pytest.param("h", ResolvedRules(False, False, False, HOT_TTL_S, "session"), id="one tier"),
        pytest.param("wc", ResolvedRules(True, True, False, HOT_TTL_S, "session"), id="nothing is hot"),
        pytest.param("hwc", ResolvedRules(True, True, True, HOT_TTL_S, "session"), id="all three"),
    ],
)
def test_what_no_rule_sets_is_decided_by_the_tiers(tiers: str, resolved: ResolvedRules) -> None:
    names: dict[str, Tier] = {"h": "hot", "w": "warm", "c": "cold"}
    assert MemoryRules().resolved({names[letter] for letter in tiers}) == resolved


async def test_a_warm_tier_that_numbers_versions_is_used_unchanged() -> None:
    warm = PlainCatalogue(InMemoryWarm(), ManualClock())
    await MemoryBuilder(NAMESPACE, ManualClock()).with_warm(warm).build().put("preferences", "one", "value")
    entry = await warm.find(f"{NAMESPACE}:preferences:one")
    assert entry is not None
    assert entry.value == "value", "a catalogue over it would have put its own mark before the value"


@pytest.mark.parametrize("tiers", ["h", "w", "c", "hw", "wc"])
def test_a_matrix_that_names_a_missing_tier_is_refused(tiers: str) -> None:
    with pytest.raises(Misconfigured) as refused:
        _builder(tiers).with_placements(MATRIX).build()
    assert refused.value.code == "tier_missing"


def test_a_matrix_for_the_existing_tiers_is_accepted() -> None:
    assert _builder("w").with_placements({"notes": ItemPlacement("warm")}).build()


@pytest.mark.parametrize("service", ["agent_working", "gateway_key", "gateway_tool", "gateway_credential"])
def test_a_service_whose_keys_would_collide_with_those_of_retain_is_refused(service: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        _builder("hwc", Namespace(service, "acme", "s-1")).build()
    assert refused.value.code == "reserved_service"
