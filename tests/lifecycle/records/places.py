"""The deployment that the machine drives: places as scopes, a vector index that lags, and stores that fail on demand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from retain.host.clock import ManualClock
from retain.host.vectors import SqliteVectorIndex
from retain.ingest.extraction import ExtractedFact, SourceMessage
from retain.ingest.ingestion import Ingestion
from retain.lifecycle.stores import Stores
from retain.memory.scope import Scope, View
from retain.memory.semantic import SemanticMemory
from retain.ports import Vector, VectorEntry, VectorMatch
from tests.lifecycle.world import World
from tests.support.databases import connection_of
from tests.support.instances import catalogue
from tests.support.obedient_chat import ObedientChat

HOUSE, AGENT, TRIAGE, DESK = "sales", "sdr", "triage", "desk-1"


def scope_of(tenant: str, place: str) -> Scope:
    """Return the scope of a place."""
    scopes: dict[str, dict[str, str]] = {
        "tenant": {},
        "house": {"house": HOUSE},
        "agent": {"agent_type": AGENT, "house": HOUSE},
        "triage": {"agent_type": TRIAGE},
        "ann": {"agent_type": AGENT, "house": HOUSE, "user_id": "ann"},
        "bob": {"agent_type": AGENT, "house": HOUSE, "user_id": "bob"},
        "ann_everywhere": {"user_id": "ann"},
        "desk": {"agent_type": AGENT, "house": HOUSE, "instance_id": DESK},
    }
    return Scope(tenant, **scopes[place])


class LateIndex(SqliteVectorIndex):
    """The host's vector index; a write is visible some time after it is answered, as in Vectorize."""

    clock: ManualClock
    lag_ms = 0

    async def upsert(self, entries: Sequence[VectorEntry]) -> str:
        """Take the vectors."""
        self._waiting().append((self.clock() + self.lag_ms, list(entries), ()))
        return "taken"

    async def delete_by_ids(self, ids: Sequence[str]) -> str:
        """Take the ids."""
        self._waiting().append((self.clock() + self.lag_ms, (), list(ids)))
        return "taken"

    async def query(self, vector: Vector, **asked: Any) -> list[VectorMatch]:
        """Search what is visible."""
        await self.show()
        return await super().query(vector, **asked)

    async def get_by_ids(self, ids: Sequence[str]) -> list[VectorEntry]:
        """Look up what is visible."""
        await self.show()
        return await super().get_by_ids(ids)

    async def show(self) -> None:
        """Apply what is due."""
        waiting = self._waiting()
        while waiting and waiting[0][0] <= self.clock():
            _, entries, ids = waiting.pop(0)
            if entries:
                await super().upsert(entries)
            if ids:
                await super().delete_by_ids(ids)

    def _waiting(self) -> list[tuple[int, Sequence[VectorEntry], Sequence[str]]]:
        return cast("list[Any]", vars(self).setdefault("waiting", []))


class CityExtractor:
    """Implements `Extractor`: "I live in Oslo." says where the speaker lives."""

    batch = 10
    local = False

    async def extract(self, messages: Sequence[SourceMessage]) -> list[ExtractedFact]:
        """Return what the messages say."""
        return [
            ExtractedFact(**fact_in(one.speaker, one.content), kind="fact", confidence=0.8, message=one.id)
            for one in messages
            if one.content.startswith("I live in ")
        ]


def fact_in(speaker: str, content: str) -> dict[str, str]:
    """Return the parts of the fact that a message states."""
    city = content.removeprefix("I live in ").rstrip(".")
    return {
        "subject": speaker.lower(),
        "predicate": "lives_in",
        "object": city,
        "content": f"{speaker} lives in {city}.",
    }


class RecordsWorld(World):
    """Two agents, one of a house, and everything that can happen to their records."""

    def __init__(self) -> None:
        about = {"description": "Helps.", "instructions": "Help."}
        memory = {"long_term_enabled": True, "recall": "tool"}
        agents = catalogue(
            {"type": AGENT, **about, "house": HOUSE, "memory_config": {**memory, "share": True}},
            {"type": TRIAGE, **about, "memory_config": {**memory, "user": "shared"}},
        )
        super().__init__(agents, lambda _: ObedientChat())
        self.late = LateIndex(connection_of(self.index), self.embedder.dimensions)
        self.late.clock = self.clock
        self.index = self.late

    def of(self, tenant: str, place: str) -> SemanticMemory:
        """Return the memory of a place; its stores fail when a fault is planned."""
        stores: Stores = self.stores()
        return SemanticMemory(scope_of(tenant, place), stores.sql, stores.index, self.embedder, self.clock)

    def seen_from(self, tenant: str, *places: str) -> SemanticMemory:
        """Return a memory that sees these places and what is around them. Its stores do not fail."""
        first, *others = (scope_of(tenant, place) for place in places)
        view = View(first, tuple(others))
        return SemanticMemory(first, self.sql, self.index, self.embedder, self.clock, view=view)

    def ingestion(self, tenant: str, place: str) -> Ingestion:
        """Return the ingest of a place; its stores fail when a fault is planned."""
        return Ingestion(self.of(tenant, place), self.stores().sql, CityExtractor, self.clock)

    async def known_ids(self) -> set[str]:
        """Return the ids of all records that a store knows, except in world history and in positions in conversations."""
        await self.late.show()
        tables = ("SELECT id FROM memory_records", "SELECT record_id FROM memory_events")
        found = {str(row) for table in tables for one in self.sql_now(table) for row in one.values()}
        return found | (
            {vector_id.partition("#")[0] for vector_id in self.vectors()} if not self.late.lag_ms else set()
        )
