"""Supersession: whatever changes a record changes when the facts that compete with it are valid.

Facts compete when scope, subject and predicate are equal. Their validity follows from their claims alone
(`retain.memory.records.claims`), so the order in which they arrive makes no difference, and a fact that is deleted, closed
or edited leaves no trace in the others. Each change of another record is an event of that record.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from retain.identifiers import new_id
from retain.memory.records.claims import (
    MAX_CLAIMS,
    Claimed,
    Span,
    Spans,
    closed,
    common,
    covers,
    first_overlap,
    joined,
    opened,
    since,
    stated,
    until,
    validity,
    without,
)
from retain.memory.records.events import EventData, EventKind, KnownRecord, LearningEvent
from retain.memory.records.record import Record, RecordSource
from retain.memory.records.retelling import additions
from retain.memory.records.rows import LAST_EVENT, Written, append_event, known_of, write_record
from retain.ports import Sql, Statement

_CLOSED_BY = """
SELECT json_extract(source, '$.origin') AS origin FROM memory_events
WHERE record_id = ? AND kind = 'invalidated' ORDER BY event_id DESC LIMIT 1
"""
_COMPETING = (
    f"SELECT r.*, {LAST_EVENT} FROM memory_records r"
    " WHERE tenant_id = ? AND scope_id = ? AND subject = ? AND predicate = ?"
    " AND id NOT IN (SELECT value FROM json_each(?)) AND (valid_to_ms IS NULL OR valid_to_ms > ?)"
)
_EVERYTHING = -1
_STATE = ("valid_from_ms", "valid_to_ms", "superseded_by", "gaps", "claims")
"""The fields that follow from claims."""


class Supersession:
    """What one mutation does to the records of a tenant, in order: each change sees what the earlier ones did.

    Only reads; collects in `parts` what is to be written, and in `changes` each record that it changes, by id: as it was,
    or as a new one was stated, and as it is then. at_ms: the mutation's time, at which all of it is recorded.
    """

    def __init__(self, sql: Sql, at_ms: int) -> None:
        self._sql = sql
        self.at_ms = at_ms
        self._changed: dict[str, KnownRecord] = {}
        self._removed: set[str] = set()
        self.changes: dict[str, tuple[Record, Record]] = {}
        self.parts: list[Written | Statement] = []

    async def add(self, record: Record, indexes: Sequence[Statement]) -> KnownRecord:
        """Store content that is not known; return the record as stored: recorded at the mutation's time.

        indexes: the statements that must follow the one that writes the record.
        """
        record = replace(record, recorded_at_ms=self.at_ms, updated_at_ms=self.at_ms)
        others = await self._competing(record, record.valid_from_ms)
        settled = _settled(record, claims_of(record), others, record.valid_from_ms, only_ends=True)
        new = settled.pop(record.id)
        event = LearningEvent(new_id(), new.id, "stored", new.to_json(), new.source, self.at_ms)
        known = self._write(record, new, event)
        self.parts += indexes
        self._note(settled, others, new)
        return known

    async def repeat(self, known: KnownRecord, statement: Record, since_ms: int | None) -> tuple[Record, Record]:
        """Store known content again; return its record before and after that.

        A record that is not valid then becomes valid, until a fact that began later. What a person closed, only a person
        reopens, and nothing else about it changes. Fields that it lacks are added (`additions`). known: as it was before
        this mutation. statement: the content as a new record. since_ms: when it became valid as the caller said, if it did.
        """
        now = self.at_ms
        known = self._changed.get(known.record.id, known)
        before = known.record
        if statement.source.get("origin") != "person" and await self._is_closed_by_person(before):
            return before, before
        added = additions(before, statement, now)
        if added:
            known = self._append(known, "edited", added, statement.source)
        claims = restated(known.record, statement, since_ms, now)
        if claims is None and _counts_as(known.record) == _counts_as(before):
            return before, known.record
        again = known.record
        if has_expired(again, now) and claims is not None:
            again = replace(again, expires_at_ms=statement.expires_at_ms)
        kept = claims_of(again) if claims is None else claims
        wins_ms = statement.valid_from_ms if since_ms is None and claims is not None else None
        known = await self._settle(known, again, kept, "restored", statement.source, wins_ms=wins_ms)
        if claims is None:  # a fact that began later may have closed it: the statement is newer
            claims = restated(known.record, statement, since_ms, now)
            if claims is not None:
                wins_ms = statement.valid_from_ms if since_ms is None else None
                known = await self._settle(known, known.record, claims, "restored", statement.source, wins_ms=wins_ms)
        return before, known.record

    async def close(self, known: KnownRecord, at_ms: int, source: Mapping[str, object]) -> KnownRecord:
        """End the record's validity at a time."""
        claims = closed(claims_of(known.record), at_ms)
        return await self._settle(known, known.record, claims, "invalidated", source, always=True)

    async def restore(self, known: KnownRecord, source: Mapping[str, object]) -> KnownRecord:
        """Make a record valid that was closed; or, if another fact is valid instead of it, valid again from now."""
        now = self.at_ms
        claims = opened(claims_of(known.record))
        others = await self._competing(known.record, _EVERYTHING)
        settled = _settled(known.record, claims, others, _EVERYTHING)[known.record.id]
        is_due = covers(claims, now) and not has_expired(known.record, now)
        if is_due and not covers(spans_of_record(settled), now):
            claims = stated(claims, now)
        return await self._settle(
            known, known.record, claims, "restored", source, always=True, wins_ms=now if is_due else None
        )

    async def edit(self, known: KnownRecord, event: LearningEvent) -> KnownRecord:
        """Change fields of the record."""
        before = known.record
        claims = claims_of(before)
        record, following = known.after(event)
        known = self._write(before, record, following)
        if _counts_as(record) == _counts_as(before):
            return known
        if _about(record) != _about(before):
            await self.remove(before)
            self._removed.discard(record.id)
        return await self._settle(known, record, claims, "restored", following.source)

    async def remove(self, record: Record) -> None:
        """Let the other facts be valid as if this one had never been stated."""
        self._removed.add(record.id)
        others = await self._competing(record, _EVERYTHING)
        self._note(_rederived({one.record.id: one for one in others}, {}, record.valid_from_ms), others, None)

    async def reconcile(self, known: Iterable[KnownRecord], removed: Iterable[Record]) -> None:
        """Make facts that were written by other means agree with those that compete with them.

        known: as written. removed: those that exist no longer. Facts of which no two are valid at once stay as they are.
        """
        self._changed |= {one.record.id: one for one in known}
        gone = list(removed)
        self._removed |= {record.id for record in gone}
        for record in gone:
            if record.id not in self._changed:
                await self.remove(record)
        abouts = {_about(one.record): one.record for one in self._changed.values() if _competes(one.record)}
        for record in abouts.values():
            facts = await self._competing(record, _EVERYTHING, whole=True)
            overlap = first_overlap({one.record.id: spans_of_record(one.record) for one in facts})
            if overlap is not None:
                self._note(_rederived({one.record.id: one for one in facts}, {}, overlap), facts, None)

    async def _settle(
        self,
        known: KnownRecord,
        record: Record,
        claims: Spans,
        kind: EventKind,
        source: Mapping[str, object],
        *,
        always: bool = False,
        wins_ms: int | None = None,
    ) -> KnownRecord:
        """Write the record with these claims and with what follows from them, and what follows for its competitors.

        always: with an event even if nothing changes. wins_ms: a beginning at which no other fact comes before this one.
        """
        before = known.record
        others = await self._competing(record, _EVERYTHING)
        at_ms = _first_difference(before, record, claims)
        lost = {one.record.id: without(claims_of(one.record), wins_ms) for one in others} if wins_ms is not None else {}
        known_by_id = {one.record.id: one for one in others} | {record.id: KnownRecord(record, "")}
        at_ms = at_ms if wins_ms is None else min(at_ms, wins_ms)
        settled = _rederived(known_by_id, {**lost, record.id: claims}, at_ms)
        after = settled.pop(record.id)
        data = _changes(before, after)
        if always or (_state(before), before.expires_at_ms) != (_state(after), after.expires_at_ms):
            known = self._append(known, kind, _without_none(data) if kind == "restored" else data, source)
        self._note(settled, others, known.record)
        return known

    def _note(self, settled: Mapping[str, Record], others: Iterable[KnownRecord], cause: Record | None) -> None:
        """Write what changed of the other records, each with an event."""
        for one in others:
            after = settled[one.record.id]
            if _state(after) == _state(one.record):
                continue
            data = _changes(one.record, after)
            by = after.superseded_by
            source = RecordSource("extraction", record_id=by or (None if cause is None else cause.id)).to_json()
            if by is not None and (by, after.valid_to_ms) != (one.record.superseded_by, one.record.valid_to_ms):
                self._append(one, "superseded", {"by": by, **_without(data, "superseded_by")}, source)
            else:
                self._append(one, "restored", _without_none(data), source)

    async def _is_closed_by_person(self, record: Record) -> bool:
        if claims_of(record)[-1][1] is None:
            return False
        rows = (await self._sql.run(_CLOSED_BY, record.id)).rows
        return bool(rows) and rows[0]["origin"] == "person"

    def _append(
        self, known: KnownRecord, kind: EventKind, data: EventData, source: Mapping[str, object]
    ) -> KnownRecord:
        """Write the record after its next event, and that event."""
        event = LearningEvent(new_id(), known.record.id, kind, data, source, self.at_ms)
        return self._write(known.record, *known.after(event))

    def _write(self, before: Record, record: Record, event: LearningEvent) -> KnownRecord:
        known = self._changed[record.id] = KnownRecord(record, event.event_id)
        self.changes[record.id] = self.changes.get(record.id, (before,))[0], record
        self.parts += [append_event(record.tenant_id, event), write_record(record)]
        return known

    async def _competing(self, record: Record, since_ms: int, *, whole: bool = False) -> list[KnownRecord]:
        """Return the facts that compete with the record and may be valid after a time. whole: with the record itself."""
        if not _competes(record):
            return []
        changed = [*self._changed, *self._removed, record.id]  # D1 does not show this mutation yet
        values = (record.tenant_id, record.scope_id, record.subject, record.predicate, json.dumps(changed), since_ms)
        rows = (await self._sql.run(_COMPETING, *values)).rows
        own = [
            one
            for one in self._changed.values()
            if _about(one.record) == _about(record)
            and one.record.id not in self._removed
            and (whole or one.record.id != record.id)
        ]
        return [*own, *map(known_of, rows)]


