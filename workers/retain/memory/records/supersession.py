"""Supersession: what is told again holds anew, and a fact that begins to hold ends the one that held before it.

Facts are about the same when scope, subject and predicate are equal. Which one ends another is a rule of their times and
of nothing else, so the order in which they arrive makes no difference.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from retain.identifiers import new_id
from retain.memory.records.events import EventKind, LearningEvent, apply
from retain.memory.records.record import Record, Source
from retain.memory.records.rows import Written, append_event, record_of, write_record
from retain.ports import Clock, Sql, Statement

_RECORD = "SELECT * FROM memory_records WHERE id = ?"
_SAME = (
    "SELECT * FROM memory_records WHERE tenant_id = ? AND scope_id = ? AND subject = ? AND predicate = ?"
    " AND id NOT IN (SELECT value FROM json_each(?))"
)
_HELD_BEFORE = (
    f"{_SAME} AND valid_from_ms <= ? AND (valid_to_ms IS NULL OR valid_to_ms > ?)"
    " ORDER BY valid_from_ms DESC, id DESC LIMIT 1"
)
_BEGAN_LATER = f"{_SAME} AND valid_from_ms > ? ORDER BY valid_from_ms, id LIMIT 1"


@dataclass(frozen=True, slots=True)
class Standing:
    """What decides whether a known content is opened when it is told again."""

    record_id: str
    valid_to_ms: int | None

    @property
    def holds(self) -> bool:
        """Nothing ended it."""
        return self.valid_to_ms is None


class Telling:
    """What one mutation tells of one scope, in order: each content sees what those before it did.

    Reads, and collects in `parts` what is to be written.
    """

    def __init__(self, sql: Sql, clock: Clock) -> None:
        self._sql = sql
        self._clock = clock
        self._changed: dict[str, Record] = {}
        self.parts: list[Written | Statement] = []

    async def anew(self, record: Record, indexes: Sequence[Statement]) -> None:
        """Tell a content that is not known. indexes: the statements that must follow on the one that writes it."""
        older, newer = await self._around(record)
        if newer is not None:
            record = replace(record, valid_to_ms=newer.valid_from_ms, superseded_by=newer.id)
        self._write(record, _stored_event(record))
        self.parts += indexes
        self._end(older, record)

    async def again(self, standing: Standing, told: Record) -> None:
        """Tell a known content. One that ended before holds anew, and nothing else about it changes.

        told: what it would be as a new record.
        """
        known = self._changed.get(standing.record_id)
        if known is None:
            if standing.holds:
                return
            known = record_of((await self._sql.run(_RECORD, standing.record_id)).rows[0])
        if known.valid_to_ms is None or told.valid_from_ms < known.valid_to_ms:
            return
        data = {"valid_from_ms": told.valid_from_ms}
        event = self._event("restored", known, data, told.source)
        opened = _after(known, event)
        older, newer = await self._around(opened)
        if newer is not None:
            return
        self._write(opened, event)
        self._end(older, opened)

    def _end(self, older: Record | None, by: Record) -> None:
        if older is None:
            return
        data = {"by": by.id, "valid_to_ms": by.valid_from_ms}
        event = self._event("superseded", older, data, Source("extraction", record_id=by.id).to_json())
        self._write(_after(older, event), event)

    def _write(self, record: Record, event: LearningEvent) -> None:
        self._changed[record.id] = record
        self.parts += [append_event(record.tenant_id, event), write_record(record)]

    def _event(
        self, kind: EventKind, record: Record, data: Mapping[str, Any], source: Mapping[str, Any]
    ) -> LearningEvent:
        return LearningEvent(new_id(), record.id, kind, data, source, self._clock())

    async def _around(self, record: Record) -> tuple[Record | None, Record | None]:
        """Return the facts about the same that hold when the record begins, and that begin after it."""
        if record.subject is None or record.predicate is None:
            return None, None
        changed = [*self._changed, record.id]  # as this mutation leaves them: D1 does not show it yet
        key = (record.tenant_id, record.scope_id, record.subject, record.predicate, json.dumps(changed))
        since = record.valid_from_ms
        older, newer = await self._sql.batch([(_HELD_BEFORE, (*key, since, since)), (_BEGAN_LATER, (*key, since))])
        own = [one for one in self._changed.values() if one.id != record.id and _about(one) == _about(record)]
        facts = [*own, *map(record_of, (*older.rows, *newer.rows))]
        after = [one for one in facts if one.valid_from_ms > since]
        before = [
            one for one in facts if one.valid_from_ms <= since and (one.valid_to_ms is None or one.valid_to_ms > since)
        ]
        return max(before, key=_beginning, default=None), min(after, key=_beginning, default=None)


def _after(record: Record, event: LearningEvent) -> Record:
    changed = apply(record, event)
    assert changed is not None
    return changed


def _stored_event(record: Record) -> LearningEvent:
    return LearningEvent(new_id(), record.id, "stored", record.to_json(), record.source, record.recorded_at_ms)


def _about(record: Record) -> tuple[str | None, str | None]:
    return record.subject, record.predicate


def _beginning(record: Record) -> tuple[int, str]:
    return record.valid_from_ms, record.id
