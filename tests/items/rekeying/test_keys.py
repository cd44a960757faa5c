"""Canonical keys: round trips as laws, refusals as a table."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retain.errors import InvalidInput
from retain.identifiers import namespace_key
from retain.limits.storage import MAX_KV_KEY_BYTES, MAX_OBJECT_KEY_BYTES
from retain.namespace import ItemKey, Namespace

SEGMENTS = st.from_regex(r"[A-Za-z0-9._@+-]{1,64}", fullmatch=True)
TENANTS = st.from_regex(r"[a-z0-9][a-z0-9-]{0,39}", fullmatch=True)
NAMESPACES = st.builds(Namespace, SEGMENTS, TENANTS, SEGMENTS)
ITEMS = st.builds(ItemKey, NAMESPACES, SEGMENTS, SEGMENTS)


@given(NAMESPACES)
def test_a_namespace_survives_a_round_trip(namespace: Namespace) -> None:
    assert Namespace.parse(str(namespace)) == namespace
    assert str(namespace) == namespace_key(namespace.service, namespace.tenant_id, namespace.session_id)


@given(ITEMS)
def test_an_item_survives_a_round_trip(item: ItemKey) -> None:
    assert ItemKey.parse(str(item)) == item


@given(st.lists(ITEMS, min_size=2, max_size=2, unique=True))
def test_two_items_never_share_a_key(items: list[ItemKey]) -> None:
    assert str(items[0]) != str(items[1])


@given(st.text(max_size=80) | st.from_regex(r"[a-z*:. ]{0,20}(:[a-zA-Z*:. ]{0,5}){2,6}", fullmatch=True))
@pytest.mark.parametrize("kind", [Namespace, ItemKey])
def test_whatever_is_parsed_is_written_unchanged(kind: type[Namespace] | type[ItemKey], text: str) -> None:
    try:
        parsed = kind.parse(text)
    except InvalidInput:
        return
    assert str(parsed) == text


@pytest.mark.parametrize(
    "text",
    [
        "crm-support-assistance:tenant-acme:s-8f21a:conversation:turn-001",
        "ecommerce-cart-intelligence:tenant-contoso:s-21ab9:cart:active",
    ],
)
def test_the_documented_examples_are_valid_keys(text: str) -> None:
    assert str(ItemKey.parse(text)) == text


def _item(**changed: str) -> ItemKey:
    parts = {"service": "crm", "tenant": "acme", "session": "s1", "kind": "cart", "entity": "active", **changed}
    return ItemKey(Namespace(parts["service"], parts["tenant"], parts["session"]), parts["kind"], parts["entity"])


@pytest.mark.parametrize("place", ["service", "tenant", "session", "kind", "entity"])
@pytest.mark.parametrize(
    "segment", ["", "*", "a*", "?", ":", "a:b", ":a", "a:", " ", "a b", "a\n", "é", "a/b", "\0"], ids=repr
)
def test_an_empty_or_wildcard_segment_or_a_stray_delimiter_is_refused(place: str, segment: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        _item(**{place: segment})
    assert raised.value.code == "invalid_namespace"
    assert repr(segment) not in raised.value.message


@pytest.mark.parametrize("place", ["service", "session", "kind", "entity"])
def test_a_segment_of_64_bytes_is_accepted_and_one_more_refused(place: str) -> None:
    _item(**{place: "a" * 64})
    with pytest.raises(InvalidInput):
        _item(**{place: "a" * 65})


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (Namespace.parse, "crm:acme"),
        (Namespace.parse, "crm:acme:s1:"),
        (Namespace.parse, ":crm:acme:s1"),
        (Namespace.parse, "crm:acme:s1:cart:active"),
        (ItemKey.parse, "crm:acme:s1"),
        (ItemKey.parse, "crm:acme:s1:cart:active:"),
        (ItemKey.parse, "crm:acme:s1::active"),
        (ItemKey.parse, "crm:acme:s1:cart:*"),
        (ItemKey.parse, ""),
    ],
)
def test_a_text_of_another_form_is_refused(parse: Callable[[str], object], text: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        parse(text)
    assert raised.value.code == "invalid_namespace"


def test_a_tenant_has_its_own_grammar() -> None:
    with pytest.raises(InvalidInput) as raised:
        _item(tenant="Acme")
    assert raised.value.code == "invalid_tenant"


def test_the_longest_key_fits_every_tier() -> None:
    longest = str(_item(service="s" * 64, tenant="t" * 40, session="s" * 64, kind="k" * 64, entity="e" * 64))
    assert len(longest.encode()) == 300 < MAX_KV_KEY_BYTES < MAX_OBJECT_KEY_BYTES
