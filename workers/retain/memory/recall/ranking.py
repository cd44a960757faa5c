"""One ranking formula. Every weight is in `weights.Weights`; docs/decisions/0007-recall.md says why each is what it is.

    score = vector     * cosine(query, the record's best part)
          + words      * (s * covered + (1 - s) * bm25 / the best possible bm25)
          + context      as `words`, for half of the idf of the words of the turns before the query
          + following  * s * cosine(query, the next turn): an answer repeats words of what it answers
          + answering  * s * how much nearer to the query the question just before it is, if the query names who answers: an
                         answer means little without what was asked
          + related    * heat of the most similar candidates, for a turn half of it: it is about one thing; not for a
                         question half of whose words are in no candidate: what has most neighbours would be first
          + around     * heat of what else was uttered, or became valid, around that time, unless the query continues a
                         conversation
          + recency    * -ln(RECENCY_OFFSET + number of newer candidates), if the query continues a conversation; a short
                         record counts as of middle age: a fact stays true until something ends it
          + temporal   * s, if the query asks when and the record names a time: a long text names some time in passing
          + dated      if the record was uttered, or became valid, in a span of time that the query asks for, or in a
                         conversation that it names. Half of it, and the day after as well, if only turns were found:
                         people report a day in the evening or the next morning, among much else
          + fullness   * the record's length up to 400 characters, if the query asks for a time alone: a greeting
                         says less of a day than what followed
          + assistant  if the record is what an assistant said, unless the query asks for what was answered: answers are
                         long and repeat the words of what they answer
          + standing   if the record is a standing instruction, and the query a request
          + preference * s * share of the nearest such record's cosine, if it states a preference or an aversion, and the
                         query asks for advice
          + speaker    * s, if the query names who said it
          + alone      * s, if the record is in no conversation, and others are: a turn has the words of its neighbours and
                         the next turn's cosine, too
          + asking     * s * share of the record's sentences that are questions: a question is seldom an answer
          + exact      * share of the query's exact terms that the record has
          + importance * (importance - 0.5)
          + confidence * (confidence - 1)
          + outdated   * share of a message's facts that are over (`retain.memory.recall.outdated`)
          + contradicted if a later record corrects it, or it says the opposite (likewise): what puts it below the other
          + repeated     the more, the more better ones say nearly the same, if it is short and they are `REPEATED` or more

`s` (shortness) is 1 up to 400 characters and falls with the square of the length: a short turn means little without its
neighbours, a long text covers too much to lend them its words. `covered` is the share of the query's words, weighed by
inverse document frequency, that the record or, discounted by distance, its neighbours have.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import repeat
from operator import xor
from typing import NamedTuple

from retain.memory.recall.preparation import SIGNATURE_BITS, WINDOW_LIMIT
from retain.memory.recall.query import Query
from retain.memory.recall.weights import Weights

BM25_K1 = 1.2
BM25_B = 0.75
BM25_LONGEST = 4.0
"""Beyond this many times the average length a text is not discounted further, or no document could win against facts."""
RELATED_POOL = 60
"""How many of the best candidates warm each other: by similarity, and by time."""
AROUND_MS = 172_800_000
"""After this time, what else was recorded warms 1/e as much."""
RELATED_NEIGHBOURS = 10
NEARLY_SAME = 0.9
"""The cosine, on the common scale, from which texts say nearly the same."""
REPEATED = 3
"""How many that say nearly the same may come first; each of as many more loses more than the one before."""
_LEAST = 0.02
"""Least similarity of a neighbour, and least norm."""
_CLOSER = 0.1
"""Neighbours that are less alike are looked at if there are too few others."""
COSINES = tuple(math.cos(math.pi * distance / SIGNATURE_BITS) for distance in range(SIGNATURE_BITS + 1))
"""The estimated cosine of two texts whose signatures differ in so many bits."""
_DIGITS = 12
RECENCY_POOL = 50
"""Recency is a rank among this many best candidates, not a span of time: there is no scale to tune."""
RECENCY_OFFSET = 3


class Place(NamedTuple):
    """The position of a turn in a conversation. conversation: the scope's id, a colon and the conversation's id."""

    conversation: str
    position: int

    def moved(self, steps: int) -> Place:
        """Return the place this many turns later, or earlier when negative."""
        return Place(self.conversation, self.position + steps)


@dataclass(slots=True)
class Candidate:
    """A record that may be an answer, with all that the formula needs.

    content_hash: equal to that of its copies in other scopes. place: None outside a conversation. has: the query's stems
    that it contains. order: its number in the order of recording, by which recency ranks. signature: see
    `preparation.signature`. by_named: the query names its speaker. by_assistant: an assistant said it. standing: it is
    a standing instruction. preference: it states a preference or an aversion, and the query asks for advice. at_ms: when it
    was uttered, else when it became valid. following: cosine of the query and the turn after it, 0 without one. question:
    likewise of a turn before it that asks something. bm25, exact: 0 when full text did not find it. context: BM25 of the
    words of the query's context. score, components: filled in by `rank`.
    """

    id: str
    content_hash: str
    place: Place | None
    length: int
    has: frozenset[str]
    names_time: bool
    asking: float
    signature: int
    order: int
    importance: float
    confidence: float
    by_named: bool
    by_assistant: bool
    standing: bool
    preference: bool
    at_ms: int
    following: float
    question: float
    cosine: float = 0.0
    bm25: float = 0.0
    context: float = 0.0
    exact: float = 0.0
    score: float = 0.0
    components: dict[str, float] = field(default_factory=dict)


Turns = Mapping[tuple[str, int], frozenset[str]]
"""By `Place`: the query's stems that the turn contains."""


