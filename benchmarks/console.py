"""Measure the console's views in a real Chromium, over a tenant with many memories and runs on the real workerd.

    python -m benchmarks.console [--records 10000] [--runs 2000] [--events 5000]

A view's time is from its address being opened until its content is shown, the median of its rounds. The runs are copies of a
real one, written into the local D1's file; the memories are stored through the server.
"""

from __future__ import annotations

import argparse
import sqlite3
import statistics
import tempfile
import time
from pathlib import Path

import httpx
from playwright.sync_api import Page

from benchmarks.agent import TENANT, seed_records
from retain.identifiers import new_id
from tests.e2e.local_state import LocalState
from tests.e2e.waiting import eventually
from tests.support.browser import browsing
from tools.local_server import LocalServer, serving

ROUNDS = 7
_MAIL = "From: sara@example.com. The vase of order SO-4702 is broken. Refund, please."
_QUERY = "query=the+customer+wanted+a+discount&agent_type=sdr"


def main() -> None:
    """Fill the tenant, measure, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.console")
    parser.add_argument("--records", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=2_000)
    parser.add_argument("--events", type=int, default=5_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder)) as server:
        state = LocalState(Path(folder))
        with httpx.Client(base_url=server.base_url, timeout=120) as client:
            print(f"{seed_records(client, options.records):.1f} ms a record")
            run_id = _a_run(client)
        memory_id = state.d1("SELECT id FROM memory_records LIMIT 1")[0]["id"]
        with state.d1_transaction() as database:
            _copy_runs(database, run_id, options.runs)
            long_id = _long_run(database, run_id, options.events)
        begun = "SELECT COUNT(*) AS steps FROM run_events WHERE run_id = ? AND kind NOT LIKE '%answered'"
        _measure(server, run_id, long_id, state.d1(begun, long_id)[0]["steps"], memory_id)


def _a_run(client: httpx.Client) -> str:
    answer = client.post(f"/v1/agents/{TENANT}/order_triage/run", json={"input": _MAIL}).json()
    path = f"/admin/agents/{TENANT}/runs/{answer['run_id']}"
    eventually(lambda: client.get(path), lambda found: found.is_success and found.json()["status"] == "completed")
    return str(answer["run_id"])


def _copy_runs(database: sqlite3.Connection, run_id: str, count: int) -> None:
    """Write copies of a run, a second apart, the newest first."""
    for number in range(1, count):
        _copy(database, "agent_runs", run_id, new_id(), f"created_at_ms - {number * 1000}")


def _copy(database: sqlite3.Connection, table: str, run_id: str, new: str, created: str) -> None:
    columns = [str(row[1]) for row in database.execute(f"PRAGMA table_info({table})")]
    values = [{"run_id": "?", "created_at_ms": created}.get(column, column) for column in columns]
    sql = f"INSERT INTO {table} ({', '.join(columns)}) SELECT {', '.join(values)} FROM {table} WHERE run_id = ?"  # noqa: S608
    database.execute(sql, (new, run_id))


def _long_run(database: sqlite3.Connection, run_id: str, events: int) -> str:
    """Write a copy of a run that repeats its events until there are so many; return its id."""
    long_id = new_id()
    _copy(database, "agent_runs", run_id, long_id, "created_at_ms + 1000")
    rows = database.execute("SELECT * FROM run_events WHERE run_id = ? ORDER BY seq", (run_id,)).fetchall()
    for seq in range(1, events + 1):
        _, _, tenant, kind, turn, data, at_ms = rows[(seq - 1) % len(rows)]
        values = (long_id, seq, tenant, kind, turn, data, at_ms + seq)
        database.execute("INSERT INTO run_events VALUES (?, ?, ?, ?, ?, ?, ?)", values)
    return long_id


def _measure(server: LocalServer, run_id: str, long_id: str, steps: int, memory_id: str) -> None:
    views = {
        "runs": ("runs", ".rows li"),
        "runs by text": ("runs?text=vase", ".rows li"),
        "a run": (f"runs/{run_id}", ".timeline li"),
        "a long run, its first events": (f"runs/{long_id}", ".timeline li"),
        "a long run, all of it": (f"runs/{long_id}", f".timeline li:nth-child({steps})"),
        "memories": ("memory?agent_type=sdr", ".rows li"),
        "a memory": (f"memory/{memory_id}", ".history li"),
        "recall": (f"recall?{_QUERY}", ".recalled li"),
        "people": ("people", "main .quiet, .rows li"),
        "operations": ("operations", "main .facts"),
    }
    with browsing() as browser:
        tab = browser.context.new_page()
        print("| view | ms until its content is shown |\n|---|---:|")
        for name, (address, shown) in views.items():
            spent = [_opened(tab, f"{server.base_url}/console#/{TENANT}/{address}", shown) for _ in range(ROUNDS)]
            print(f"| {name} | {statistics.median(spent):.0f} |")


def _opened(tab: Page, url: str, shown: str) -> float:
    tab.goto("about:blank")
    started = time.perf_counter()
    tab.goto(url)
    tab.locator(shown).first.wait_for()
    return (time.perf_counter() - started) * 1000


if __name__ == "__main__":
    main()
