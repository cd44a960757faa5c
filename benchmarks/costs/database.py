"""A database on workerd whose statements are counted: round trips, and the rows that D1 would bill.

The Durable Object in `meter.js` runs the statements. D1 is such an object, so the counts equal `meta.rows_read` and
`meta.rows_written` of D1.
Source: https://developers.cloudflare.com/d1/platform/pricing/ and https://developers.cloudflare.com/durable-objects/api/sqlite-storage-api/#sqlstoragecursor
"""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from retain.errors import ConstraintViolated, Unavailable
from retain.host.sql import split_statements
from retain.json_text import read_own_json
from retain.limits.storage import check_statement
from retain.ports import SqlResult, SqlValue, Statement

ROOT = Path(__file__).resolve().parents[2]
_CONFIG = """\
using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "state", disk = (path = {folder}, writable = true)),
    (name = "meter", worker = (
      modules = [(name = "meter.js", esModule = embed "/benchmarks/costs/meter.js")],
      compatibilityDate = "2026-09-08",
      bindings = [(name = "DATABASE", durableObjectNamespace = "Database")],
      durableObjectNamespaces = [(className = "Database", uniqueKey = "database", enableSql = true)],
      durableObjectStorage = (localDisk = "state")))],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "meter")]
);
"""


@dataclass
class Cost:
    """What an operation cost: round trips, and rows that its statements read and wrote. statements: read rows, and SQL."""

    trips: int = 0
    read: int = 0
    written: int = 0
    statements: list[tuple[int, str]] = field(default_factory=list)


class CountedSql:
    """Implements `retain.ports.Sql` on the counted database. cost: of everything since it was set."""

    def __init__(self, url: str) -> None:
        self._client = httpx.Client(base_url=url, timeout=300)
        self.cost = Cost()

    async def run(self, sql: str, *values: SqlValue) -> SqlResult:
        """Run one statement: one trip. See the port."""
        await asyncio.sleep(0)
        [result] = self._transaction([(sql, values)])
        return result

    async def batch(self, statements: Sequence[Statement]) -> list[SqlResult]:
        """Run the statements as one transaction: one trip. See the port."""
        await asyncio.sleep(0)
        return self._transaction(statements) if statements else []

    def migrate(self, folder: Path) -> None:
        """Apply the folder's migrations, one transaction each."""
        for path in sorted(folder.glob("*.sql")):
            self._transaction([(sql, ()) for sql in split_statements(path.read_text("utf-8"))])

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def _transaction(self, statements: Sequence[Statement]) -> list[SqlResult]:
        asked = [(sql, list(check_statement(sql, values))) for sql, values in statements]
        answers = self._client.post("/", content=json.dumps(asked)).json()
        if isinstance(answers, dict):
            error = str(answers["error"])
            if "constraint" in error.lower():
                raise ConstraintViolated("a constraint of the database forbids it") from RuntimeError(error)
            raise Unavailable("the database refused the statement", code="database_failed") from RuntimeError(error)
        self.cost.trips += 1
        for (sql, _), answer in zip(asked, answers, strict=True):
            self.cost.read += answer["read"]
            self.cost.written += answer["written"]
            self.cost.statements.append((answer["read"], " ".join(sql.split())))
        return [
            SqlResult([dict(zip(one["columns"], row, strict=True)) for row in one["rows"]], one["changes"])
            for one in answers
        ]


@contextmanager
def counted_database(folder: Path) -> Iterator[CountedSql]:
    """Serve a new, migrated database from an existing folder until the block ends. Needs workerd: `npm ci`."""
    programs = sorted((ROOT / "node_modules" / "@cloudflare").glob("workerd-*/bin/workerd"))
    if not programs:
        raise RuntimeError("workerd is not installed: run `npm ci` first")
    (folder / "state").mkdir()
    (folder / "config.capnp").write_text(_CONFIG.format(folder=json.dumps(str(folder / "state"))))
    command = [str(programs[0]), "serve", "--experimental", "--control-fd=1", f"--import-path={ROOT}"]
    command += [f"--import-path={ROOT / 'node_modules'}", str(folder / "config.capnp")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            port = read_own_json(process.stdout.readline())["port"]
            sql = CountedSql(f"http://127.0.0.1:{port}/")
            sql.migrate(ROOT / "migrations")
            yield sql
            sql.close()
        finally:
            process.kill()
