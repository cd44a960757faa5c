"""Verification: whether records are the fold of their events, and the indexes agree with the records.

A call checks one page of records; the last call also checks what no record leads to. Entries of the outbox are not
drift: they are known to be pending. Vectors are compared by presence and metadata, not by their numbers, which only
reindexing computes again. Vectors that neither a record nor the outbox leads to cannot be found.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from retain.errors import RetainError
from retain.lifecycle.stores import Stores
from retain.lifecycle.surplus import remove_surplus, search_surplus, text_surplus, wrong_counts
from retain.limits.vectorize import GRACE_MS, MAX_GET_IDS
from retain.memory.earlier_texts import missing
from retain.memory.indexer import Indexer
from retain.memory.recall.preparation import PreparedRecord, prepare
from retain.memory.recall.words import indexed_text
from retain.memory.records.events import fold
from retain.memory.records.listing import number_after
from retain.memory.records.record import Record, content_hash
from retain.memory.records.rows import event_of, record_of
from retain.memory.records.vector_names import vector_id, vector_namespace
from retain.ports import MetadataValue, Row, VectorEntry

PAGE_RECORDS = 100
SHOWN_IDS = 20
"""Most ids that a report shows per kind of drift."""

_PAGE = """
SELECT r.*, s.number IS NOT NULL AS has_search, s.tenant_id AS s_tenant_id, s.scope_id AS s_scope_id,
  s.conversation AS s_conversation, s.position AS s_position, s.length, s.words, s.span, s.terms, s.names_time, s.asking,
  s.parts, s.embedding_model, (SELECT t.content FROM memory_text t WHERE t.rowid = r.number) AS full_text,
  o.record_id IS NOT NULL AS pending
FROM memory_records r LEFT JOIN memory_search s ON s.number = r.number LEFT JOIN memory_outbox o ON o.record_id = r.id
WHERE r.tenant_id = ? AND r.number > ? ORDER BY r.number LIMIT ?
"""
_EVENTS = "SELECT * FROM memory_events WHERE record_id IN (SELECT value FROM json_each(?)) ORDER BY event_id"
_RECORDS_MISSING = """
SELECT e.record_id AS id FROM memory_events e WHERE e.tenant_id = ?
  AND NOT EXISTS (SELECT 1 FROM memory_records r WHERE r.id = e.record_id)
GROUP BY e.record_id HAVING SUM(e.kind = 'deleted') = 0 ORDER BY e.record_id
"""
_ORPHANS = """
SELECT o.record_id AS id, o.parts FROM memory_outbox o WHERE o.tenant_id = ? AND o.at_ms <= ?
  AND NOT EXISTS (SELECT 1 FROM memory_records r WHERE r.id = o.record_id) ORDER BY o.record_id LIMIT 100