def claims_of(record: Record) -> Spans:
    """Return the spans for which the record was stated, in order."""
    if record.claims:
        return record.claims
    ends = record.superseded_by is None or not _competes(record)
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


def _settled(
    record: Record, claims: Spans, others: Sequence[KnownRecord], since_ms: int, *, only_ends: bool = False
) -> dict[str, Record]:
    """Return the record with these claims and its competitors, each with the validity that follows from then on.

    only_ends: the others may be valid less than before, and not more, since not all of them are given.
    """
    known = {one.record.id: one for one in others} | {record.id: KnownRecord(record, "")}
    return _rederived(
        known, {record.id: claims}, since_ms, bounded=[one.record.id for one in others] if only_ends else ()
    )


def _rederived(
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
    if end is not None and end == record.expires_at_ms and end != own_end:
        end = None
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


def _first_difference(before: Record, record: Record, claims: Spans) -> int:
    """Return the first time from which the change may make a difference to competing facts."""
    old, new = claims_of(before), claims
    if _counts_as(before) != _counts_as(record):
        return min(old[0][0], new[0][0])
    changed = set(old) ^ set(new)
    return min((edge for span in changed for edge in span if edge is not None), default=new[0][0])


def _state(record: Record) -> tuple[object, ...]:
    return tuple(getattr(record, name) for name in _STATE)


def _changes(before: Record, after: Record) -> dict[str, object]:
    """Return the fields that follow from claims as an event has them: the end always, the others if they changed."""
    changed = {name: getattr(after, name) for name in _STATE if getattr(after, name) != getattr(before, name)}
    if before.expires_at_ms != after.expires_at_ms:
        changed["expires_at_ms"] = after.expires_at_ms
    by = {} if after.superseded_by is None else {"superseded_by": after.superseded_by}
    return {"valid_to_ms": after.valid_to_ms, **by, **changed}


def _without_none(data: Mapping[str, object]) -> dict[str, object]:
    """Return the data without absent ends, which a `restored` event does not name."""
    return {name: value for name, value in data.items() if value is not None or name == "expires_at_ms"}


def _without(data: Mapping[str, object], name: str) -> dict[str, object]:
    return {other: value for other, value in data.items() if other != name}


def _competes(record: Record) -> bool:
    return record.subject is not None and record.predicate is not None


def _about(record: Record) -> tuple[str | None, ...]:
    return record.scope_id, record.subject, record.predicate


def _counts_as(record: Record) -> tuple[object, ...]:
    return _about(record), record.expires_at_ms
