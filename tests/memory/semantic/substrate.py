"""The substrate of semantic memory on the host: a migrated D1, a vector index, a clock, and memories of any scope on it.

with closing(Substrate()) as substrate:
    await substrate.store("Ann likes tea.")
    assert await substrate.found("tea") == ["Ann likes tea."]
"""

from __future__ import annotations

from typing import Any, cast

from retain.host.clock import ManualClock
from retain.host.vectors import SqliteVectorIndex
from retain.limits.vectorize import GRACE_MS
from retain.memory.indexer import Indexer
from retain.memory.recall.sources.fresh import KeptSignatures
from retain.memory.records.listing import Listing, list_records
from retain.memory.records.record import NewRecord, Record, RecordSource
from retain.memory.scope import Scope
from retain.memory.semantic import Hit, RecallQuery, SemanticMemory
from retain.models.embedding import Embedder
from retain.ports import Row, Sql, SqlValue, VectorEntry, VectorIndex
from tests.support.databases import migrated_d1
from tests.support.instances import shipped_embedder

TENANT = Scope("acme")
HOUSE = Scope("acme", house="sales")
AGENT = Scope("acme", "sdr", "sales")
INSTANCE = Scope("acme", "sdr", "sales", "desk-1")
AGENT_SOURCE = RecordSource("agent")
PERSON = RecordSource("person")


class ListedIndex(SqliteVectorIndex):
    """The host's vector index, which can also list all its entries."""

    @classmethod
    def opened(cls, dimensions: int) -> ListedIndex:
        """Open a new index in memory."""
        return cast("ListedIndex", cls.open(dimensions))

    def held(self) -> dict[str, str]:
        """Return every vector's id with its namespace."""
        return dict(self._connection.execute("SELECT id, namespace FROM vectors").fetchall())

    async def entries(self) -> dict[str, VectorEntry]:
        """Return every vector by its id."""
        ids = sorted(self.held())
        pages = [await self.get_by_ids(ids[start : start + 20]) for start in range(0, len(ids), 20)]
        return {entry.id: entry for page in pages for entry in page}


class Substrate:
    """One deployment's stores. Its memories use `sql`, `index` and `embedder`: a test may wrap them."""

    def __init__(self) -> None:
        self.d1 = migrated_d1()
        self.vectors = ListedIndex.opened(shipped_embedder().dimensions)
        self.clock = ManualClock()
        self.sql: Sql = self.d1
        self.index: VectorIndex = self.vectors
        self.embedder: Embedder = shipped_embedder()
        self.kept = KeptSignatures()

    def close(self) -> None:
        """Close the databases."""
        self.d1.close()
        self.vectors.close()

    def memory(self, scope: Scope = AGENT) -> SemanticMemory:
        """Return the semantic memory of a scope."""
        return SemanticMemory(scope, self.sql, self.index, self.embedder, self.clock, kept=self.kept)

    def indexer(self) -> Indexer:
        """Return what makes the vector index agree with D1."""
        return Indexer(self.sql, self.index, self.embedder, self.clock)

    async def store(
        self, content: str, scope: Scope = AGENT, source: RecordSource = AGENT_SOURCE, **fields: Any
    ) -> str:
        """Store a content and return the record's id. fields: of `NewRecord`."""
        return (await self.memory(scope).store(NewRecord(content, **fields), source)).id

    async def hits(self, query: str, scope: Scope = AGENT, **wanted: Any) -> list[Hit]:
        """Return the hits of a recall. wanted: fields of `RecallQuery`."""
        return await self.memory(scope).search(RecallQuery(query, **wanted))

    async def found(self, query: str, scope: Scope = AGENT, **wanted: Any) -> list[str]:
        """Return the contents that a recall finds, best first."""
        return [hit.record.content for hit in await self.hits(query, scope, **wanted)]

    async def listed(self, scope: Scope = TENANT) -> list[Record]:
        """Return every record at or below a scope, oldest first, including closed ones."""
        records, cursor = await list_records(self.d1, scope, Listing(limit=200))
        while cursor is not None:
            page, cursor = await list_records(self.d1, scope, Listing(limit=200, cursor=cursor))
            records += page
        return records

    async def contents(self, scope: Scope = TENANT) -> list[str]:
        """Return the contents of `listed`."""
        return [record.content for record in await self.listed(scope)]

    async def record(self, record_id: str) -> Record:
        """Return a record of the tenant `acme`."""
        return (await self.memory(TENANT).get(record_id))[0]

    async def reconcile(self) -> None:
        """Let the grace time pass, and settle the index debts."""
        self.clock.advance(GRACE_MS + 1)
        settled = await self.indexer().reconcile()
        assert settled.failed == 0

    async def rows(self, sql: str, *values: SqlValue) -> list[Row]:
        """Return the rows of a query to D1."""
        return (await self.d1.run(sql, *values)).rows
