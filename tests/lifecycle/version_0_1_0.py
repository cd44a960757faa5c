"""A database of version 0.1.0: its schema, with the rows that its code wrote of runs, conversations and memory."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from shutil import copy
from tempfile import TemporaryDirectory
from typing import Any

from retain.host.sql import SqliteSql
from retain.memory.records.record import NewRecord, Utterance
from tests.lifecycle.world import AGENT, PERSON, World
from tests.support.databases import connection_of
from tools.paths import ROOT

LAST = "0011_episodes_of_instances.sql"
MAIL = "From ann@shop.example: I want a refund of order AB-1003."
_BY_TRIGGERS = ("memory_likeness", "episode_counts", "d1_migrations")


async def fill(world: World) -> None:
    """Store what version 0.1.0 could store: in every kind of scope, with history, and runs with their episodes."""
    await world.sql.run("INSERT OR IGNORE INTO tenants (tenant_id, created_at_ms) VALUES ('acme', 0)")
    for scope in ({}, {"house": "orders"}, {"agent_type": "sdr"}, {"agent_type": "sdr", "instance_id": "desk"}):
        memory = world.memory("acme", scope.get("agent_type"), **{k: v for k, v in scope.items() if k != "agent_type"})
        await memory.store(
            NewRecord(f"Tea is served in {sorted(scope.values())}.", metadata={"level": len(scope)}), AGENT
        )
    berlin: dict[str, Any] = {"subject": "ann", "predicate": "lives_in"}
    await world.store("Ann lives in Berlin.", **berlin, object="Berlin")
    world.clock.advance(1000)
    await world.store("Ann lives in Munich.", **berlin, object="Munich")
    edited = await world.store("Ann owns a lamp.")
    await world.memory().edit(edited, {"content": "Ann owns two lamps."}, PERSON)
    gone = await world.store("Forget this.")
    await world.memory().delete(gone, PERSON)
    turns = [NewRecord(f"Turn {n} of the chat.", utterance=Utterance("chat-1", n, "Ann", 10**12 + n)) for n in range(4)]
    await world.store_all(turns)
    for number in range(3):
        await world.run("order_triage", f"{MAIL} Mail {number}.", instance="ann")
        await world.run("sdr", f"Write to lead {number}.", instance="desk")
        await world.settled()
    await world.rest()


def old_database(world: World) -> bytes:
    """Return the world's D1 as version 0.1.0 would have written it, serialised."""
    with TemporaryDirectory() as folder, closing(SqliteSql.open()) as old:
        for path in sorted((ROOT / "migrations").glob("*.sql")):
            if path.name <= LAST:
                copy(path, folder)
        assert old.migrate(Path(folder))[-1] == LAST
        connection = connection_of(old)
        for table, columns in _tables(connection):
            rows = world.sql_now(f"SELECT {', '.join(columns)} FROM {table} WHERE 1")
            for row in rows:
                _insert(connection, table, columns, _as_written(table, row, world))
        connection.commit()
        return connection.serialize()


def _tables(connection: sqlite3.Connection) -> Sequence[tuple[str, list[str]]]:
    """Return the tables to copy with their columns; records come before what triggers count of them."""
    names = connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name NOT LIKE 'memory_text%'"
        " AND name NOT IN ('memory_vocabulary', 'memory_occurrences', 'tenants') ORDER BY name = 'memory_search', name"
    )
    found = [
        (str(name), [str(column[1]) for column in connection.execute(f"PRAGMA table_info({name})")])
        for (name,) in names.fetchall()
        if name not in _BY_TRIGGERS
    ]
    return [("tenants", ["tenant_id", "created_at_ms"]), *found, ("memory_text", ["rowid", "content"])]


def _as_written(table: str, row: dict[str, Any], world: World) -> dict[str, Any]:
    """Return a row as version 0.1.0 wrote it: word counts are left to the triggers; a run's row had its episodes' texts."""
    if table == "scopes":
        return {**row, "records": 0, "words": 0}
    if table != "agent_runs":
        return row
    kept = json.loads(row["input"])
    for episode in kept["episodes"]:
        [known] = world.sql_now("SELECT * FROM memory_episodes WHERE episode_id = ?", episode["episode_id"])
        episode |= {name: known[name] for name in ("run_id", "turn", "content", "created_at_ms")}
    return {**row, "input": json.dumps(kept)}


def _insert(connection: sqlite3.Connection, table: str, columns: Sequence[str], row: dict[str, Any]) -> None:
    places = ", ".join("?" * len(columns))
    clash = "OR REPLACE " if table == "tenants" else ""
    connection.execute(
        f"INSERT {clash}INTO {table} ({', '.join(columns)}) VALUES ({places})",
        [row[column] for column in columns],
    )
