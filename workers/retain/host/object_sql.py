"""The SQLite of a Durable Object, on the host."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path

from retain.host.connection import execute, open_database
from retain.ports import SqlRows, SqlValue


class SqliteObjectSql:
    """Implements `retain.ports.ObjectSql`.

    Each statement commits on its own: on the host, an object that is killed between two statements keeps the first.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    @classmethod
    def open(cls, path: str | Path = ":memory:") -> SqliteObjectSql:
        """Open a database file, or a new one in memory.

        Raises: Unavailable.
        """
        return cls(open_database(path))

    def close(self) -> None:
        """Close the connection. A database in memory is lost."""
        self._connection.close()

    def run(self, sql: str, *values: SqlValue) -> SqlRows:
        """Run one statement. See `retain.host.connection.execute` for its errors."""
        return execute(self._connection, sql, values)

    def script(self, statements: Sequence[str]) -> None:
        """Run statements without values. See the port."""
        for statement in statements:
            execute(self._connection, statement, ())

    def atomically(self, work: Callable[[], None]) -> None:
        """Run the work in a transaction. See the port."""
        self._connection.execute("SAVEPOINT work")
        try:
            work()
        except BaseException:
            if self._connection.in_transaction:  # else the work ended the enclosing transaction, and with it this one
                self._connection.execute("ROLLBACK TO work")
                self._connection.execute("RELEASE work")
            raise
        self._connection.execute("RELEASE work")
