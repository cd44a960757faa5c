"""What the sources found for a query, and how search rows become candidates."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter, itemgetter
from typing import Any, Literal, NamedTuple

from retain.memory.recall.preparation import PART_CHARACTERS, SIGNATURE_BITS, SPAN, WINDOW_LIMIT
from retain.memory.recall.query import Query, is_assistant
from retain.memory.recall.ranking import BM25_K1, COSINES, Candidate, Place, Turns
from retain.memory.recall.weights import Weights

Origin = Literal["words", "vectors", "recent", "exact", "dates", "standing", "filter"]
"""What finds a candidate. recent: the signature of a write that the index may not show yet. filter: it meets the filter."""

REACH = 1
"""How many turns on either side of a candidate become candidates too."""

BEST_PART = 0.05
"""How much nearer the best part of a long text is than its mean, of which it has a signature: measured on two data sets."""

SEAM = 1000
"""So many positions are left between two parts of a conversation, or more, when they arrive: nothing was said there."""

PAUSE_MS = 6 * 3_600_000
"""After this time a turn begins something new: it and the one before do not give each other context."""

UNRELATED = 0.1
"""The mean cosine of unrelated texts up to which cosines are taken as they are: those of the tables are below it."""

STEMS_EACH = 50
"""How many of a query's stems one number stands for, with a bit for each."""
MAX_TERMS = 30 * STEMS_EACH
"""The terms of a query that are looked for in candidates: a function of D1 takes 32 arguments, a statement 100,000 bytes.

Source: https://developers.cloudflare.com/d1/platform/limits/
"""


class SearchRow(NamedTuple):
    """A search row, with what ranking needs of its text.

    nearness: how many positions from the closest chosen record. previous: the position of the turn before. at_ms: when it
    was uttered, else when it became valid. has: numbers with a bit for each of the query's stems that the text contains.
    earlier: the text is one that the record had earlier.
    What follows is None for a turn that cannot become a candidate; the signature, if the turn before cannot either.
    prefers: it says what somebody prefers.
    """

    nearness: int
    id: str
    scope_id: str
    conversation: str | None
    position: int
    previous: int | None
    at_ms: int
    has: Sequence[int]
    length: int
    earlier: int
    signature: str | None
    number: int
    content_hash: str
    importance: float
    confidence: float
    speaker: str | None
    names_time: int
    asking: float
    prefers: int

    @classmethod
    def read(cls, listed: Sequence[Sequence[Any]]) -> list[SearchRow]:
        """Return the rows that a statement listed, each record once: as the turn closest to a chosen record."""
        # Of equal keys the last stays.
        return list({row[1]: cls._make(row) for row in sorted(listed, key=itemgetter(0), reverse=True)}.values())


@dataclass(frozen=True, slots=True)
class Matching:
    """Records that meet a condition, newest first: [id, signature, number]. complete: there are no others."""

    rows: Sequence[tuple[str, str, int]]
    complete: bool

    @property
    def numbers(self) -> Mapping[str, int] | None:
        """The numbers of all records that meet it, by id; None if there may be others."""
        return {one: number for one, _, number in self.rows} if self.complete else None


