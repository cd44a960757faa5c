"""Erasing items of tiered memory: first they are deleted in every tier, then, when no call is under way, their rows.

An item's row leads to its hot copy and its objects. So the row stays until no read that was under way can still leave a
copy, and no read elsewhere shows one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from retain.errors import Misconfigured
from retain.items.entry import Held
from retain.items.tiers.stores import ObjectsCold
from retain.lifecycle.erasure.receipts import ErasureJob
from retain.lifecycle.erasure.slices import KEYS, Slice
from retain.lifecycle.stores import Stores
from retain.lifecycle.terms import Term
from retain.ports import Row, SqlValue, Statement

GRACE_MS = 70_000
"""How long a deleted item's row stays: KV shows a delete everywhere within a minute.

Source: https://developers.cloudflare.com/kv/concepts/how-kv-works/
"""

_ITEMS = "SELECT * FROM memory_items WHERE tenant_id = ? AND key > ? {condition} ORDER BY key LIMIT ?"
_OBJECTS = """
SELECT object_key, key FROM memory_item_objects WHERE tenant_id = ? AND key IN (SELECT value FROM json_each(?))
ORDER BY object_key
"""
_BURY = """
UPDATE memory_items SET deleted = 1, value = NULL, key_id = NULL, size_bytes = 0, erased_by = ?1,
  version = MAX(?2, version + 1), updated_at_ms = ?2
WHERE tenant_id = ?3 AND key IN (SELECT value FROM json_each(?4))
"""
_BURIED = "SELECT key, updated_at_ms FROM memory_items WHERE tenant_id = ? AND erased_by = ? ORDER BY key LIMIT ?"
_REMOVE = """
DELETE FROM memory_items WHERE tenant_id = ? AND erased_by = ? AND key IN (SELECT value FROM json_each(?))
"""
_NOTES = "SELECT object_key, noted_at_ms FROM memory_item_objects WHERE tenant_id = ? ORDER BY object_key LIMIT ?"
_FORGET = """
DELETE FROM memory_item_objects WHERE tenant_id = ? AND object_key IN (SELECT value FROM json_each(?))
"""


async def bury_items_of_user(stores: Stores, job: ErasureJob) -> Slice:
    """Delete a page of the items whose user is the request's, or its subject."""
    user_id = job.request["user" if job.receipt.kind == "user" else "subject"]
    rows = await _page(stores, job, "AND user_id = ?", user_id)
    return await _bury(stores, job, rows, rows)


async def bury_items(stores: Stores, job: ErasureJob) -> Slice:
    """Delete a page of the tenant's items."""
    rows = await _page(stores, job, "")
    return await _bury(stores, job, rows, rows)


async def bury_items_that_mention(stores: Stores, job: ErasureJob) -> Slice:
    """Delete those items of a page that name the request's term in the key, the user or the value, whatever its tier."""
    rows = await _page(stores, job, "")
    term = Term.of(job.request["subject"])
    named = []
    for row in rows:
        known = row["user_id"] == job.request["subject"] or any(
            term.in_text(row[name] or "") for name in ("key", "user_id")
        )
        if known or term.in_stored(await value_of(stores, row)):
            named.append(row)
    return await _bury(stores, job, rows, named)


async def remove_items(stores: Stores, job: ErasureJob) -> Slice:
    """Remove the rows of a page of deleted items, and once more their copies and objects."""
    now = stores.clock()
    rows = (await stores.sql.run(_BURIED, job.tenant_id, job.receipt.receipt_id, KEYS)).rows
    if not rows:
        return Slice.DONE
    if any(int(row["updated_at_ms"]) > now - GRACE_MS for row in rows):
        return Slice.WAIT
    keys = [row["key"] for row in rows]
    objects = await _objects(stores, job, keys)
    await _erase_copies(stores, keys, objects)
    statements: list[Statement] = [
        (_FORGET, (job.tenant_id, json.dumps(objects))),
        (_REMOVE, (job.tenant_id, job.receipt.receipt_id, json.dumps(keys))),
    ]
    await stores.sql.batch([*job.moved(now, {}), *statements])
    return Slice.MORE


async def remove_objects(stores: Stores, job: ErasureJob) -> Slice:
    """Remove a page of the objects that no item points to: those of writes that did not complete."""
    now = stores.clock()
    rows = (await stores.sql.run(_NOTES, job.tenant_id, KEYS)).rows
    if not rows:
        return Slice.DONE
    if any(int(row["noted_at_ms"]) > now - GRACE_MS for row in rows):
        return Slice.WAIT  # a write may be under way
    objects = [row["object_key"] for row in rows]
    await _erase_copies(stores, [], objects)
    forget: Statement = (_FORGET, (job.tenant_id, json.dumps(objects)))
    await stores.sql.batch([*job.moved(now, {"r2": len(objects)}), forget])
    return Slice.MORE


async def _page(stores: Stores, job: ErasureJob, condition: str, *values: SqlValue) -> Sequence[Row]:
    sql = _ITEMS.format(condition=condition)
    return (await stores.sql.run(sql, job.tenant_id, job.cursor or "", *values, KEYS)).rows


async def _bury(stores: Stores, job: ErasureJob, page: Sequence[Row], chosen: Sequence[Row]) -> Slice:
    """Delete and count the chosen rows of a page, with their copies and objects; note where the page ends."""
    if not page:
        return Slice.DONE
    now, keys = stores.clock(), [row["key"] for row in chosen]
    hot = [key for key in keys if await stores.kv.get(key) is not None]
    objects = await _objects(stores, job, keys)
    counts: Mapping[str, int] = {"kv": len(hot), "r2": len(objects), "d1.memory_items": len(keys)}
    bury: Statement = (_BURY, (job.receipt.receipt_id, now, job.tenant_id, json.dumps(keys)))
    await stores.sql.batch([*job.moved(now, counts, cursor=page[-1]["key"]), bury])
    await _erase_copies(stores, keys, objects)
    return Slice.MORE


async def _objects(stores: Stores, job: ErasureJob, keys: Sequence[str]) -> list[str]:
    rows = (await stores.sql.run(_OBJECTS, job.tenant_id, json.dumps(keys))).rows
    return [row["object_key"] for row in rows]


async def _erase_copies(stores: Stores, keys: Sequence[str], objects: Sequence[str]) -> None:
    for key in keys:
        await stores.kv.delete(key)
    for object_key in objects:
        await stores.objects.delete(object_key)


async def value_of(stores: Stores, row: Row) -> str | None:
    """Return an item's value in plain text, from the tier that stores it."""
    if row["key_id"] is not None:
        if stores.sealer is None:
            raise Misconfigured("items contain PII, and there is no key to open them", code="item_unreadable")
        return await stores.sealer.open(row["key"], row["value"])
    if row["value"] is not None:
        return str(row["value"])
    if row["tier"] == "cold" and row["object_key"] is not None:
        return await ObjectsCold(stores.objects).download_text(row["object_key"])
    held = await stores.kv.get(row["key"])
    return None if held is None else Held.parse(held).value