def by_origin(query: Query, idf: Mapping[str, float]) -> tuple[dict[str, float], dict[str, float]]:
    """Return the idf of the words of the query, and of those of its context; 0 for the others."""
    own = frozenset(query.stems)
    return (
        {stem: one if stem in own else 0.0 for stem, one in idf.items()},
        {stem: 0.0 if stem in own else one for stem, one in idf.items()},
    )


def rank(
    query: Query,
    candidates: Sequence[Candidate],
    turns: Turns,
    idf: Mapping[str, float],
    weights: Weights | None = None,
) -> list[Candidate]:
    """Return the candidates ordered by the formula, best first; ties go to the smaller id."""
    chosen = weights or Weights()
    dated = _dated(query, candidates, chosen)
    if dated:
        chosen = chosen.for_query(query)
    own, spoken = by_origin(query, idf)
    whole = sum(own.values()) or 1.0
    around = _by_distance(chosen)
    short = {c.id: _shortness(c.length, chosen) for c in candidates}
    nearest = max((c.cosine for c in candidates if c.preference), default=0.0)
    alone = chosen.alone if any(c.place is not None and short[c.id] for c in candidates) else 0.0
    sums = _Sums(own)
    for c in candidates:
        s = short[c.id]
        covered = _covered(c, turns, own, around, sums) / whole if s else 0.0
        c.components = {
            "vector": chosen.vector * c.cosine,
            "words": chosen.words * (s * covered + (1.0 - s) * c.bm25 / ((BM25_K1 + 1) * whole)),
            "following": chosen.following * s * max(c.following, 0.0),
            "answering": chosen.answering * s * max(c.question - max(c.cosine, 0.0), 0.0) if c.by_named else 0.0,
            "temporal": chosen.temporal * s if query.asks_when and c.names_time else 0.0,
            "dated": dated.get(c.id, 0.0),
            "fullness": chosen.fullness * min(1.0, c.length / chosen.short) if query.only_dated else 0.0,
            "assistant": chosen.assistant if c.by_assistant and query.of_user else 0.0,
            "standing": chosen.standing if c.standing and query.request else 0.0,
            "preference": chosen.preference * s * _share(c.cosine, nearest) if c.preference else 0.0,
            "speaker": chosen.speaker * s if c.by_named else 0.0,
            "alone": alone * s if c.place is None else 0.0,
            "asking": chosen.asking * s * c.asking,
            "exact": chosen.exact * c.exact,
            "importance": chosen.importance * (c.importance - 0.5),
            "confidence": chosen.confidence * (c.confidence - 1.0),
        }
        c.score = sum(c.components.values())
    if query.context_stems:
        sums = _Sums(spoken)
        for c in candidates:
            s = short[c.id]
            covered = _covered(c, turns, spoken, around, sums) / whole if s else 0.0
            _add(c, "context", chosen.words * (s * covered + (1.0 - s) * c.context / ((BM25_K1 + 1) * whole)))
    ordered = sorted(candidates, key=_by_score)
    if query.message:
        times = sorted([c.order for c in ordered[:RECENCY_POOL]])
        for c in ordered:
            newer: float = len(times) - bisect_right(times, c.order)
            newer += short[c.id] * (len(times) / 2 - newer)
            _add(c, "recency", -chosen.recency * math.log(newer + RECENCY_OFFSET))
        ordered.sort(key=_by_score)
    pool = ordered[:RELATED_POOL]
    heat = [math.exp(0.5 * (c.score - pool[0].score)) for c in pool]
    warmed = _around(pool, heat) if not query.message else [0.0] * len(pool)
    likened = [0.0] * len(pool) if not query.message and _is_strange(query, candidates) else _related(pool, heat)
    for c, related, near in zip(pool, likened, warmed, strict=True):
        _add(c, "related", chosen.related * (1.0 - short[c.id] / 2) * related)
        _add(c, "around", chosen.around * near)
    ordered.sort(key=_by_score)
    return ordered


