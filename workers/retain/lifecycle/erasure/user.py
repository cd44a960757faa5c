"""Erasing one user: what the tenant's instances and stores hold of them, in every agent.

A later run of the same user begins again with nothing. Runs from before the erasure leave nothing, however late their
instances write to D1 (migrations/0018_erased_users.sql).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from retain.identifiers import new_id
from retain.lifecycle.erasure.backups import erase_from_backups
from retain.lifecycle.erasure.earlier_copies import OF_USER as COPIES_OF_USER
from retain.lifecycle.erasure.earlier_copies import remove_copies_again, remove_copies_of_user
from retain.lifecycle.erasure.items import bury_items_of_user, remove_items, remove_loose_objects
from retain.lifecycle.erasure.receipts import ErasureJob
from retain.lifecycle.erasure.records import erase_records_by_id, settle_erased
from retain.lifecycle.erasure.slices import INSTANCES, Slice, Step, erase_these, remove_attached_objects
from retain.lifecycle.erasure.user_rows import await_arriving, erase_rows_of_user, is_clear, naming
from retain.lifecycle.stores import Stores
from retain.lifecycle.surplus import purge_words
from retain.limits.vectorize import GRACE_MS
from retain.memory.scope import OF_USER
from retain.ports import Statement
from retain.retention import DAY_MS, RetentionRule
from retain.tenants.history import Change, HistoryEntry

RECORDS = 100
USER_RULES = (
    RetentionRule(
        "erased_users",
        30 * DAY_MS,
        (
            "DELETE FROM erased_users WHERE (tenant_id, user_id) IN (SELECT tenant_id, user_id FROM erased_users"
            " WHERE erased_at_ms < ? ORDER BY erased_at_ms LIMIT ?) RETURNING tenant_id",
        ),
        1000,
    ),
)
"""How long an erased user's id is kept, so that what arrives late is ignored."""

_STORED = f"""
FROM memory_events WHERE tenant_id = ?1 AND kind = 'stored' AND json_extract(data, '$.scope_id') IN ({OF_USER})
"""
_LEARNED = f"SELECT DISTINCT record_id {_STORED} LIMIT {RECORDS}"
_OWED = f"""
SELECT o.record_id, o.at_ms FROM memory_outbox o WHERE o.tenant_id = ?1 AND o.scope_id IN ({OF_USER})
  AND NOT EXISTS (SELECT 1 FROM memory_records r WHERE r.id = o.record_id) LIMIT {RECORDS}
"""
_ITEMS = "SELECT 1 FROM memory_items WHERE tenant_id = ?1 AND user_id = ?2 LIMIT 1"
_SCOPES = f"FROM scopes WHERE tenant_id = ?1 AND scope_id IN ({OF_USER}) AND NOT EXISTS (SELECT 1 {_STORED})"
"""The user's scopes, unless something was stored in one: without them nothing would say whose it is."""
_MARK = """
INSERT INTO erased_users (tenant_id, user_id, last_run_id, erased_at_ms) VALUES (?, ?, ?, ?)
ON CONFLICT (tenant_id, user_id) DO UPDATE SET
  last_run_id = MAX(last_run_id, excluded.last_run_id), erased_at_ms = MAX(erased_at_ms, excluded.erased_at_ms)
"""


def marking(tenant_id: str, user_id: str, now_ms: int) -> Statement:
    """Return the statement after which nothing of the user's runs up to now is written to D1.

    Run ids are made by the same clock. A run of this very millisecond counts as one after it: it may have begun when the
    erasure was complete, and would otherwise never be in D1.
    """
    last_run_id = f"{new_id()[:10]}{'0' * 16}"
    return _MARK, (tenant_id, user_id, last_run_id, now_ms)


