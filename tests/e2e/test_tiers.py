"""Tiered memory on real KV, D1 and R2, through the administrator's routes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from tests.e2e.local_state import LocalState

pytestmark = pytest.mark.workerd

PERSON = '{"name": "Ann", "email": "ann@shop.example"}'


def _put(api: httpx.Client, tenant: str, item: str, value: str, **more: Any) -> dict[str, Any]:
    response = api.put(f"/admin/tenants/{tenant}/items/shop/s-1/{item}", json={"value": value, **more})
    assert response.status_code == 200, response.text
    stored: dict[str, Any] = response.json()
    return stored


def _get(api: httpx.Client, tenant: str, item: str) -> httpx.Response:
    return api.get(f"/admin/tenants/{tenant}/items/shop/s-1/{item}")


def test_items_are_placed_read_promoted_replaced_and_deleted(
    api: httpx.Client, tenant: Callable[[], str], state: LocalState
) -> None:
    acme, other = tenant(), tenant()
    key = f"shop:{acme}:s-1"
    cart = _put(api, acme, "cart/active", "2 lamps", user_id="ann")
    order = _put(api, acme, "order_history/o-1", "a lamp", user_id="ann")
    assert (cart["key"], cart["tier"], cart["hot_copy"]) == (f"{key}:cart:active", "warm", True)
    assert (order["tier"], order["hot_copy"]) == ("cold", False)
    [(text, expires)] = state.kv(f"{key}:cart:").values()
    assert text.endswith("\n2 lamps")
    assert expires is not None
    assert list(state.r2(f"orders-archive/{key}:").values()) == [b"a lamp"]
    rows = state.d1("SELECT * FROM memory_items WHERE namespace_key = ? ORDER BY key", key)
    assert [(row["kind"], row["tier"], row["value"]) for row in rows] == [
        ("cart", "warm", "2 lamps"),
        ("order_history", "cold", None),
    ]
    assert [_get(api, acme, "cart/active").json()["tier"] for _ in range(2)] == ["hot", "hot"]
    assert [_get(api, acme, "order_history/o-1").json()["tier"] for _ in range(2)] == ["cold", "hot"]
    assert _get(api, other, "cart/active").status_code == 404
    assert _put(api, acme, "cart/active", "3 lamps")["version"] > cart["version"]
    assert _get(api, acme, "cart/active").json()["value"] == "3 lamps"
    url = f"/admin/tenants/{acme}/items/shop/s-1/order_history/o-1"
    assert [api.delete(url).json() for _ in range(2)] == [{"deleted": True}, {"deleted": False}]
    assert _get(api, acme, "order_history/o-1").json()["code"] == "no_such_item"
    assert (state.r2(f"orders-archive/{key}:"), state.kv(f"{key}:order_history:")) == ({}, {})


def test_pii_is_sealed_in_d1_and_reaches_no_other_tier(
    api: httpx.Client, tenant: Callable[[], str], state: LocalState
) -> None:
    acme = tenant()
    _put(api, acme, "preferences/ann", PERSON, user_id="ann")
    assert _get(api, acme, "preferences/ann").json()["value"] == PERSON
    [row] = state.d1("SELECT * FROM memory_items WHERE tenant_id = ?", acme)
    assert "ann@shop.example" not in json.dumps(row)
    assert state.kv(f"shop:{acme}:") == {}
    refused = api.put(f"/admin/tenants/{acme}/items/shop/s-1/cart/ann", json={"value": PERSON})
    assert (refused.status_code, refused.json()["code"]) == (400, "pii_outside_warm")
    resealed = api.post(f"/admin/tenants/{acme}/items/reseal")
    assert resealed.json() == {"resealed": 0, "left": 0, "unreadable": 0}


@pytest.mark.parametrize(
    ("item", "body", "code"),
    [
        ("carts/a", {"value": "v"}, "unknown_data_type"),
        ("cart/*", {"value": "v"}, "invalid_namespace"),
        ("cart/a", {"value": "v", "ttl_s": 59}, "invalid_ttl"),
        ("cart/a", {"value": 1}, "invalid_body"),
        ("cart/a", {"value": "v", "tenant": "other"}, "invalid_body"),
    ],
)
def test_a_bad_item_is_refused(api: httpx.Client, item: str, body: dict[str, Any], code: str) -> None:
    refused = api.put(f"/admin/tenants/default/items/shop/s-1/{item}", json=body)
    assert (refused.status_code, refused.json()["code"]) == (400, code)


def test_a_users_items_are_erased_at_once_and_their_rows_when_nothing_can_reappear(
    api: httpx.Client, tenant: Callable[[], str], state: LocalState
) -> None:
    acme = tenant()
    for kind in ("cart", "preferences", "order_history"):
        _put(api, acme, f"{kind}/one", "Ann's", user_id="ann")
        _put(api, acme, f"{kind}/two", "Bob's", user_id="bob")
    answer = api.post(f"/admin/tenants/{acme}/erase", json={"subject": "ann"})
    assert answer.status_code == 202
    assert answer.json()["retry_after_ms"] > 0
    counts = answer.json()["receipt"]["counts"]
    assert (counts["d1.memory_items"], counts["kv"], counts["r2"]) == (3, 2, 1)
    for kind in ("cart", "preferences", "order_history"):
        assert _get(api, acme, f"{kind}/one").status_code == 404
        assert _get(api, acme, f"{kind}/two").json()["value"] == "Bob's"
    rows = state.d1("SELECT value FROM memory_items WHERE tenant_id = ?", acme)
    assert "Ann's" not in str([state.kv(f"shop:{acme}:"), state.r2(""), rows])
