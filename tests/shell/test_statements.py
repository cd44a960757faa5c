"""How statements reach D1 and an object's SQLite: by `adapters/database.mjs`, or on the host by `platform/database.py`."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.shell.platform import database, ffi
from tests.shell.platform.objects import Storage
from tests.shell.worker import Worker, bindings
from tools.paths import NODE_BIN, ROOT

HERE = Path(__file__).parent
MODULE = ROOT / "workers" / "adapters" / "database.mjs"


def test_the_module_that_runs_statements() -> None:
    command: list[str | Path] = [NODE_BIN / "node", "--test", "--test-reporter=tap", HERE / "database.test.mjs"]
    environment = {**os.environ, "MODULE": str(MODULE)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "# pass 4" in done.stdout, done.stdout


async def test_a_batch_is_one_call_into_javascript(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    sql, calls, batch = bindings.D1(worker.env.DB), [], database.batch

    async def noting(*given: Any) -> Any:
        calls.append(given)
        return await batch(*given)

    monkeypatch.setattr(database, "batch", noting)
    results = await sql.batch([("SELECT ? AS a", ("x",)), ("SELECT 1 AS b", ()), ("SELECT ? AS c", (None,))])
    assert [[dict(row) for row in result.rows] for result in results] == [[{"a": "x"}], [{"b": 1}], [{"c": None}]]
    assert len(calls) == 1


def test_a_statement_of_an_object_is_one_call_into_javascript(monkeypatch: pytest.MonkeyPatch) -> None:
    calls, rows = [], database.rows

    def noting(*given: Any) -> Any:
        calls.append(given)
        return rows(*given)

    monkeypatch.setattr(database, "rows", noting)
    sql = bindings.DurableSql(Storage())
    sql.run("CREATE TABLE t (a)")
    sql.run("INSERT INTO t VALUES (?)", "x")
    assert [row["a"] for row in sql.run("SELECT a FROM t").rows] == ["x"]
    assert sql.run("SELECT a FROM t WHERE a = ?", "y").rows == []
    assert len(calls) == 4


async def test_deadlines_share_what_javascript_calls(worker: Worker) -> None:
    platform = bindings.platform_of(worker.env)
    await platform.sql.run("SELECT 1")
    made = len(ffi.proxies)
    await platform.sql.run("SELECT 1")
    await platform.kv.get("k")
    assert len(ffi.proxies) == made
