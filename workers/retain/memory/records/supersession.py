"""Supersession: whatever changes a record changes when the facts that compete with it are valid.

Facts compete when scope, subject and predicate are equal. Their validity follows from their claims alone
(`retain.memory.records.claims`), so the order in which they arrive makes no difference, and a fact that is deleted, closed
or edited leaves no trace in the others. Each change of another record is an event of that record.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from retain.identifiers import new_id
from retain.memory.records.claims import Spans, closed, covers, first_overlap, opened, stated, without
from retain.memory.records.derived import (
    about,
    claims_of,
    competes,
    counts_as,
    derived_with,
    first_difference,
    has_expired,
    rederived,
    restated,
    spans_of_record,
)
from retain.memory.records.events import EventData, EventKind, KnownRecord, LearningEvent
from retain.memory.records.record import Record, RecordSource
from retain.memory.records.retelling import additions
from retain.memory.records.rows import LAST_EVENT, Written, append_event, known_of, write_record
from retain.ports import Sql, SqlResult, Statement

_CLOSED_BY = """
SELECT json_extract(source, '$.origin') AS origin FROM memory_events
WHERE record_id = ? AND kind = 'invalidated' ORDER BY event_id DESC LIMIT 1
"""
_CLOSER = """
CASE WHEN r.valid_to_ms IS NOT NULL THEN (
  SELECT json_extract(e.source, '$.origin') FROM memory_events e
  WHERE e.record_id = r.id AND e.kind IN ('invalidated', 'superseded') ORDER BY e.event_id DESC LIMIT 1) END
"""
_COMPETING = f"""
SELECT r.*, {LAST_EVENT}, NULL AS closed_by FROM json_each(?1) fact CROSS JOIN memory_records r ON r.tenant_id = ?2
  AND r.scope_id = fact.value ->> 0 AND r.subject = fact.value ->> 1 AND r.predicate = fact.value ->> 2