async def erase_instances_of_user(stores: Stores, job: ErasureJob) -> Slice:
    """Erase a page of the user's instances: everything that they hold, unless they serve somebody else by now."""
    known = f"SELECT agent_type, instance_id FROM ({naming(stores.tables)})"
    after = f"{known} WHERE (agent_type, instance_id) > (?3, ?4) ORDER BY agent_type, instance_id LIMIT {INSTANCES}"
    user_id = job.request["user"]
    rows = (await stores.sql.run(after, job.tenant_id, user_id, *(job.cursor or ("", "")))).rows
    return await erase_these(stores, job, rows, {"user_id": user_id, "cancel": True})


async def erase_records_of_user(stores: Stores, job: ErasureJob) -> Slice:
    """Erase some of the records in the user's scopes, deleted ones too, and finally their vectors."""
    values = (job.tenant_id, job.request["user"])
    ids = [row["record_id"] for row in (await stores.sql.run(_LEARNED, *values)).rows]
    if ids:
        await erase_records_by_id(stores, job, ids)
        return Slice.MORE
    settled = await settle_erased(stores, job.tenant_id)
    if settled is not None:
        return settled
    owed = (await stores.sql.run(_OWED, *values)).rows
    if not owed:
        if job.receipt.counts.get("d1.memory_events"):
            await purge_words(stores.sql)
        return Slice.DONE
    if any(int(row["at_ms"]) > stores.clock() - GRACE_MS for row in owed):
        return Slice.WAIT  # a write may be under way
    await stores.indexer().settle_all([row["record_id"] for row in owed])
    return Slice.MORE


async def erase_scopes_of_user(stores: Stores, job: ErasureJob) -> Slice:
    """Erase the user's scopes, and those of instances inside them. What was stored there meanwhile is erased first."""
    values = (job.tenant_id, job.request["user"])
    looks: list[Statement] = [(look, values) for look in (OF_USER, _LEARNED)]
    scopes, stored = await stores.sql.batch(looks)
    if stored.rows:
        return Slice.AGAIN
    if not scopes.rows:
        return Slice.DONE
    counted = _SCOPES.replace("?1", "?3").replace("?2", "?4")
    count = job.counted("d1.scopes", f"SELECT COUNT(*) {counted}", *values)
    await stores.sql.batch([*job.moved(stores.clock(), {}), count, (f"DELETE {_SCOPES}", values)])
    return Slice.MORE


async def finish(stores: Stores, job: ErasureJob) -> Slice:
    """Complete the erasure in a mutation of the tenant that finds nothing of the user in D1; else start again.

    It waits while the tenant moves: the other database has rows of it until then.
    """
    if await stores.places.moving(job.tenant_id):
        return Slice.WAIT
    user_id = job.request["user"]

    async def decide(at_ms: int) -> Change | None:
        looks: list[Statement] = [
            (look, (job.tenant_id, user_id)) for look in (_LEARNED, _OWED, OF_USER, _ITEMS, COPIES_OF_USER)
        ]
        if any(found.rows for found in await stores.sql.batch(looks)) or not await is_clear(stores, job):
            return None
        now = stores.clock()
        receipt = replace(job.receipt, completed_at_ms=now)
        statements = [job.still_here(), job.completed(now), marking(job.tenant_id, user_id, at_ms)]
        return Change(statements, [HistoryEntry("user_erased", receipt.receipt_id, receipt.digest)])

    return Slice.DONE if await stores.history().transact_at(job.tenant_id, decide) else Slice.AGAIN


STEPS: Mapping[str, Step] = {
    "backups": erase_from_backups,
    "arriving": await_arriving,
    "items": bury_items_of_user,
    "items_gone": remove_items,
    "earlier_copies": remove_copies_of_user,
    "earlier_copies_gone": remove_copies_again,
    "loose_objects": remove_loose_objects,
    "instances": erase_instances_of_user,
    "records": erase_records_of_user,
    "rows": erase_rows_of_user,
    "attachments": remove_attached_objects,
    "scopes": erase_scopes_of_user,
    "finish": finish,
}
"""The steps in their order. Instances come before the rows from which they are known."""
