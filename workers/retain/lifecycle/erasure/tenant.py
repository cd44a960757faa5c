"""Erasing a whole tenant, store by store.

The tenant is closed first: nothing can be stored for it, and writes that its instances still owe are ignored
(migrations/0003_lifecycle.sql). World history and receipts stay.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from retain.contracts.stored.document_index import index_namespace
from retain.identifiers import new_id
from retain.json_text import read_json
from retain.lifecycle.erasure.backups import erase_backups
from retain.lifecycle.erasure.contracts import erase_conversations, erase_documents
from retain.lifecycle.erasure.earlier_copies import remove_copies, remove_copies_again
from retain.lifecycle.erasure.items import bury_items, remove_items, remove_objects
from retain.lifecycle.erasure.legacy import erase_legacy_objects, erase_legacy_values
from retain.lifecycle.erasure.receipts import ErasureJob
from retain.lifecycle.erasure.slices import (
    Slice,
    Step,
    erase_attached_objects,
    erase_instances,
    erase_keys,
    erase_objects,
    remove_attached_objects,
)
from retain.lifecycle.stores import Stores
from retain.lifecycle.surplus import purge_words, remove_surplus
from retain.limits.vectorize import GRACE_MS
from retain.memory.records.vector_names import vector_id, vector_namespace
from retain.ports import Statement, VectorMatch
from retain.tenants.history import Change, HistoryEntry
from retain.tenants.tables import TenantTable

ROWS = 500
RECORDS = 100
VECTORS = 100
"""Ids per call. Source: as `retain.limits.vectorize.DELETE_IDS_PER_CALL`"""
LOOKS = 3
"""Searches for stray vectors before the erasure waits."""

_YOUNG = "SELECT 1 FROM memory_outbox WHERE tenant_id = ? AND state = 'owed' AND at_ms > ? LIMIT 1"
_RECORDS = """
SELECT r.id, MAX(COALESCE(s.parts, 0), COALESCE(o.parts, 0)) AS parts FROM memory_records r
LEFT JOIN memory_search s ON s.number = r.number LEFT JOIN memory_outbox o ON o.record_id = r.id
WHERE r.tenant_id = ? ORDER BY r.number LIMIT ?
"""
# Once no record is left, so that no page of records reads the whole outbox.
_ORPHANS = """
SELECT record_id AS id, parts FROM memory_outbox WHERE tenant_id = ?1
  AND NOT EXISTS (SELECT 1 FROM memory_records WHERE tenant_id = ?1) LIMIT ?2
"""
_REMEMBERED = "SELECT 1 FROM memory_events WHERE tenant_id = ? LIMIT 1"
_NUMBERS = "SELECT number FROM memory_records WHERE id IN (SELECT value FROM json_each({}))"
_IDS = "SELECT value FROM json_each({})"
_MOOT = """
UPDATE erasure_receipts SET state = 'completed', completed_at_ms = ?, updated_at_ms = ?, error = NULL, request = NULL,
  salt = NULL, step = NULL, cursor = NULL, pending = NULL WHERE tenant_id = ? AND kind <> 'tenant' AND state = 'running'
"""


def closing(tenant_id: str) -> list[Statement]:
    """Return the statements that close a tenant, to be run in the batch that starts its erasure."""
    return [_closed_now(tenant_id), ("DELETE FROM tenants WHERE tenant_id = ?", (tenant_id,))]


def _closed_now(tenant_id: str) -> Statement:
    last_run_id = f"{new_id()[:10]}{'Z' * 16}"  # every run up to now: run ids are made by the same clock
    return (
        "INSERT INTO erased_tenants (tenant_id, last_run_id, closed) VALUES (?, ?, 1)"
        " ON CONFLICT (tenant_id) DO UPDATE SET last_run_id = excluded.last_run_id, closed = 1",
        (tenant_id, last_run_id),
    )


async def erase_records(stores: Stores, job: ErasureJob) -> Slice:
    """Erase the vectors of some records, by the ids that D1 knows, and then the records."""
    sql, tenant_id = stores.sql, job.tenant_id
    young, records, orphans = await sql.batch(
        [
            (_YOUNG, (tenant_id, stores.clock() - GRACE_MS)),
            (_RECORDS, (tenant_id, RECORDS)),
            (_ORPHANS, (tenant_id, RECORDS)),
        ]
    )
    if young.rows:
        return Slice.WAIT  # a write may be under way, and could leave vectors whose ids nothing in D1 knows
    page = records.rows or orphans.rows
    if not page:
        await remove_surplus(sql, tenant_id)
        if (await sql.run(_REMEMBERED, tenant_id)).rows:
            await purge_words(sql)
        return Slice.DONE
    vectors = [vector_id(row["id"], number) for row in page for number in range(int(row["parts"]))]
    for start in range(0, len(vectors), VECTORS):
        await stores.index.delete_by_ids(vectors[start : start + VECTORS])
    ids = json.dumps([row["id"] for row in page])
    numbers, listed = _NUMBERS.format("?"), _IDS.format("?")

    def counted(table: str, where: str) -> Statement:
        return job.counted(f"d1.{table}", f"SELECT COUNT(*) FROM {table} WHERE {where}", ids)

    await sql.batch(
        [
            *job.moved(stores.clock(), {"vectorize": len(vectors)}),
            (f"DELETE FROM memory_text WHERE rowid IN ({numbers})", (ids,)),
            counted("memory_search", f"number IN ({_NUMBERS.format('?3')})"),
            (f"DELETE FROM memory_search WHERE number IN ({numbers})", (ids,)),
            counted("memory_outbox", f"record_id IN ({_IDS.format('?3')})"),
            (f"DELETE FROM memory_outbox WHERE record_id IN ({listed})", (ids,)),
            counted("memory_records", f"id IN ({_IDS.format('?3')})"),
            (f"DELETE FROM memory_records WHERE id IN ({listed})", (ids,)),
        ]
    )
    return Slice.MORE


async def erase_stray_vectors(stores: Stores, job: ErasureJob) -> Slice:
    """Erase the tenant's vectors that the index shows though D1 did not know them; wait until it shows none."""
    anywhere = [1.0] + [0.0] * (await stores.index.dimensions() - 1)
    found: list[VectorMatch] = []
    for namespace in (vector_namespace(job.tenant_id), index_namespace(job.tenant_id)):
        found += await stores.index.query(anywhere, namespace=namespace, filter={}, top_k=VECTORS)
    if not found:
        return Slice.DONE
    await stores.index.delete_by_ids([match.id for match in found])
    looks = int(job.cursor or 0) + 1
    await stores.sql.batch(job.moved(stores.clock(), {}, cursor=looks % LOOKS))
    return Slice.WAIT if looks == LOOKS else Slice.MORE  # the index shows a mutation seconds later


