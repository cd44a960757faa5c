"""What one write leaves in the stores, as literals: no library code computes what is expected here."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import pytest

from retain.memory.semantic import RecallQuery
from retain.models.embedding import Embedder
from tests.memory.semantic.substrate import AGENT, TENANT, Substrate

CONTENT = "Ann prefers the blue running shoes."


class CountingEmbedder:
    """Counts the texts that it embeds."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.model = embedder.model
        self.dimensions = embedder.dimensions
        self.asked: list[list[str]] = []

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Embed the texts, and record them."""
        self.asked.append(list(texts))
        return await self._embedder.embed(texts)


async def test_a_record_has_this_search_row(substrate: Substrate) -> None:
    await substrate.store(CONTENT)
    [row] = await substrate.rows("SELECT * FROM memory_search")
    assert {name: row[name] for name in ("tenant_id", "scope_id", "length", "words", "terms", "parts")} == {
        "tenant_id": "acme",
        "scope_id": "agent.sdr",
        "length": 35,
        "words": 6,
        "terms": "ann blue prefer run shoe the",
        "parts": 1,
    }
    assert row["embedding_model"] == "static-minilm-256"
    assert hashlib.sha256(str(row["signature"]).encode()).hexdigest()[:16] == "11afab953c511363"


async def test_a_record_has_this_full_text(substrate: Substrate) -> None:
    await substrate.store(CONTENT)
    [row] = await substrate.rows("SELECT content FROM memory_text")
    assert row["content"] == "lg6o646tann lg6o646tprefer lg6o646tthe lg6o646tblue lg6o646trun lg6o646tshoe"


async def test_a_vector_carries_this_metadata_in_this_namespace(substrate: Substrate) -> None:
    record_id = await substrate.store(CONTENT, subject="Ann", predicate="prefers", object="blue shoes", confidence=0.8)
    entries = await substrate.vectors.entries()
    assert entries.keys() == {f"{record_id}#0"}
    [entry] = entries.values()
    assert entry.namespace == "agent_memory_semantic:acme"
    assert entry.metadata == {
        "fact_id": record_id,
        "tenant_id": "acme",
        "agent_id": "sdr",
        "agent_type": "sdr",
        "scope_id": "agent.sdr",
        "model": "static-minilm-256",
        "kind": "fact",
        "confidence": 0.8,
        "created_at": substrate.clock(),
        "subject": "Ann",
        "predicate": "prefers",
        "object": "blue shoes",
    }


async def test_a_vector_in_the_tenants_scope_names_no_agent(substrate: Substrate) -> None:
    await substrate.store(CONTENT, TENANT)
    [entry] = (await substrate.vectors.entries()).values()
    assert (entry.metadata["agent_id"], entry.metadata["agent_type"]) == ("", "")


async def test_a_recall_returns_five_hits_unless_it_asks_for_another_number(substrate: Substrate) -> None:
    for number in range(7):
        await substrate.store(f"Ann likes tea number {number}.")
    assert RecallQuery("tea").top_k == 5
    assert len(await substrate.found("What tea does Ann like?")) == 5
    assert len(await substrate.found("What tea does Ann like?", top_k=6)) == 6


@pytest.mark.parametrize("query", ["What does Ann prefer?", "blue shoes yesterday"])
async def test_a_recall_embeds_its_query_once_and_nothing_else(substrate: Substrate, query: str) -> None:
    await substrate.store(CONTENT)
    await substrate.hits(query, AGENT)  # the process's first recall embeds the texts that calibrate its floor as well
    counting = CountingEmbedder(substrate.embedder)
    substrate.embedder = counting
    await substrate.hits(query, AGENT)
    assert counting.asked == [[query]]
