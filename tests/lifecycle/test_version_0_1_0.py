"""A database of version 0.1.0 is migrated whole: memory, history, runs and conversations read as before."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from retain.admin.resources.runs import list_runs, show_run
from retain.admin.run_list import WantedRuns
from retain.host.connection import open_database
from retain.host.sql import SqliteSql
from retain.lifecycle.export import export_page
from retain.lifecycle.verification import verify_page
from retain.memory.conversations.reading import Wanted, list_conversations, list_messages
from retain.memory.semantic import RecallQuery
from retain.tenants.history import digest_of
from tests.lifecycle.version_0_1_0 import LAST, fill, old_database
from tests.lifecycle.world import Snapshot, World, living
from tools.local_server import migrate
from tools.paths import PRODUCTION_CONFIG, ROOT

QUERIES = ("Where does Ann live?", "lamps", "tea", "turn of the chat")
SCOPES: tuple[dict[str, Any], ...] = (
    {},
    {"house": "orders"},
    {"agent_type": "sdr"},
    {"agent_type": "sdr", "instance_id": "desk"},
)


@cache
def _made() -> tuple[Snapshot, dict[str, Any], bytes]:
    """Return a deployment of version 0.1.0, what it answered, and its D1 before any later migration."""

    async def make() -> tuple[Snapshot, dict[str, Any], bytes]:
        with living() as world:
            await fill(world)
            before = await _answers(world)
            old = old_database(world)
            return world.snapshot(), before, old

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, make()).result()


async def _answers(world: World) -> dict[str, Any]:
    """Return what the deployment answers of memory and runs."""
    verdict = await world.stores().history().verify("acme")
    found: dict[str, Any] = {"history": (verdict.problem, verdict.entries, verdict.head)}
    for scope in SCOPES:
        memory = world.memory("acme", scope.get("agent_type"), **{k: v for k, v in scope.items() if k != "agent_type"})
        for query in QUERIES:
            hits = await memory.search(RecallQuery(query, 20))
            found[f"{scope} {query}"] = [(hit.record.to_json(), round(hit.score, 9)) for hit in hits]
    for query in QUERIES:
        found[query] = [(hit.record.id, round(hit.score, 9)) for hit in await world.recall(query)]
    cursor: str | None = None
    lines: list[str] = []
    while True:
        page = await export_page(world.stores(), "acme", cursor)
        lines += [line for line in page.lines if json.loads(line)["kind"] in ("scope", "record", "user")]
        cursor = page.cursor
        if cursor is None:
            break
    found["export"] = lines
    runs = await list_runs(world.sql, "acme", WantedRuns(), limit=100, cursor=None)
    found["runs"] = [(run["run_id"], run["status"], run["steps"], run["instance_id"]) for run in runs["runs"]]
    shown = [await show_run(world.sql, "acme", run["run_id"]) for run in runs["runs"]]
    found["shown"] = [(run["input"]["input"], run["output"], run["episodes"]) for run in shown]
    for table in ("memory_records", "memory_events", "world_history", "memory_search", "memory_episodes", "run_events"):
        found[table] = world.sql_now(f"SELECT COUNT(*) AS n FROM {table}")[0]["n"]
    found["scopes"] = world.sql_now("SELECT scope_id, parent_id, kind, records, words FROM scopes ORDER BY scope_id")
    return found


@pytest.fixture
def migrated() -> Iterator[World]:
    snapshot, _, old = _made()
    connection = open_database()
    connection.deserialize(old)
    sql = SqliteSql(connection)
    applied = sql.migrate(ROOT / "migrations")
    assert applied[0].startswith("0012")
    with living({**snapshot, "d1": connection.serialize()}) as world:
        yield world


def test_the_old_database_has_the_old_schema() -> None:
    connection = open_database()
    connection.deserialize(_made()[2])
    names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    assert not names & {"users", "conversations", "erased_users", "refused_episodes"}
    assert connection.execute("SELECT MAX(name) FROM d1_migrations").fetchone() == (LAST,)
    [(given,)] = connection.execute("SELECT input FROM agent_runs ORDER BY run_id DESC LIMIT 1")
    assert all("content" in episode for episode in json.loads(given)["episodes"])


async def test_memory_history_and_runs_read_as_before(migrated: World) -> None:
    before, after = _made()[1], await _answers(migrated)
    assert {name for name in before if before[name] != after[name]} == set()
    assert before["history"][0] is None
    assert await migrated.drift() == set()


async def test_the_vectors_of_closed_records_are_repaired(migrated: World) -> None:
    [closed] = migrated.sql_now("SELECT * FROM memory_records WHERE valid_to_ms IS NOT NULL")
    [entry] = await migrated.index.get_by_ids([f"{closed['id']}#0"])
    ends = {"valid_to": closed["valid_to_ms"], "superseded_by": closed["superseded_by"]}
    old = {name: value for name, value in entry.metadata.items() if name not in ends}
    await migrated.index.upsert([replace(entry, metadata=old)])
    assert (await verify_page(migrated.stores(), "acme", None, repair=False)).drift == {}
    assert closed["id"] in [one["record_id"] for one in migrated.sql_now("SELECT * FROM memory_outbox")]
    for _ in range(2):  # the first time the index is sent them, and the second time it shows them
        await migrated.rest()
    [entry] = await migrated.index.get_by_ids([f"{closed['id']}#0"])
    assert entry.metadata == {**old, **ends}
    assert migrated.sql_now("SELECT * FROM memory_outbox") == []
    assert (await verify_page(migrated.stores(), "acme", None, repair=False)).drift == {}


async def test_the_earlier_texts_of_edited_records_are_indexed(migrated: World) -> None:
    query = (
        "SELECT record_id, at_ms, data ->> 'content' AS content FROM memory_events WHERE data ->> 'content' IS NOT NULL"
    )
    edits = [row for row in migrated.sql_now(f"{query} AND kind = 'edited' ORDER BY event_id") if row["content"]]
    assert edits
    for _ in range(2):
        await migrated.rest()
    for edit in edits:
        [stored] = migrated.sql_now(f"{query} AND kind = 'stored' AND record_id = ?", edit["record_id"])
        [earlier] = migrated.sql_now("SELECT * FROM memory_earlier WHERE record_id = ?", edit["record_id"])
        assert (earlier["from_ms"], earlier["until_ms"]) == (stored["at_ms"], edit["at_ms"])
        [words] = migrated.sql_now("SELECT content FROM memory_earlier_text WHERE rowid = ?", earlier["number"])
        assert len(words["content"].split()) == earlier["words"] == len(stored["content"].split())
    assert {row["record_id"] for row in migrated.sql_now("SELECT * FROM memory_earlier")} == {
        edit["record_id"] for edit in edits
    }


async def test_the_conversations_are_whole_and_continue(migrated: World) -> None:
    page = await list_conversations(migrated.sql, "acme", Wanted(), limit=50)
    assert sorted((one.agent_type, one.instance_id, one.runs) for one in page.entries) == [
        ("order_triage", "ann", 3),
        ("sdr", "desk", 3),
    ]
    messages = (await list_messages(migrated.sql, "acme", "order_triage", "ann", limit=50)).entries
    runs = migrated.sql_now("SELECT input, output FROM agent_runs WHERE instance_id = 'ann' ORDER BY run_id")
    expected = [text for run in runs for text in (json.loads(run["input"])["input"], run["output"])]
    assert [message.content for message in messages] == expected
    assert [message.role for message in messages] == ["user", "assistant"] * 3
    later = await migrated.run("order_triage", "From ann@shop.example: And order AB-1004?", instance="ann")
    assert later["memory"]["episodes_used"] > 0
    await migrated.settled()
    messages = (await list_messages(migrated.sql, "acme", "order_triage", "ann", limit=50)).entries
    assert len(messages) == 8


async def test_an_old_instance_may_begin_to_serve_a_user(migrated: World) -> None:
    result = await migrated.run("sdr", "I am Ann.", instance="desk", user={"id": "ann"})
    assert result["status"] == "completed"
    await migrated.settled()
    runs = migrated.sql_now("SELECT user_id FROM agent_runs WHERE instance_id = 'desk' ORDER BY run_id")
    assert [run["user_id"] for run in runs] == [None, None, None, "ann"]
    assert migrated.sql_now("SELECT user_id FROM users") == [{"user_id": "ann"}]
    assert (await migrated.stores().history().verify("acme")).problem is None


@pytest.mark.workerd
def test_wrangler_migrates_an_old_database_as_the_host_does(tmp_path: Path) -> None:
    migrate(tmp_path, PRODUCTION_CONFIG)  # for the name that the local server gives the file
    [path] = [path for path in tmp_path.glob("v3/d1/miniflare-D1DatabaseObject/*.sqlite") if path.stem != "metadata"]
    for file in path.parent.glob(f"{path.stem}.sqlite*"):
        file.unlink()
    path.write_bytes(_made()[2])
    migrate(tmp_path, PRODUCTION_CONFIG)
    host = open_database()
    host.deserialize(_made()[2])
    SqliteSql(host).migrate(ROOT / "migrations")
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as local:
        assert _contents(local) == _contents(host)


def _contents(connection: sqlite3.Connection) -> dict[str, str]:
    """Return the schema and a digest of every table's rows."""
    found = {}
    for name, kind, sql in connection.execute(
        "SELECT name, type, sql FROM sqlite_master WHERE sql IS NOT NULL"
    ).fetchall():
        if name.startswith(("_cf_", "sqlite_", "d1_migrations")):
            continue
        found[f"{kind} {name}"] = " ".join(str(sql).split())
        if kind == "table" and not name.startswith(("memory_text", "memory_vocabulary", "memory_occurrences")):
            rows = sorted(map(repr, connection.execute(f'SELECT * FROM "{name}"').fetchall()))
            found[f"rows of {name}"] = digest_of(name, "\n".join(rows))
    return found
