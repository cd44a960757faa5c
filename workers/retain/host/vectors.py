"""Vectorize on the host: vectors in SQLite, exact search in plain Python. For up to about 20,000 vectors per namespace."""

from __future__ import annotations

import asyncio
import heapq
import json
import math
import sqlite3
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import mul
from pathlib import Path
from typing import cast
from uuid import uuid4

from retain.errors import Misconfigured
from retain.host.connection import open_connection, query, refusal
from retain.json_text import read_own_json
from retain.limits.vector_filter import FILTERABLE, matches
from retain.limits.vectorize import MAX_DELETE_IDS, MAX_GET_IDS, check_entries, check_ids, check_query
from retain.ports import MetadataFilter, MetadataValue, PropertyType, SqlValue, Vector, VectorEntry, VectorMatch

_SCHEMA = (
    """
    CREATE TABLE IF NOT EXISTS vectors (
      id TEXT PRIMARY KEY,
      namespace TEXT NOT NULL,
      vector BLOB NOT NULL,    -- 32-bit floats, native order
      norm REAL NOT NULL,
      metadata TEXT NOT NULL   -- JSON
    )
    """,
    "CREATE INDEX IF NOT EXISTS vectors_by_namespace ON vectors (namespace)",
)
_PUT = "INSERT OR REPLACE INTO vectors (id, namespace, vector, norm, metadata) VALUES (?, ?, ?, ?, ?)"
_IN_NAMESPACE = "SELECT id, vector, norm, metadata FROM vectors WHERE namespace = ?"
_GET = "SELECT id, namespace, vector, metadata FROM vectors WHERE id = ?"
_DELETE = "DELETE FROM vectors WHERE id = ?"
_COUNT = "SELECT COUNT(*) FROM vectors"
_FLOAT_BYTES = 4

# `math.sumprod` came with Python 3.12.
_sumprod = cast("Callable[[Iterable[float], Iterable[float]], float] | None", getattr(math, "sumprod", None))


class SqliteVectorIndex:
    """Implements `retain.ports.VectorIndex`; a write is visible when it returns. Blocks the event loop while it works.

    Values are stored as 32-bit floats, as Vectorize stores them.
    """

    def __init__(
        self, connection: sqlite3.Connection, dimensions: int, declared: Mapping[str, PropertyType] | None = None
    ) -> None:
        """declared: the properties by which a query may filter, beyond those of every deployment."""
        self._connection = connection
        self._dimensions = dimensions
        self.filterable: Mapping[str, PropertyType] = {**FILTERABLE, **(declared or {})}

    @classmethod
    def open(
        cls, dimensions: int, path: str | Path = ":memory:", declared: Mapping[str, PropertyType] | None = None
    ) -> SqliteVectorIndex:
        """Open an index in a file, or a new one in memory.

        Raises: Unavailable; Misconfigured (code `vector_dimensions_changed`) when the file has an index with others.
        """
        return cls.on(open_connection(path), dimensions, declared)

    @classmethod
    def on(
        cls, connection: sqlite3.Connection, dimensions: int, declared: Mapping[str, PropertyType] | None = None
    ) -> SqliteVectorIndex:
        """Return the index of an open database, which is closed with it.

        Raises: Misconfigured, as `open`.
        """
        for statement in _SCHEMA:
            query(connection, statement)
        for (size,) in query(connection, "SELECT length(vector) FROM vectors LIMIT 1"):
            if size != dimensions * _FLOAT_BYTES:
                connection.close()
                raise Misconfigured(
                    f"the index has {size // _FLOAT_BYTES} dimensions, not {dimensions}",
                    code="vector_dimensions_changed",
                )
        return cls(connection, dimensions, declared)

    def close(self) -> None:
        """Close the connection. An index in memory is lost."""
        self._connection.close()

    async def upsert(self, entries: Sequence[VectorEntry]) -> str:
        """Write the vectors, all of them or none; of equal ids in one batch, the last wins. See the port."""
        check_entries(entries, self._dimensions)
        await asyncio.sleep(0)
        return self._write(_PUT, [_row(entry) for entry in entries])

    async def query(
        self,
        vector: Vector,
        *,
        namespace: str,
        filter: MetadataFilter,  # noqa: A002 -- the port's name
        top_k: int,
        with_metadata: bool = False,
    ) -> list[VectorMatch]:
        """Return the nearest vectors of the namespace that pass the filter, best first, ties by id. See the port."""
        check_query(
            vector,
            self._dimensions,
            namespace=namespace,
            criteria=filter,
            top_k=top_k,
            with_metadata=with_metadata,
            filterable=self.filterable,
        )
        await asyncio.sleep(0)
        norm = math.hypot(*vector)
        found: list[tuple[float, str, dict[str, MetadataValue]]] = []
        for id_, blob, row_norm, text in query(self._connection, _IN_NAMESPACE, namespace):
            metadata: dict[str, MetadataValue] = read_own_json(text)
            if matches(filter, metadata):
                # The norm is 0 for a vector whose values are too small for 32 bits: they were rounded to zeros.
                score = _dot(vector, array("f", blob)) / (norm * row_norm) if row_norm else 0.0
                found.append((-max(-1.0, min(1.0, score)), id_, metadata))
        nearest = heapq.nsmallest(top_k, found, key=lambda one: one[:2])
        return [VectorMatch(id_, -score, metadata if with_metadata else {}) for score, id_, metadata in nearest]

    async def get_by_ids(self, ids: Sequence[str]) -> list[VectorEntry]:
        """Return those of the ids that exist. See the port."""
        check_ids(ids, MAX_GET_IDS)
        await asyncio.sleep(0)
        rows = [row for id_ in dict.fromkeys(ids) for row in query(self._connection, _GET, id_)]
        return [VectorEntry(row[0], array("f", row[2]).tolist(), row[1], read_own_json(row[3])) for row in rows]

    async def delete_by_ids(self, ids: Sequence[str]) -> str:
        """Remove the vectors. See the port."""
        check_ids(ids, MAX_DELETE_IDS)
        await asyncio.sleep(0)
        return self._write(_DELETE, [(id_,) for id_ in ids])

    async def dimensions(self) -> int:
        """Return the number of dimensions the index was created with."""
        return self._dimensions

    async def count(self) -> int:
        """Return the number of vectors. See the port."""
        await asyncio.sleep(0)
        [(count,)] = query(self._connection, _COUNT)
        return int(count)

    def _write(self, sql: str, rows: Sequence[tuple[SqlValue, ...]]) -> str:
        """Run the statement for every row, as one transaction; return a mutation id."""
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.executemany(sql, rows)
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise refusal(error) from error
        finally:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        return str(uuid4())


def _row(entry: VectorEntry) -> tuple[SqlValue, ...]:
    values = array("f", entry.values)
    return (entry.id, entry.namespace, values.tobytes(), math.hypot(*values), json.dumps(dict(entry.metadata)))


def _dot(a: Vector, b: Vector) -> float:
    return _sumprod(a, b) if _sumprod else sum(map(mul, a, b))
