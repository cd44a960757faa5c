"""Erasing records with their events, rows and vectors, by id."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

from retain.identifiers import new_id
from retain.lifecycle.erasure.receipts import ErasureJob
from retain.lifecycle.erasure.slices import Slice
from retain.lifecycle.stores import Stores
from retain.limits.vectorize import GRACE_MS
from retain.memory.records.events import KnownRecord, LearningEvent
from retain.memory.records.record import Record
from retain.memory.records.rows import Written, append_event, change_of, record_of, remove_record
from retain.memory.records.supersession import Supersession
from retain.memory.search_rows import remove_rows
from retain.ports import Statement
from retain.tenants.history import Change, HistoryEntry, digest_of

_RECORDS = """
SELECT r.*, MAX(COALESCE(s.parts, 0), COALESCE(o.parts, 0)) AS parts FROM memory_records r
LEFT JOIN memory_search s ON s.number = r.number LEFT JOIN memory_outbox o ON o.record_id = r.id
WHERE +r.tenant_id = ? AND r.id IN (SELECT value FROM json_each(?))
"""
_GAVE_UP = "UPDATE memory_outbox SET writers = 0 WHERE record_id = ? AND state = 'owed' AND at_ms <= ?"
_OWED = """
SELECT o.record_id, o.writers > 1 AND o.at_ms > ? AS shared FROM memory_outbox o WHERE o.tenant_id = ?
  AND NOT EXISTS (SELECT 1 FROM memory_records r WHERE r.id = o.record_id)
  AND EXISTS (SELECT 1 FROM world_history h INDEXED BY world_history_erased_records
              WHERE h.tenant_id = o.tenant_id AND h.subject_id = o.record_id AND h.kind = 'record_erased') LIMIT 100
"""


def everything(_: Mapping[str, object]) -> bool:
    """Return True: the whole record is erased."""
    return True


async def erase_records_by_id(
    stores: Stores,
    job: ErasureJob,
    ids: Sequence[str],
    named: Callable[[Mapping[str, object]], bool] = everything,
    *,
    cursor: object = None,
) -> None:
    """Erase these records with their events, in one mutation of the tenant that also notes the job's progress.

    named: whether a record's fields are still to be erased; if not, its present state stays, and its past is erased.
    A fact that is erased replaces no other one.
    """
    sql, indexer = stores.sql, stores.indexer()
    listed = json.dumps(ids)

    debts: dict[str, Statement] = {}

    async def decide(at_ms: int) -> Change | None:
        nonlocal debts
        rows = (await sql.run(_RECORDS, job.tenant_id, listed)).rows
        known = {row["id"]: (record_of(row), int(row["parts"])) for row in rows}
        parts: list[Written | Statement] = []
        entries: list[HistoryEntry] = []
        kept: list[KnownRecord] = []
        gone: list[Record] = []
        counts = {"vectorize": 0, "d1.memory_records": 0}
        for record_id in ids:
            entries.append(HistoryEntry("record_erased", record_id, digest_of(job.receipt.receipt_id, record_id)))
            record, vectors = known.get(record_id, (None, 0))
            if record is None:
                continue
            if named(record.to_json()):
                gave_up = (_GAVE_UP, (record_id, stores.clock() - GRACE_MS))
                parts += [*remove_rows(record_id), remove_record(record_id), gave_up, indexer.owe(record, vectors)]
                counts["vectorize"] += vectors
                counts["d1.memory_records"] += 1
                gone.append(record)
            else:
                first = _kept(record)
                parts.append(append_event(job.tenant_id, first))
                kept.append(KnownRecord(record, first.event_id))
        supersession = Supersession(sql, at_ms)
        await supersession.reconcile(kept, gone)
        debts = indexer.debts(supersession.changes)
        count = "SELECT COUNT(*) FROM memory_events WHERE record_id IN (SELECT value FROM json_each(?3))"
        past = "DELETE FROM memory_events WHERE record_id IN (SELECT value FROM json_each(?))"
        statements: list[Statement] = [
            *job.moved(stores.clock(), counts, cursor=cursor),
            job.counted("d1.memory_events", count, listed),
            (past, (listed,)),
        ]
        after = change_of([*statements, *parts, *supersession.parts, *debts.values()])
        return Change(after.statements, [*entries, *after.entries])

    await stores.history().transact_at(job.tenant_id, decide)
    await indexer.try_to_settle(*sorted(debts), still_fresh=True)


def _kept(record: Record) -> LearningEvent:
    """Return the event with which the history of a record begins after its past was erased."""
    return LearningEvent(new_id(), record.id, "stored", record.to_json(), record.source, record.updated_at_ms)


async def settle_erased(stores: Stores, tenant_id: str) -> Slice | None:
    """Erase vectors of erased records; return None when none are left. Raises: as the ports; the rest stays owed."""
    rows = (await stores.sql.run(_OWED, stores.clock() - GRACE_MS, tenant_id)).rows
    ids = [row["record_id"] for row in rows if not row["shared"]]
    await stores.indexer().settle_all(ids)
    if ids:
        return Slice.MORE
    return Slice.WAIT if rows else None  # another writer owes them as well, and may still write
