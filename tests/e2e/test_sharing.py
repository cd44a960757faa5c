"""An agent stores into its house, on the real Worker: `refund_decision` shares with the house `orders`."""

from __future__ import annotations

import json

import httpx
import pytest

from tests.e2e.calls import run
from tests.e2e.conftest import Steered
from tests.e2e.puppet import order

pytestmark = pytest.mark.workerd

FACT = "Parcels to Helgoland take nine days."


def test_what_an_agent_shares_is_found_from_its_house_and_from_nowhere_else(steered: Steered) -> None:
    tenant_id = steered.tenant()
    call = ("store_memory", {"content": FACT, "shared": True})
    [stored] = json.loads(run(steered.api, tenant_id, "refund_decision", order(call))["output"])
    shown = steered.api.get(f"/admin/tenants/{tenant_id}/memories/{stored['id']}").json()
    assert (shown["scope_id"], shown["source"]["origin"]) == ("house.orders", "agent")

    def found(**scope: str) -> httpx.Response:
        body = {"query": "How long do parcels to Helgoland take?", **scope}
        return steered.api.post(f"/admin/tenants/{tenant_id}/memories/recall", json=body)

    for scope in ({"agent_type": "order_triage"}, {"agent_type": "refund_decision"}, {"house": "orders"}):
        assert [memory["content"] for memory in found(**scope).json()["memories"]] == [FACT]
    assert found(agent_type="sdr").json() == {"memories": [], "degraded": []}
    refused = found(house="oders")
    assert (refused.status_code, refused.json()["code"]) == (404, "unknown_scope")
    [shared] = json.loads(run(steered.api, tenant_id, "sdr", order(call))["output"])
    assert shared["error"]["code"] == "no_house"
