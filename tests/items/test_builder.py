"""What a builder refuses, and what it settles by itself."""

from __future__ import annotations

from typing import Any

import pytest

from retain.errors import Misconfigured
from retain.host.clock import ManualClock
from retain.items.builder import MemoryBuilder
from retain.items.placement import MATRIX, ItemPlacement
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
def test_one_tier_and_any_that_have_a_warm_one_make_a_memory(tiers: str) -> None:
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
        pytest.param("hwc", {"promote": True}, "unknown_rule", id="a rule that there is not"),
    ],
)
def test_missing_tiers_and_contradictory_rules_are_refused(tiers: str, rules: dict[str, Any], code: str) -> None:
    with pytest.raises(Misconfigured) as refused:
        _builder(tiers).with_rules(**rules).build()
    assert refused.value.code == code


@pytest.mark.parametrize("tiers", ["h", "w", "c", "hw", "wc"])
def test_a_matrix_that_names_a_missing_tier_is_refused(tiers: str) -> None:
    with pytest.raises(Misconfigured) as refused:
        _builder(tiers).with_placements(MATRIX).build()
    assert refused.value.code == "tier_missing"


def test_a_matrix_for_the_tiers_that_are_there_is_taken() -> None:
    assert _builder("w").with_placements({"notes": ItemPlacement("warm")}).build()


@pytest.mark.parametrize("service", ["agent_working", "gateway_key", "gateway_tool", "gateway_credential"])
def test_a_service_whose_keys_would_be_among_retains_own_is_refused(service: str) -> None:
    with pytest.raises(Misconfigured) as refused:
        _builder("hwc", Namespace(service, "acme", "s-1")).build()
    assert refused.value.code == "reserved_service"