def varied(ranked: Sequence[Candidate], weights: Weights, bits: int) -> list[Candidate]:
    """Return the candidates, best first, after short ones of which `REPEATED` better ones say nearly the same lost score.

    Twenty variations of one question must leave room for its answer. bits: how many of texts' signatures differ at most, if
    they say nearly the same.
    """
    better: list[int] = []
    changed = False
    for c in ranked[:RELATED_POOL]:
        if c.signature and c.length <= weights.short:
            alike = sum(map(bits.__ge__, map(int.bit_count, map(xor, repeat(c.signature), better))))
            better.append(c.signature)
            if alike >= REPEATED:
                _add(c, "repeated", weights.repeated * min(alike - REPEATED + 1, REPEATED))
                changed = True
    return sorted(ranked, key=_by_score) if changed else list(ranked)


def distinct(ranked: Sequence[Candidate]) -> list[Candidate]:
    """Return the first candidate of each content."""
    return list({c.content_hash: c for c in reversed(ranked)}.values())[::-1]


def _dated(query: Query, candidates: Sequence[Candidate], weights: Weights) -> dict[str, float]:
    """Return what the candidates gain for being of a time, or in a conversation, that the query asks for, by id."""
    if not query.times and not query.named:
        return {}
    if query.only_dated or any(c.place is None for c in candidates):
        each = weights.for_query(query).dated
        return {c.id: each for c in candidates if query.asks_for(c.id, c.at_ms)}
    reported = {c.id: weights.reported for c in candidates if query.may_report(c.at_ms)}
    return reported | {c.id: weights.dated for c in candidates if c.id in query.named}


def _is_strange(query: Query, candidates: Sequence[Candidate]) -> bool:
    """Return whether half of the query's words are in none of the candidates."""
    asked = frozenset(query.stems)
    return 2 * len(asked.difference(*[c.has for c in candidates])) >= len(asked)


def _share(one: float, most: float) -> float:
    """Return what share of the most one is, 0 to 1; 1 if there is nothing to share, as without vectors."""
    return max(one, 0.0) / most if most > 0.0 else 1.0


def _by_score(candidate: Candidate) -> tuple[float, str]:
    return -candidate.score, candidate.id


def _add(candidate: Candidate, component: str, value: float) -> None:
    candidate.components[component] = value
    candidate.score += value


def _shortness(length: int, weights: Weights) -> float:
    """Return 1 for a turn, down to 0 for a document."""
    return 0.0 if length > WINDOW_LIMIT else min(1.0, weights.short / max(length, 1)) ** 2


def _covered(
    item: Candidate, turns: Turns, idf: Mapping[str, float], around: Sequence[tuple[float, int]], own: _Sums
) -> float:
    """Return the sum of idf of the query's words that the item has or, discounted by distance, its neighbours have.

    around: the discount at each distance from the item, the largest first. own: sums of idf.
    """
    total = own[item.has]
    if item.place is None:
        return total
    conversation, position = item.place
    missing: Set[str] | None = None
    for discount, distance in around:
        turn = turns.get((conversation, position + distance))
        if turn:
            missing = idf.keys() - item.has if missing is None else missing
            if not missing:
                break
            found = turn & missing
            total += discount * sum([idf[t] for t in found])
            missing -= found
    return total


class _Sums(dict[frozenset[str], float]):
    """The sum of idf of each set of stems: many texts have the same ones."""

    def __init__(self, idf: Mapping[str, float]) -> None:
        super().__init__()
        self._idf = idf

    def __missing__(self, stems: frozenset[str]) -> float:
        """Add them up."""
        self[stems] = found = sum([self._idf[stem] for stem in stems])
        return found


