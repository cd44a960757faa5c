"""R2 on the host: objects in SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

from retain.host.connection import open_connection, query
from retain.host.pages import page_of, prefix_range
from retain.limits.storage import check_object_key, check_page, wrong_size
from retain.ports import KeyPage

_SCHEMA = """
CREATE TABLE IF NOT EXISTS objects (key BLOB PRIMARY KEY, value BLOB NOT NULL, content_type TEXT NOT NULL)
"""


class SqliteObjects:
    """Implements `retain.attachments.objects.StreamedObjects`. An object is held in memory while it is read or written."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    @classmethod
    def open(cls, path: str | Path = ":memory:") -> SqliteObjects:
        """Open a store in a file, or a new one in memory.

        Raises: Unavailable.
        """
        connection = open_connection(path)
        connection.execute(_SCHEMA)
        return cls(connection)

    def close(self) -> None:
        """Close the connection. A store in memory is lost."""
        self._connection.close()

    async def get(self, key: str) -> bytes | None:
        """Return the object's bytes, or None. See the port; `retain.limits.storage.check_object_key` for its errors."""
        rows = query(self._connection, "SELECT value FROM objects WHERE key = ?", check_object_key(key).encode())
        return bytes(rows[0][0]) if rows else None

    async def put(self, key: str, value: bytes, *, content_type: str = "application/octet-stream") -> None:
        """Write the object. See the port, and `retain.limits.storage.check_object_key` for its errors."""
        sql = "INSERT OR REPLACE INTO objects (key, value, content_type) VALUES (?, ?, ?)"
        query(self._connection, sql, check_object_key(key).encode(), value, content_type)

    async def add(self, key: str, value: bytes, *, content_type: str = "application/octet-stream") -> bool:
        """Write the object if there is none. See the port."""
        sql = "INSERT OR IGNORE INTO objects (key, value, content_type) VALUES (?, ?, ?) RETURNING 1"
        return bool(query(self._connection, sql, check_object_key(key).encode(), value, content_type))

    async def put_stream(
        self, key: str, pieces: AsyncIterator[bytes], *, size_bytes: int, content_type: str = "application/octet-stream"
    ) -> None:
        """Write the object from pieces. See the port."""
        check_object_key(key)
        content = b"".join([piece async for piece in pieces])
        if len(content) != size_bytes:
            raise wrong_size(size_bytes)
        await self.put(key, content, content_type=content_type)

    async def stream(self, key: str) -> AsyncIterator[bytes] | None:
        """Return the object's content, or None. See the port."""
        content = await self.get(key)
        return None if content is None else _one_piece(content)

    async def delete(self, key: str) -> None:
        """Remove the object. See the port."""
        query(self._connection, "DELETE FROM objects WHERE key = ?", check_object_key(key).encode())

    async def list(self, prefix: str, *, cursor: str | None = None, limit: int = 1000) -> KeyPage:
        """Return a page of keys, in the order of their UTF-8 bytes. See the port.

        Raises: InvalidInput (code `invalid_limit`, `invalid_cursor`).
        """
        check_page(limit)
        sql = "SELECT key FROM objects WHERE key >= ? AND key > ? AND key < ? ORDER BY key LIMIT ?"
        rows = query(self._connection, sql, *prefix_range(prefix, cursor), limit + 1)
        return page_of([row[0] for row in rows], limit)


async def _one_piece(content: bytes) -> AsyncIterator[bytes]:
    if content:
        yield content
