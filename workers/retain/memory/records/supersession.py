"""Supersession: a closed record that is stored again becomes valid again; a new fact closes the one before it.

Facts compete when scope, subject and predicate are equal. Which one closes another depends only on their times, so the
order in which they arrive makes no difference.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

from retain.identifiers import new_id
from retain.memory.records.events import EventData, EventKind, KnownRecord, LearningEvent
from retain.memory.records.record import Record, RecordSource
from retain.memory.records.retelling import additions
from retain.memory.records.rows import LAST_EVENT, Written, append_event, known_of, write_record
from retain.ports import Clock, Sql, Statement

_CLOSED_BY = """
SELECT json_extract(source, '$.origin') AS origin FROM memory_events
WHERE record_id = ? AND kind IN ('invalidated', 'superseded') ORDER BY event_id DESC LIMIT 1
"""
_SAME = (
    f"SELECT r.*, {LAST_EVENT} FROM memory_records r"
    " WHERE tenant_id = ? AND scope_id = ? AND subject = ? AND predicate = ?"
    " AND id NOT IN (SELECT value FROM json_each(?))"
)
_HELD_BEFORE = (
    f"{_SAME} AND valid_from_ms <= ? AND (valid_to_ms IS NULL OR valid_to_ms > ?)"
    " ORDER BY valid_from_ms DESC, id DESC LIMIT 1"
)
_BEGAN_LATER = f"{_SAME} AND valid_from_ms > ? ORDER BY valid_from_ms, id LIMIT 1"


class Supersession:
    """Stores contents in one scope for one mutation, in order: each sees what the earlier ones did.

    Only reads; collects in `parts` what is to be written.
    """

    def __init__(self, sql: Sql, clock: Clock) -> None:
        self._sql = sql
        self._clock = clock
        self._changed: dict[str, KnownRecord] = {}
        self.parts: list[Written | Statement] = []

    async def add(self, record: Record, indexes: Sequence[Statement]) -> KnownRecord:
        """Store content that is not known; return the record as stored.

        indexes: the statements that must follow the one that writes the record.
        """
        older, newer = await self._around(record)
        if newer is not None:
            record = replace(record, valid_to_ms=newer.record.valid_from_ms, superseded_by=newer.record.id)
        stored = LearningEvent(new_id(), record.id, "stored", record.to_json(), record.source, record.recorded_at_ms)
        self._write(record, stored)
        self.parts += indexes
        if older is not None:
            self._end(older, record)
        return self._changed[record.id]

    async def repeat(self, known: KnownRecord, stated: Record) -> tuple[Record, Record]:
        """Store known content again; return its record before and after that.

        A record that was closed before, or has expired, becomes valid again. What a person closed, only a person reopens,
        and nothing else about it changes. Fields that it lacks are added (`additions`); a record that becomes a fact by
        that closes the one before it. known: as it was before this mutation. stated: the content as a new record.
        """
        now = self._clock()
        known = self._changed.get(known.record.id, known)
        before = known.record
        if before.valid_to_ms is not None and await self._is_kept_closed(before, stated):
            return before, before
        added = additions(before, stated, now)
        if added:
            known = self._write(*self._next(known, "edited", added, stated.source))
        data = _opening(known.record, stated, now)
        if data is not None:
            known = await self._open(known, *self._next(known, "restored", data, stated.source))
        elif _about(known.record) != _about(before) and not is_over(known.record, now):
            known = await self._compete(known)
        return before, known.record

    async def _open(self, known: KnownRecord, opened: Record, event: LearningEvent) -> KnownRecord:
        """Write the reopened record, unless a newer fact is valid; return the record as it is then."""
        older, newer = await self._around(opened)
        if newer is not None:
            return known
        reopened = self._write(opened, event)
        if older is not None:
            self._end(older, opened)
        return reopened

    async def _compete(self, known: KnownRecord) -> KnownRecord:
        """Close what a record that has become a fact replaces, or the record itself; return the record as it is then."""
        older, newer = await self._around(known.record)
        if older is not None:
            self._end(older, known.record)
        return known if newer is None else self._end(known, newer.record)

    async def _is_kept_closed(self, record: Record, stated: Record) -> bool:
        if stated.source.get("origin") == "person":
            return False
        rows = (await self._sql.run(_CLOSED_BY, record.id)).rows
        return bool(rows) and rows[0]["origin"] == "person"

    def _end(self, older: KnownRecord, by: Record) -> KnownRecord:
        data = {"by": by.id, "valid_to_ms": by.valid_from_ms}
        return self._write(
            *self._next(older, "superseded", data, RecordSource("extraction", record_id=by.id).to_json())
        )

    def _write(self, record: Record, event: LearningEvent) -> KnownRecord:
        known = self._changed[record.id] = KnownRecord(record, event.event_id)
        self.parts += [append_event(record.tenant_id, event), write_record(record)]
        return known

    def _next(
        self, known: KnownRecord, kind: EventKind, data: EventData, source: Mapping[str, object]
    ) -> tuple[Record, LearningEvent]:
        """Return the record after its next event, and that event."""
        return known.after(LearningEvent(new_id(), known.record.id, kind, data, source, self._clock()))

    async def _around(self, record: Record) -> tuple[KnownRecord | None, KnownRecord | None]:
        """Return the competing fact that is valid when the record begins, and the first one that begins after it."""
        if record.subject is None or record.predicate is None:
            return None, None
        changed = [*self._changed, record.id]  # read from `_changed`: D1 does not show this mutation yet
        key = (record.tenant_id, record.scope_id, record.subject, record.predicate, json.dumps(changed))
        since = record.valid_from_ms
        older, newer = await self._sql.batch([(_HELD_BEFORE, (*key, since, since)), (_BEGAN_LATER, (*key, since))])
        others = [known for id_, known in self._changed.items() if id_ != record.id]
        own = [known for known in others if _about(known.record) == _about(record)]
        facts = [*own, *map(known_of, (*older.rows, *newer.rows))]
        after = [one for one in facts if one.record.valid_from_ms > since]
        before = [
            one
            for one in facts
            if one.record.valid_from_ms <= since and (one.record.valid_to_ms is None or one.record.valid_to_ms > since)
        ]
        return max(before, key=_beginning, default=None), min(after, key=_beginning, default=None)


def _opening(record: Record, stated: Record, now_ms: int) -> EventData | None:
    """Return the data of the event that reopens a record that is stored again; None when the record stays unchanged.

    It stays unchanged when it is valid, and when the new statement dates from before it was closed or has expired.
    """
    expired = _has_expired(record.expires_at_ms, now_ms)
    if record.valid_to_ms is not None:
        if stated.valid_from_ms < record.valid_to_ms:
            return None
    elif not expired:
        return None
    if not expired:
        return {"valid_from_ms": stated.valid_from_ms}
    if _has_expired(stated.expires_at_ms, now_ms):
        return None
    return {"valid_from_ms": stated.valid_from_ms, "expires_at_ms": stated.expires_at_ms}


def is_over(record: Record, at_ms: int) -> bool:
    """Return whether the record is closed (even at a later time) or has expired."""
    return record.valid_to_ms is not None or _has_expired(record.expires_at_ms, at_ms)


def _has_expired(expires_at_ms: int | None, at_ms: int) -> bool:
    return expires_at_ms is not None and expires_at_ms <= at_ms


def _about(record: Record) -> tuple[str | None, str | None]:
    return record.subject, record.predicate


def _beginning(known: KnownRecord) -> tuple[int, str]:
    return known.record.valid_from_ms, known.record.id
