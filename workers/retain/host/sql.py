"""D1 on the host: the SQL port over one SQLite connection."""

from __future__ import annotations

import asyncio
import re
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from retain.errors import Misconfigured, RetainError
from retain.host.connection import database_bytes, execute, open_database, refusal
from retain.ports import SqlResult, SqlValue, Statement

_MIGRATIONS = """
CREATE TABLE IF NOT EXISTS d1_migrations (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT UNIQUE,
  applied_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP NOT NULL
)
"""
_COMMENTS = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)


class SqliteSql:
    """Implements `retain.ports.Sql`. Blocks the event loop while a statement runs.

    Each call first lets other tasks run, as they do while a request travels to D1. No other task runs inside a batch.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    @classmethod
    def open(cls, path: str | Path = ":memory:") -> SqliteSql:
        """Open a database file, or a new one in memory.

        Raises: Unavailable.
        """
        return cls(open_database(path))

    def close(self) -> None:
        """Close the connection. A database in memory is lost."""
        self._connection.close()

    async def run(self, sql: str, *values: SqlValue) -> SqlResult:
        """Run one statement. See the port, and `retain.host.connection.execute` for its errors."""
        await asyncio.sleep(0)
        return replace(execute(self._connection, sql, values), database_bytes=database_bytes(self._connection))

    async def batch(self, statements: Sequence[Statement]) -> list[SqlResult]:
        """Run the statements as one transaction: all of them, or none. See the port."""
        await asyncio.sleep(0)
        return self._transaction(statements) if statements else []

    def migrate(self, folder: Path) -> list[str]:
        """Apply the folder's numbered `*.sql` files that are not yet applied; return their names. Several processes may.

        Keeps the same record as `wrangler d1 migrations apply`: table `d1_migrations`, files ordered by number and then
        by name. Each file is one transaction: it is applied and recorded as a whole, or not at all.
        Source: https://developers.cloudflare.com/d1/reference/migrations/

        Raises: Misconfigured (code `migration_failed`, detail `migration`) with the database's error as its cause.
        """
        execute(self._connection, _MIGRATIONS, ())
        known, applied = self._applied(), list[str]()
        for path in [path for path in _numbered(folder) if path.name not in known]:
            statements: list[Statement] = [(sql, ()) for sql in split_statements(path.read_text("utf-8"))]
            statements.append(("INSERT INTO d1_migrations (name) VALUES (?)", (path.name,)))
            try:
                self._transaction(statements)
            except RetainError as error:
                if path.name in self._applied():  # another process applied it first
                    continue
                raise Misconfigured(
                    f"the migration {path.name} failed", code="migration_failed", migration=path.name
                ) from error.__cause__
            applied.append(path.name)
        return applied

    def _applied(self) -> set[str]:
        return {row["name"] for row in execute(self._connection, "SELECT name FROM d1_migrations", ()).rows}

    def _transaction(self, statements: Sequence[Statement]) -> list[SqlResult]:
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            results = [execute(self._connection, sql, values) for sql, values in statements]
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise refusal(error) from error
        finally:
            if self._connection.in_transaction:  # something failed before the commit, or the commit itself did
                self._connection.execute("ROLLBACK")
        return results


def split_statements(script: str) -> Iterator[str]:
    """Yield the SQL statements of a script. A `;` in a string, a comment or a trigger's body does not end a statement."""
    pending = ""
    for piece in script.split(";"):
        pending += piece
        if sqlite3.complete_statement(pending + ";"):
            if _COMMENTS.sub("", pending).strip():
                yield pending.strip()
            pending = ""
        else:
            pending += ";"
    if _COMMENTS.sub("", pending).strip(" \t\r\n;"):
        yield pending.strip()


def _numbered(folder: Path) -> list[Path]:
    numbers = {path: re.match(r"\d+", path.name) for path in folder.glob("*.sql")}
    return sorted(
        (path for path, number in numbers.items() if number is not None),
        key=lambda path: (int(path.name.split("_")[0].removesuffix(".sql")), path.name),
    )
