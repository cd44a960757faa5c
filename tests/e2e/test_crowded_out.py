"""Recall on the real workerd, where many nearer vectors are closed or belong to somebody else; filters over HTTP and MCP."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import httpx
import pytest

from tests.e2e.servers import client_of, serving, staged

pytestmark = pytest.mark.workerd
CURRENT = "The doctor recommended tablets of aspirin"
GARAGE = "Paul keeps his automobile in a garage at home"


@pytest.fixture(scope="module")
def declaring(migrated_state: Callable[[], Path]) -> Iterator[httpx.Client]:
    """A client of a server whose vector index filters by validity."""
    with (
        staged("declaring", {"VECTOR_FILTERS": "over_at"}) as config,
        serving(migrated_state(), config) as server,
        client_of(server) as client,
    ):
        yield client


def seed(api: httpx.Client, tenant: str, memories: Sequence[Mapping[str, object]]) -> None:
    for start in range(0, len(memories), 100):
        body = {"tenant": tenant, "agent_type": "sdr", "memories": memories[start : start + 100]}
        answer = api.post("/admin/seed-memory", json=body, timeout=120)
        assert answer.status_code == 201, answer.text


def recall(api: httpx.Client, tenant: str, query: str, **asked: object) -> tuple[list[str], list[str]]:
    body = {"query": query, "agent_type": "sdr", **asked}
    answer = api.post(f"/admin/tenants/{tenant}/memories/recall", json=body).raise_for_status().json()
    return [one["content"] for one in answer["memories"]], answer["degraded"]


@pytest.mark.parametrize("client", ["api", "declaring"])
def test_the_current_fact_is_found_among_its_closed_versions(client: str, request: pytest.FixtureRequest) -> None:
    api: httpx.Client = request.getfixturevalue(client)
    tenant = f"crowded-{client}"
    assert api.put(f"/admin/tenants/{tenant}").status_code in (200, 201)
    fact = {"subject": "pat", "predicate": "treatment"}
    contents = [f"The doctor prescribed antibiotics, course {number}" for number in range(99)]
    seed(api, tenant, [{"content": content, **fact} for content in [*contents, CURRENT]])
    assert recall(api, tenant, "physician medicine medication") == ([CURRENT], [])


def test_a_filter_finds_what_is_farther_away_than_others(api: httpx.Client, tenant: Callable[[], str]) -> None:
    name = tenant()
    far = [GARAGE, *(f"Invoice {number} was sent to the insurer" for number in range(520))]
    seed(api, name, [{"content": one, "metadata": {"patient": "b", "labels": ["bill", "car"]}} for one in far])
    near = [f"The car is parked on level {number}" for number in range(120)]
    seed(api, name, [{"content": content, "metadata": {"patient": "a"}} for content in near])
    for wanted in ({"patient": "b"}, {"$or": [{"labels": "car"}, {"patient": "c"}], "patient": {"$ne": None}}):
        found, _ = recall(api, name, "where is the car parked", filter=wanted, top_k=3)
        assert found[0] == GARAGE, wanted


@pytest.mark.parametrize("wanted", [{"a": {"$like": 1}}, {"id": "x"}, {"$not": [{"a": 1}]}], ids=str)
def test_an_unknown_operator_or_field_is_refused_in_recall_list_and_mcp(
    api: httpx.Client, tenant: Callable[[], str], wanted: Mapping[str, object]
) -> None:
    name = tenant()
    base = f"/admin/tenants/{name}/memories"
    recalled = api.post(f"{base}/recall", json={"query": "x", "filter": wanted})
    listed = api.get(base, params={"filter": json.dumps(wanted)})
    assert [(one.status_code, one.json()["code"]) for one in (recalled, listed)] == [(400, "invalid_filter")] * 2
    call = {"name": "recall", "arguments": {"query": "x", "filter": wanted}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    headers = {"accept": "application/json, text/event-stream"}
    answer = api.post(f"/admin/tenants/{name}/mcp", json=body, headers=headers).json()
    assert "invalid_filter" in json.dumps(answer)
