"""Recall: the union of what words, vectors and neighbours find, ranked by one formula, without a language model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import nlargest
from typing import Any

from retain.errors import InvalidInput
from retain.memory.filters import compile_filter
from retain.memory.recall import candidates as sources
from retain.memory.recall.as_of import as_known
from retain.memory.recall.candidates import CANDIDATES, Statistics, Visible, read_statistics
from retain.memory.recall.evidence import Evidence, candidates_of, estimated
from retain.memory.recall.outdated import demote, facts_of_messages, read_facts
from retain.memory.recall.preparation import signature
from retain.memory.recall.query import Query, analyse
from retain.memory.recall.ranking import BM25_K1, Candidate, Weights, distinct, rank
from retain.memory.recall.relevance import Relevance, embedded, obscure, rarity
from retain.memory.records.record import Record, content_hash
from retain.memory.records.rows import record_of
from retain.memory.scope import View
from retain.memory.vector_names import record_id_of, vector_namespace
from retain.models.embedding import Embedder
from retain.models.reranking import Reranker
from retain.ports import Clock, MetadataFilter, Sql, SqlResult, Vector, VectorIndex

MAX_TOP_K = 50
KEEP = 80
"""How many candidates' neighbours are read: the best by a first score of vectors, words and exact terms."""
FRESH_MS = 300_000
"""How long a write may stay invisible in the vector index: for that long its signature is compared here."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A found record. components: the terms whose sum is the score. Its source is in `record.source`.

    relevance: 0 to 1, comparable between queries, which the score is not: see `retain.memory.recall.relevance`.
    """

    record: Record
    score: float
    components: Mapping[str, float] = field(default_factory=dict)
    relevance: float = 0.0


@dataclass(frozen=True, slots=True)
class RecallQuery:
    """What to recall.

    top_k: 1 to 50. as_of_ms: recall what was known and valid then, None for now. filter: on metadata and fields, see
    `retain.memory.filters`. below: search the scopes at and below, as an administrator does, instead of those visible.
    min_score: leave out records whose relevance is lower, 0 to 1; 0 leaves out none.

    Raises: InvalidInput.
    """

    text: str
    top_k: int = 5
    as_of_ms: int | None = None
    filter: Mapping[str, object] = field(default_factory=dict)
    below: bool = False
    min_score: float = 0.0

    def __post_init__(self) -> None:
        if not 1 <= self.top_k <= MAX_TOP_K:
            raise InvalidInput(f"top_k must be 1 to {MAX_TOP_K}", code="invalid_top_k")
        if self.as_of_ms is not None and not 0 <= self.as_of_ms < 2**53:
            raise InvalidInput("as_of_ms must be epoch milliseconds", code="invalid_as_of")
        if not 0 <= self.min_score <= 1:
            raise InvalidInput("min_score must be 0 to 1", code="invalid_min_score")


