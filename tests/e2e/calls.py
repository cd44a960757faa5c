"""Calls of Retain's HTTP interface, and what the tests read of the answers."""

from __future__ import annotations

from typing import Any

import httpx

from tests.e2e.waiting import eventually

Answer = dict[str, Any]


def run(api: httpx.Client, tenant_id: str, agent_type: str, text: str, **body: object) -> Answer:
    """Run an agent until the run ends and return the result."""
    response = api.post(f"/v1/agents/{tenant_id}/{agent_type}/run", json={"input": text, **body})
    assert response.status_code == 200, response.text
    result: Answer = response.json()
    assert result["status"] == "completed", result
    return result


def instance(api: httpx.Client, tenant_id: str, agent_type: str, instance_id: str) -> Answer:
    """Return what the instance holds now."""
    return _answered(api.get(f"/v1/agents/{tenant_id}/{agent_type}/instances/{instance_id}"))


def runs(api: httpx.Client, tenant_id: str) -> list[Answer]:
    """Return every run of the tenant, newest first, page by page."""
    found: list[Answer] = []
    cursor: dict[str, str] = {}
    while True:
        page = _answered(api.get(f"/admin/agents/{tenant_id}/runs", params={"limit": "100", **cursor}))
        found += page["runs"]
        if page["cursor"] is None:
            return found
        cursor = {"cursor": page["cursor"]}


def recorded_run(api: httpx.Client, tenant_id: str, run_id: str) -> Answer:
    """Return the run once it is closed in D1: the instance writes it after its answer."""
    path = f"/admin/agents/{tenant_id}/runs/{run_id}"
    response = eventually(
        lambda: api.get(path), lambda answer: answer.is_success and answer.json()["status"] != "running"
    )
    return _answered(response)


def timeline(api: httpx.Client, tenant_id: str, run_id: str) -> list[Answer]:
    """Return the events of a recorded run."""
    events: list[Answer] = _answered(api.get(f"/admin/agents/{tenant_id}/runs/{run_id}/events"))["events"]
    return events


def seed(api: httpx.Client, tenant_id: str, agent_type: str, *contents: str, **fields: object) -> list[str]:
    """Store memories for an agent and return their ids. fields: of each memory, besides its content."""
    memories = [{"content": content, **fields} for content in contents]
    body = {"tenant": tenant_id, "agent_type": agent_type, "memories": memories}
    ids: list[str] = _answered(api.post("/admin/seed-memory", json=body))["ids"]
    return ids


def _answered(response: httpx.Response) -> Answer:
    assert response.is_success, response.text
    answer: Answer = response.json()
    return answer
