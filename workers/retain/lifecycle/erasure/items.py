"""Erasing items of tiered memory: first they are deleted in every tier, then, when no call is under way, their rows.

An item's row leads to its hot copy and its objects. So the row stays until no read that was under way can still leave a
copy, and no read elsewhere shows one.

While keys migrate, an item has a canonical key and legacy ones, and values under several of them. What a read would show
after the erased value is erased with it, unless it is another user's.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from retain.errors import Misconfigured
from retain.items.earlier_copies import GRACE_MS
from retain.items.entry import Held
from retain.items.tiers.stores import ObjectsCold
from retain.lifecycle.erasure.receipts import ErasureJob
from retain.lifecycle.erasure.slices import KEYS, Slice
from retain.lifecycle.stores import Stores
from retain.lifecycle.terms import Term
from retain.limits.pages import sized
from retain.ports import Row, SqlValue, Statement

_ITEMS = "SELECT {columns} FROM memory_items WHERE tenant_id = ? AND key > ? {condition} ORDER BY key LIMIT ?"
_OWNED = _ITEMS.replace("{columns}", "key, user_id, updated_at_ms")
_WITH_VALUES = sized(_ITEMS.format(columns="*", condition=""), "key", "value")
_UNDER = """
SELECT key, object_key, user_id, tier, deleted, erased_by FROM memory_items
WHERE tenant_id = ? AND key IN (SELECT value FROM json_each(?)) ORDER BY key
"""
_OBJECTS = """
SELECT object_key FROM memory_item_objects WHERE tenant_id = ? AND key IN (SELECT value FROM json_each(?))
ORDER BY object_key
"""
# Keys with their owners, "" for none: a copy to another key, made since the page was read, has the owner of its source.
_BURY = """
UPDATE memory_items SET deleted = 1, value = NULL, key_id = NULL, size_bytes = 0, erased_by = ?1,
  version = MAX(?2, version + 1), updated_at_ms = ?2
WHERE tenant_id = ?3 AND key IN (SELECT json_extract(value, '$[0]') FROM json_each(?4))
  AND (key, COALESCE(user_id, '')) IN (SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]') FROM json_each(?4))
"""
_BURIED = "SELECT key, updated_at_ms FROM memory_items WHERE tenant_id = ? AND erased_by = ? ORDER BY key LIMIT ?"
_REMOVE = """
DELETE FROM memory_items WHERE tenant_id = ? AND erased_by = ? AND key IN (SELECT value FROM json_each(?))
"""
_NOTES = "SELECT object_key, noted_at_ms FROM memory_item_objects WHERE tenant_id = ? ORDER BY object_key LIMIT ?"
_LOOSE = """
SELECT o.object_key, o.noted_at_ms FROM memory_item_objects o WHERE o.tenant_id = ? AND o.noted_at_ms <= ?
  AND o.object_key > ? AND NOT EXISTS (
    SELECT 1 FROM memory_items i WHERE i.object_key = o.object_key AND i.tenant_id = o.tenant_id AND NOT i.deleted)
ORDER BY o.object_key LIMIT ?
"""
_FORGET = """
DELETE FROM memory_item_objects WHERE +tenant_id = ? AND object_key IN (SELECT value FROM json_each(?))
"""


async def bury_items_of_user(stores: Stores, job: ErasureJob) -> Slice:
    """Delete a page of the items whose user is the request's, or its subject."""
    user_id = job.request["user" if job.receipt.kind == "user" else "subject"]
    rows = await _page(stores, job, _OWNED.format(condition="AND user_id = ?"), user_id)
    return await _bury(stores, job, rows, rows)


async def bury_items(stores: Stores, job: ErasureJob) -> Slice:
    """Delete a page of the tenant's items."""
    rows = await _page(stores, job, _OWNED.format(condition=""))
    return await _bury(stores, job, rows, rows)


