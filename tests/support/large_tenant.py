"""A tenant with many memories and runs: the memories through the server, the runs as copies in the local D1's file."""

from __future__ import annotations

import random
import sqlite3
import time
from collections.abc import Iterator
from dataclasses import dataclass

import httpx

from benchmarks.agent import sentence
from retain.identifiers import new_id
from tests.e2e.local_state import LocalState
from tests.e2e.waiting import eventually

_MAIL = "From: sara@example.com. The vase of order SO-4702 is broken. Refund, please."


@dataclass(frozen=True)
class LargeTenant:
    """What is in it. run_id: of a usual run. long_id: of the run with the most events. steps: of its timeline's rows.

    record_ms: how long storing one memory took.
    """

    tenant_id: str
    run_id: str
    long_id: str
    steps: int
    memory_id: str
    record_ms: float


def large_tenant(
    api: httpx.Client, state: LocalState, tenant_id: str, *, records: int, runs: int, events: int
) -> LargeTenant:
    """Fill a registered tenant with so many memories and runs, one of them with so many events."""
    record_ms = _store(api, tenant_id, records)
    run_id = _a_run(api, tenant_id)
    memory_id = state.d1("SELECT id FROM memory_records WHERE tenant_id = ? LIMIT 1", tenant_id)[0]["id"]
    with state.d1_transaction() as database:
        assert isinstance(database, sqlite3.Connection), "the rows of a run are copied in the only database"
        for number in range(1, runs):
            _copy(database, run_id, new_id(), f"created_at_ms - {number * 1000}")
        long_id = _long_run(database, run_id, events)
    begun = "SELECT COUNT(*) AS steps FROM run_events WHERE run_id = ? AND kind NOT LIKE '%answered'"
    return LargeTenant(tenant_id, run_id, long_id, state.d1(begun, long_id)[0]["steps"], memory_id, record_ms)


def _store(api: httpx.Client, tenant_id: str, count: int) -> float:
    """Store memories of the agent sdr, 100 per request; return milliseconds per memory."""
    chance, started = random.Random(1), time.perf_counter()
    for start in range(0, count, 100):
        memories = [{"content": sentence(chance, number)} for number in range(start, min(start + 100, count))]
        body = {"tenant": tenant_id, "agent_type": "sdr", "memories": memories}
        api.post("/admin/seed-memory", json=body).raise_for_status()
    return (time.perf_counter() - started) * 1000 / max(count, 1)


def _a_run(api: httpx.Client, tenant_id: str) -> str:
    answer = api.post(f"/v1/agents/{tenant_id}/order_triage/run", json={"input": _MAIL}).json()
    path = f"/admin/agents/{tenant_id}/runs/{answer['run_id']}"
    eventually(lambda: api.get(path), lambda found: found.is_success and found.json()["status"] == "completed")
    return str(answer["run_id"])


def _copy(database: sqlite3.Connection, run_id: str, new: str, created: str) -> None:
    """Write a copy of a run's row. created: its time, as SQL."""
    columns = [str(row[1]) for row in database.execute("PRAGMA table_info(agent_runs)")]
    values = [{"run_id": "?", "created_at_ms": created}.get(column, column) for column in columns]
    sql = f"INSERT INTO agent_runs ({', '.join(columns)}) SELECT {', '.join(values)} FROM agent_runs WHERE run_id = ?"
    database.execute(sql, (new, run_id))


def _long_run(database: sqlite3.Connection, run_id: str, events: int) -> str:
    """Write a copy of a run that repeats its events, a turn later each time, until there are so many; return its id."""
    long_id = new_id()
    _copy(database, run_id, long_id, "created_at_ms + 1000")
    database.executemany(
        "INSERT INTO run_events VALUES (?, ?, ?, ?, ?, ?, ?)", _repeated(database, run_id, long_id, events)
    )
    return long_id


def _repeated(database: sqlite3.Connection, run_id: str, long_id: str, events: int) -> Iterator[tuple[object, ...]]:
    rows = database.execute("SELECT * FROM run_events WHERE run_id = ? ORDER BY seq", (run_id,)).fetchall()
    for number in range(events):
        _, _, tenant, kind, turn, data, at_ms = rows[number % len(rows)]
        later = turn + (number // len(rows)) * rows[-1][4]
        yield long_id, number + 1, tenant, kind, later, data, at_ms + number + 1
