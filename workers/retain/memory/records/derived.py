"""The validity of competing facts as it follows from their claims (`retain.memory.records.claims`), in their records."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from retain.memory.records.claims import (
    MAX_CLAIMS,
    Claimed,
    Span,
    Spans,
    closed,
    common,
    covers,
    joined,
    since,
    stated,
    until,
    validity,
)
from retain.memory.records.events import KnownRecord
from retain.memory.records.record import Record


def claims_of(record: Record) -> Spans:
    """Return the spans for which the record was stated, in order."""
    if record.claims:
        return record.claims
    ends = record.superseded_by is None or not competes(record)
    return ((record.valid_from_ms, record.valid_to_ms if ends else None),)


def spans_of_record(record: Record) -> Spans:
    """Return the spans in which the record is valid, in order."""
    spans: list[tuple[int, int | None]] = []
    begin = record.valid_from_ms
    for start, end in record.gaps:
        if begin < start:
            spans.append((begin, start))
        begin = begin if end is None else end
    ends = [end for end in (record.valid_to_ms, record.expires_at_ms) if end is not None]
    end = min(ends, default=None)
    bounded = [(start, stop if end is None else min(stop or end, end)) for start, stop in [*spans, (begin, None)]]
    return tuple((start, stop) for start, stop in bounded if stop is None or start < stop)


def is_over(record: Record, at_ms: int) -> bool:
    """Return whether the record is closed (even at a later time), has expired, or is in a gap of its validity."""
    return record.valid_to_ms is not None or has_expired(record, at_ms) or covers(record.gaps, at_ms)


def has_expired(record: Record, at_ms: int) -> bool:
    """Return whether the record has expired by then."""
    return record.expires_at_ms is not None and record.expires_at_ms <= at_ms


def restated(record: Record, statement: Record, since_ms: int | None, now_ms: int) -> Spans | None:
    """Return the record's claims after it was stated again; None when they stay as they are."""
    claims, begins = claims_of(record), statement.valid_from_ms
    if record.edited and statement.source.get("origin") != "person" and begins < claims[0][0]:
        return None
    if has_expired(record, now_ms):
        if has_expired(statement, now_ms):
            return None
        ended = record.expires_at_ms or 0
        return stated(closed(claims, ended) if begins >= ended else claims, begins)
    if since_ms is None and covers(spans_of_record(record), begins):
        return None
    if covers(spans_of_record(record), begins) and len(claims) >= MAX_CLAIMS:
        return None
    again = stated(claims, begins)
    if again == claims and (since_ms is not None or covers(spans_of_record(record), begins)):
        return None
    return again


def derived_with(
    record: Record, claims: Spans, others: Sequence[KnownRecord], since_ms: int, *, only_ends: bool = False
) -> dict[str, Record]:
    """Return the record with these claims and its competitors, each with the validity that follows from then on.

    only_ends: the others may be valid less than before, and not more, since not all of them are given.
    """
    known = {one.record.id: one for one in others} | {record.id: KnownRecord(record, "")}
    return rederived(
        known, {record.id: claims}, since_ms, bounded=[one.record.id for one in others] if only_ends else ()
    )


def rederived(
    known: Mapping[str, KnownRecord], claims: Mapping[str, Spans], since_ms: int, bounded: Collection[str] = ()
) -> dict[str, Record]:
    """Return the competing records by id, valid as follows from their claims since a time, and as they were before.

    bounded: those that are not valid where they were not before.
    """
    own = {name: claims.get(name) or claims_of(one.record) for name, one in known.items()}
    derived = validity({name: Claimed(own[name], one.record.expires_at_ms) for name, one in known.items()})
    later = {name: since(spans, since_ms) for name, spans in derived.items()}
    later |= {name: common(later[name], spans_of_record(known[name].record)) for name in bounded}
    starts = {begin: name for name, spans in later.items() for begin, _ in spans}
    return {
        name: _with_spans(
            one.record, own[name], joined(until(spans_of_record(one.record), since_ms), later[name]), starts
        )
        for name, one in known.items()
    }


def _with_spans(record: Record, claims: Spans, spans: Spans, starts: Mapping[int, str]) -> Record:
    """Return the record with these claims and spans of validity. starts: which fact becomes valid when."""
    begin = claims[0][0]
    end = spans[-1][1] if spans else (claims[-1][1] if _never(claims) else begin)
    own_end = claims[-1][1]
    if end is not None and end == record.expires_at_ms:
        end = own_end
    by = None if end is None or end == own_end else starts.get(end)
    if by in (None, record.id) and end == record.valid_to_ms:
        by = record.superseded_by
    gaps: list[Span] = []
    shown = begin
    for start, stop in spans:
        if shown < start:
            gaps.append((shown, start))
        shown = start if stop is None else stop
    after = replace(record, valid_from_ms=begin, valid_to_ms=end, superseded_by=by, gaps=tuple(gaps), claims=())
    return after if claims_of(after) == claims else replace(after, claims=claims)


def _never(claims: Spans) -> bool:
    return all(end is not None and end <= begin for begin, end in claims)


def first_difference(before: Record, record: Record, claims: Spans) -> int:
    """Return the first time from which the change may make a difference to competing facts."""
    old, new = claims_of(before), claims
    if counts_as(before) != counts_as(record):
        return min(old[0][0], new[0][0])
    changed = set(old) ^ set(new)
    return min((edge for span in changed for edge in span if edge is not None), default=new[0][0])


def competes(record: Record) -> bool:
    """Return whether it can compete: it has a subject and a predicate."""
    return record.subject is not None and record.predicate is not None


def about(record: Record) -> tuple[str | None, ...]:
    """Return what competing facts have in common."""
    return record.scope_id, record.subject, record.predicate


def counts_as(record: Record) -> tuple[object, ...]:
    """Return what of a record, besides its claims, decides when facts are valid."""
    return about(record), record.expires_at_ms
