"""Legacy patterns: which are accepted, and that each of their keys belongs to one item."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retain.errors import Misconfigured
from retain.items.rekeying.flags import namespacing
from retain.items.rekeying.patterns import MAX_LITERAL_BYTES, SEGMENTS, LegacyPattern, load_patterns
from retain.limits.storage import MAX_KV_KEY_BYTES
from retain.namespace import ItemKey, Namespace
from retain.settings import NamespaceSettings
from tests.items.rekeying.test_keys import ITEMS

SHORT = {"template": "{tenantId}:{sessionId}:{memoryKind}:{entityId}", "service": "crm"}
AGENT = {"template": "agent:{sessionId}:{entityId}", "service": "crm", "tenantId": "acme", "memoryKind": "conversation"}
PATHS = {"template": "uploads/{tenantId}/{service}/s-{sessionId}/{memoryKind}/{entityId}.txt"}
ALL = [SHORT, AGENT, PATHS]


def _load(*patterns: Any) -> tuple[LegacyPattern, ...]:
    return load_patterns(json.dumps(patterns))


def _item(service: str = "crm", tenant: str = "acme", kind: str = "conversation") -> ItemKey:
    return ItemKey(Namespace(service, tenant, "s1"), kind, "t1")


def test_the_keys_of_an_item_are_written_as_configured() -> None:
    short, agent, paths = _load(*ALL)
    assert short.key_of(_item()) == "acme:s1:conversation:t1"
    assert agent.key_of(_item()) == "agent:s1:t1"
    assert paths.key_of(_item()) == "uploads/acme/crm/s-s1/conversation/t1.txt"
    assert (short.prefix, agent.prefix, paths.prefix) == ("", "agent:", "uploads/")


@pytest.mark.parametrize(
    "item", [_item(service="other"), _item(tenant="contoso"), _item(kind="cart")], ids=["service", "tenant", "kind"]
)
def test_a_pattern_applies_only_to_the_items_that_it_fixes(item: ItemKey) -> None:
    assert _load(AGENT)[0].key_of(item) is None


@given(ITEMS)
@pytest.mark.parametrize("number", range(len(ALL)))
def test_a_legacy_key_belongs_to_exactly_one_item(number: int, item: ItemKey) -> None:
    pattern = _load(*ALL)[number]
    fixed = {**dict(zip(SEGMENTS, str(item).split(":"), strict=True)), **pattern.fixed}
    item = ItemKey.parse(":".join(fixed[name] for name in SEGMENTS))
    key = pattern.key_of(item)
    assert key is not None
    assert pattern.item_of(key) == item
    assert [other.item_of(key) for other in _load(*ALL) if other.template != pattern.template] == [None, None]
    assert len(key.encode()) <= MAX_KV_KEY_BYTES - MAX_LITERAL_BYTES + len(pattern.template)


@given(st.text(max_size=40) | st.from_regex(r"[a-z*]{0,4}([:/][a-z*.]{0,4}){1,5}", fullmatch=True))
def test_whatever_is_read_from_a_key_is_written_unchanged(text: str) -> None:
    for pattern in _load(*ALL):
        item = pattern.item_of(text)
        if item is not None:
            assert pattern.key_of(item) == text


@pytest.mark.parametrize(
    "text", ["agent:s1", "agent:s1:t1:x", "agent::t1", "agents:s1:t1", "agent:s*:t1", "agent/s1/t1", ""], ids=repr
)
def test_a_key_of_another_form_belongs_to_no_item(text: str) -> None:
    assert _load(AGENT)[0].item_of(text) is None


@pytest.mark.parametrize(
    ("patterns", "code", "text"),
    [
        ([{"template": "agent:{sessionId}:{entityId}"}], "ambiguous_legacy_pattern", "service, tenantId, memoryKind"),
        ([{**SHORT, "template": "{sessionId}:{memoryKind}:{entityId}"}], "ambiguous_legacy_pattern", "tenantId"),
        ([AGENT, {**AGENT, "tenantId": "contoso"}], "ambiguous_legacy_pattern", "could match both"),
        ([SHORT, SHORT], "ambiguous_legacy_pattern", "could match both"),
        (
            [SHORT, {**AGENT, "template": "agent:{sessionId}:x:{entityId}"}],
            "ambiguous_legacy_pattern",
            "could match both",
        ),
        (
            [{"template": "{tenantId}:{service}:{sessionId}:{memoryKind}:{entityId}"}],
            "ambiguous_legacy_pattern",
            "could match both",
        ),
        (
            [{**SHORT, "template": "{tenantId}{sessionId}:{memoryKind}:{entityId}"}],
            "invalid_legacy_pattern",
            "at most one",
        ),
        ([{**SHORT, "template": "{tenantId}:{sessionId}:{memoryKind}:{entityId}:*"}], "invalid_legacy_pattern", ""),
        ([{**SHORT, "template": "{tenantId}:{sessionId}:{memoryKind}:{entityId}:"}], "invalid_legacy_pattern", ""),
        ([{**SHORT, "template": "{tenant}:{sessionId}:{memoryKind}:{entityId}"}], "invalid_legacy_pattern", "tenant"),
        ([{**SHORT, "template": "{tenantId}:{tenantId}:{memoryKind}:{entityId}"}], "invalid_legacy_pattern", "twice"),
        ([{**SHORT, "tenantId": "acme"}], "invalid_legacy_pattern", "fixed as well"),
        ([{**SHORT, "service": "a:b"}], "invalid_legacy_pattern", "fixed segment"),
        ([{**AGENT, "template": "agent:{sessionId}:active", "entityId": "x"}], "invalid_legacy_pattern", "entityId"),
        ([{**SHORT, "template": SHORT["template"] + "x" * 129}], "invalid_legacy_pattern", "128 bytes"),
        ([{**SHORT, "extra": "x"}], "invalid_legacy_pattern", ""),
        ([{"service": "crm"}], "invalid_legacy_pattern", ""),
        ([{**SHORT, "service": 1}], "invalid_legacy_pattern", ""),
        (["x"], "invalid_legacy_pattern", ""),
        ([SHORT] * 9, "invalid_legacy_pattern", "at most 8"),
    ],
)
def test_an_ambiguous_or_invalid_pattern_is_refused_at_load(patterns: list[Any], code: str, text: str) -> None:
    with pytest.raises(Misconfigured) as raised:
        _load(*patterns)
    assert raised.value.code == code
    assert text in raised.value.message


@pytest.mark.parametrize("text", ["{", "{}", '"x"', "1"])
def test_what_is_not_a_list_of_patterns_is_refused(text: str) -> None:
    with pytest.raises(Misconfigured) as raised:
        load_patterns(text)
    assert raised.value.code == "invalid_legacy_pattern"


def test_the_flags_come_from_the_settings_and_compatible_reads_need_patterns() -> None:
    found = namespacing(NamespaceSettings(True, True, json.dumps([SHORT])))
    assert (found.write_canonical, found.compat_read, len(found.patterns)) == (True, True, 1)
    assert namespacing(NamespaceSettings()).patterns == ()
    with pytest.raises(Misconfigured) as raised:
        namespacing(NamespaceSettings(False, True, " "))
    assert raised.value.code == "invalid_setting"