class Recall:
    """Recalls what is visible in one view."""

    def __init__(
        self,
        view: View,
        sql: Sql,
        index: VectorIndex,
        embedder: Embedder,
        clock: Clock,
        *,
        weights: Weights | None = None,
        reranker: Reranker | None = None,
    ) -> None:
        self._view = view
        self._sql = sql
        self._index = index
        self._embedder = embedder
        self._clock = clock
        self._weights = weights or Weights()
        self._reranker = reranker

    async def search(self, wanted: RecallQuery) -> list[Hit]:
        """Return the best records, best first, ties by id. Four round trips to D1, one to the vector index.

        With a reranker, the best `2 * top_k` are put into its order.
        A record can be found as soon as its write was answered. One found by its words is never dropped for its vector;
        what `min_score` leaves out, the caller asked to leave out, and words count for it too.
        Raises: InvalidInput, LimitExceeded for the query or its filter; NotFound (code `unknown_scope`) for a scope that
            D1 does not have, or has with other ancestors; Unavailable, UpstreamFailed.
        """
        at_ms = self._clock() if wanted.as_of_ms is None else wanted.as_of_ms
        query = analyse(wanted.text, at_ms)
        condition, values = compile_filter(wanted.filter)
        vector, unrelated = await embedded(self._embedder, query.text)
        statistics = await read_statistics(self._sql, self._view, query, below=wanted.below)
        visible = Visible(statistics.reach, at_ms, wanted.as_of_ms is not None, condition, tuple(values))
        evidence = await self._find(wanted, query, vector, statistics, visible)
        idf = statistics.idf(query)
        telling = rarity(query, idf, statistics.records)
        scale = Relevance(unrelated, telling, obscure(query.text, vector), self._weights)
        ranked = _above(wanted.min_score, await self._rank(query, evidence, idf, visible), scale)
        hits = await self._hydrate(ranked, wanted, visible)
        if self._reranker is not None:
            hits = await self._reranked(self._reranker, wanted.text, hits)
        return hits[: wanted.top_k]

    async def _find(
        self, wanted: RecallQuery, query: Query, vector: Vector, statistics: Statistics, visible: Visible
    ) -> Evidence:
        """Query the vector index and D1 concurrently, and return what both found."""
        query_signature = int(signature([vector]), 16) if any(vector) else 0
        nearest = asyncio.ensure_future(self._nearest(vector, visible, wanted))
        try:
            found = await self._in_d1(query, statistics, visible, query_signature, filtered=bool(wanted.filter))
        finally:
            cosine, floor = await nearest
        return Evidence(
            cosine={**found.fresh, **cosine, **found.changed},
            floor=floor,
            query_signature=query_signature,
            bm25=found.bm25,
            exact=found.exact,
            matching=found.matching,
        )

    async def _rank(
        self, query: Query, evidence: Evidence, idf: Mapping[str, float], visible: Visible
    ) -> list[Candidate]:
        """Return the candidates and their neighbours, best first, each content once."""
        chosen = self._first_choice(evidence, sum(idf.values()) or 1.0)
        known_at_ms = visible.at_ms if visible.past else None
        found, stated = await self._sql.batch(
            [
                sources.with_neighbours(visible, sorted(chosen)),
                facts_of_messages(visible.tenant_id, sorted(chosen), visible.at_ms, known_at_ms),
            ]
        )
        rows = _listed(found)
        candidates, turns = candidates_of(rows, query, chosen, evidence)
        ranked = rank(query, candidates, turns, idf, self._weights)
        once = distinct(ranked)
        if len(once) < len(ranked):  # copies in several scopes must not raise each other's scores, nor crowd out others
            ranked = rank(query, once, turns, idf, self._weights)
        return demote(ranked, read_facts(_listed(stated)), self._weights.outdated)

    async def _reranked(self, reranker: Reranker, query: str, hits: Sequence[Hit]) -> list[Hit]:
        """Return the hits in the reranker's order, ties in the old one; its relevance becomes the component `rerank`."""
        relevance = await reranker.rerank(query, [hit.record.content for hit in hits])
        judged = [
            replace(hit, components={**hit.components, "rerank": value})
            for hit, value in zip(hits, relevance, strict=True)
        ]
        return sorted(judged, key=lambda hit: -hit.components["rerank"])

    async def _nearest(self, vector: Vector, visible: Visible, wanted: RecallQuery) -> tuple[dict[str, float], float]:
        """Return the cosine of each record's best part, and the floor (see `Evidence`)."""
        if not any(vector) or not visible.scope_ids:
            return {}, 0.0
        criteria: MetadataFilter = {
            **visible.reach.vector_filter(),
            "model": self._embedder.model[:64],
            **({} if wanted.as_of_ms is None else {"created_at": {"$lte": wanted.as_of_ms}}),
        }
        matches = await self._index.query(
            vector, namespace=vector_namespace(self._view.tenant_id), filter=criteria, top_k=CANDIDATES
        )
        cosine: dict[str, float] = {}
        for match in matches:
            record_id = record_id_of(match.id)
            cosine[record_id] = max(match.score, cosine.get(record_id, -1.0))
        return cosine, matches[-1].score if len(matches) == CANDIDATES else 0.0

    async def _in_d1(
        self, query: Query, statistics: Statistics, visible: Visible, query_signature: int, *, filtered: bool
    ) -> _Found:
        phrases = list(query.exact)
        statements = [
            sources.full_text(visible, statistics, query),
            sources.fresh(visible, self._clock() - FRESH_MS, self._embedder.model),
            *[sources.exact_term(visible, statistics, phrase) for phrase in phrases],
        ]
        if filtered:
            statements.append(sources.matching(visible))
        text, fresh, *rest = await self._sql.batch(statements)
        whole = sum(query.exact.values())
        exact: dict[str, float] = {}
        for phrase, result in zip(phrases, rest, strict=False):
            for row in result.rows:
                exact[row["id"]] = exact.get(row["id"], 0.0) + query.exact[phrase] ** 2 / whole
        lately = [
            (record_id, estimated(query_signature, bits), changed)
            for record_id, bits, changed in (_listed(fresh) if query_signature else [])
        ]
        return _Found(
            bm25={record_id: float(bm25) for record_id, bm25 in _listed(text)},
            exact=exact,
            fresh={record_id: cosine for record_id, cosine, _ in lately},
            changed={record_id: cosine for record_id, cosine, changed in lately if changed},
            matching=[row["id"] for row in rest[-1].rows] if filtered else [],
        )

    def _first_choice(self, evidence: Evidence, whole: float) -> frozenset[str]:
        """Return the ids of the best by a first score and those that match a filter. whole: the sum of the query's idf."""
        weights = self._weights

        def first(record_id: str) -> tuple[float, str]:
            score = (
                weights.vector * evidence.cosine.get(record_id, evidence.floor)
                + weights.words * evidence.bm25.get(record_id, 0.0) / ((BM25_K1 + 1) * whole)
                + weights.exact * evidence.exact.get(record_id, 0.0)
            )
            return score, record_id

        everything = {*evidence.bm25, *evidence.cosine, *evidence.exact}
        return frozenset(nlargest(KEEP, everything, key=first)) | frozenset(evidence.matching)

    async def _hydrate(self, ranked: Sequence[Candidate], wanted: RecallQuery, visible: Visible) -> list[Hit]:
        """Return the best `2 * top_k` with their records; more are read only when too few of these were valid then."""
        hits: list[Hit] = []
        seen: set[str] = set()
        start, count = 0, 2 * wanted.top_k
        while start < len(ranked) and len(hits) < wanted.top_k:
            best = ranked[start : start + count]
            records = await self._records([candidate.id for candidate in best], visible)
            for candidate in best:
                record = records.get(candidate.id)
                if record is None:
                    continue
                digest = content_hash(record.content, record.utterance)
                if digest not in seen:
                    seen.add(digest)
                    hits.append(Hit(record, candidate.score, candidate.components, candidate.relevance))
            start, count = start + count, 4 * count
        return hits

    async def _records(self, ids: Sequence[str], visible: Visible) -> dict[str, Record]:
        """Return the visible ones of these records, by id."""
        where, values = visible.where()
        rows = (
            await self._sql.run(
                f"SELECT r.* FROM json_each(?) c CROSS JOIN memory_records r ON r.id = c.value WHERE {where}",
                json.dumps(list(ids)),
                *values,
            )
        ).rows
        records = {row["id"]: record_of(row) for row in rows}
        return await as_known(self._sql, records, visible) if visible.past else records


@dataclass(frozen=True, slots=True)
class _Found:
    """What D1 found. fresh: cosines estimated from signatures. changed: those that may be wrong in the index."""

    bm25: dict[str, float]
    exact: dict[str, float]
    fresh: dict[str, float]
    changed: dict[str, float]
    matching: list[str]


def _above(min_score: float, ranked: Sequence[Candidate], scale: Relevance) -> list[Candidate]:
    """Return the candidates whose relevance, noted in each, is not lower."""
    for candidate in ranked:
        candidate.relevance = scale.of(candidate)
    return [candidate for candidate in ranked if candidate.relevance >= min_score]


def _listed(result: SqlResult) -> list[Any]:
    """Return the elements of the JSON array that a statement returned."""
    listed: list[Any] = json.loads(result.rows[0]["found"])
    return listed
