"""Measure what a pruning costs on the host's SQLite: statements, calls and seconds.

    python -m benchmarks.retention [--tenants 600]

The database is a file, as D1's is. An old database is filled without the triggers that would refuse it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.table import Table

from retain.admin.maintenance import retention_rules
from retain.host.sql import SqliteSql
from retain.ports import Sql, SqlResult, SqlValue, Statement
from retain.retention import DAY_MS, prune

ROOT = Path(__file__).parents[1]
NOW = 500 * DAY_MS
_AT_A_TIME = 500
_EPISODE = (
    "INSERT INTO memory_episodes (episode_id, tenant_id, agent_type, instance_id, run_id, turn, content, created_at_ms)"
    " VALUES (?, ?, 'sdr', 'main', ?, 1, ?, ?)"
)
_COPYING_RUN = (
    "INSERT INTO agent_runs (run_id, tenant_id, agent_type, instance_id, status, input, model, created_at_ms)"
    " VALUES (?, ?, 'sdr', 'main', 'completed', ?, 'model', ?)"
)


@dataclass
class Watched:
    """Implements `Sql` on another one, and measures it. slowest_s: of its calls."""

    sql: Sql
    statements: int = 0
    slowest_s: float = 0.0

    async def run(self, sql: str, *values: SqlValue) -> SqlResult:
        """Run one statement."""
        [result] = await self.batch([(sql, values)])
        return result

    async def batch(self, statements: Sequence[Statement]) -> list[SqlResult]:
        """Run the statements."""
        began = time.perf_counter()
        results = await self.sql.batch(statements)
        self.slowest_s = max(self.slowest_s, time.perf_counter() - began)
        self.statements += len(statements)
        return results


def episodes(count: int, size_bytes: int, tenants: int) -> Iterator[Statement]:
    """Yield the statements that write old episodes of this size."""
    for number in range(count):
        run_id = f"{number:026d}"
        yield _EPISODE, (f"{run_id}.001", f"t{number % tenants}", run_id, "x" * size_bytes, number)


def copying_runs(count: int, tenants: int) -> Iterator[Statement]:
    """Yield the statements that write young runs as version 0.1.0 did, each with ten episodes' texts."""
    read = [{"episode_id": f"e{n}.001", "run_id": "e", "turn": 1, "content": "x" * 11_900} for n in range(10)]
    logged = json.dumps({"input": "hello", "metadata": {}, "episodes": read, "records": [], "cut": {}})
    for number in range(count):
        yield _COPYING_RUN, (f"{number:026d}", f"t{number % tenants}", logged, NOW - 1 - number)


async def measured(rows: Iterator[Statement], tenants: int) -> list[str]:
    """Return statements, calls, seconds in all, and seconds of the slowest statement, of pruning a database."""
    with TemporaryDirectory() as folder, closing(SqliteSql.open(Path(folder) / "d1.sqlite")) as sql:
        sql.migrate(ROOT / "migrations")
        await sql.run("DROP TRIGGER memory_episodes_limited")
        await sql.batch(
            [
                ("INSERT INTO tenants (tenant_id, created_at_ms) VALUES (?, 0)", (f"t{number}",))
                for number in range(tenants)
            ]
        )
        while page := [row for row, _ in zip(rows, range(_AT_A_TIME), strict=False)]:
            await sql.batch(page)
        watched, calls, began, complete = Watched(sql), 0, time.perf_counter(), False
        while not complete:
            complete = (await prune(watched, NOW, retention_rules(400))).complete
            calls += 1
        seconds = time.perf_counter() - began
        return [str(watched.statements), str(calls), f"{seconds:.1f}", f"{watched.slowest_s:.1f}"]


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    options.add_argument("--tenants", type=int, default=600)
    tenants = options.parse_args().tenants
    databases: dict[str, Callable[[], Iterator[Statement]]] = {
        "nothing old": lambda: iter(()),
        "100,000 old episodes of 500 bytes": lambda: episodes(100_000, 500, tenants),
        "50,000 old episodes of 16 KB": lambda: episodes(50_000, 16_384, tenants),
        "10,000 runs of version 0.1.0, 119 KB each": lambda: copying_runs(10_000, tenants),
    }
    table = Table(title=f"Pruning, {tenants} tenants")
    for heading in ("database", "statements", "invocations", "seconds in all", "slowest statement, s"):
        table.add_column(heading)
    for name, rows in databases.items():
        table.add_row(name, *asyncio.run(measured(rows(), tenants)))
    Console().print(table)


if __name__ == "__main__":
    main()
