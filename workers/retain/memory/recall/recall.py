"""Recall: the union of what words, vectors and neighbours find, ranked by one formula, without a language model."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from retain.errors import InvalidInput, Unavailable, UpstreamFailed
from retain.memory.filters import compile_filter
from retain.memory.recall import candidates as sources
from retain.memory.recall.as_of import as_then, best_known, read_records
from retain.memory.recall.candidates import Visible
from retain.memory.recall.evidence import (
    UNRELATED,
    CosineScale,
    Evidence,
    Origin,
    SearchRow,
    candidates_of,
    first_choice,
    looked_for,
)
from retain.memory.recall.outdated import CONTRASTED, contrasted, demote, facts_of_messages, read_facts
from retain.memory.recall.query import Query, analyse
from retain.memory.recall.ranking import NEARLY_SAME, Candidate, by_origin, distinct, rank, varied
from retain.memory.recall.relevance import Relevance, embedded, obscure, rarity
from retain.memory.recall.sources.contents import Contents
from retain.memory.recall.sources.conversations import with_conversations
from retain.memory.recall.sources.first_trip import listed, read_first
from retain.memory.recall.sources.fresh import FreshReading, KeptSignatures
from retain.memory.recall.sources.meaning import Degradation, Meaning, evidence_of
from retain.memory.recall.sources.nearest import CANDIDATES, NOTHING, Nearest, VectorSearch, too_few
from retain.memory.recall.sources.pushed import pushed
from retain.memory.recall.sources.statistics import read_below, visible_from
from retain.memory.recall.sources.widening import widened
from retain.memory.recall.weights import Weights
from retain.memory.records.limits import END_OF_NUMBERS
from retain.memory.records.narrowing import lookups
from retain.memory.records.record import Record, content_hash
from retain.memory.scope import View
from retain.models.embedding import Embedder
from retain.models.reranking import Reranker, rerank_in_time
from retain.ports import Clock, MetadataFilter, Sql, SqlResult, Statement, Vector, VectorIndex

MAX_TOP_K = 50
MAX_RUNNERS_UP = 20
KEEP = 80
"""How many candidates' neighbours are read: the best by a first score of vectors, words and exact terms."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Hit:
    """A found record. components: the terms whose sum is the score. Its source is in `record.source`.

    relevance: 0 to 1, comparable between queries, which the score is not: see `retain.memory.recall.relevance`.
    found_by: the sources that found it; none for one that became a candidate because it is next to another.
    """

    record: Record
    score: float
    components: Mapping[str, float] = field(default_factory=dict)
    relevance: float = 0.0
    found_by: tuple[Origin, ...] = ()


@dataclass(frozen=True, slots=True)
class RecallResult:
    """The hits of a recall, best first.

    degraded: what did not answer in time or at all, so that the recall did without it: `embedding`, the query has no vector
    and only words count; `vectors`, the vector index added no candidates and cosines are estimated from signatures; `width`,
    so many of the nearest records may not be seen that the search ended before enough others were found.
    runners_up: the best of the candidates that are not among the hits, as many as were wanted.
    """

    hits: list[Hit]
    degraded: tuple[Degradation, ...] = ()
    runners_up: tuple[Hit, ...] = ()


@dataclass(frozen=True, slots=True)
class RecallQuery:
    """What to recall.

    top_k: 1 to 50. as_of_ms: recall what was known then, None for now. valid_at_ms: recall what was or will be valid
    then, as far as known; None for what was valid at `as_of_ms`, or is now. filter: on metadata and fields, see
    `retain.memory.filters`. below: search the scopes at and below, as an administrator does, instead of those visible.
    min_score: leave out records whose relevance is lower, 0 to 1; 0 leaves out none. context: the last turns of the
    conversation before the query, oldest first. today_ms: the time to which relative dates in the query refer; None for
    `as_of_ms`, or now. runners_up: how many of the best candidates after the hits are wanted too, 0 to 20.

    Raises: InvalidInput.
    """

    text: str
    top_k: int = 5
    as_of_ms: int | None = None
    valid_at_ms: int | None = None
    filter: Mapping[str, object] = field(default_factory=dict)
    below: bool = False
    min_score: float = 0.0
    context: Sequence[str] = ()
    today_ms: int | None = None
    runners_up: int = 0

    def __post_init__(self) -> None:
        if not 1 <= self.top_k <= MAX_TOP_K:
            raise InvalidInput(f"top_k must be 1 to {MAX_TOP_K}", code="invalid_top_k")
        if self.as_of_ms is not None and not 0 <= self.as_of_ms < END_OF_NUMBERS:
            raise InvalidInput("as_of_ms must be epoch milliseconds", code="invalid_as_of")
        if self.valid_at_ms is not None and not 0 <= self.valid_at_ms < END_OF_NUMBERS:
            raise InvalidInput("valid_at_ms must be epoch milliseconds", code="invalid_valid_at")
        if not 0 <= self.min_score <= 1:
            raise InvalidInput("min_score must be 0 to 1", code="invalid_min_score")
        if not 0 <= self.runners_up <= MAX_RUNNERS_UP:
            raise InvalidInput(f"runners_up must be 0 to {MAX_RUNNERS_UP}", code="invalid_runners_up")


