"""Fill the files of a stopped local server: D1's database and the vector stand-in's. Through HTTP it would take an hour."""

from __future__ import annotations

import json
import sqlite3
from array import array
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.costs.memories import START_MS, fill
from benchmarks.recall import conversations, spoken_at
from retain.host.clock import ManualClock
from retain.host.connection import open_connection
from retain.host.sql import SqliteSql
from retain.limits.vector_filter import FILTERABLE
from retain.limits.vectorize import LAG_MS
from retain.memory.records.record import NewRecord, RecordSource, Utterance
from retain.memory.records.vector_names import vector_id, vector_namespace
from retain.memory.scope import Scope
from retain.memory.semantic import SemanticMemory
from retain.models.embedders.static import StaticEmbedder
from retain.ports import MetadataFilter, PropertyType, Vector, VectorEntry, VectorMatch

_STEP = 100


class StandInFile:
    """The vector index of a stopped local server: only writes."""

    filterable: Mapping[str, PropertyType] = FILTERABLE
    lag_ms = LAG_MS

    def __init__(self, path: Path, dimensions: int) -> None:
        self._connection = sqlite3.connect(path)
        self._dimensions = dimensions

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    async def upsert(self, entries: Sequence[VectorEntry]) -> str:
        """Write the vectors as the stand-in stores them."""
        rows = [
            (
                entry.id,
                entry.namespace,
                array("f", entry.values).tobytes(),
                json.dumps(dict(entry.metadata)),
                json.dumps({name: entry.metadata[name] for name in FILTERABLE if name in entry.metadata}),
            )
            for entry in entries
        ]
        with self._connection:
            self._connection.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?, ?, ?)", rows)
        return "written"

    async def delete_by_ids(self, ids: Sequence[str]) -> str:  # noqa: ARG002 -- the port's name
        """Do nothing: nothing that is filled is deleted."""
        return "written"

    async def get_by_ids(self, ids: Sequence[str]) -> list[VectorEntry]:  # noqa: ARG002 -- the port's name
        """Return nothing."""
        return []

    async def dimensions(self) -> int:
        """Return those of the shipped model."""
        return self._dimensions

    async def count(self) -> int:
        """Return how many vectors there are."""
        [(count,)] = self._connection.execute("SELECT count(*) FROM vectors")
        return int(count)

    async def query(
        self,
        vector: Vector,  # noqa: ARG002
        *,
        namespace: str,  # noqa: ARG002
        filter: MetadataFilter,  # noqa: A002, ARG002 -- the port's name
        top_k: int,  # noqa: ARG002
        with_metadata: bool = False,  # noqa: ARG002
    ) -> list[VectorMatch]:
        """Return nothing."""
        return []


def files(state: Path) -> tuple[Path, Path]:
    """Return the databases of D1 and of the vector stand-in in a server's state."""
    [database] = [path for path in (state / "v3" / "d1").rglob("*.sqlite") if "metadata" not in path.name]
    [vectors] = [
        path
        for path in (state / "v3" / "do" / "retain-vectorize-StandInIndex").glob("*.sqlite")
        if "metadata" not in path.name
    ]
    return database, vectors


async def fill_synthetic(state: Path, scope: Scope, count: int, embedder: StaticEmbedder) -> None:
    """Write so many made-up memories (`benchmarks.costs.memories`) with their vectors."""
    database, vectors = files(state)
    connection, index = open_connection(database), StandInFile(vectors, embedder.dimensions)
    await fill(SqliteSql(connection), count, embedder.model, scope)
    rows = connection.execute("SELECT id, content, kind FROM memory_records ORDER BY number").fetchall()
    for start in range(0, len(rows), 1000):
        some = rows[start : start + 1000]
        embedded = await embedder.embed([content for _, content, _ in some])
        entries = [
            VectorEntry(
                vector_id(one, 0), vector, vector_namespace(scope.tenant_id), _metadata(scope, kind, embedder.model)
            )
            for (one, _, kind), vector in zip(some, embedded, strict=True)
        ]
        await index.upsert(entries)
    index.close()
    connection.close()


def _metadata(scope: Scope, kind: str, model: str) -> dict[str, str | int]:
    own = {"tenant_id": scope.tenant_id, "agent_id": scope.agent_type or "", "scope_id": scope.scope_id}
    return {**own, "model": model, "kind": kind, "created_at": START_MS}


async def fill_conversation(state: Path, scope: Scope, path: Path, embedder: StaticEmbedder) -> tuple[int, list[str]]:
    """Store the longest conversation of a file of benchmark data; return its number of items, and its questions."""
    chosen = max(conversations(path), key=lambda one: len(one["items"]))
    database, vectors = files(state)
    connection, index = open_connection(database), StandInFile(vectors, embedder.dimensions)
    clock = ManualClock(START_MS)
    memory = SemanticMemory(scope, SqliteSql(connection), index, embedder, clock)
    positions: dict[str, int] = {}
    news: list[NewRecord] = []
    for item in chosen["items"]:
        utterance = None
        if item["session"] is not None:
            session = str(item["session"])
            position = positions.setdefault(session, 0)
            positions[session] += 1
            utterance = Utterance(session, position, item["speaker"] or "?", spoken_at(item["at"]))
        news.append(NewRecord(item["text"][:16_000], kind="event", utterance=utterance))
    for start in range(0, len(news), _STEP):
        clock.advance(1000)
        await memory.store_all(news[start : start + _STEP], RecordSource("ingest"))
    index.close()
    connection.close()
    return len(news), [str(question["text"]) for question in chosen["questions"]]
