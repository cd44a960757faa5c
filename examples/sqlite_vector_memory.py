"""Documents in a SQLite file: a backend of the `VectorMemory` contract, with exact search."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from array import array
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from retain.contracts.documents import best, check_model, check_top_k, normalised, prepared, similarity
from retain.contracts.vectors import RetrievedDocument, VectorDocument
from retain.namespace import Namespace
from retain.ports import Vector

_TABLE = """
CREATE TABLE IF NOT EXISTS documents (
  namespace TEXT, id TEXT, text TEXT NOT NULL, embedding BLOB NOT NULL, model TEXT NOT NULL, PRIMARY KEY (namespace, id)
)
"""
_PUT = "INSERT OR REPLACE INTO documents VALUES (?, ?, ?, ?, ?)"
_MODELS = "SELECT DISTINCT model FROM documents WHERE namespace = ?"
_ALL = "SELECT id, text, embedding, model FROM documents WHERE namespace = ?"
_DELETE = "DELETE FROM documents WHERE namespace = ? AND id = ?"


class SqliteVectorMemory:
    """One namespace's documents, of one embedding model. They can be deleted."""

    def __init__(self, path: Path, namespace: Namespace, *, dimensions: int, model: str) -> None:
        self._path = path
        self._key = str(namespace)
        self._dimensions = dimensions
        self._model = model

    async def store(self, documents: Sequence[VectorDocument]) -> None:
        """Check all documents (VM2, VM8), then write them in one transaction. A row is replaced by its id (VM1)."""
        kept = prepared(documents, self._dimensions, self._model)
        rows = [(self._key, one.id, one.text, one.embedding.tobytes(), one.model) for one in kept]
        await asyncio.to_thread(self._write, _PUT, rows)

    async def search(
        self, embedding: Vector, *, top_k: int = 10, threshold: float | None = None
    ) -> list[RetrievedDocument]:
        """Compare every document; `best` orders and bounds them (VM3, VM4, VM5)."""
        check_top_k(top_k)
        query = normalised(embedding, self._dimensions)
        found = []
        for id_, text, packed, model in await asyncio.to_thread(self._rows):
            check_model(model, self._model)
            content, metadata = json.loads(text)
            found.append(RetrievedDocument(id_, content, similarity(query, array("f", packed)), metadata))
        return best(found, top_k, threshold)

    async def delete(self, ids: Sequence[str]) -> None:
        """Remove the documents (VM7)."""
        await asyncio.to_thread(self._write, _DELETE, [(self._key, id_) for id_ in ids])

    def _write(self, statement: str, rows: Sequence[tuple[object, ...]]) -> None:
        with closing(self._connected()) as connection, connection:
            connection.execute("BEGIN IMMEDIATE")
            for (model,) in connection.execute(_MODELS, (self._key,)) if statement is _PUT else ():
                check_model(model, self._model)
            connection.executemany(statement, rows)

    def _rows(self) -> list[tuple[str, str, bytes, str]]:
        with closing(self._connected()) as connection:
            return connection.execute(_ALL, (self._key,)).fetchall()

    def _connected(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, timeout=30)
        connection.execute(_TABLE)
        return connection