def _by_distance(weights: Weights) -> list[tuple[float, int]]:
    """Return the discount at each distance from a turn, the largest first."""
    before = [(discount, -distance) for distance, discount in enumerate(weights.before, start=1)]
    after = [(discount, distance) for distance, discount in enumerate(weights.after, start=1)]
    return sorted([*before, *after], reverse=True)


def _related(pool: Sequence[Candidate], heat: Sequence[float]) -> list[float]:
    """Return the heat of each candidate's most similar neighbours, 0 to 1, relative to the hottest.

    All lengths take part: were it only for long texts, any of them would come before short ones that answer better.
    What the whole pool has in common, such as a style or a speaker's manner, does not make any two related. So the matrix of
    similarities is centred on the pool's mean, as in classical scaling.
    Source: https://doi.org/10.1007/BF02288916
    """
    count = len(pool)
    if count < 2:
        return [0.0] * count
    cosines = _cosines([c.signature for c in pool])
    means = [sum(row) / count for row in cosines]
    mean = sum(means) / count
    norms = [math.sqrt(max(1.0 - 2 * own + mean, _LEAST)) for own in means]
    rows: list[list[float]] = []
    found: list[float] = []
    for number, cosine_row in enumerate(cosines):
        offset, norm = means[number] - mean, norms[number]
        after = zip(cosine_row[number + 1 :], means[number + 1 :], norms[number + 1 :], strict=True)
        row = [earlier[number] for earlier in rows]
        row.append(0.0)  # not its own neighbour
        row += [(cosine - own - offset) / (norm * other) for cosine, own, other in after]
        rows.append(row)
        # Sorting is most of the work, and neighbours that are less alike than most rarely count.
        best = [one for one in zip(row, heat, strict=True) if one[0] > _CLOSER]
        if len(best) < RELATED_NEIGHBOURS:
            best = list(zip(row, heat, strict=True))
            del best[number]
        best.sort(reverse=True)
        del best[RELATED_NEIGHBOURS:]
        whole = weighed = 0.0
        for alike, warmth in best:
            weight = alike * alike if alike > _LEAST else _LEAST * _LEAST
            whole += weight
            weighed += weight * warmth
        found.append(weighed / whole)
    hottest = max(found)
    return [one / hottest for one in found]


def _cosines(signatures: Sequence[int]) -> list[list[float]]:
    """Return the estimated cosine of every two of the signatures, each computed once."""
    rows: list[list[float]] = []
    for number, one in enumerate(signatures):
        distances = map(int.bit_count, map(xor, repeat(one), signatures[number:]))
        rows.append([row[number] for row in rows] + list(map(COSINES.__getitem__, distances)))
    return rows


def _around(pool: Sequence[Candidate], heat: Sequence[float]) -> list[float]:
    """Return the heat, 0 to 1, of the other candidates around each one's time: what belongs together is recorded together.

    Turns of one conversation do not warm each other: their words are in each other's windows already.
    """
    found = _warmth([c.at_ms for c in pool], heat)
    conversations: dict[str, list[int]] = {}
    for number, one in enumerate(pool):
        if one.place is not None:
            conversations.setdefault(one.place.conversation, []).append(number)
    for turns in conversations.values():
        if len(turns) > 1:
            own = _warmth([pool[number].at_ms for number in turns], [heat[number] for number in turns])
            for number, warmth in zip(turns, own, strict=True):
                found[number] -= warmth
    # Sums in another order differ in their last digits, and equal candidates must stay equal.
    return [round(one / (1.0 + one), _DIGITS) for one in found]


def _warmth(at_ms: Sequence[int], heat: Sequence[float]) -> list[float]:
    """Return the heat of all others around each time, less by 1/e for each `AROUND_MS`.

    In the order of time, what warms one from before is what warmed the one before, and that one itself, both less by the
    time between.
    """
    order = sorted(range(len(at_ms)), key=at_ms.__getitem__)
    found = [0.0] * len(at_ms)
    for way in (order, order[::-1]):
        warmth, last_ms = 0.0, 0
        for number in way:
            warmth *= math.exp(-abs(at_ms[number] - last_ms) / AROUND_MS)
            found[number] += warmth
            warmth, last_ms = warmth + heat[number], at_ms[number]
    return found
