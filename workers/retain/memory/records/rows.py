"""Records and learning events as rows of D1: reading them, and the statements that write them."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from functools import cache
from typing import Any, get_args, get_origin, get_type_hints

from retain.memory.records.events import KnownRecord, LearningEvent
from retain.memory.records.record import RECORD_FIELDS, Record, Utterance
from retain.ports import Row, SqlValue, Statement
from retain.tenants.history import Change, HistoryEntry, event_digest

_PLACE_COLUMNS = ("conversation", "position", "speaker", "said_at_ms")
"""The fields of a record's utterance."""
RECORD_COLUMNS = (
    *[column for name in RECORD_FIELDS for column in (_PLACE_COLUMNS if name == "utterance" else (name,))],
    "content_hash",
)
"""The columns of `memory_records` that hold a record."""
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
    values = {name: row[name] if read is None else read(row[name]) for name, read in _readers()}
    return Record(**values, utterance=_utterance_of(row))


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
    return _UPSERT_RECORD, tuple(_values(record))


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


def _values(record: Record) -> Iterator[SqlValue]:
    """Yield the values of `RECORD_COLUMNS`."""
    for name in RECORD_FIELDS:
        value = getattr(record, name)
        if name == "utterance":
            yield from (None,) * len(_PLACE_COLUMNS) if value is None else astuple(value)
        elif isinstance(value, Mapping):
            yield json.dumps(dict(value))
        else:
            yield int(value) if isinstance(value, bool) else value
    yield record.content_hash


def _utterance_of(row: Row) -> Utterance | None:
    if row["conversation"] is None:
        return None
    said_at_ms = row["said_at_ms"]
    return Utterance(
        row["conversation"], int(row["position"]), row["speaker"], None if said_at_ms is None else int(said_at_ms)
    )


@cache
def _readers() -> tuple[tuple[str, Callable[[Any], Any] | None], ...]:
    """Return each field of a record that has a column of its own, and what makes its value of the column's if needed."""
    hints = get_type_hints(Record)
    return tuple((name, _reader(hints[name])) for name in RECORD_FIELDS if name != "utterance")


def _reader(hint: Any) -> Callable[[Any], Any] | None:
    parts = [get_origin(part) or part for part in (hint, *get_args(hint))]
    kinds: tuple[type, ...] = (bool, int, float)
    for kind in kinds:  # D1 gives a whole number for a real one, and numbers for what is true or false
        if hint is kind:
            read: Callable[[Any], Any] = kind
            return read
        if kind in parts:
            return lambda value: None if value is None else kind(value)
    return json.loads if Mapping in parts else None