@dataclass(frozen=True, slots=True)
class CosineScale:
    """Brings the cosines of all models to one scale, in which texts that have nothing to do with each other have few.

    A model may give unrelated texts 0.8 and related ones 0.9. What counts is how far a cosine is from 1, compared with how
    far those of unrelated texts are. Otherwise its vectors would decide nothing, and all texts would say nearly the same.
    factor: 1 leaves cosines as they are.
    """

    factor: float = 1.0

    @classmethod
    def of_model(cls, unrelated: float) -> CosineScale:
        """Return the scale of a model. unrelated: its mean cosine of unrelated texts, less than 1."""
        return cls((1.0 - UNRELATED) / (1.0 - max(unrelated, UNRELATED)))

    def scaled(self, cosine: float) -> float:
        """Return a cosine of the model on the common scale: at most 1, and possibly less than -1."""
        return cosine if self.factor == 1.0 else 1.0 - (1.0 - cosine) * self.factor

    def bits(self, cosine: float) -> int:
        """Return how many bits of their signatures differ between texts that have this cosine on the common scale."""
        return int(math.acos(max(-1.0, 1.0 - (1.0 - cosine) / self.factor)) / math.pi * SIGNATURE_BITS)


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the sources found, by record id.

    cosine: of each record's best part and the query, exact or estimated. floor: the least cosine that the vector index
    returned, 0 when it returned fewer than asked for: what it did not return is at most as near. None when it did not
    answer: then cosines are estimated.
    query_signature: 0 for a query without a vector. bm25, exact: the scores from full text and exact terms.
    fresh: records that the index may not show yet: what it did not return says nothing about them.
    matching: of the newest records that meet a filter, those that are nearest by their signatures: candidates in any case.
    met: the numbers of all records that meet it, by id; None if there may be others. dated: what was found of the times that
    the query names.
    standing: the newest instructions, by kind or phrase; candidates in any case. context: as bm25, of the words of
    the query's context. indexed: what the vector index itself returned. scale: of the model; the cosines are scaled by it.
    """

    cosine: Mapping[str, float]
    floor: float | None
    query_signature: int
    bm25: Mapping[str, float]
    exact: Mapping[str, float]
    fresh: frozenset[str] = frozenset()
    matching: Sequence[str] = ()
    met: Mapping[str, int] | None = None
    dated: frozenset[str] = frozenset()
    standing: frozenset[str] = frozenset()
    context: Mapping[str, float] = field(default_factory=dict)
    indexed: frozenset[str] = frozenset()
    scale: CosineScale = CosineScale()

    @property
    def has_meaning(self) -> bool:
        """Whether the vector index was asked and answered: then what shares no word with the query can be judged."""
        return self.query_signature != 0 and self.floor is not None

    def origins(self, record_id: str) -> tuple[Origin, ...]:
        """Return what found a record. Nothing did if it is a candidate because it is next to another one."""
        lately = record_id in self.fresh and record_id not in self.indexed
        found: dict[Origin, bool] = {
            "words": record_id in self.bm25 or record_id in self.context,
            "vectors": record_id in self.cosine and not lately,
            "recent": record_id in self.cosine and lately,
            "exact": record_id in self.exact,
            "dates": record_id in self.dated,
            "standing": record_id in self.standing,
            "filter": record_id in self.matching,
        }
        return tuple(origin for origin, there in found.items() if there)

    def nearness(self, row: SearchRow) -> float:
        """Return the cosine of a search row's record, estimated from its signature when no source found it.

        An earlier text has no vectors, and those that the index has of its record are of another text. 0 for a turn that no
        source found and that counts for nothing: it follows a text that is too long to be ranked with its neighbours.
        """
        if row.signature is None:
            return self.cosine.get(row.id, 0.0)
        if row.earlier:
            return self._estimated(row.signature) if self.query_signature else 0.0
        known = self.cosine.get(row.id)
        if known is not None:
            return known
        if not self.query_signature:
            return self.floor or 0.0
        if self.floor is None or row.id in self.fresh:
            return self._estimated(row.signature)
        best = BEST_PART if row.length > PART_CHARACTERS else 0.0
        return min(self.floor, self._estimated(row.signature) + best)

    def _estimated(self, signature: str) -> float:
        return self.scale.scaled(estimated(self.query_signature, signature))


def estimated(query_signature: int, signature: str) -> float:
    """Return an estimate of two texts' cosine from their signatures.

    Source: https://doi.org/10.1145/509907.509965
    """
    return COSINES[(query_signature ^ int(signature, 16)).bit_count()]


def closest(matching: Matching, query_signature: int, count: int) -> list[str]:
    """Return the ids of the records whose signatures are most like the query's, or of the first without a query's."""
    rows = matching.rows
    if query_signature and len(rows) > count:
        rows = sorted(rows, key=lambda row: (query_signature ^ int(row[1], 16)).bit_count())
    return [one for one, *_ in rows[:count]]


def first_choice(evidence: Evidence, whole: float, weights: Weights) -> list[str]:
    """Return the ids of what was found, best first by a first score. whole: the sum of the query's idf."""

    least, cosine, bm25, exact = evidence.floor or 0.0, evidence.cosine, evidence.bm25, evidence.exact
    context = evidence.context
    of_cosine, of_words = weights.vector, weights.words / ((BM25_K1 + 1) * whole)
    scored = [
        (
            of_cosine * cosine.get(one, least)
            + of_words * (bm25.get(one, 0.0) + context.get(one, 0.0))
            + (weights.exact * exact[one] if one in exact else 0.0)
            + (weights.dated if one in evidence.dated else 0.0),
            one,
        )
        for one in {*bm25, *cosine, *exact, *evidence.dated}
    ]
    scored.sort(reverse=True)
    return [one for _, one in scored]