async def erase_rows(stores: Stores, job: ErasureJob) -> Slice:
    """Erase some of the rows that are left in D1."""
    left = await _left(stores, job.tenant_id, [table for table in stores.tables if table.erased == "rows"])
    if not left:
        return Slice.DONE
    table, key = left[0].name, ", ".join(left[0].keys)
    page = f"SELECT {key} FROM ({left[0].rows_of('?3')}) ORDER BY {key} LIMIT {ROWS}"
    if left[0].listed is not None:
        page = left[0].page_through_list("?3", ROWS)
    await stores.sql.batch(
        [
            *job.moved(stores.clock(), {}),
            job.counted(f"d1.{table}", f"SELECT COUNT(*) FROM ({page})", job.tenant_id),
            (f"DELETE FROM {table} WHERE ({key}) IN ({page.replace('?3', '?1')})", (job.tenant_id,)),
        ]
    )
    return Slice.MORE


async def finish(stores: Stores, job: ErasureJob) -> Slice:
    """Complete the erasure in a mutation of the tenant that finds none of its rows in D1; else start again.

    It waits while the tenant moves: the other database has rows of it until then.
    """
    if await stores.places.moving(job.tenant_id):
        return Slice.WAIT

    async def decide() -> Change | None:
        if await _left(stores, job.tenant_id, [table for table in stores.tables if table.erased != "never"]):
            return None
        now = stores.clock()
        receipt = replace(job.receipt, completed_at_ms=now)
        moot = (_MOOT, (now, now, job.tenant_id))
        statements = [job.still_here(), job.completed(now), moot, _closed_now(job.tenant_id)]
        return Change(statements, [HistoryEntry("tenant_erased", receipt.receipt_id, receipt.digest)])

    return Slice.DONE if await stores.history().transact(job.tenant_id, decide) else Slice.AGAIN


async def _left(stores: Stores, tenant_id: str, tables: Sequence[TenantTable]) -> list[TenantTable]:
    """Return those of the tables that have a row of the tenant, in their order."""
    looks: list[Statement] = [(f"SELECT 1 FROM ({table.rows_of('?1')}) LIMIT 1", (tenant_id,)) for table in tables]
    found = await stores.sql.batch(looks)
    return [table for table, result in zip(tables, found, strict=True) if result.rows]


def _working(stores: Stores, job: ErasureJob) -> Awaitable[Slice]:
    return erase_keys(stores, job, f"agent_working:{job.tenant_id}:")


def _tools(stores: Stores, job: ErasureJob) -> Awaitable[Slice]:
    return erase_keys(stores, job, f"gateway_tool:{job.tenant_id}:")


def _credentials(stores: Stores, job: ErasureJob) -> Awaitable[Slice]:
    return erase_keys(stores, job, f"gateway_credential:{job.tenant_id}:")


def _api_keys(stores: Stores, job: ErasureJob) -> Awaitable[Slice]:
    """Erase the tenant's API keys: they are stored under their hashes, so every key of the deployment is examined."""

    async def of_tenant(_: str, grant: str) -> bool:
        try:
            record: Any = read_json(grant)
            return bool(record["tenant_id"] == job.tenant_id)
        except (ValueError, LookupError, TypeError):
            return False  # not a grant, so nobody's

    return erase_keys(stores, job, "gateway_key:", of_tenant)


STEPS: Mapping[str, Step] = {
    "backups": erase_backups,
    "api_keys": _api_keys,
    "tools": _tools,
    "credentials": _credentials,
    "instances": erase_instances,
    "records": erase_records,
    "documents": erase_documents,
    "stray_vectors": erase_stray_vectors,
    "items": bury_items,
    "items_gone": remove_items,
    "earlier_copies": remove_copies,
    "earlier_copies_gone": remove_copies_again,
    "item_objects": remove_objects,
    "legacy_values": erase_legacy_values,
    "legacy_objects": erase_legacy_objects,
    "rows": erase_rows,
    "attachments": remove_attached_objects,
    "attachment_objects": erase_attached_objects,
    "working": _working,
    "conversations": erase_conversations,
    "objects": erase_objects,
    "finish": finish,
}
"""The steps in their order. The gateway's key prefixes are those of `retain.gateway`, which this layer cannot import."""
