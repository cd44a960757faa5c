"""Memory while the vector index or the embedding model is away: recall does without and says so; a store is owed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence

import pytest

from retain.agents.calls.run_request import Budget
from retain.agents.tools.built_in import CallContext, RecallMemory
from retain.errors import InvalidInput, RetainError, Unavailable, UpstreamFailed
from retain.host.vectors import SqliteVectorIndex
from retain.limits.vectorize import LAG_MS
from retain.memory.recall.recall import RecallQuery
from retain.memory.recall.relevance import MIN_SCORE
from retain.memory.records.record import NewRecord, Utterance
from retain.memory.semantic import SemanticMemory
from retain.models.embedding import Embedder
from retain.ports import MetadataFilter, Vector, VectorEntry, VectorMatch
from tests.memory.semantic.notes import NOTES
from tests.memory.semantic.substrate import AGENT, AGENT_SOURCE, Substrate

AWAY = Unavailable("the index is away", code="vector_index_unavailable")


class AwayIndex(SqliteVectorIndex):
    """An index that fails. asked: how often. error: with what."""

    asked = 0
    error: RetainError = AWAY

    async def query(
        self,
        vector: Vector,
        *,
        namespace: str,
        filter: MetadataFilter,  # noqa: A002
        top_k: int,
        with_metadata: bool = False,
    ) -> list[VectorMatch]:
        self.asked += 1
        raise self.error

    async def upsert(self, entries: Sequence[VectorEntry]) -> str:
        self.asked += 1
        raise self.error


class AwayEmbedder:
    """A model that fails, or hangs without an error. model, dimensions: of the real one."""

    def __init__(self, real: Embedder, error: Exception | None) -> None:
        self.model, self.dimensions = real.model, real.dimensions
        self._error = error

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        if self._error is None:
            await asyncio.get_running_loop().create_future()
        assert self._error is not None
        raise self._error


def away(substrate: Substrate, error: RetainError = AWAY) -> AwayIndex:
    """Let the substrate's index fail."""
    substrate.index = index = AwayIndex(substrate.vectors._connection, substrate.embedder.dimensions)
    index.error = error
    return index


async def fill(substrate: Substrate) -> None:
    for note in NOTES:
        await substrate.store(note)
    substrate.clock.advance(3_600_000)
    await substrate.reconcile()


async def test_a_recall_without_the_index_finds_by_words_and_estimates_cosines(substrate: Substrate) -> None:
    await fill(substrate)
    query = RecallQuery("Ann bicycle", min_score=MIN_SCORE)
    whole = await substrate.memory().recall(query)
    away(substrate)
    result = await substrate.memory().recall(query)
    assert (whole.degraded, result.degraded) == ((), ("vectors",))
    assert result.hits[0].record == whole.hits[0].record
    assert result.hits[0].relevance == pytest.approx(whole.hits[0].relevance, abs=0.15)


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(Unavailable("away", code="upstream_timeout"), id="away"),
        pytest.param(UpstreamFailed("no credit", code="model_quota"), id="no credit"),
        pytest.param(None, id="hanging"),
    ],
)
async def test_a_recall_without_the_embedding_model_finds_by_words(
    substrate: Substrate, monkeypatch: pytest.MonkeyPatch, error: Exception | None
) -> None:
    monkeypatch.setattr("retain.memory.recall.relevance.QUERY_EMBEDDING_MS", 20)
    await fill(substrate)
    best = (await substrate.hits("bicycle"))[0]
    substrate.embedder = AwayEmbedder(substrate.embedder, error)
    result = await substrate.memory().recall(RecallQuery("bicycle", min_score=MIN_SCORE))
    assert result.degraded == ("embedding",)
    assert result.hits[0].record == best.record


class AwayReranker:
    """A reranker that fails, or hangs without an error."""

    model = "away"

    def __init__(self, error: Exception | None) -> None:
        self._error = error

    async def rerank(self, query: str, texts: Sequence[str]) -> list[float]:
        if self._error is None:
            await asyncio.get_running_loop().create_future()
        assert self._error is not None
        raise self._error


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(Unavailable("away", code="workers_ai_unavailable"), id="away"),
        pytest.param(UpstreamFailed("another shape", code="malformed_answer"), id="an odd answer"),
        pytest.param(None, id="hanging"),
    ],
)
async def test_a_recall_without_the_reranker_keeps_its_own_order(
    substrate: Substrate, monkeypatch: pytest.MonkeyPatch, error: Exception | None
) -> None:
    monkeypatch.setattr("retain.models.reranking.RERANKING_MS", 20)
    await fill(substrate)
    best = [hit.record.id for hit in await substrate.hits("bicycle", top_k=3)]
    memory = SemanticMemory(
        AGENT, substrate.sql, substrate.index, substrate.embedder, substrate.clock, reranker=AwayReranker(error)
    )
    result = await memory.recall(RecallQuery("bicycle", top_k=3))
    assert ([hit.record.id for hit in result.hits], result.degraded) == (best, ("rerank",))


