"""Tenants on four databases, on the real workerd: what is asked for one gets where it lives, and nowhere else."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import expect

from benchmarks.shards import Counts, tried
from tests.e2e.calls import recorded_run, run
from tests.e2e.local_state import LocalState, databases_of
from tests.e2e.servers import client_of, serving, staged
from tests.support.browser import browsing
from tests.support.machines import soaking
from tools import migrate as every_database
from tools.local_server import LocalServer, migrate
from tools.paths import ROOT

pytestmark = pytest.mark.workerd

SHARDS = ("DB", "DB_1", "DB_2", "DB_3")
AGE_MS = 91 * 24 * 3600 * 1000
_AGED = "UPDATE memory_episodes SET created_at_ms = created_at_ms - ? WHERE run_id = ?"


@pytest.fixture(scope="module")
def sharded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    """A server with four databases, to each of which the newest migration was applied by the command for all."""
    state = tmp_path_factory.mktemp("sharded")
    with staged("shards", shards=len(SHARDS)) as config:
        paths = databases_of(state, config)
        for path in paths:
            migrated_but_for_the_newest(path)
        applied = every_database.main(["--local", "--persist-to", str(state), "--config", str(config)])
        assert applied == 0
        every = [path.name for path in sorted((ROOT / "migrations").glob("*.sql"))]
        assert [noted_migrations(path) for path in paths] == [every] * len(SHARDS)
        with serving(state, config) as server:
            yield server


def migrated_but_for_the_newest(path: Path) -> None:
    """Make a database as the version before left it."""
    *earlier, _ = sorted((ROOT / "migrations").glob("*.sql"))
    with closing(sqlite3.connect(path)) as database:
        database.executescript(
            "CREATE TABLE d1_migrations (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT UNIQUE,"
            " applied_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP NOT NULL);"
        )
        for migration in earlier:
            database.executescript(migration.read_text())
        database.executemany("INSERT INTO d1_migrations (name) VALUES (?)", [(one.name,) for one in earlier])
        database.commit()


def noted_migrations(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as database:
        return [name for (name,) in database.execute("SELECT name FROM d1_migrations ORDER BY id")]


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


def where_is(client: httpx.Client, tenant: str) -> str:
    return str(client.get(f"/admin/tenants/{tenant}/shard").json()["shard"])


def put_on_each(client: httpx.Client) -> Mapping[str, str]:
    """Register tenants until there is a new one on each database, and return these: they go where the fewest are."""
    where: dict[str, str] = {}
    while len(where) < len(SHARDS):
        tenant = put(client, f"placed-{len(listed(client, '/admin/tenants', 'tenants'))}")
        where.setdefault(where_is(client, tenant), tenant)
    return {shard: where[shard] for shard in SHARDS}


def listed(client: httpx.Client, path: str, key: str, limit: int = 200, **query: str) -> list[Any]:
    """Return what a list has, page by page."""
    found: list[Any] = []
    while True:
        answer = client.get(path, params={"limit": str(limit), **query})
        assert answer.status_code == 200, answer.text
        found += answer.json()[key]
        if answer.json()["cursor"] is None:
            return found
        assert len(answer.json()[key]) == limit
        query["cursor"] = answer.json()["cursor"]


def store(client: httpx.Client, tenant: str, text: str) -> Any:
    answer = client.post(f"/admin/tenants/{tenant}/memories", json={"content": text})
    assert answer.status_code == 201, answer.text
    return answer.json()


def recalled(client: httpx.Client, tenant: str, query: str) -> list[str]:
    answer = client.post(f"/admin/tenants/{tenant}/memories/recall", json={"query": query})
    assert answer.status_code == 200, answer.text
    return [memory["content"] for memory in answer.json()["memories"]]


def moved(client: httpx.Client, tenant: str, shard: str, until: str = "remove") -> Any:
    """Move a tenant until a step of its move, or the end."""
    deadline = time.monotonic() + 120
    while (answer := client.post(f"/admin/tenants/{tenant}/shard", json={"shard": shard})).status_code == 202:
        if answer.json()["step"] == until:
            return answer.json()
        assert time.monotonic() < deadline, answer.text
    assert answer.status_code == 200, answer.text
    return answer.json()


def let_moves_end(client: httpx.Client, disk: LocalState) -> None:
    """Let the minute be over for which what has moved stays where it was, and every move end."""
    with disk.d1_transaction() as database:
        database.execute("UPDATE tenant_moves SET cursor = json_set(cursor, '$[0]', 0) WHERE step = 'remove'")
    for move in listed(client, "/admin/moves", "moves"):
        if move["state"] == "running":
            moved(client, move["tenant"], move["target"], until="the end")


def test_new_tenants_are_on_every_database_and_lists_over_all_of_them_are_paged(
    shards: httpx.Client, disk: LocalState
) -> None:
    placed = put_on_each(shards)
    with disk.d1_transaction() as database:
        for number, tenant in enumerate(placed.values()):
            database.execute(
                "INSERT INTO error_ledger (error_id, tenant_id, stage, concerns, code, attempts, first_at_ms, last_at_ms)"
                " VALUES (?, ?, 'run', 'one', 'unavailable', 1, 0, ?)",
                (f"{time.time_ns() + number:064x}", tenant, 4_000_000_000_000 + number),
            )
    names = [one["tenant"] for one in listed(shards, "/admin/tenants", "tenants", limit=3)]
    assert names == sorted({*names}), "no page has what another one had"
    assert {"default", *placed.values()} <= {*names}
    homes = disk.databases_with("SELECT tenant_id FROM tenants")
    assert len(homes) == len(SHARDS)
    assert {row["tenant_id"] for rows in homes for row in rows} == {*names}
    loads = shards.get("/admin/shards").json()["shards"]
    assert [load["shard"] for load in loads] == [*SHARDS]
    assert sum(load["tenants"] for load in loads) == len(names)
    assert all(load["tenants"] >= 1 and load["bytes"] > 0 for load in loads)
    errors = [one["tenant_id"] for one in listed(shards, "/admin/errors", "errors", limit=1)]
    mine = [tenant for tenant in errors if tenant in placed.values()]
    assert mine == [*placed.values()][::-1], "the last to go wrong first, whichever database it is on"


def test_tenants_on_every_database_run_store_recall_and_are_pruned(shards: httpx.Client, disk: LocalState) -> None:
    let_moves_end(shards, disk)  # the scheduled work of a database waits while a tenant comes or goes
    placed = put_on_each(shards)
    aged: list[str] = []
    young: list[str] = []
    for tenant in placed.values():
        store(shards, tenant, f"The warehouse of {tenant} opens at seven.")
        assert recalled(shards, tenant, "When does the warehouse open?") == [
            f"The warehouse of {tenant} opens at seven."
        ]
        for runs in (aged, young):
            result = run(shards, tenant, "order_triage", "hello")
            assert recorded_run(shards, tenant, result["run_id"])["status"] == "completed"
            runs.append(result["run_id"])
    names = sorted(placed.values())
    asked = ", ".join(f"'{tenant}'" for tenant in names)
    for table in ("tenants", "memory_records", "agent_runs", "memory_episodes", "world_history"):
        found = disk.databases_with(f"SELECT DISTINCT tenant_id FROM {table} WHERE tenant_id IN ({asked})")
        assert sorted(rows[0]["tenant_id"] for rows in found) == names, table
        assert [len(rows) for rows in found] == [1] * len(SHARDS), f"a database has one tenant's rows alone, in {table}"
    stores = {f"{store}{number}": "ok" for store in ("d1", "vectorize") for number in ("", "_1", "_2", "_3")}
    assert shards.get("/readyz").json()["stores"] == {**stores, "kv": "ok", "r2": "ok"}
    with disk.d1_transaction() as database:
        for run_id in aged:
            database.execute(_AGED, (AGE_MS, run_id))
    for schedule in ("0 3 * * SUN", "0 4 * * *", "*/5 * * * *"):
        assert shards.get("/cdn-cgi/handler/scheduled", params={"cron": schedule}).text == "ok"
    left = disk.databases_with(f"SELECT DISTINCT run_id FROM memory_episodes WHERE tenant_id IN ({asked})")
    assert sorted(row["run_id"] for rows in left for row in rows) == sorted(young), "pruned on each database"
    briefs = [key.rpartition("/")[2].partition(".")[2] for key in disk.r2("briefs/")]
    assert {"json", "DB_1.json", "DB_2.json", "DB_3.json"} <= {*briefs}


def test_a_tenant_that_moves_keeps_what_it_had_and_what_is_stored_meanwhile(
    shards: httpx.Client, disk: LocalState
) -> None:
    tenant = put(shards, "mover")
    source = where_is(shards, tenant)
    target = "DB_3" if source == "DB_1" else "DB_1"
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
    moves = [one["move_id"] for one in listed(shards, "/admin/moves", "moves", limit=1)]
    assert moves == sorted({*moves}, reverse=True)
    assert move["move_id"] in moves
    refused = shards.delete(f"/admin/tenants/{tenant}/moves/{move['move_id']}")
    assert (refused.status_code, refused.json()["code"]) == (409, "move_switched")
    let_moves_end(shards, disk)
    left = disk.databases_with("SELECT content FROM memory_records WHERE tenant_id = ?", tenant)
    assert [len(rows) for rows in left] == [5], "one database has what the tenant has"


def test_a_short_trial_loses_no_write_and_no_reader_sees_less(sharded: LocalServer) -> None:
    """It ends when writes and reads have met freezes, which a busy machine may not bring about within a minute."""

    def enough(counts: Counts) -> bool:
        return counts.met and counts.moves_switched >= 2

    trial = tried(sharded.base_url, 24, SHARDS, 60, writers=4, movers=1, prefix="short", complete=False, enough=enough)
    counts = asyncio.run(trial)
    assert counts.moves_switched > 0, counts
    assert counts.acknowledged > 0, counts
    assert counts.broken == [], counts


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.skipif(not soaking(), reason="takes minutes: make soak")
def test_the_trial_with_a_thousand_tenants_on_four_databases(tmp_path: Path) -> None:
    """The trial of `python -m benchmarks.shards`, with the removal of what has moved."""
    with staged("shards-trial", shards=len(SHARDS)) as config:
        migrate(tmp_path, config)
        with serving(tmp_path, config) as server:
            counts = asyncio.run(tried(server.base_url, 1000, SHARDS, 120))
    assert counts.met, counts
    assert counts.broken == [], counts
    assert counts.moves_completed >= counts.moves_switched > 0, counts


def test_the_console_shows_a_tenant_on_the_second_database_and_where_it_lives(
    sharded: LocalServer, shards: httpx.Client
) -> None:
    second = put_on_each(shards)["DB_1"]
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
        expect(databases.locator("li > span:first-child")).to_have_text(["DB", "DB_1 this tenant", "DB_2", "DB_3"])
        expect(databases.locator("li").nth(1)).to_contain_text("placed")
        assert browser.errors == []
