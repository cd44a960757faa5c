"""The administrator's memories of one tenant are out of reach through another tenant's routes, whatever is asked."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from tests.e2e.calls import seed

pytestmark = pytest.mark.workerd

SECRET = "The vault code of Emil is 4711."


@dataclass(frozen=True)
class Two:
    """Two tenants. mine: holds one memory for an agent and one for the whole tenant. memory_id: the agent's."""

    mine: str
    other: str
    memory_id: str


@pytest.fixture(scope="module")
def two(api: httpx.Client) -> Two:
    """One tenant with a secret, and one that wants it."""
    mine, other = "vault-keeper", "vault-seeker"
    for tenant_id in (mine, other):
        assert api.put(f"/admin/tenants/{tenant_id}").is_success
    [memory_id] = seed(api, mine, "refund_decision", SECRET, metadata={"level": 3}, subject="emil")
    assert api.post(f"/admin/tenants/{mine}/memories", json={"content": f"House rule. {SECRET}"}).is_success
    return Two(mine, other, memory_id)


def _recall(api: httpx.Client, tenant_id: str, /, **body: object) -> httpx.Response:
    return api.post(f"/admin/tenants/{tenant_id}/memories/recall", json={"query": SECRET, "top_k": 20, **body})


def test_a_tenant_s_own_routes_show_its_memories(api: httpx.Client, two: Two) -> None:
    assert api.get(f"/admin/tenants/{two.mine}/memories/{two.memory_id}").json()["content"] == SECRET
    assert len(api.get(f"/admin/tenants/{two.mine}/memories").json()["memories"]) == 2
    assert len(_recall(api, two.mine).json()["memories"]) == 2
    filtered = _recall(api, two.mine, filter={"level": {"$gte": 3}, "subject": "emil"}).json()["memories"]
    assert [memory["id"] for memory in filtered] == [two.memory_id]


def test_an_agent_s_memory_is_not_another_agent_s(api: httpx.Client, two: Two) -> None:
    found = {
        agent_type: {memory["content"] for memory in _recall(api, two.mine, agent_type=agent_type).json()["memories"]}
        for agent_type in ("refund_decision", "sdr")
    }
    assert SECRET in found["refund_decision"]
    assert SECRET not in found["sdr"]


@pytest.mark.parametrize(
    ("method", "body"),
    [("GET", None), ("PATCH", {"content": "Mine now."}), ("PATCH", {"valid_to_ms": 1}), ("DELETE", None)],
    ids=["read", "edit", "close", "delete"],
)
def test_another_tenant_cannot_name_a_memory(
    api: httpx.Client, two: Two, method: str, body: dict[str, Any] | None
) -> None:
    response = api.request(method, f"/admin/tenants/{two.other}/memories/{two.memory_id}", json=body)
    assert (response.status_code, response.json()["code"]) == (404, "no_such_memory")
    assert api.get(f"/admin/tenants/{two.mine}/memories/{two.memory_id}").json()["content"] == SECRET


FILTERS: dict[str, dict[str, Any]] = {
    "none": {},
    "tenant": {"tenant_id": "vault-keeper"},
    "any tenant": {"tenant_id": {"$ne": ""}},
    "scope": {"scope_id": {"$in": ["agent.refund_decision", "tenant"]}},
    "namespace": {"namespace": "agent_memory_semantic:vault-keeper"},
    "a field that all have": {"kind": {"$in": ["fact", "event"]}},
    "true for all": {"confidence": {"$gte": 0}},
    "what the secret has": {"subject": "emil", "level": 3},
    "SQL in a value": {"subject": "x' OR '1'='1"},
    "SQL in a name": {"subject) OR (1=1": "x"},
    "column in a name": {"r.tenant_id": "vault-keeper"},
    "operators": {"$or": [{"tenant_id": "vault-keeper"}]},
    "unknown operator": {"subject": {"$regex": ".*"}},
    "path into the row": {"$.tenant_id": "vault-keeper"},
    "no operator": {"subject": {}},
    "null": {"subject": None},
    "list": {"subject": ["emil"]},
    "wildcard": {"subject": "*"},
    "too many": {f"name{number}": 1 for number in range(17)},
}


@pytest.mark.parametrize("wanted", FILTERS.values(), ids=list(FILTERS))
def test_no_filter_reaches_another_tenant_s_memories(api: httpx.Client, two: Two, wanted: dict[str, Any]) -> None:
    listed = api.get(
        f"/admin/tenants/{two.other}/memories", params={"filter": json.dumps(wanted), "all": "true", "limit": "200"}
    )
    for response in (_recall(api, two.other, filter=wanted), listed):
        if response.is_success:
            assert response.json()["memories"] == []
        else:
            assert response.status_code in (400, 413), response.text
            assert response.json()["code"] in {"invalid_filter", "filter_too_large"}


@pytest.mark.parametrize("field", ["tenant", "tenant_id", "scope", "scope_id", "namespace", "agent_id", "below"])
def test_a_recall_takes_no_field_that_could_name_another_scope(api: httpx.Client, two: Two, field: str) -> None:
    response = _recall(api, two.other, **{field: two.mine})
    assert (response.status_code, response.json()["code"]) == (400, "invalid_body")


def test_a_cursor_of_another_tenant_s_list_shows_nothing_of_it(
    api: httpx.Client, two: Two, tenant: Callable[[], str]
) -> None:
    cursor = api.get(f"/admin/tenants/{two.mine}/memories", params={"limit": "1"}).json()["cursor"]
    assert cursor is not None
    page = api.get(f"/admin/tenants/{tenant()}/memories", params={"cursor": cursor})
    assert page.json()["memories"] == []


def test_a_filter_nested_too_deeply_is_refused(api: httpx.Client, two: Two) -> None:
    response = api.get(f"/admin/tenants/{two.mine}/memories", params={"filter": "[" * 12_000})
    assert (response.status_code, response.json()["code"]) == (400, "invalid_filter")