async def test_what_the_index_refuses_is_raised(substrate: Substrate) -> None:
    await fill(substrate)
    away(substrate, InvalidInput("the filter", code="vector_index_refused"))
    with pytest.raises(InvalidInput):
        await substrate.hits("bicycle")
    with pytest.raises(InvalidInput):
        await substrate.store("Dora paints.")
    assert "Dora paints." not in await substrate.contents()


async def test_a_store_without_the_index_is_durable_found_and_settled_later(substrate: Substrate) -> None:
    index = away(substrate)
    first, second = await substrate.memory().store_all(
        [NewRecord("Ann cycles to work."), NewRecord("Bob sails on Sundays.")], AGENT_SOURCE
    )
    assert (first.degraded, second.degraded, index.asked) == (("vectors",), ("vectors",), 1)
    assert first.to_json()["degraded"] == ["vectors"]
    again = await substrate.memory().store(NewRecord("Ann cycles to work."), AGENT_SOURCE)
    assert (again.id, again.created, again.degraded) == (first.id, False, ())
    substrate.clock.advance(600_000)
    assert (await substrate.found("cycles to work", top_k=1)) == ["Ann cycles to work."]
    assert len(await substrate.found("by bike")) == 2, "found by their signatures"
    substrate.index = substrate.vectors
    await substrate.reconcile()
    assert {one.split("#")[0] for one in await substrate.vectors.entries()} == {first.id, second.id}


async def test_a_store_without_the_embedding_model_leaves_nothing_and_ends_in_time(
    substrate: Substrate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("retain.memory.indexer.embedding_ms", lambda texts: 20)
    substrate.embedder = AwayEmbedder(substrate.embedder, None)
    with pytest.raises(Unavailable) as raised:
        await substrate.store("Ann cycles to work.")
    assert raised.value.code == "upstream_timeout"
    assert await substrate.contents() == []
    assert await substrate.rows("SELECT * FROM memory_outbox") == []


async def test_a_newer_fact_closes_the_older_one_without_the_index_and_asks_it_once(substrate: Substrate) -> None:
    await substrate.store("Ann lives in Oslo.", subject="Ann", predicate="lives in", object="Oslo")
    index = away(substrate)
    await substrate.store("Ann lives in Bergen.", subject="Ann", predicate="lives in", object="Bergen")
    assert index.asked == 1
    assert (await substrate.found("Where does Ann live?"))[0] == "Ann lives in Bergen."
    assert "Ann lives in Oslo." not in await substrate.found("Where does Ann live?")
    substrate.index = substrate.vectors
    await substrate.reconcile()
    assert await substrate.rows("SELECT * FROM memory_outbox WHERE state = 'owed'") == []


async def test_an_edit_without_the_index_counts_at_once_and_asks_it_once(substrate: Substrate) -> None:
    record_id = await substrate.store("Ann plays the violin.")
    substrate.clock.advance(3_600_000)
    index = away(substrate)
    await substrate.memory().edit(record_id, {"content": "Ann plays chess."}, AGENT_SOURCE)
    assert index.asked == 1
    assert await substrate.found("chess", min_score=MIN_SCORE) == ["Ann plays chess."]
    substrate.index = substrate.vectors
    await substrate.reconcile()
    assert await substrate.found("chess", min_score=MIN_SCORE) == ["Ann plays chess."]


async def test_the_tool_says_what_it_did_without(substrate: Substrate) -> None:
    await fill(substrate)
    context = CallContext("r", 1, 0, Budget())
    whole = json.loads((await RecallMemory(substrate.memory()).call({"query": "bicycle"}, context)).content)
    away(substrate)
    answer = json.loads((await RecallMemory(substrate.memory()).call({"query": "bicycle"}, context)).content)
    assert "degraded" not in whole
    assert answer["degraded"] == ["vectors"]


async def test_what_follows_a_long_turn_needs_no_vector(substrate: Substrate) -> None:
    """Its neighbours are read for another turn's sake, from which it is too far away to be a candidate."""
    contents = ["The heron " + "walks in the reeds. " * 150, "One.", "Two.", "Three.", "A heron again."]
    turns = [NewRecord(one, utterance=Utterance("walk", place, "Ann", 0)) for place, one in enumerate(contents)]
    await substrate.memory().store_all(turns, AGENT_SOURCE)
    await substrate.reconcile()
    substrate.clock.advance(LAG_MS + 1)
    substrate.index = AwayIndex(substrate.vectors._connection, substrate.embedder.dimensions)
    assert {contents[0], contents[4]} <= {*await substrate.found("heron", top_k=20)}