class ReadAlong(Protocol):
    """What a caller reads in the first trip of its recall, although the recall depends on it: `wanted` may be a guess."""

    @property
    def statements(self) -> Sequence[Statement]:
        """What D1 is asked besides."""
        ...

    async def wanted(self, results: Sequence[SqlResult]) -> RecallQuery:
        """Take the results of the statements, and return the recall that is wanted. Raises: what the caller does."""
        ...


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
        kept: KeptSignatures | None = None,
    ) -> None:
        self._view = view
        self._sql = sql
        self._index = index
        self._embedder = embedder
        self._clock = clock
        self._weights = weights or Weights()
        self._reranker = reranker
        self._kept = kept or KeptSignatures()

    async def search(self, wanted: RecallQuery, along: ReadAlong | None = None) -> RecallResult:
        """Return the best records, best first, ties by id. Two round trips to D1, one to the vector index.

        A third reads long hits, and for the scopes at and below another comes first. An embedding model or vector index that
        is away does not end the recall: it does without, and says so.
        When most of the nearest records may not be seen it takes two more to each or, at most, eight.
        What was known in the past takes two or three more: the candidates are judged in the state that they had then.
        With a reranker, the best `2 * top_k` are put into its order.
        along: is read in the first trip, and may ask for another recall instead, which takes a first trip of its own.
        A record can be found as soon as its write was answered. One found by its words is never dropped for its vector;
        what `min_score` leaves out, the caller asked to leave out, and words count for it too.
        Raises: InvalidInput, LimitExceeded for the query or its filter; NotFound (code `unknown_scope`) for a scope that
            D1 does not have, or has with other ancestors; Unavailable when D1 did not answer.
        """
        known_at_ms, started_ms = wanted.as_of_ms, self._clock()
        now = started_ms if known_at_ms is None else known_at_ms
        at_ms = now if wanted.valid_at_ms is None else wanted.valid_at_ms
        query = analyse(wanted.text, now if wanted.today_ms is None else wanted.today_ms, wanted.context)
        condition, values = compile_filter(wanted.filter)
        counted = await read_below(self._sql, self._view) if wanted.below else None
        reach = visible_from(self._view) if counted is None else counted.reach
        visible = Visible(reach, at_ms, known_at_ms, condition, tuple(values), lookups(wanted.filter))
        query = await with_conversations(self._sql, visible, query)
        reading = asyncio.ensure_future(
            read_first(
                self._sql,
                self._view,
                query,
                visible,
                counted,
                lately=FreshReading(
                    self._kept, visible, self._embedder.model, started_ms - self._index.lag_ms, started_ms
                ),
                model=self._embedder.model,
                filtered=bool(wanted.filter),
                along=() if along is None else along.statements,
            )
        )
        try:
            meant = await self._meaning(query, visible, wanted)
        except BaseException:
            await asyncio.gather(reading, return_exceptions=True)
            raise
        read = await reading
        if along is not None and (other := await along.wanted(read.along)) != wanted:
            return await self.search(other)
        statistics, visible = read.statistics, read.visible
        evidence = evidence_of(meant, read.found, query.named)
        degraded = meant.degraded if evidence.floor is not None else (*meant.degraded, "vectors")
        idf = statistics.idf(query)
        telling = rarity(query, idf, statistics.records)
        scale = Relevance(
            min(meant.unrelated, UNRELATED), telling, obscure(query.text, meant.vector), self._weights, query.only_dated
        )
        first, ranked, contents = await self._rank(query, evidence, idf, visible)
        if meant.search is not None and self._is_crowded(evidence, meant.nearest, first, ranked, wanted):
            evidence, complete = await widened(
                self._sql,
                meant.search,
                evidence,
                meant.nearest,
                visible,
                filtered=bool(wanted.filter),
                wanted=wanted.top_k,
                model=self._embedder.model,
            )
            _, ranked, contents = await self._rank(query, evidence, idf, visible)
            degraded = degraded if complete else (*degraded, "width")
        return await self._result(query, ranked, contents, scale, evidence, wanted, degraded)

    async def _result(
        self,
        query: Query,
        ranked: Sequence[Candidate],
        contents: Contents,
        scale: Relevance,
        evidence: Evidence,
        wanted: RecallQuery,
        degraded: tuple[Degradation, ...],
    ) -> RecallResult:
        """Return the best of the ranked candidates, and those after them that are wanted too."""
        count = wanted.top_k if self._reranker is None else 2 * wanted.top_k
        most, least = max(count, CONTRASTED), wanted.min_score
        judged = _contrasted(query, await self._hydrate(ranked, most, contents, scale, least))
        hits = judged[:count]
        if self._reranker is not None:
            try:
                hits = await self._reranked(self._reranker, wanted.text, hits)
            except (Unavailable, UpstreamFailed) as away:
                _log.warning("a recall does without the reranker", extra={"code": away.code})
                degraded = (*degraded, "rerank")
        hits = [replace(hit, found_by=evidence.origins(hit.record.id)) for hit in hits[: wanted.top_k]]
        if not wanted.runners_up:
            return RecallResult(hits, degraded)
        others = await self._hydrate(ranked, len(hits) + wanted.runners_up, contents, scale, 0.0)
        runners_up = _others(hits, judged, others, wanted.runners_up)
        named = [replace(hit, found_by=evidence.origins(hit.record.id)) for hit in runners_up]
        return RecallResult(hits, degraded, tuple(named))

    async def _embedded(self, query: Query) -> tuple[Vector, float, tuple[Degradation, ...]]:
        """Return the query's vector, the model's cosine of unrelated texts, and that the model is away if it is."""
        try:
            return *await embedded(self._embedder, query), ()
        except (Unavailable, UpstreamFailed) as error:
            _log.warning("a recall does without the embedding model", extra={"code": error.code})
            return (), 0.0, ("embedding",)

    async def _meaning(self, query: Query, visible: Visible, wanted: RecallQuery) -> Meaning:
        """Embed the query and ask the vector index."""
        vector, unrelated, degraded = await self._embedded(query)
        search = None
        if any(vector) and visible.scope_ids:
            criteria: MetadataFilter = {**visible.reach.vector_filter(), "model": self._embedder.model[:64]}
            if visible.known_at_ms is None:  # the index does not know what a record was in the past
                criteria = pushed(wanted.filter, visible.at_ms, self._index.filterable, criteria)
            search = VectorSearch(self._index, visible.tenant_id, criteria, vector, CosineScale.of_model(unrelated))
        nearest = NOTHING if search is None else await search.nearest(visible.known_at_ms, query.times)
        return Meaning(vector, unrelated, search, nearest, degraded)

    def _is_crowded(
        self,
        evidence: Evidence,
        nearest: Nearest,
        first: Sequence[str],
        ranked: Sequence[Candidate],
        wanted: RecallQuery,
    ) -> bool:
        """Return whether records that may not be seen took the places of others.

        first: all that was found, best first. ranked: those that were considered and may be seen.
        """
        if evidence.met is not None:
            return False  # all that may be seen was looked at
        seen = sum([candidate.id in nearest.cosine for candidate in ranked])
        considered = sum([one in nearest.cosine for one in first[:KEEP]])
        return (nearest.full or len(first) > KEEP) and too_few(seen, considered, wanted.top_k)

    async def _rank(
        self, query: Query, evidence: Evidence, idf: Mapping[str, float], visible: Visible
    ) -> tuple[list[str], list[Candidate], Contents]:
        """Return the ids of all that was found, by a first score, the candidates, by the formula, and their records.

        The candidates are the best of what was found and their neighbours, each content once. Both are best first.

        In the past the records are read first: their events say which of two equal contents was valid.
        """
        first = first_choice(evidence, sum(by_origin(query, idf)[0].values()) or 1.0, self._weights.for_query(query))
        if evidence.met is not None:  # nothing else may be seen
            first = [one for one in first if one in evidence.met]
        known: dict[str, Record] | None = None
        if visible.known_at_ms is None:
            some = list(dict.fromkeys([*first[:KEEP], *evidence.matching]))[:CANDIDATES]
            chosen = list(dict.fromkeys([*some, *sorted(evidence.standing)]))
        else:
            known = await best_known(self._sql, first, visible, KEEP)
            others = [one for one in (*evidence.matching, *sorted(evidence.standing)) if one not in known]
            known |= await read_records(self._sql, others, visible)
            chosen = sorted(known)
        stems = [*looked_for(query).values()]
        found, stated = await self._sql.batch(
            [
                sources.with_neighbours(
                    visible,
                    chosen,
                    stems,
                    adjacent=known is None and evidence.has_meaning,
                    met=evidence.met,
                    preferring=query.language if query.advice else None,
                ),
                facts_of_messages(visible.tenant_id, chosen, visible.at_ms, visible.known_at_ms),
            ]
        )
        read = listed(found)
        rows = SearchRow.read(read)
        if known is not None:
            neighbours = [row.id for row in rows if row.id not in known]
            known |= await read_records(self._sql, neighbours, visible) if neighbours else {}
            rows = [as_then(row, known[row.id]) for row in rows if row.id in known]
        candidates, turns = candidates_of(rows, query, frozenset(chosen), evidence)
        ranked = rank(query, candidates, turns, idf, self._weights)
        once = distinct(ranked)
        if len(once) < len(ranked):  # copies in several scopes must not raise each other's scores, nor crowd out others
            ranked = rank(query, once, turns, idf, self._weights)
        whole = (found.rows[0]["whole"] or "").split(sources.SEPARATOR)
        texts = {row[1]: text for row, text in zip(read, whole, strict=False) if text}
        contents = Contents(self._sql, visible, texts, known)
        return (
            first,
            demote(
                varied(ranked, self._weights, evidence.scale.bits(NEARLY_SAME)),
                read_facts(listed(stated)),
                self._weights.outdated,
            ),
            contents,
        )

    async def _reranked(self, reranker: Reranker, query: str, hits: Sequence[Hit]) -> list[Hit]:
        """Return the hits in the reranker's order, ties in the old one; its relevance becomes the component `rerank`."""
        scores = await rerank_in_time(reranker, query, [hit.record.content for hit in hits])
        scored = sorted(zip(hits, scores, strict=True), key=lambda pair: -pair[1])
        return [replace(hit, components={**hit.components, "rerank": score}) for hit, score in scored]

    async def _hydrate(
        self, ranked: Sequence[Candidate], count: int, contents: Contents, scale: Relevance, min_score: float
    ) -> list[Hit]:
        """Return the best with their records, each content once, without those of a lower relevance."""
        hits: list[Hit] = []
        seen: set[str] = set()
        for place, candidate in enumerate(ranked):
            if len(hits) == count:
                break
            relevance = scale.of(candidate)
            if relevance < min_score:
                continue
            following = ranked[place + 1 : place + 2 * count] if contents.lacks(candidate.id) else ()
            record = await contents.of(candidate.id, [one.id for one in following if scale.of(one) >= min_score])
            if record is None:
                continue
            digest = content_hash(record.content, record.utterance)
            if digest not in seen:
                seen.add(digest)
                hits.append(Hit(record, candidate.score, candidate.components, relevance))
        return hits


def _others(hits: Sequence[Hit], judged: Sequence[Hit], best: Sequence[Hit], count: int) -> list[Hit]:
    """Return the first of the best that are not among the hits, each as it was judged, if it was."""
    known = {hit.record.id for hit in hits}
    scored = {hit.record.id: hit for hit in [*best, *judged] if hit.record.id not in known}
    return sorted(scored.values(), key=lambda hit: (-hit.score, hit.record.id))[:count]


def _contrasted(query: Query, hits: Sequence[Hit]) -> list[Hit]:
    """Return the hits, best first, contradicted ones after what contradicts them."""
    scores = contrasted(query, [(hit.record, hit.score) for hit in hits])
    judged = [
        replace(hit, score=score, components={**hit.components, "contradicted": score - hit.score})
        for hit, score in zip(hits, scores, strict=True)
    ]
    return sorted(judged, key=lambda hit: -hit.score)
