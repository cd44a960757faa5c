"""Vectorize on the host: vectors in SQLite, exact search.

With numpy (the extra `host`) the vectors of a namespace are kept in memory from its first query on. Without it each query
reads them in plain Python, which serves up to about 20,000 vectors per namespace. Both answer the same, to twelve digits.
"""

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

try:
    import numpy
except ImportError:  # it is optional
    numpy = None  # type: ignore[assignment]

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
    # How many rows were ever written: what is in memory is read again when another process has written.
    "CREATE TABLE IF NOT EXISTS vector_writes (one INTEGER PRIMARY KEY CHECK (one = 1), count INTEGER NOT NULL)",
    "INSERT OR IGNORE INTO vector_writes VALUES (1, 0)",
    """
    CREATE TRIGGER IF NOT EXISTS vectors_written AFTER INSERT ON vectors BEGIN
      UPDATE vector_writes SET count = count + 1;
    END
    """,
    """
    CREATE TRIGGER IF NOT EXISTS vectors_deleted AFTER DELETE ON vectors BEGIN
      UPDATE vector_writes SET count = count + 1;
    END
    """,
)
_PUT = "INSERT OR REPLACE INTO vectors (id, namespace, vector, norm, metadata) VALUES (?, ?, ?, ?, ?)"
_IN_NAMESPACE = "SELECT id, vector, norm, metadata FROM vectors WHERE namespace = ?"
_GET = "SELECT id, namespace, vector, metadata FROM vectors WHERE id = ?"
_DELETE = "DELETE FROM vectors WHERE id = ?"
_COUNT = "SELECT COUNT(*) FROM vectors"
_WRITES = "SELECT count FROM vector_writes"
_FLOAT_BYTES = 4
_ROUNDING = 1e-5
"""More than what products of 32-bit floats differ from exact ones."""
_DIGITS = 12
"""Digits of a score: sums of 64-bit floats in another order differ after them, and equal vectors must have equal scores."""
_MASKS = 16
"""The most filters of a namespace whose rows are kept."""
_Found = list[tuple[float, str, dict[str, MetadataValue]]]
"""Of each match: its score, negative so that the best come first, its id and metadata."""

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
        self.lag_ms = 0
        self._spaces: dict[str, _Space] = {}
        self._writes = -1

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
        rows = [_row(entry) for entry in entries]
        return self._write(_PUT, rows, lambda: self._show(rows))

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
        if numpy is None:
            found = self._scanned(vector, namespace, filter)
        else:
            found = self._space(namespace).near(vector, filter, top_k)
        nearest = heapq.nsmallest(top_k, found, key=lambda one: one[:2])
        return [VectorMatch(id_, -score, metadata if with_metadata else {}) for score, id_, metadata in nearest]

    def _scanned(self, vector: Vector, namespace: str, criteria: MetadataFilter) -> _Found:
        """Return all vectors of the namespace that pass the filter."""
        norm = math.hypot(*vector)
        found: _Found = []
        for id_, blob, row_norm, text in query(self._connection, _IN_NAMESPACE, namespace):
            metadata: dict[str, MetadataValue] = read_own_json(text)
            if matches(criteria, metadata):
                found.append((-_cosine(vector, norm, blob, row_norm), id_, metadata))
        return found

    def _space(self, namespace: str) -> _Space:
        """Return the vectors of a namespace, read again if anybody else has written."""
        [(writes,)] = query(self._connection, _WRITES)
        if writes != self._writes:
            self._spaces.clear()
            self._writes = writes
        space = self._spaces.get(namespace)
        if space is None:
            space = _Space(self._dimensions)
            for row in query(self._connection, _IN_NAMESPACE, namespace):
                space.put(*row)
            self._spaces[namespace] = space
        return space

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
        return self._write(_DELETE, [(id_,) for id_ in ids], lambda: self._hide(ids))

    async def dimensions(self) -> int:
        """Return the number of dimensions the index was created with."""
        return self._dimensions

    async def count(self) -> int:
        """Return the number of vectors. See the port."""
        await asyncio.sleep(0)
        [(count,)] = query(self._connection, _COUNT)
        return int(count)

    def _write(self, sql: str, rows: Sequence[tuple[SqlValue, ...]], then: Callable[[], None]) -> str:
        """Run the statement for every row, as one transaction; return a mutation id. then: makes what is in memory agree."""
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            [(before,)] = query(self._connection, _WRITES)
            self._connection.executemany(sql, rows)
            [(after,)] = query(self._connection, _WRITES)
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise refusal(error) from error
        finally:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        if before == self._writes:
            then()
            self._writes = after
        return str(uuid4())

    def _show(self, rows: Sequence[_Written]) -> None:
        self._hide([row[0] for row in rows])
        for id_, namespace, blob, norm, text in rows:
            if namespace in self._spaces:
                self._spaces[namespace].put(id_, blob, norm, text)

    def _hide(self, ids: Sequence[str]) -> None:
        for space in self._spaces.values():
            for id_ in ids:
                space.drop(id_)


