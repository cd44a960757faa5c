"""What the sources found for a query, and how search rows become candidates."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from retain.memory.recall.preparation import PART_CHARACTERS, SIGNATURE_BITS, WINDOW_LIMIT
from retain.memory.recall.query import Query, is_assistant, is_user
from retain.memory.recall.ranking import BM25_K1, Candidate, Place, Turns, Weights
from retain.ports import Row

REACH = 1
"""How many turns on either side of a candidate become candidates too."""

STANDING_LIMIT = 400
"""A standing instruction has at most this many characters: in a longer text the phrase is mentioned in passing."""

_PREFERRING = (" i ", " prefer ")
"""The stems of a text that states a preference, between spaces."""

SEAM = 1000
"""So many positions are left between two parts of a conversation, or more, when they arrive: nothing was said there."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the sources found, by record id.

    cosine: of each record's best part and the query, exact or estimated. floor: the least cosine that the vector index
    returned, 0 when it returned fewer than asked for: what it did not return is at most as near. None when it did not
    answer: then cosines are estimated.
    query_signature: 0 for a query without a vector. bm25, exact: the scores from full text and exact terms.
    matching: of the newest records that meet a filter, those that are nearest by their signatures: candidates in any case.
    all_matching: they were chosen from all that meet it. dated: what full text found of the times that the query names.
    standing: the newest with a phrase of standing instructions; candidates in any case. context: as bm25, of the words of
    the query's context.
    """

    cosine: Mapping[str, float]
    floor: float | None
    query_signature: int
    bm25: Mapping[str, float]
    exact: Mapping[str, float]
    matching: Sequence[str] = ()
    all_matching: bool = False
    dated: frozenset[str] = frozenset()
    standing: frozenset[str] = frozenset()
    context: Mapping[str, float] = field(default_factory=dict)

    def nearness(self, row: Row) -> float:
        """Return the cosine of a search row's record, estimated from its signature when no source found it.

        An earlier text has no vectors, and those that the index has of its record are of another text.
        """
        if row["earlier"]:
            return estimated(self.query_signature, row["signature"]) if self.query_signature else 0.0
        known = self.cosine.get(row["id"])
        if known is not None:
            return known
        if not self.query_signature:
            return self.floor or 0.0
        if self.floor is None:
            return estimated(self.query_signature, row["signature"])
        if int(row["length"]) > PART_CHARACTERS:
            return self.floor
        return min(self.floor, estimated(self.query_signature, row["signature"]))


@dataclass(frozen=True, slots=True)
class _Turn:
    """A search row, parsed once. has: the query's stems that it contains. prefers: it says what somebody prefers."""

    row: Row
    place: Place | None
    has: frozenset[str]
    prefers: bool


def estimated(query_signature: int, signature: str) -> float:
    """Return an estimate of two texts' cosine from their signatures.

    Source: https://doi.org/10.1145/509907.509965
    """
    return math.cos(math.pi * (query_signature ^ int(signature, 16)).bit_count() / SIGNATURE_BITS)


def closest(rows: Sequence[tuple[str, str]], query_signature: int, count: int) -> list[str]:
    """Return the ids of the `count` rows whose signatures are most like the query's, or of the first without a query's.

    rows: [id, signature].
    """
    if not query_signature or len(rows) <= count:
        return [one for one, _ in rows[:count]]
    return [one for one, _ in sorted(rows, key=lambda row: (query_signature ^ int(row[1], 16)).bit_count())[:count]]


def first_choice(evidence: Evidence, whole: float, weights: Weights) -> list[str]:
    """Return the ids of what was found, best first by a first score. whole: the sum of the query's idf."""

    def bm25(record_id: str) -> float:
        return evidence.bm25.get(record_id, 0.0) + evidence.context.get(record_id, 0.0)

    def first(record_id: str) -> tuple[float, str]:
        score = (
            weights.vector * evidence.cosine.get(record_id, evidence.floor or 0.0)
            + weights.words * bm25(record_id) / ((BM25_K1 + 1) * whole)
            + weights.exact * evidence.exact.get(record_id, 0.0)
            + weights.dated * (record_id in evidence.dated)
        )
        return score, record_id

    everything = {*evidence.bm25, *evidence.cosine, *evidence.exact}
    return sorted(everything, key=first, reverse=True)