"""


@dataclass(slots=True)
class Report:
    """What a page of the verification found.

    checked: number of records. pending: those whose vectors the index is known not to have yet. cursor: of the next page,
    None at the end. drift: kind to ids. owed: number of records to repair. settled: whether the repair was completed.
    """

    checked: int = 0
    pending: int = 0
    cursor: str | None = None
    drift: dict[str, list[str]] = field(default_factory=dict)
    owed: int = 0
    settled: bool = True

    def note(self, kind: str, record_id: str) -> None:
        """Add one id to a kind of drift."""
        self.drift.setdefault(kind, []).append(record_id)

    def to_json(self) -> dict[str, Any]:
        """Return the report as shown: for each kind the count and up to 20 ids."""
        drift = {kind: {"count": len(ids), "ids": ids[:SHOWN_IDS]} for kind, ids in sorted(self.drift.items())}
        repaired = {"owed": self.owed, "settled": self.settled}
        return {
            "checked": self.checked, "behind": self.pending, "drift": drift, "repaired": repaired, "cursor": self.cursor
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Checked:
    """One record with its stored and its expected index data. parts: vectors that it should have in the index."""

    record: Record
    row: Row
    prepared: PreparedRecord
    parts: int


async def verify_page(stores: Stores, tenant_id: str, cursor: str | None, *, repair: bool) -> Report:
    """Check the page at the cursor, or the first page; repair drift in the indexes if asked.

    Records that differ from the fold of their events are reported, not repaired: no rule decides which is right.
    Raises: InvalidInput (code `invalid_cursor`); as the ports.
    """
    number = number_after(cursor)
    indexer = stores.indexer()
    rows = (await stores.sql.run(_PAGE, tenant_id, number, PAGE_RECORDS)).rows
    report = Report(checked=len(rows), pending=sum(bool(row["pending"]) for row in rows))
    await _check_folds(stores, rows, report)
    checked = [await _checked(indexer, row) for row in rows]
    drifted = {one.record.id: one for one in checked if _check_rows(indexer, one, report)}
    settled = [one for one in checked if not one.row["pending"]]
    for one in await _check_earlier_texts(stores, indexer, settled, report):
        drifted[one.record.id] = one
    for one in await _check_vectors(stores, indexer, settled, report):
        drifted[one.record.id] = one
    if len(rows) == PAGE_RECORDS:
        report.cursor = str(rows[-1]["number"])
    else:
        await _check_surplus(stores, tenant_id, report)
    if repair:
        await _repair(stores, indexer, tenant_id, list(drifted.values()), report)
    return report


async def _check_folds(stores: Stores, rows: Sequence[Row], report: Report) -> None:
    found = (await stores.sql.run(_EVENTS, json.dumps([row["id"] for row in rows]))).rows
    events: dict[str, list[Row]] = {}
    for row in found:
        events.setdefault(row["record_id"], []).append(row)
    for row in rows:
        record = record_of(row)
        made = fold(event_of(event) for event in events.get(record.id, []))
        if made != record or row["content_hash"] != content_hash(record.content, record.utterance):
            report.note("record_differs", record.id)


async def _checked(indexer: Indexer, row: Row) -> _Checked:
    record = record_of(row)
    prepared = prepare(record.content, record.utterance)
    parts = len(prepared.parts)
    if (
        row["has_search"] and int(row["parts"]) != parts
    ):  # the model may find no meaning in a part: then it has no vector
        parts = len((await indexer.read([record]))[0].vectors)
    return _Checked(record, row, prepared, parts)


def _check_rows(indexer: Indexer, one: _Checked, report: Report) -> bool:
    """Compare a record with its search row and full text; return whether anything drifted."""
    record, row, prepared, place = one.record, one.row, one.prepared, one.record.utterance
    found: list[str] = []
    if not row["has_search"]:
        found.append("search_missing")
    else:
        expected: Mapping[str, object] = {
            "s_tenant_id": record.tenant_id,
            "s_scope_id": record.scope_id,
            "s_conversation": None if place is None else place.conversation,
            "s_position": None if place is None else place.position,
            "length": prepared.length,
            "words": len(prepared.stems),
            "span": prepared.span,
            "terms": prepared.terms,
            "names_time": prepared.names_time,
            "asking": prepared.asking,
        }
        if any(row[name] != value for name, value in expected.items()):
            found.append("search_differs")
        if row["embedding_model"] != indexer.model:
            found.append("other_model")
        if int(row["parts"]) != one.parts:
            found.append("part_count")
    if row["full_text"] is None:
        found.append("text_missing")
    elif row["full_text"] != indexed_text(record.tenant_id, record.scope_id, list(prepared.stems)):
        found.append("text_differs")
    for kind in found:
        report.note(kind, record.id)
    return bool(found)


async def _check_earlier_texts(
    stores: Stores, indexer: Indexer, settled: Sequence[_Checked], report: Report
) -> list[_Checked]:
    """Look for texts that records had before an edit and that are not indexed; return the records that drifted."""
    statement, values = missing([one.record.id for one in settled], indexer.model)
    found = {row["id"] for row in (await stores.sql.run(statement, *values)).rows}
    drifted = [one for one in settled if one.record.id in found]
    for one in drifted:
        report.note("earlier_text_missing", one.record.id)
    return drifted


async def _check_vectors(
    stores: Stores, indexer: Indexer, settled: Sequence[_Checked], report: Report
) -> list[_Checked]:
    """Look up each record's vectors, and one number beyond, which must not exist; return the records that drifted."""
    wanted = [vector_id(one.record.id, number) for one in settled for number in range(one.parts + 1)]
    vectors: dict[str, VectorEntry] = {}
    for start in range(0, len(wanted), MAX_GET_IDS):
        vectors |= {entry.id: entry for entry in await stores.index.get_by_ids(wanted[start : start + MAX_GET_IDS])}
    drifted: list[_Checked] = []
    for one in settled:
        found = set()
        namespace, metadata = vector_namespace(one.record.tenant_id), indexer.metadata(one.record)
        for number in range(one.parts):
            entry = vectors.get(vector_id(one.record.id, number))
            if entry is None:
                found.add("vector_missing")
            elif entry.namespace != namespace or not _agree(entry.metadata, metadata):
                found.add("vector_metadata")
        if vector_id(one.record.id, one.parts) in vectors:
            found.add("vector_surplus")
        for kind in sorted(found):
            report.note(kind, one.record.id)
        if found:
            drifted.append(one)
    return drifted


