"""Claims: the spans for which a record was stated, and the validity that follows from those of all competing facts.

The law, for facts of equal scope, subject and predicate, whatever happened to them and in whatever order it arrived: at
each instant at most one is valid. It is the one whose claim began last (of equal beginnings, the one with the greater id),
unless that claim has ended; a fact that is deleted, or has expired by then, does not count. A record without subject and
predicate competes with no other.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

Span = tuple[int, int | None]
"""From when, and until when (exclusive), in epoch milliseconds; None without an end."""
Spans = tuple[Span, ...]
MAX_CLAIMS = 32
"""The most claims of one record. More statements of what is valid anyway are not kept."""


@dataclass(frozen=True, slots=True)
class Claimed:
    """A record's claims, in order, and from when it does not count. An empty claim was closed before it began."""

    claims: Spans
    expires_at_ms: int | None


def stated(claims: Spans, since_ms: int) -> Spans:
    """Return the claims with a statement that begins then. One inside a claim that was closed ends with it."""
    if any(since_ms == begin and not _is_empty((begin, end)) for begin, end in claims):
        return claims
    kept = [one for one in claims if not _is_empty(one)]
    ends = [end for begin, end in kept if begin <= since_ms and (end is None or since_ms < end)]
    return tuple(sorted([*kept, (since_ms, ends[-1] if ends else None)], key=_begin))


def closed(claims: Spans, at_ms: int) -> Spans:
    """Return the claims closed at a time: none begins later, and the last one ends then."""
    kept = [one for one in claims if one[0] < at_ms and not _is_empty(one)]
    if not kept:
        return ((claims[0][0], at_ms),)
    return (*((begin, None if end is None else min(end, at_ms)) for begin, end in kept[:-1]), (kept[-1][0], at_ms))


def without(claims: Spans, begin_ms: int) -> Spans:
    """Return the claims without the one that begins then; if there is no other, it never held."""
    return tuple(one for one in claims if one[0] != begin_ms) or ((begin_ms, begin_ms),)


def opened(claims: Spans) -> Spans:
    """Return the same claims, none of which ends."""
    return tuple((begin, None) for begin, _ in claims)


def covers(spans: Iterable[Span], at_ms: int) -> bool:
    """Return whether one of the spans covers the instant."""
    return any(begin <= at_ms and (end is None or at_ms < end) for begin, end in spans)


def validity(facts: Mapping[str, Claimed]) -> dict[str, Spans]:
    """Return when each of the competing facts is valid, in order and without adjoining spans."""
    spans: dict[str, list[Span]] = {name: [] for name in facts}
    claims = sorted(
        (begin, name, end) for name, fact in facts.items() for begin, end in fact.claims if end is None or begin < end
    )
    instants = {begin for begin, _, _ in claims} | {end for _, _, end in claims if end is not None}
    instants |= {fact.expires_at_ms for fact in facts.values() if fact.expires_at_ms is not None}
    begun: list[tuple[int, _Descending, int | None]] = []
    waiting = iter(claims)
    coming = next(waiting, None)
    ordered = sorted(instants)
    for at_ms, until_ms in zip(ordered, [*ordered[1:], None], strict=False):
        while coming is not None and coming[0] <= at_ms:
            heapq.heappush(begun, (-coming[0], _Descending(coming[1]), coming[2]))
            coming = next(waiting, None)
        while begun and _expired(facts[begun[0][1].name], at_ms):
            heapq.heappop(begun)
        if begun and (begun[0][2] is None or at_ms < begun[0][2]):
            _extend(spans[begun[0][1].name], (at_ms, until_ms))
    return {name: tuple(own) for name, own in spans.items()}


def since(spans: Spans, at_ms: int) -> Spans:
    """Return the part of the spans from an instant on."""
    return tuple((max(begin, at_ms), end) for begin, end in spans if end is None or end > at_ms)


def until(spans: Spans, at_ms: int) -> Spans:
    """Return the part of the spans before an instant."""
    return tuple((begin, at_ms if end is None else min(end, at_ms)) for begin, end in spans if begin < at_ms)


def common(spans: Spans, others: Spans) -> Spans:
    """Return the spans that lie in both."""
    both: list[Span] = []
    for begin, end in spans:
        for other_begin, other_end in others:
            ends = [one for one in (end, other_end) if one is not None]
            both.append((max(begin, other_begin), min(ends, default=None)))
    return tuple(one for one in both if not _is_empty(one))


def joined(earlier: Spans, later: Spans) -> Spans:
    """Return both, with adjoining spans as one. later: begins where `earlier` ends, or after it."""
    spans = list(earlier)
    for one in later:
        _extend(spans, one)
    return tuple(spans)


def first_overlap(spans: Mapping[str, Spans]) -> int | None:
    """Return the first instant at which two of the facts are valid; None when there is none."""
    latest: int | None = None
    unbounded = False
    for begin, end in sorted((one for own in spans.values() for one in own), key=_begin):
        if unbounded or (latest is not None and begin < latest):
            return begin
        unbounded, latest = end is None, end
    return None


class _Descending:
    """A name that sorts in descending order."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __lt__(self, other: _Descending) -> bool:
        return self.name > other.name


def _extend(spans: list[Span], one: Span) -> None:
    if spans and spans[-1][1] == one[0]:
        spans[-1] = (spans[-1][0], one[1])
    else:
        spans.append(one)


def _expired(fact: Claimed, at_ms: int) -> bool:
    return fact.expires_at_ms is not None and fact.expires_at_ms <= at_ms


def _is_empty(one: Span) -> bool:
    return one[1] is not None and one[1] <= one[0]


def _begin(one: Span) -> int:
    return one[0]


def spans_of(value: Sequence[Sequence[int | None]]) -> Spans:
    """Return spans as they read from JSON."""
    return tuple((int(begin or 0), end) for begin, end in value)
