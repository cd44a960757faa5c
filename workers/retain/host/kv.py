"""Workers KV on the host: keys, values and expiry in SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path

from retain.host.connection import open_connection, query
from retain.host.pages import page_of, prefix_range
from retain.limits.storage import check_kv_key, check_kv_keys, check_kv_write, check_page
from retain.ports import Clock, KeyPage

_SCHEMA = """
CREATE TABLE IF NOT EXISTS kv (key BLOB PRIMARY KEY, value TEXT NOT NULL, expires_at_ms INTEGER) WITHOUT ROWID
"""


class SqliteKv:
    """Implements `retain.ports.Kv`, strongly consistent. A key expires exactly on time, by the given clock."""

    def __init__(self, connection: sqlite3.Connection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock

    @classmethod
    def open(cls, clock: Clock, path: str | Path = ":memory:") -> SqliteKv:
        """Open a store in a file, or a new one in memory.

        Raises: Unavailable.
        """
        connection = open_connection(path)
        connection.execute(_SCHEMA)
        return cls(connection, clock)

    def close(self) -> None:
        """Close the connection. A store in memory is lost."""
        self._connection.close()

    async def get(self, key: str) -> str | None:
        """Return the value, or None. See the port, and `retain.limits.storage.check_kv_key` for its errors."""
        sql = "SELECT value FROM kv WHERE key = ? AND (expires_at_ms IS NULL OR expires_at_ms > ?)"
        rows = query(self._connection, sql, check_kv_key(key).encode(), self._clock())
        return str(rows[0][0]) if rows else None

    async def get_many(self, keys: Sequence[str]) -> list[str | None]:
        """Return the values of keys. See the port."""
        return [await self.get(key) for key in check_kv_keys(keys)]

    async def put(self, key: str, value: str, *, ttl_s: int | None = None) -> None:
        """Write the value. See the port, and `retain.limits.storage.check_kv_write` for its errors."""
        check_kv_write(key, value, ttl_s)
        expires_at_ms = None if ttl_s is None else self._clock() + ttl_s * 1000
        sql = "INSERT OR REPLACE INTO kv (key, value, expires_at_ms) VALUES (?, ?, ?)"
        query(self._connection, sql, key.encode(), value, expires_at_ms)

    async def delete(self, key: str) -> None:
        """Remove the key. See the port."""
        query(self._connection, "DELETE FROM kv WHERE key = ?", check_kv_key(key).encode())

    async def list(self, prefix: str, *, cursor: str | None = None, limit: int = 1000) -> KeyPage:
        """Return a page of keys, in the order of their UTF-8 bytes. See the port.

        Raises: InvalidInput (code `invalid_limit`, `invalid_cursor`).
        """
        check_page(limit)
        sql = """
            SELECT key FROM kv WHERE key >= ? AND key > ? AND key < ? AND (expires_at_ms IS NULL OR expires_at_ms > ?)
            ORDER BY key LIMIT ?
        """
        rows = query(self._connection, sql, *prefix_range(prefix, cursor), self._clock(), limit + 1)
        return page_of([row[0] for row in rows], limit)