async def bury_items_that_mention(stores: Stores, job: ErasureJob) -> Slice:
    """Delete those items of a page that name the request's term in the key, the user or the value, whatever its tier."""
    rows = await _page(stores, job, _WITH_VALUES)
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
    rows = (await stores.sql.run(_BURIED, job.tenant_id, job.receipt.receipt_id, _page_size(stores))).rows
    if not rows:
        return Slice.DONE
    if any(int(row["updated_at_ms"]) > now - GRACE_MS for row in rows):
        return Slice.WAIT
    keys = [row["key"] for row in rows]
    traces = await _traces(stores, job, keys, [])
    await _erase_copies(stores, [*traces.keys, *traces.others], [*traces.objects, *traces.legacy])
    statements: list[Statement] = [
        (_FORGET, (job.tenant_id, json.dumps(traces.objects))),
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


async def remove_loose_objects(stores: Stores, job: ErasureJob) -> Slice:
    """Remove a page of the objects that no item points to: the old values of items that were written again.

    Whose they were is recorded nowhere, so they are removed for every subject and user, as the daily work would, and not
    counted; by mention those are counted that name the term.
    """
    now, started_at_ms = stores.clock(), job.receipt.started_at_ms
    values = (job.tenant_id, started_at_ms, job.cursor or "", KEYS)
    rows = (await stores.sql.run(_LOOSE, *values)).rows
    if not rows:
        return Slice.DONE
    if any(int(row["noted_at_ms"]) > now - GRACE_MS for row in rows):
        return Slice.WAIT  # a write may be under way
    objects, counts = [row["object_key"] for row in rows], {}
    if job.request.get("match") == "mention":
        term = Term.of(job.request["subject"])
        named = [key for key in objects if term.in_text(key) or term.in_stored(await _content(stores, key))]
        counts = {"r2": len(named)}
    await _erase_copies(stores, [], objects)
    forget: Statement = (_FORGET, (job.tenant_id, json.dumps(objects)))
    await stores.sql.batch([*job.moved(now, counts, cursor=rows[-1]["object_key"]), forget])
    return Slice.MORE


async def _content(stores: Stores, object_key: str) -> str | None:
    content = await stores.objects.get(object_key)
    return None if content is None else content.decode("utf-8", "replace")


async def _page(stores: Stores, job: ErasureJob, sql: str, *values: SqlValue) -> Sequence[Row]:
    return (await stores.sql.run(sql, job.tenant_id, job.cursor or "", *values, _page_size(stores))).rows


def _page_size(stores: Stores) -> int:
    """Return how many items a slice takes: each is erased under every key that it may have."""
    return max(1, KEYS // (1 + len(stores.namespacing().patterns)))


async def _bury(stores: Stores, job: ErasureJob, page: Sequence[Row], chosen: Sequence[Row]) -> Slice:
    """Delete and count the chosen rows of a page, with their copies and objects; note where the page ends."""
    if not page:
        return Slice.DONE
    now, pairs = stores.clock(), _with_owners(stores, job, chosen)
    traces = await _traces(stores, job, [row["key"] for row in chosen], pairs)
    hot = [key for key in traces.keys if await stores.kv.get(key) is not None]
    legacy = [key for key in traces.legacy if key in (await stores.objects.list(key, limit=1)).keys]
    counts: Mapping[str, int] = {
        "kv": len(hot),
        "r2": len(traces.objects) + len(legacy),
        "d1.memory_items": len(traces.rows),
    }
    bury: Statement = (_BURY, (job.receipt.receipt_id, now, job.tenant_id, json.dumps(pairs)))
    dated = [job.not_before("?3", max(row["updated_at_ms"] for row in page))] if job.receipt.kind == "user" else []
    await stores.sql.batch([*job.moved(now, counts, cursor=page[-1]["key"]), *dated, bury])
    await _erase_copies(stores, [*traces.keys, *traces.others], [*traces.objects, *legacy])
    return Slice.MORE


def _with_owners(stores: Stores, job: ErasureJob, chosen: Sequence[Row]) -> list[tuple[str, str]]:
    """Return the keys to bury with their owners, "" for none: the chosen ones, and the others of the same items.

    A key that reads ask only after the chosen one is buried if its value has no owner or the same one; any other key, if it
    has the same one.
    """
    namespacing, pairs = stores.namespacing(), set[tuple[str, str]]()
    for row in chosen:
        key, owner = row["key"], row["user_id"] or ""
        pairs.add((key, owner))
        pairs.update((other, "") for other in namespacing.hidden_by(job.tenant_id, key))
        if owner:
            pairs.update((other, owner) for other in namespacing.keys_of(job.tenant_id, key))
    return sorted(pairs)


@dataclass(frozen=True, slots=True)
class _Traces:
    """What items leave in the stores. rows: keys of rows that are buried. keys: their keys in KV. objects: noted in D1.

    legacy: keys under which an object of another program may be, which D1 may not know. others: canonical keys of rows
    that stay, whose hot copies may be of a legacy item that they hide; a copy of their own is read again from D1.
    """

    rows: Sequence[str]
    keys: Sequence[str]
    objects: Sequence[str]
    legacy: Sequence[str]
    others: Sequence[str]


async def _traces(
    stores: Stores, job: ErasureJob, chosen: Sequence[str], pairs: Collection[tuple[str, str]]
) -> _Traces:
    """Return what the items of the chosen keys leave, except that of rows that stay, as another user's does."""
    namespacing = stores.namespacing()
    every = {key for one in chosen for key in namespacing.keys_of(job.tenant_id, one)}
    under = (await stores.sql.run(_UNDER, job.tenant_id, json.dumps(sorted(every)))).rows
    buried = [row for row in under if (row["key"], row["user_id"] or "") in pairs]
    gone = [row for row in under if row in buried or row["erased_by"] == job.receipt.receipt_id]
    stay = [row for row in under if row not in gone and not row["deleted"]]
    keys = sorted(every - {row["key"] for row in stay})
    noted = (await stores.sql.run(_OBJECTS, job.tenant_id, json.dumps(keys))).rows
    known = {row["object_key"] for row in (*noted, *gone)} - {row["object_key"] for row in stay} - {None}
    legacy = {key for key in keys if namespacing.is_legacy(key)} - known
    canonical = {namespacing.keys_of(job.tenant_id, one)[0] for one in chosen}
    others = [row["key"] for row in stay if row["key"] in canonical and row["tier"] != "hot"]
    return _Traces([row["key"] for row in buried], keys, sorted(known), sorted(legacy), others)


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
        item = stores.namespacing().item_of(row["key"])  # sealed for its canonical key, whichever it is under
        return await stores.sealer.open(row["key"] if item is None else str(item), row["value"])
    if row["value"] is not None:
        return str(row["value"])
    if row["tier"] == "cold" and row["object_key"] is not None:
        return await ObjectsCold(stores.objects).download_text(row["object_key"])
    held = await stores.kv.get(row["key"])
    return None if held is None else Held.parse(held).value
