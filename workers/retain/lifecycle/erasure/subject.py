"""Erasing one subject: records with that subject or, in every store, all that names it as an exact term.

Learning events are read in the order of world history, which numbers them without gaps: the erasure completes in a
mutation of the tenant that finds nothing unread. If a record is no longer about the subject, its current state stays, and
its past is erased.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from retain.identifiers import new_id
from retain.lifecycle.erasure.contracts import erase_conversations, forget_vectors
from retain.lifecycle.erasure.items import bury_items_of_user, bury_items_that_mention, remove_items
from retain.lifecycle.erasure.mentions import erase_texts, erase_with_parts
from retain.lifecycle.erasure.receipts import ErasureJob
from retain.lifecycle.erasure.slices import (
    Slice,
    Step,
    erase_instances,
    erase_keys,
    erase_objects,
    tenant_prefix,
)
from retain.lifecycle.stores import Stores
from retain.lifecycle.surplus import purge_words
from retain.lifecycle.terms import Term
from retain.limits.vectorize import GRACE_MS
from retain.memory.indexer import remove_rows
from retain.memory.records.events import LearningEvent
from retain.memory.records.record import Record
from retain.memory.records.rows import append_event, record_of, remove_record
from retain.ports import Statement
from retain.tenants.history import Change, HistoryEntry, digest_of

EVENTS = 200

_HEAD = "SELECT COALESCE(MAX(seq), 0) AS seq FROM world_history WHERE tenant_id = ?"
_UNREAD = """
SELECT h.seq, e.* FROM world_history h JOIN memory_events e ON e.record_id = h.subject_id AND e.digest = h.digest
WHERE h.tenant_id = ? AND h.seq > ? AND h.seq <= ? {condition} ORDER BY h.seq LIMIT ?
"""
_BY_SUBJECT = "AND json_extract(e.data, '$.subject') = ?"
_RECORDS = """
SELECT r.*, MAX(COALESCE(s.parts, 0), COALESCE(o.parts, 0)) AS parts FROM memory_records r
LEFT JOIN memory_search s ON s.number = r.number LEFT JOIN memory_outbox o ON o.record_id = r.id
WHERE r.tenant_id = ? AND r.id IN (SELECT value FROM json_each(?))
"""
_GAVE_UP = "UPDATE memory_outbox SET writers = 0 WHERE record_id = ? AND state = 'owed' AND at_ms <= ?"
_OWED = """
SELECT o.record_id, o.writers > 1 AND o.at_ms > ? AS shared FROM memory_outbox o WHERE o.tenant_id = ?
  AND NOT EXISTS (SELECT 1 FROM memory_records r WHERE r.id = o.record_id)
  AND EXISTS (SELECT 1 FROM world_history h WHERE h.tenant_id = o.tenant_id AND h.subject_id = o.record_id
              AND h.kind = 'record_erased') LIMIT 100
