"""Records and learning events as rows of D1: reading them, and the statements that write them."""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace

from retain.memory.records.events import KnownRecord, LearningEvent
from retain.memory.records.record import Record, Utterance, content_hash
from retain.ports import Row, SqlValue, Statement
from retain.tenants.history import Change, HistoryEntry, event_digest

RECORD_COLUMNS = (
    "id", "tenant_id", "scope_id", "kind", "content", "metadata", "subject", "predicate", "object", "confidence",
    "importance", "valid_from_ms", "valid_to_ms", "expires_at_ms", "recorded_at_ms", "updated_at_ms", "superseded_by",
    "edited", "conversation", "position", "speaker", "said_at_ms", "source", "content_hash",
)  # fmt: skip
LAST_EVENT = "(SELECT MAX(event_id) FROM memory_events WHERE record_id = r.id) AS last_event_id"
"""Column of a query to `memory_records r`: what `known_of` needs."""
_UPSERT_RECORD = f"""
INSERT INTO memory_records ({", ".join(RECORD_COLUMNS)}) VALUES ({", ".join("?" * len(RECORD_COLUMNS))})
ON CONFLICT (id) DO UPDATE SET {", ".join(f"{column} = excluded.{column}" for column in RECORD_COLUMNS[1:])}
WHERE memory_records.tenant_id = excluded.tenant_id
"""
_DELETE_RECORD = "DELETE FROM memory_records WHERE id = ?"
_APPEND_EVENT = """
INSERT INTO memory_events (event_id, tenant_id, record_id, kind, data, source, nonce, at_ms, digest)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
"""


@dataclass(frozen=True, slots=True)
class Written:
    """The statements that write something, and what world history says of it."""

    statements: tuple[Statement, ...]
    entry: HistoryEntry


def record_of(row: Row) -> Record:
    """Return the record that a row of `memory_records` holds."""
    place = None
    if row["conversation"] is not None:
        said = row["said_at_ms"]
        place = Utterance(
            row["conversation"], int(row["position"]), row["speaker"], None if said is None else int(said)
        )
    return Record(
        id=row["id"],
        tenant_id=row["tenant_id"],
        scope_id=row["scope_id"],
        kind=row["kind"],
        content=row["content"],
        metadata=json.loads(row["metadata"]),
        subject=row["subject"],
        predicate=row["predicate"],
        object=row["object"],
        confidence=float(row["confidence"]),
        importance=float(row["importance"]),
        valid_from_ms=int(row["valid_from_ms"]),
        valid_to_ms=_time(row["valid_to_ms"]),
        expires_at_ms=_time(row["expires_at_ms"]),
        recorded_at_ms=int(row["recorded_at_ms"]),
        updated_at_ms=int(row["updated_at_ms"]),
        superseded_by=row["superseded_by"],
        edited=bool(row["edited"]),
        utterance=place,
        source=json.loads(row["source"]),
    )


def known_of(row: Row) -> KnownRecord:
    """Return the record that a row of `memory_records r` holds, with its last event. The row has `LAST_EVENT`."""
    return KnownRecord(record_of(row), row["last_event_id"] or "")


def event_of(row: Row) -> LearningEvent:
    """Return the event that a row of `memory_events` holds."""
    return LearningEvent(
        event_id=row["event_id"],
        record_id=row["record_id"],
        kind=row["kind"],
        data=json.loads(row["data"]),
        source=json.loads(row["source"]),
        at_ms=int(row["at_ms"]),
    )


def write_record(record: Record) -> Statement:
    """Return the statement that makes the row of `memory_records` say what the record says."""
    place = record.utterance
    values: tuple[SqlValue, ...] = (
        record.id,
        record.tenant_id,
        record.scope_id,
        record.kind,
        record.content,
        json.dumps(dict(record.metadata)),
        record.subject,
        record.predicate,
        record.object,
        record.confidence,
        record.importance,
        record.valid_from_ms,
        record.valid_to_ms,
        record.expires_at_ms,
        record.recorded_at_ms,
        record.updated_at_ms,
        record.superseded_by,
        int(record.edited),
        None if place is None else place.conversation,
        None if place is None else place.position,
        None if place is None else place.speaker,
        None if place is None else place.at_ms,
        json.dumps(dict(record.source)),
        content_hash(record.content, place),
    )
    return _UPSERT_RECORD, values


def remove_record(record_id: str) -> Statement:
    """Return the statement that removes the row of `memory_records`."""
    return _DELETE_RECORD, (record_id,)


def append_event(tenant_id: str, event: LearningEvent) -> Written:
    """Return what appends the event to the learning stream and to world history."""
    row: dict[str, str | int] = {
        "event_id": event.event_id,
        "tenant_id": tenant_id,
        "record_id": event.record_id,
        "kind": event.kind,
        "data": json.dumps(dict(event.data)),
        "source": json.dumps(dict(event.source)),
        "nonce": secrets.token_hex(16),
        "at_ms": event.at_ms,
    }
    digest = event_digest(row)
    values = (*row.values(), digest)
    return Written(((_APPEND_EVENT, values),), HistoryEntry(f"record_{event.kind}", event.record_id, digest))


def change_of(parts: Sequence[Written | Statement]) -> Change:
    """Return the parts of a mutation, in order, as one change with its history entries."""
    statements: list[Statement] = []
    entries: list[HistoryEntry] = []
    for part in parts:
        if isinstance(part, Written):
            statements += part.statements
            entries.append(part.entry)
        else:
            statements.append(part)
    return Change(statements, entries)


def as_stored(record: Record) -> Record:
    """Return the record as its row gives it back: metadata and source through JSON."""
    return replace(
        record,
        metadata=json.loads(json.dumps(dict(record.metadata))),
        source=json.loads(json.dumps(dict(record.source))),
    )


def _time(value: object) -> int | None:
    return None if value is None else int(str(value))
