"""Read records and learning events from rows of D1, and make the statements that write them."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from functools import cache
from typing import Any, get_args, get_origin, get_type_hints

from retain.json_text import read_own_json
from retain.memory.records.claims import Spans, spans_of
from retain.memory.records.events import KnownRecord, LearningEvent
from retain.memory.records.record import RECORD_FIELDS, Record, Utterance
from retain.ports import Row, SqlValue, Statement
from retain.tenants.history import Change, HistoryEntry, event_digest

_PLACE_COLUMNS = ("conversation", "position", "speaker", "said_at_ms")
"""The columns of a record's utterance."""
RECORD_COLUMNS = (
    *[column for name in RECORD_FIELDS for column in (_PLACE_COLUMNS if name == "utterance" else (name,))],
    "content_hash",
)
"""The columns of `memory_records` that are written from a record."""
LAST_EVENT = "(SELECT MAX(event_id) FROM memory_events WHERE record_id = r.id) AS last_event_id"
"""A column for queries of `memory_records r`, which `known_of` needs."""
_UPSERT_RECORD = f"""
INSERT INTO memory_records ({", ".join(RECORD_COLUMNS)}) VALUES ({", ".join("?" * len(RECORD_COLUMNS))})
ON CONFLICT (id) DO UPDATE SET {", ".join(f"{column} = excluded.{column}" for column in RECORD_COLUMNS[1:])}
WHERE memory_records.tenant_id = excluded.tenant_id
"""
_UPSERT_LISTED = f"""
INSERT INTO memory_records ({", ".join(RECORD_COLUMNS)})
SELECT {", ".join(f"one.value ->> {place}" for place in range(len(RECORD_COLUMNS)))} FROM json_each(?) one WHERE true
ON CONFLICT (id) DO UPDATE SET {", ".join(f"{column} = excluded.{column}" for column in RECORD_COLUMNS[1:])}
WHERE memory_records.tenant_id = excluded.tenant_id
"""
_DELETE_RECORD = "DELETE FROM memory_records WHERE id = ?"
_APPEND_EVENT = """
INSERT INTO memory_events (event_id, tenant_id, record_id, kind, data, source, nonce, at_ms, digest)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_APPEND_LISTED = f"""
INSERT INTO memory_events (event_id, tenant_id, record_id, kind, data, source, nonce, at_ms, digest)
SELECT {", ".join(f"one.value ->> {place}" for place in range(9))} FROM json_each(?) one
"""
RECORD_FORMS: Mapping[str, str] = {_UPSERT_RECORD: _UPSERT_LISTED, _APPEND_EVENT: _APPEND_LISTED}
"""The statements for many rows at once (`retain.limits.listed_rows`)."""


@dataclass(frozen=True, slots=True)
class Written:
    """The statements that write something, and its entry in world history."""

    statements: tuple[Statement, ...]
    entry: HistoryEntry


def outside_gaps(at_ms: str) -> str:
    """Return the condition on `memory_records r` that a time is in no gap of its validity. at_ms: an SQL expression."""
    return (
        "(r.gaps IS NULL OR NOT EXISTS (SELECT 1 FROM json_each(r.gaps) gap"
        f" WHERE gap.value ->> 0 <= {at_ms} AND gap.value ->> 1 > {at_ms}))"
    )


def record_of(row: Row) -> Record:
    """Return the record of a row of `memory_records`."""
    values = {name: row[name] if read is None else read(row[name]) for name, read in _readers()}
    return Record(**values, utterance=_utterance_of(row))


def known_of(row: Row) -> KnownRecord:
    """Return the record of a row of `memory_records r` that has the column `LAST_EVENT`, with its last event."""
    return KnownRecord(record_of(row), row["last_event_id"] or "")


def event_of(row: Row) -> LearningEvent:
    """Return the event of a row of `memory_events`."""
    return LearningEvent(
        event_id=row["event_id"],
        record_id=row["record_id"],
        kind=row["kind"],
        data=read_own_json(row["data"]),
        source=read_own_json(row["source"]),
        at_ms=int(row["at_ms"]),
    )


def write_record(record: Record) -> Statement:
    """Return the statement that inserts or updates the record's row of `memory_records`."""
    return _UPSERT_RECORD, tuple(_values(record))


def remove_record(record_id: str) -> Statement:
    """Return the statement that deletes the record's row of `memory_records`."""
    return _DELETE_RECORD, (record_id,)


def append_event(tenant_id: str, event: LearningEvent) -> Written:
    """Return the statement and the entry that append the event to the learning stream and to world history."""
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
    """Return the parts of a mutation, in order, as one change with their history entries."""
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
    """Return the record as it reads from its row: with metadata and source converted through JSON."""
    return replace(
        record,
        metadata=read_own_json(json.dumps(dict(record.metadata))),
        source=read_own_json(json.dumps(dict(record.source))),
    )


def _values(record: Record) -> Iterator[SqlValue]:
    """Yield the values of `RECORD_COLUMNS`."""
    for name in RECORD_FIELDS:
        value = getattr(record, name)
        if name == "utterance":
            yield from (None,) * len(_PLACE_COLUMNS) if value is None else astuple(value)
        elif isinstance(value, tuple):
            yield json.dumps(value) if value else None
        elif isinstance(value, Mapping):
            yield json.dumps(dict(value))
        else:
            yield int(value) if isinstance(value, bool) else value
    yield record.content_hash


def _utterance_of(row: Row) -> Utterance | None:
    if row["conversation"] is None:
        return None
    at_ms = row["said_at_ms"]
    return Utterance(row["conversation"], int(row["position"]), row["speaker"], None if at_ms is None else int(at_ms))


@cache
def _readers() -> tuple[tuple[str, Callable[[Any], Any] | None], ...]:
    """Return each field of a record that has its own column, and the function that converts the column's value, if any."""
    hints = get_type_hints(Record)
    return tuple((name, _reader(hints[name])) for name in RECORD_FIELDS if name != "utterance")


def _reader(hint: Any) -> Callable[[Any], Any] | None:
    if hint == Spans:
        return lambda value: () if value is None else spans_of(read_own_json(value))
    parts = [get_origin(part) or part for part in (hint, *get_args(hint))]
    kinds: tuple[type, ...] = (bool, int, float)
    for kind in kinds:  # D1 returns integers for whole reals, and numbers for booleans
        if hint is kind:
            read: Callable[[Any], Any] = kind
            return read
        if kind in parts:
            return lambda value: None if value is None else kind(value)
    return read_own_json if Mapping in parts else None