"""


async def erase_records(stores: Stores, job: ErasureJob) -> Slice:
    """Read the next learning events and erase the records that they concern; after the last, complete the erasure."""
    sql, tenant_id = stores.sql, job.tenant_id
    after = int(job.cursor or 0)
    head = int((await sql.run(_HEAD, tenant_id)).rows[0]["seq"])
    by_subject = job.request["match"] == "subject"
    unread = _UNREAD.format(condition=_BY_SUBJECT if by_subject else "")
    condition = (job.request["subject"],) if by_subject else ()
    rows = (await sql.run(unread, tenant_id, after, head, *condition, EVENTS)).rows
    read_to = int(rows[-1]["seq"]) if len(rows) == EVENTS else head
    ids = sorted({row["record_id"] for row in rows if _named(job, json.loads(row["data"]))})
    if ids:
        await _erase(stores, job, ids, read_to)
    elif read_to > after:
        await sql.batch(job.moved(stores.clock(), {}, cursor=read_to))
    if read_to > after:
        return Slice.MORE
    waits = await _settle(stores, tenant_id)
    if waits is not None:
        return waits
    if job.receipt.counts.get("d1.memory_events"):
        await purge_words(sql)
    return await _finish(stores, job, after)


async def _erase(stores: Stores, job: ErasureJob, ids: Sequence[str], read_to: int) -> None:
    """Erase these records or their past, and note in the same transaction how far the events were read."""
    sql, indexer = stores.sql, stores.indexer()
    listed = json.dumps(ids)

    async def decide() -> Change | None:
        rows = (await sql.run(_RECORDS, job.tenant_id, listed)).rows
        known = {row["id"]: (record_of(row), int(row["parts"])) for row in rows}
        parts: list[Statement] = []
        entries: list[HistoryEntry] = []
        counts = {"vectorize": 0, "d1.memory_records": 0}
        for record_id in ids:
            entries.append(HistoryEntry("record_erased", record_id, digest_of(job.receipt.receipt_id, record_id)))
            record, vectors = known.get(record_id, (None, 0))
            if record is None:
                continue
            if _named(job, record.to_json()):
                gave_up = (_GAVE_UP, (record_id, stores.clock() - GRACE_MS))
                parts += [*remove_rows(record_id), remove_record(record_id), gave_up, indexer.owe(record, vectors)]
                counts["vectorize"] += vectors
                counts["d1.memory_records"] += 1
            else:
                kept = append_event(job.tenant_id, _kept(record))
                parts += kept.statements
                entries.append(kept.entry)
        count = "SELECT COUNT(*) FROM memory_events WHERE record_id IN (SELECT value FROM json_each(?3))"
        gone = "DELETE FROM memory_events WHERE record_id IN (SELECT value FROM json_each(?))"
        statements = [
            *job.moved(stores.clock(), counts, cursor=read_to),
            job.counted("d1.memory_events", count, listed),
            (gone, (listed,)),
            *parts,
        ]
        return Change(statements, entries)

    await stores.history().transact(job.tenant_id, decide)


def _kept(record: Record) -> LearningEvent:
    """Return the event with which the history of a record begins after its past was erased."""
    return LearningEvent(new_id(), record.id, "stored", record.to_json(), record.source, record.updated_at_ms)


async def _settle(stores: Stores, tenant_id: str) -> Slice | None:
    """Erase vectors of erased records; return None when none are left. Raises: as the ports; the rest stays owed."""
    rows = (await stores.sql.run(_OWED, stores.clock() - GRACE_MS, tenant_id)).rows
    ids = [row["record_id"] for row in rows if not row["shared"]]
    await stores.indexer().settle_all(ids)
    if ids:
        return Slice.MORE
    return Slice.WAIT if rows else None  # another writer owes them as well, and may still write


async def _finish(stores: Stores, job: ErasureJob, read_to: int) -> Slice:
    async def decide() -> Change | None:
        head = int((await stores.sql.run(_HEAD, job.tenant_id)).rows[0]["seq"])
        if head != read_to:
            return None
        now = stores.clock()
        receipt = replace(job.receipt, completed_at_ms=now)
        statements = [job.still_here(), job.completed(now)]
        return Change(statements, [HistoryEntry("subject_erased", receipt.receipt_id, receipt.digest)])

    return Slice.DONE if await stores.history().transact(job.tenant_id, decide) else Slice.MORE


def _named(job: ErasureJob, fields: Mapping[str, Any]) -> bool:
    """Return whether the fields of a record or an event name the subject; those that the runtime wrote do not count."""
    if job.request["match"] == "subject":
        return bool(fields.get("subject") == job.request["subject"])
    texts = [fields.get(name) for name in ("content", "metadata", "subject", "predicate", "object")]
    place = fields.get("utterance") or {}
    texts += [place.get("conversation"), place.get("speaker"), (fields.get("source") or {}).get("message")]
    return Term.of(job.request["subject"]).in_json(texts)


def _working(stores: Stores, job: ErasureJob) -> Awaitable[Slice]:
    prefix = f"agent_working:{job.tenant_id}:"
    term = Term.of(job.request["subject"])
    return erase_keys(
        stores, job, prefix, lambda key, value: term.in_text(key.removeprefix(prefix)) or term.in_stored(value)
    )


def _objects(stores: Stores, job: ErasureJob) -> Awaitable[Slice]:
    prefix = tenant_prefix(job.tenant_id)
    term = Term.of(job.request["subject"])
    return erase_objects(
        stores,
        job,
        lambda key, content: (
            term.in_text(key.removeprefix(prefix)) or term.in_stored(content.decode("utf-8", "replace"))
        ),
    )


BY_SUBJECT: Mapping[str, Step] = {"items": bury_items_of_user, "items_gone": remove_items, "records": erase_records}
BY_MENTION: Mapping[str, Step] = {
    "items": bury_items_that_mention,
    "items_gone": remove_items,
    "instances": erase_instances,
    "working": _working,
    "runs": erase_with_parts,
    "texts": erase_texts,
    "conversations": erase_conversations,
    "vectors": forget_vectors,
    "objects": _objects,
    "records": erase_records,
}
"""The steps in their order. Instances come before the tables to which they owe rows, so that those rows are read too."""