def _agree(found: Mapping[str, MetadataValue], expected: Mapping[str, MetadataValue]) -> bool:
    """Return whether a vector has the metadata of its record. It is written first, so it may be a little older."""
    created, recorded = found.get("created_at"), expected["created_at"]
    if not (
        isinstance(created, int | float) and isinstance(recorded, int) and recorded - GRACE_MS <= created <= recorded
    ):
        return False
    return {**found, "created_at": recorded} == expected


async def _check_surplus(stores: Stores, tenant_id: str, report: Report) -> None:
    sql = stores.sql
    surplus = await search_surplus(sql, tenant_id)
    for number in surplus:
        report.note("search_surplus", str(number))
    if not surplus:  # surplus rows are counted, too: removing them corrects the counts
        for scope_id in await wrong_counts(sql, tenant_id):
            report.note("scope_counts", scope_id)
    for number in await text_surplus(sql, tenant_id):
        report.note("text_surplus", str(number))
    for row in (await sql.run(_RECORDS_MISSING, tenant_id)).rows:
        report.note("record_missing", row["id"])
    for row in await _orphans(stores, tenant_id):
        ids = [vector_id(row["id"], number) for number in range(min(int(row["parts"]), MAX_GET_IDS))]
        if ids and await stores.index.get_by_ids(ids):
            report.note("vector_surplus", row["id"])


async def _orphans(stores: Stores, tenant_id: str) -> Sequence[Row]:
    """Return what the index is owed for deleted records; younger entries may be for records about to be stored."""
    return (await stores.sql.run(_ORPHANS, tenant_id, stores.clock() - GRACE_MS)).rows


async def _repair(
    stores: Stores, indexer: Indexer, tenant_id: str, drifted: Sequence[_Checked], report: Report
) -> None:
    """Note that the index is owed what drifted, and settle it. The rest stays owed, for the reconciler."""
    owed = [indexer.owe(one.record, max(int(one.row["parts"] or 0), one.parts) + 1) for one in drifted]
    await stores.sql.batch(owed)
    ids = [one.record.id for one in drifted]
    fresh = frozenset(one.record.id for one in drifted if one.row["pending"])
    report.owed = len(ids)
    try:
        await indexer.settle_all(ids, still_fresh=fresh)
        if report.cursor is None:
            await remove_surplus(stores.sql, tenant_id)
            await indexer.settle_all([row["id"] for row in await _orphans(stores, tenant_id)])
    except RetainError:
        report.settled = False
