"""Earlier texts: what records said before they were edited, for recalls as of a time before the edit.

Each is derived from the learning event that gave the record this text. It has a search row, a full text and a signature,
but no vectors in the vector index. An edit keeps the rows of the text that it replaces; `Indexer.settle` adds those that are
missing, after an import or for another embedding model. Triggers remove them with their record or event
(migrations/0030_earlier_texts.sql).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from retain.memory.recall.preparation import PreparedRecord, signature
from retain.memory.recall.words import indexed_text
from retain.memory.records.events import LearningEvent
from retain.memory.records.record import Record
from retain.memory.records.rows import record_of
from retain.ports import Row, Statement, Vector

ADDED_AT_ONCE = 50
"""The most earlier texts that are added, and so embedded, together."""

_TEXTS = """
SELECT event_id, record_id, at_ms AS from_ms, LEAD(at_ms) OVER (PARTITION BY record_id ORDER BY event_id) AS until_ms
FROM memory_events WHERE record_id IN (SELECT value FROM json_each(?1))
  AND (kind = 'stored' OR (kind = 'edited' AND json_type(data, '$.content') IS NOT NULL))
"""
"""The texts of records in order; `until_ms` is NULL for the present ones."""
_COLUMNS = (
    "event_id, record_id, tenant_id, scope_id, from_ms, until_ms, length, words, terms, names_time, asking, signature,"
    " embedding_model"
)
_KEEP = f"""
INSERT INTO memory_earlier ({_COLUMNS})
SELECT t.event_id, r.id, r.tenant_id, r.scope_id, t.from_ms, t.until_ms, s.length, s.words, s.terms, s.names_time, s.asking,
  s.signature, s.embedding_model
FROM ({_TEXTS}) t JOIN memory_records r ON r.id = t.record_id JOIN memory_search s ON s.number = r.number
WHERE t.until_ms IS NOT NULL ORDER BY t.event_id DESC LIMIT 1
ON CONFLICT (event_id) DO NOTHING
"""
_KEEP_WORDS = """
INSERT INTO memory_earlier_text (rowid, content) SELECT e.number, t.content
FROM memory_records r JOIN memory_text t ON t.rowid = r.number JOIN memory_earlier e ON e.record_id = r.id
WHERE r.id = ? AND NOT EXISTS (SELECT 1 FROM memory_earlier_text x WHERE x.rowid = e.number)
"""
_MISSING = f"""
SELECT r.*, t.event_id, t.from_ms, t.until_ms, json_extract(v.data, '$.content') AS earlier
FROM ({_TEXTS}) t JOIN memory_records r ON r.id = t.record_id JOIN memory_events v ON v.event_id = t.event_id
WHERE t.until_ms IS NOT NULL AND NOT EXISTS (
  SELECT 1 FROM memory_earlier e WHERE e.event_id = t.event_id AND e.until_ms = t.until_ms AND e.embedding_model = ?2)
ORDER BY t.event_id LIMIT {ADDED_AT_ONCE}
"""
_ADD = f"""
INSERT INTO memory_earlier ({_COLUMNS}) SELECT ?1, id, tenant_id, scope_id, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10
FROM memory_records WHERE id = ?11 AND EXISTS (SELECT 1 FROM memory_events WHERE event_id = ?1)
"""
"""Adds nothing when the record or the event was erased meanwhile."""
_ADD_WORDS = """
INSERT INTO memory_earlier_text (rowid, content) SELECT number, ? FROM memory_earlier WHERE event_id = ?
"""


@dataclass(frozen=True, slots=True)
class EarlierText:
    """A text that a record had, from one time of recording until another. record: with that text, else as it is now."""

    event_id: str
    record: Record
    from_ms: int
    until_ms: int


def keep(record_id: str) -> list[Statement]:
    """Return the statements that keep the index rows of the text that an edit replaces.

    They must run after the ones that append the edit, and before those that write the rows of the new text.
    """
    return [(_KEEP, (json.dumps([record_id]),)), (_KEEP_WORDS, (record_id,))]


def missing(record_ids: Sequence[str], model: str) -> Statement:
    """Return the statement for earlier texts of the records that are not indexed for the model, `ADDED_AT_ONCE` at most."""
    return _MISSING, (json.dumps(list(record_ids)), model)


def texts_of(rows: Sequence[Row]) -> list[EarlierText]:
    """Return the texts, from the rows of `missing`."""
    return [
        EarlierText(
            row["event_id"],
            replace(record_of(row), content=row["earlier"]),
            int(row["from_ms"]),
            int(row["until_ms"]),
        )
        for row in rows
    ]


def earlier_of(record: Record, events: Sequence[LearningEvent]) -> list[EarlierText]:
    """Return the texts that a record had before its present one. events: all of its events, oldest first."""
    gave = [event for event in events if "content" in event.data]
    return [
        EarlierText(one.event_id, replace(record, content=one.data["content"]), one.at_ms, following.at_ms)
        for one, following in pairwise(gave)
    ]


def add(text: EarlierText, prepared: PreparedRecord, vectors: Sequence[Vector], model: str) -> list[Statement]:
    """Return the statements that index an earlier text, instead of what is indexed of it."""
    record = text.record
    row = (
        text.event_id,
        text.from_ms,
        text.until_ms,
        prepared.length,
        len(prepared.stems),
        prepared.terms,
        int(prepared.names_time),
        prepared.asking,
        signature(vectors),
        model,
        record.id,
    )
    words = indexed_text(record.tenant_id, record.scope_id, list(prepared.stems))
    return [
        ("DELETE FROM memory_earlier WHERE event_id = ?", (text.event_id,)),
        (_ADD, row),
        (_ADD_WORDS, (words, text.event_id)),
    ]