WHERE r.id NOT IN (SELECT value FROM json_each(?3)) AND (r.valid_to_ms IS NULL OR r.valid_to_ms > ?4)
"""
_WITH_CLOSERS = _COMPETING.replace("NULL AS closed_by", f"{_CLOSER} AS closed_by")
_EVERYTHING = -1
COMPARED = 50
"""About how many things facts are read at a time: an import has up to 500, an invocation 1,000 calls of D1 and 128 MB."""
_STATE = ("valid_from_ms", "valid_to_ms", "superseded_by", "gaps", "claims")
"""The fields that follow from claims."""


@dataclass(frozen=True, slots=True)
class Foreseeing:
    """What storing new records will ask for. statement: reads it, for facts `abouts` that may be valid after `since_ms`."""

    statement: Statement
    abouts: frozenset[tuple[str | None, ...]]
    since_ms: int


def foreseeing(
    tenant_id: str, records: Iterable[Record], learned: Iterable[tuple[Record, Sequence[str]]] = ()
) -> Foreseeing | None:
    """Return what storing these as new records will ask for; None if no fact can compete with any of them.

    learned: facts to be learned, each with the predicates of those that it may close: then all of their past is read.
    """
    facts = [record for record in records if competes(record)]
    abouts: dict[tuple[str | None, ...], None] = dict.fromkeys(map(about, facts))
    since_ms, sql = min((one.valid_from_ms for one in facts), default=0), _COMPETING
    for record, opposites in learned:
        abouts |= dict.fromkeys([about(record), *((record.scope_id, record.subject, name) for name in opposites)])
        sql, since_ms = _WITH_CLOSERS, _EVERYTHING
    if not abouts:
        return None
    return Foreseeing((sql, (json.dumps([*abouts]), tenant_id, "[]", since_ms)), frozenset(abouts), since_ms)


class Foreseen:
    """The facts that were read before a mutation was decided, from the state on which it decides."""

    def __init__(self, asked: Foreseeing, read: SqlResult) -> None:
        """Take the result of the statement."""
        self._asked = asked
        self._facts = list(map(known_of, read.rows))
        self._closed_by_persons = frozenset(str(row["id"]) for row in read.rows if row["closed_by"] == "person")

    def closed_by_person(self, record_id: str) -> bool:
        """Return whether a person closed the record last, of one that is learned or may be closed by one."""
        return record_id in self._closed_by_persons

    def facts(self, abouts: Sequence[tuple[str | None, ...]], since_ms: int) -> list[KnownRecord] | None:
        """Return the facts about these things that may be valid after a time, None if that was not asked for."""
        if since_ms < self._asked.since_ms or not self._asked.abouts.issuperset(abouts):
            return None
        return [one for one in self._facts if about(one.record) in abouts and _may_hold_after(one.record, since_ms)]


class Supersession:
    """What one mutation does to the records of a tenant, in order: each change sees what the earlier ones did.

    Only reads; collects in `parts` what is to be written, and in `changes` each record that it changes, by id: as it was,
    or as a new one was stated, and as it is then. at_ms: the mutation's time, at which all of it is recorded.
    foreseen: what was read already.
    """

    def __init__(self, sql: Sql, at_ms: int, foreseen: Foreseen | None = None) -> None:
        self._sql = sql
        self._foreseen = foreseen
        self.at_ms = at_ms
        self._changed: dict[str, KnownRecord] = {}
        self._removed: set[str] = set()
        self.changes: dict[str, tuple[Record, Record]] = {}
        self.parts: list[Written | Statement] = []

    async def about(self, abouts: Sequence[tuple[str | None, ...]], tenant_id: str) -> list[KnownRecord]:
        """Return all facts about these things (`retain.memory.records.derived.about`), as this mutation has left them."""
        return await self._facts(tenant_id, abouts, _EVERYTHING)

    def changed(self, record_id: str) -> KnownRecord:
        """Return a record that this mutation changes, as it has left it."""
        return self._changed[record_id]

    def now(self, known: KnownRecord) -> KnownRecord:
        """Return a record as this mutation has left it. known: as it was before."""
        return self._changed.get(known.record.id, known)

    async def add(self, record: Record, indexes: Sequence[Statement]) -> KnownRecord:
        """Store content that is not known; return the record as stored: recorded at the mutation's time.

        indexes: the statements that must follow the one that writes the record.
        """
        record = replace(record, recorded_at_ms=self.at_ms, updated_at_ms=self.at_ms)
        others = await self._competing(record, record.valid_from_ms)
        settled = derived_with(record, claims_of(record), others, record.valid_from_ms, only_ends=True)
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
        known = self.now(known)
        before = known.record
        if statement.source.get("origin") != "person" and await self._is_closed_by_person(before):
            return before, before
        added = additions(before, statement, now)
        if added:
            known = self._append(known, "edited", added, statement.source)
        claims = restated(known.record, statement, since_ms, now)
        if claims is None and counts_as(known.record) == counts_as(before):
            return before, known.record
        again = known.record
        if has_expired(again, now) and claims is not None:
            again = replace(again, expires_at_ms=statement.expires_at_ms)
        kept = claims_of(again) if claims is None else claims
        wins_ms = statement.valid_from_ms if since_ms is None and claims is not None else None
        known = await self._settle(known, again, kept, "restored", statement.source, wins_ms=wins_ms, as_it_was=before)
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
        settled = derived_with(known.record, claims, others, _EVERYTHING)[known.record.id]
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
        if counts_as(record) == counts_as(before):
            return known
        if about(record) != about(before):
            await self.remove(before)
            self._removed.discard(record.id)
        return await self._settle(known, record, claims, "restored", following.source)

    async def remove(self, *records: Record) -> None:
        """Let the other facts be valid as if these records of one tenant had never been stated."""
        self._removed |= {record.id for record in records}
        begins: dict[tuple[str | None, ...], int] = {}
        for record in filter(competes, records):
            begins[about(record)] = min(record.valid_from_ms, begins.get(about(record), record.valid_from_ms))
        if not begins:
            return
        facts = await self._facts(records[0].tenant_id, list(begins), _EVERYTHING)
        for fact, since_ms in begins.items():
            others = [one for one in facts if about(one.record) == fact]
            self._note(rederived({one.record.id: one for one in others}, {}, since_ms), others, None)

    async def reconcile(self, known: Iterable[KnownRecord], removed: Iterable[Record]) -> None:
        """Make facts that were written by other means agree with those that compete with them.

        known: as written. removed: those that exist no longer. Facts of which no two are valid at once stay as they are.
        """
        self._changed |= {one.record.id: one for one in known}
        gone = list(removed)
        self._removed |= {record.id for record in gone}
        await self.remove(*[record for record in gone if record.id not in self._changed])
        tenants = {about(one.record): one.record.tenant_id for one in self._changed.values() if competes(one.record)}
        for start in range(0, len(tenants), COMPARED):
            abouts = [*tenants][start : start + COMPARED]
            by_about: dict[tuple[str | None, ...], list[KnownRecord]] = {}
            for one in await self._facts(tenants[abouts[0]], abouts, _EVERYTHING):
                by_about.setdefault(about(one.record), []).append(one)
            for facts in by_about.values():
                overlap = first_overlap({one.record.id: spans_of_record(one.record) for one in facts})
                if overlap is not None:
                    self._note(rederived({one.record.id: one for one in facts}, {}, overlap), facts, None)

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
        as_it_was: Record | None = None,
    ) -> KnownRecord:
        """Write the record with these claims and with what follows from them, and what follows for its competitors.

        always: with an event even if nothing changes. wins_ms: a beginning at which no other fact comes before this one.
        as_it_was: the record before this mutation, if that has already changed when it counts.
        """
        before = known.record
        others = await self._competing(record, _EVERYTHING)
        at_ms = first_difference(as_it_was or before, record, claims)
        lost = {one.record.id: without(claims_of(one.record), wins_ms) for one in others} if wins_ms is not None else {}
        known_by_id = {one.record.id: one for one in others} | {record.id: KnownRecord(record, "")}
        at_ms = at_ms if wins_ms is None else min(at_ms, wins_ms)
        settled = rederived(known_by_id, {**lost, record.id: claims}, at_ms)
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

    async def _competing(self, record: Record, since_ms: int) -> list[KnownRecord]:
        """Return the facts that compete with the record and may be valid after a time."""
        if not competes(record):
            return []
        facts = await self._facts(record.tenant_id, [about(record)], since_ms)
        return [one for one in facts if one.record.id != record.id]

    async def _facts(
        self, tenant_id: str, abouts: Sequence[tuple[str | None, ...]], since_ms: int
    ) -> list[KnownRecord]:
        """Return the facts about these things that may be valid after a time, as this mutation has left them."""
        changed = [*self._changed, *self._removed]  # D1 does not show this mutation yet
        others = None if self._foreseen is None else self._foreseen.facts(abouts, since_ms)
        if others is None:
            rows = (await self._sql.run(_COMPETING, json.dumps(abouts), tenant_id, json.dumps(changed), since_ms)).rows
            others = list(map(known_of, rows))
        own = [
            one
            for one in self._changed.values()
            if about(one.record) in abouts
            and one.record.id not in self._removed
            and _may_hold_after(one.record, since_ms)
        ]
        return [*own, *[one for one in others if one.record.id not in changed]]


def _may_hold_after(record: Record, at_ms: int) -> bool:
    return record.valid_to_ms is None or record.valid_to_ms > at_ms


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
