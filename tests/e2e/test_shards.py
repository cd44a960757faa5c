"""Tenants on several databases, on the real workerd: what is asked for one gets where it lives, and nowhere else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.e2e.calls import recorded_run, run
from tests.e2e.local_state import LocalState
from tests.e2e.servers import client_of, serving, staged
from tools.local_server import LocalServer, migrate

pytestmark = pytest.mark.workerd


@pytest.fixture(scope="module")
def sharded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    """A server with two databases."""
    state = tmp_path_factory.mktemp("sharded")
    with staged("shards", shards=2) as config:
        migrate(state, config)
        with serving(state, config) as server:
            yield server


@pytest.fixture(scope="module")
def shards(sharded: LocalServer) -> Iterator[httpx.Client]:
    """A client of the server."""
    with client_of(sharded) as client:
        yield client


@pytest.fixture(scope="module")
def disk(sharded: LocalServer) -> LocalState:
    """What the server keeps."""
    return LocalState(sharded.log.parent)


def put(client: httpx.Client, tenant: str) -> str:
    answer = client.put(f"/admin/tenants/{tenant}")
    assert answer.status_code == 201, answer.text
    return tenant


def store(client: httpx.Client, tenant: str, text: str) -> Any:
    answer = client.post(f"/admin/tenants/{tenant}/memories", json={"content": text})
    assert answer.status_code == 201, answer.text
    return answer.json()


def recalled(client: httpx.Client, tenant: str, query: str) -> list[str]:
    answer = client.post(f"/admin/tenants/{tenant}/memories/recall", json={"query": query})
    assert answer.status_code == 200, answer.text
    return [memory["content"] for memory in answer.json()["memories"]]


def test_a_tenant_on_the_second_database_runs_stores_recalls_and_is_listed(
    shards: httpx.Client, disk: LocalState
) -> None:
    first, second = put(shards, "first"), put(shards, "second")  # the databases get new tenants alternately
    for tenant in (first, second):
        store(shards, tenant, f"The warehouse of {tenant} opens at seven.")
        assert recalled(shards, tenant, "When does the warehouse open?") == [
            f"The warehouse of {tenant} opens at seven."
        ]
        result = run(shards, tenant, "order_triage", "hello")
        assert recorded_run(shards, tenant, result["run_id"])["status"] == "completed"
    for table in ("tenants", "memory_records", "agent_runs", "memory_episodes", "world_history"):
        found = disk.databases_with(f"SELECT DISTINCT tenant_id FROM {table} WHERE tenant_id IN ('first', 'second')")
        assert sorted(rows[0]["tenant_id"] for rows in found) == ["first", "second"], table
        assert [len(rows) for rows in found] == [1, 1], f"a database has rows of one tenant alone, in {table}"
    listed = [one["tenant"] for one in shards.get("/admin/tenants").json()["tenants"]]
    assert listed == ["default", "first", "second"]
    assert shards.get("/admin/tenants?limit=1&cursor=default").json()["cursor"] == "first"
    assert shards.get("/readyz").json()["stores"] == {
        "d1": "ok", "d1_1": "ok", "kv": "ok", "r2": "ok", "vectorize": "ok", "vectorize_1": "ok",
    }  # fmt: skip
    for schedule in ("0 3 * * SUN", "0 4 * * *", "*/5 * * * *"):
        assert shards.get("/cdn-cgi/handler/scheduled", params={"cron": schedule}).text == "ok"