def candidates_of(
    rows: Sequence[SearchRow], query: Query, chosen: frozenset[str], evidence: Evidence
) -> tuple[list[Candidate], Turns]:
    """Return the candidates among the search rows, and the query's stems that each turn contains.

    chosen: ids found by word or vector; a turn next to a short chosen one is a candidate too, and all that is outside
    conversations.
    """
    places = _places(rows)
    at: dict[tuple[str, int], SearchRow] = {places[row.id]: row for row in rows if row.id in places}
    reached = {
        (conversation, position + step)
        for (conversation, position), row in at.items()
        if row.id in chosen and row.length <= WINDOW_LIMIT
        for step in range(-REACH, REACH + 1)
    }
    stems = _Stems([*looked_for(query)])
    speakers = _Speakers(query)
    found: list[Candidate] = []
    for row in rows:
        place = places.get(row.id)
        if place is None or row.id in chosen or place in reached:
            before, after = (None, None) if place is None else (at.get(place.moved(-1)), at.get(place.moved(1)))
            has, speaks = stems[tuple(row.has)], speakers[row.speaker]
            found.append(_candidate(row, place, before, after, evidence, has, speaks))
    return found, {place: stems[tuple(row.has)] for place, row in at.items()}


def looked_for(query: Query) -> Mapping[str, tuple[str, ...]]:
    """Return the stems that are looked for in candidates, each with its terms: the first that have `MAX_TERMS` together."""
    found: dict[str, tuple[str, ...]] = {}
    room = MAX_TERMS
    for stem in query.counted_stems:
        terms = query.terms(stem)
        room -= len(terms)
        if room < 0:
            break
        found[stem] = terms
    return found


class _Stems(dict[tuple[int, ...], frozenset[str]]):
    """The stems that numbers of bits stand for: many texts have the same ones."""

    def __init__(self, stems: Sequence[str]) -> None:
        super().__init__()
        self._bits = [(1 << place, stem) for place, stem in enumerate(stems)]

    def __missing__(self, bits: tuple[int, ...]) -> frozenset[str]:
        """Read the bits."""
        whole = sum([number << (STEMS_EACH * place) for place, number in enumerate(bits)])
        self[bits] = found = frozenset([stem for bit, stem in self._bits if whole & bit])
        return found


class _Speakers(dict[str | None, tuple[bool, bool]]):
    """Of each speaker: whether the query names them, and whether they are an assistant."""

    def __init__(self, query: Query) -> None:
        super().__init__()
        self._query = query

    def __missing__(self, speaker: str | None) -> tuple[bool, bool]:
        """Judge a speaker."""
        self[speaker] = found = (self._query.names(speaker), is_assistant(speaker))
        return found


def _candidate(
    row: SearchRow,
    place: Place | None,
    before: SearchRow | None,
    after: SearchRow | None,
    evidence: Evidence,
    has: frozenset[str],
    speaks: tuple[bool, bool],
) -> Candidate:
    by_named, by_assistant = speaks
    return Candidate(
        id=row.id,
        content_hash=row.content_hash,
        place=place,
        length=row.length,
        has=has,
        names_time=bool(row.names_time),
        asking=float(row.asking),
        signature=int(row.signature or "0", 16),
        order=row.number,
        importance=float(row.importance),
        confidence=float(row.confidence),
        by_named=by_named,
        by_assistant=by_assistant,
        standing=row.id in evidence.standing and not by_assistant,
        preference=bool(row.prefers) and not by_assistant,
        at_ms=row.at_ms,
        following=0.0 if after is None else evidence.nearness(after),
        question=evidence.nearness(before) if before is not None and before.asking else 0.0,
        cosine=evidence.nearness(row),
        bm25=evidence.bm25.get(row.id, 0.0),
        context=evidence.context.get(row.id, 0.0),
        exact=evidence.exact.get(row.id, 0.0),
    )


def _places(rows: Sequence[SearchRow]) -> dict[str, Place]:
    """Return the place of each turn of a conversation, by id: turns next to each other have consecutive numbers.

    Positions order the turns. A few missing ones are turns that are not stored; many are room between parts, see `SEAM`.
    Turns before and after a pause are as far from each other as those of two conversations.
    """
    places: dict[str, Place] = {}
    conversations: dict[tuple[str, str], list[SearchRow]] = defaultdict(list)
    for row in rows:
        if row.conversation is not None:
            conversations[row.scope_id, row.conversation].append(row)
    for (scope_id, conversation), turns in conversations.items():
        name, number, last, last_ms = f"{scope_id}:{conversation}", turns[0].position, None, 0
        turns.sort(key=attrgetter("position"))
        for row in turns:
            if last is None:
                number = row.position
            elif abs(row.at_ms - last_ms) > PAUSE_MS:
                number += row.position - last + SPAN
            elif row.previous == last and row.position - last >= SEAM:
                number += 1
            else:
                number += row.position - last
            last, last_ms = row.position, row.at_ms
            places[row.id] = Place(name, number)
    return places
