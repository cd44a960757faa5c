"""Tenants on several databases, on the real workerd: what is asked for one gets where it lives, and nowhere else."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import expect

from benchmarks.shards import Counts, tried
from tests.e2e.calls import recorded_run, run
from tests.e2e.local_state import LocalState
from tests.e2e.servers import client_of, serving, staged
from tests.support.browser import browsing
from tests.support.machines import soaking
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


def put_on_each(client: httpx.Client) -> tuple[str, str]:
    """Register tenants until there is one on each database, and return these: new ones go where the fewest are."""
    where: dict[str, str] = {}
    while len(where) < 2:
        tenant = put(client, f"placed-{len(client.get('/admin/tenants?limit=200').json()['tenants'])}")
        where.setdefault(client.get(f"/admin/tenants/{tenant}/shard").json()["shard"], tenant)
    return where["DB"], where["DB_1"]


def store(client: httpx.Client, tenant: str, text: str) -> Any:
    answer = client.post(f"/admin/tenants/{tenant}/memories", json={"content": text})
    assert answer.status_code == 201, answer.text
    return answer.json()


def recalled(client: httpx.Client, tenant: str, query: str) -> list[str]:
    answer = client.post(f"/admin/tenants/{tenant}/memories/recall", json={"query": query})
    assert answer.status_code == 200, answer.text
    return [memory["content"] for memory in answer.json()["memories"]]


def moved(client: httpx.Client, tenant: str, shard: str) -> Any:
    while (answer := client.post(f"/admin/tenants/{tenant}/shard", json={"shard": shard})).status_code == 202:
        if answer.json()["step"] == "remove":
            return answer.json()
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_tenant_on_the_second_database_runs_stores_recalls_and_is_listed(
    shards: httpx.Client, disk: LocalState
) -> None:
    first, second = put_on_each(shards)
    for tenant in (first, second):
        store(shards, tenant, f"The warehouse of {tenant} opens at seven.")
        assert recalled(shards, tenant, "When does the warehouse open?") == [
            f"The warehouse of {tenant} opens at seven."
        ]
        result = run(shards, tenant, "order_triage", "hello")
        assert recorded_run(shards, tenant, result["run_id"])["status"] == "completed"
    for table in ("tenants", "memory_records", "agent_runs", "memory_episodes", "world_history"):
        found = disk.databases_with(
            f"SELECT DISTINCT tenant_id FROM {table} WHERE tenant_id IN ('{first}', '{second}')"
        )
        assert sorted(rows[0]["tenant_id"] for rows in found) == sorted((first, second)), table
        assert [len(rows) for rows in found] == [1, 1], f"a database has rows of one tenant alone, in {table}"
    listed = [one["tenant"] for one in shards.get("/admin/tenants").json()["tenants"]]
    assert listed == sorted(listed)
    assert {"default", first, second} <= {*listed}
    assert shards.get("/admin/tenants?limit=1&cursor=default").json()["cursor"] == listed[listed.index("default") + 1]
    assert shards.get("/readyz").json()["stores"] == {
        "d1": "ok", "d1_1": "ok", "kv": "ok", "r2": "ok", "vectorize": "ok", "vectorize_1": "ok",
    }  # fmt: skip
    for schedule in ("0 3 * * SUN", "0 4 * * *", "*/5 * * * *"):
        assert shards.get("/cdn-cgi/handler/scheduled", params={"cron": schedule}).text == "ok"


def test_a_tenant_that_moves_keeps_what_it_had_and_what_is_stored_meanwhile(
    shards: httpx.Client, disk: LocalState
) -> None:
    tenant = put(shards, "mover")
    source = shards.get(f"/admin/tenants/{tenant}/shard").json()["shard"]
    target = "DB" if source == "DB_1" else "DB_1"
    texts = [store(shards, tenant, f"Berth {number} is free on Monday.") and number for number in range(3)]
    first = run(shards, tenant, "order_triage", "hello")
    begun = shards.post(f"/admin/tenants/{tenant}/shard", json={"shard": target})
    assert begun.status_code == 202, begun.text
    store(shards, tenant, "Berth 9 is free on Monday.")  # the copy is under way
    move = moved(shards, tenant, target)
    assert (move["step"], move["error"]) == ("remove", None)
    assert move["counts"]["vectors"] >= len(texts)
    store(shards, tenant, "Berth 10 is free on Monday.")
    assert {text.split()[1] for text in recalled(shards, tenant, "Which berth is free on Monday?")} == {
        "0", "1", "2", "9", "10",
    }  # fmt: skip
    assert recorded_run(shards, tenant, first["run_id"])["status"] == "completed"
    second = run(shards, tenant, "order_triage", "hello again")
    assert second["memory"]["episodes_used"] >= 1, "the turns of before came along"
    assert recorded_run(shards, tenant, second["run_id"])["status"] == "completed"
    shown = shards.get(f"/admin/tenants/{tenant}/shard").json()
    assert (shown["shard"], shown["move"]["move_id"]) == (target, move["move_id"])
    assert {one["shard"] for one in shards.get("/admin/shards").json()["shards"]} == {"DB", "DB_1"}
    assert tenant in [one["tenant"] for one in shards.get("/admin/moves").json()["moves"]]
    refused = shards.delete(f"/admin/tenants/{tenant}/moves/{move['move_id']}")
    assert (refused.status_code, refused.json()["code"]) == (409, "move_switched")


def test_a_short_trial_loses_no_write_and_no_reader_sees_less(sharded: LocalServer) -> None:
    """It ends when writes and reads have met freezes, which a busy machine may not bring about within a minute."""

    def enough(counts: Counts) -> bool:
        return counts.met and counts.moves_switched >= 2

    shards = ("DB", "DB_1")
    trial = tried(sharded.base_url, 24, shards, 60, writers=4, movers=1, prefix="short", complete=False, enough=enough)
    counts = asyncio.run(trial)
    assert counts.moves_switched > 0, counts
    assert counts.acknowledged > 0, counts
    assert counts.broken == [], counts


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.skipif(not soaking(), reason="takes minutes: make soak")
def test_the_trial_with_a_thousand_tenants_on_four_databases(tmp_path: Path) -> None:
    """The trial of `python -m benchmarks.shards`, with the removal of what has moved."""
    with staged("shards-trial", shards=4) as config:
        migrate(tmp_path, config)
        with serving(tmp_path, config) as server:
            counts = asyncio.run(tried(server.base_url, 1000, ("DB", "DB_1", "DB_2", "DB_3"), 120))
    assert counts.met, counts
    assert counts.broken == [], counts
    assert counts.moves_completed >= counts.moves_switched > 0, counts


def test_the_console_shows_a_tenant_on_the_second_database_and_where_it_lives(
    sharded: LocalServer, shards: httpx.Client
) -> None:
    _, second = put_on_each(shards)
    text = f"The gate of {second} opens at six."
    store(shards, second, text)
    recorded_run(shards, second, run(shards, second, "order_triage", "hello")["run_id"])
    with browsing() as browser:
        browser.do(f"open {sharded.base_url}/console#/{second}")
        page = browser.tab
        page.get_by_role("link", name="order_triage").first.click()
        expect(page.get_by_text("Model, turn 1", exact=True)).to_be_visible()
        page.get_by_role("link", name="Memory", exact=True).click()
        page.get_by_role("link", name=text).click()
        expect(page.get_by_label("Content")).to_have_value(text)
        page.get_by_role("link", name="Operations").click()
        expect(page.get_by_text("d1_1: ok")).to_be_visible()
        databases = page.locator("section").filter(has=page.get_by_role("heading", name="Databases"))
        expect(databases.locator("li > span:first-child")).to_have_text(["DB", "DB_1 this tenant"])
        expect(databases.locator("li").last).to_contain_text("placed")
        assert browser.errors == []