_Written = tuple[str, str, bytes, float, str]
"""A row: id, namespace, vector, norm, metadata."""


def _row(entry: VectorEntry) -> _Written:
    values = array("f", entry.values)
    return (entry.id, entry.namespace, values.tobytes(), math.hypot(*values), json.dumps(dict(entry.metadata)))


class _Space:
    """The vectors of one namespace in memory, in rows without gaps.

    32-bit products find the rows that may be among the best few; the scores of those are computed as without numpy.
    """

    def __init__(self, dimensions: int) -> None:
        self._rows: dict[str, int] = {}
        self._entries: list[tuple[str, bytes, float, dict[str, MetadataValue]]] = []
        self._units: numpy.ndarray = numpy.zeros((16, dimensions), dtype=numpy.float32)
        self._masks: dict[str, tuple[MetadataFilter, bytearray]] = {}

    def put(self, id_: str, blob: bytes, norm: float, text: str) -> None:
        """Add a vector whose id is new."""
        row = len(self._entries)
        if row == len(self._units):
            self._units = numpy.concatenate([self._units, numpy.zeros_like(self._units)])
        metadata: dict[str, MetadataValue] = read_own_json(text)
        self._units[row] = numpy.frombuffer(blob, dtype=numpy.float32) / norm if norm else 0.0
        self._entries.append((id_, blob, norm, metadata))
        self._rows[id_] = row
        for criteria, mask in self._masks.values():
            mask.append(matches(criteria, metadata))

    def drop(self, id_: str) -> None:
        """Remove a vector, if it is there; the last one moves to its row."""
        row = self._rows.pop(id_, None)
        if row is None:
            return
        last = len(self._entries) - 1
        self._units[row] = self._units[last]
        self._entries[row] = self._entries[last]
        if row != last:
            self._rows[self._entries[row][0]] = row
        self._entries.pop()
        for _, mask in self._masks.values():
            mask[row] = mask[last]
            mask.pop()

    def near(self, vector: Vector, criteria: MetadataFilter, count: int) -> _Found:
        """Return the vectors that may be among the `count` best that pass the filter.

        Each product is one row's. One product of the whole matrix goes to several threads of BLAS, which wait in loops: at
        10,000 rows it took forty times the processor's time.
        """
        exact = numpy.asarray(vector, dtype=numpy.float64)
        exact /= math.hypot(*vector)
        passing = numpy.frombuffer(self._mask(criteria), dtype=numpy.uint8).nonzero()[0]
        scores = numpy.vecdot(self._units[: len(self._entries)], exact.astype(numpy.float32))[passing]
        if len(passing) > count:
            least = numpy.partition(scores, -count)[-count]
            passing = passing[scores >= least - 2 * _ROUNDING]
        entries = [self._entries[row] for row in passing.tolist()]
        rows = numpy.frombuffer(b"".join([blob for _, blob, _, _ in entries]), dtype=numpy.float32)
        products = numpy.vecdot(rows.reshape(len(entries), len(exact)).astype(numpy.float64), exact).tolist()
        return [
            (-_score(product, row_norm), id_, metadata)
            for product, (id_, _, row_norm, metadata) in zip(products, entries, strict=True)
        ]

    def _mask(self, criteria: MetadataFilter) -> bytes:
        """Return a byte for each row: 1 if it passes the filter."""
        key = json.dumps(criteria, sort_keys=True)
        if key not in self._masks:
            if len(self._masks) >= _MASKS:
                del self._masks[next(iter(self._masks))]
            self._masks[key] = criteria, bytearray(matches(criteria, metadata) for *_, metadata in self._entries)
        return bytes(self._masks[key][1])


def _cosine(vector: Vector, norm: float, blob: bytes, row_norm: float) -> float:
    return _score(_dot(vector, array("f", blob)) / norm, row_norm)


def _score(product: float, row_norm: float) -> float:
    """Return the cosine of a row. product: of the row and the query's direction."""
    if not row_norm:  # the vector's values are too small for 32 bits: they were rounded to zeros
        return 0.0
    return max(-1.0, min(1.0, round(product / row_norm, _DIGITS)))


def _dot(a: Vector, b: Vector) -> float:
    return _sumprod(a, b) if _sumprod else sum(map(mul, a, b))