def candidates_of(
    rows: Sequence[Row], query: Query, chosen: frozenset[str], evidence: Evidence
) -> tuple[list[Candidate], Turns]:
    """Return the candidates among the search rows, and the query's stems that each turn contains.

    chosen: ids found by word or vector; a turn next to a short chosen one is a candidate too.
    """
    wanted = [(stem, f" {stem} ") for stem in query.counted_stems]
    places = _places(rows)
    turns = [_turn(row, places.get(row["id"]), wanted) for row in rows]
    at = {turn.place: turn for turn in turns if turn.place is not None}
    reached = {
        place.moved(step)
        for place, turn in at.items()
        if turn.row["id"] in chosen and turn.row["length"] <= WINDOW_LIMIT
        for step in range(-REACH, REACH + 1)
    }
    found = [
        _candidate(turn, query, evidence, following=None if turn.place is None else at.get(turn.place.moved(1)))
        for turn in turns
        if turn.row["id"] in chosen or turn.place in reached
    ]
    return found, {place: turn.has for place, turn in at.items()}


def _stems_in(terms: str, wanted: Sequence[tuple[str, str]]) -> frozenset[str]:
    """Return the wanted stems that are among the terms. wanted: each stem, and the stem between spaces."""
    spaced = f" {terms} "
    return frozenset([stem for stem, between in wanted if between in spaced])


def _turn(row: Row, place: Place | None, wanted: Sequence[tuple[str, str]]) -> _Turn:
    spaced = f" {row['terms']} "
    return _Turn(row, place, _stems_in(row["terms"], wanted), all(stem in spaced for stem in _PREFERRING))


def _candidate(turn: _Turn, query: Query, evidence: Evidence, *, following: _Turn | None) -> Candidate:
    row = turn.row
    return Candidate(
        id=row["id"],
        content_hash=row["content_hash"],
        place=turn.place,
        length=int(row["length"]),
        has=turn.has,
        names_time=bool(row["names_time"]),
        asking=float(row["asking"]),
        signature=int(row["signature"], 16),
        order=int(row["number"]),
        importance=float(row["importance"]),
        confidence=float(row["confidence"]),
        by_named=query.names(row["speaker"]),
        by_user=is_user(row["speaker"]),
        standing=row["id"] in evidence.standing
        and row["length"] <= STANDING_LIMIT
        and not is_assistant(row["speaker"]),
        preference=turn.prefers and not is_assistant(row["speaker"]),
        at_ms=int(row["at_ms"]),
        following=0.0 if following is None else evidence.nearness(following.row),
        cosine=evidence.nearness(row),
        bm25=evidence.bm25.get(row["id"], 0.0),
        context=evidence.context.get(row["id"], 0.0),
        exact=evidence.exact.get(row["id"], 0.0),
    )


def _places(rows: Sequence[Row]) -> dict[str, Place]:
    """Return the place of each turn of a conversation, by id: turns next to each other have consecutive numbers.

    A row's `positions` are its own, which orders the turns, and that of the turn before it. A few missing positions are
    turns that are not stored; many are room between parts, see `SEAM`.
    """
    places: dict[str, Place] = {}
    conversations: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        if row["conversation"] is not None:
            conversations[f"{row['scope_id']}:{row['conversation']}"].append(row)
    for name, turns in conversations.items():
        number = last = None
        for row in sorted(turns, key=_position):
            position = _position(row)
            if number is None or last is None:
                number = position
            else:
                adjoining = row["positions"][1] == last and position - last >= SEAM
                number += 1 if adjoining else position - last
            last = position
            places[row["id"]] = Place(name, number)
    return places


def _position(row: Row) -> int:
    return int(row["positions"][0])
