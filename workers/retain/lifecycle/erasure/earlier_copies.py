"""Erasing what may be left in KV of items that have another user by now (`retain.items.earlier_copies`).

As with items, a copy is removed twice: at once, and when no read that was under way can have left it again.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from retain.items.earlier_copies import GRACE_MS, NOTES, EarlierCopies
from retain.items.tiers.stores import KvHot
from retain.lifecycle.erasure.receipts import ErasureJob
from retain.lifecycle.erasure.slices import KEYS, Slice
from retain.lifecycle.stores import Stores
from retain.lifecycle.terms import Term
from retain.ports import Row, SqlValue, Statement

OF_USER = "SELECT 1 FROM memory_item_earlier_users WHERE tenant_id = ?1 AND user_id = ?2 LIMIT 1"
"""Whether there is such an item of the user."""
_PAGE = f"{NOTES} WHERE n.tenant_id = ? AND (n.user_id, n.key) > (?, ?) {{condition}} ORDER BY n.user_id, n.key LIMIT ?"
_MARK = """
UPDATE memory_item_earlier_users SET erased_by = ?1, noted_at_ms = ?2 WHERE tenant_id = ?3 AND (user_id, key) IN (
  SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]') FROM json_each(?4))
"""
_MARKED = f"{NOTES} WHERE n.tenant_id = ? AND n.erased_by = ? ORDER BY n.user_id, n.key LIMIT ?"


async def remove_copies_of_user(stores: Stores, job: ErasureJob) -> Slice:
    """Remove a page of the copies of items that were the user's, who is the request's or its subject."""
    user_id = job.request["user" if job.receipt.kind == "user" else "subject"]
    page = await _page(stores, job, "AND n.user_id = ?", user_id)
    return await _removed(stores, job, page, page)


async def remove_copies(stores: Stores, job: ErasureJob) -> Slice:
    """Remove a page of the copies of the tenant's items that had another user."""
    page = await _page(stores, job, "")
    return await _removed(stores, job, page, page)


async def remove_copies_that_mention(stores: Stores, job: ErasureJob) -> Slice:
    """Remove those copies of a page that name the request's term in the key, the earlier user or the value."""
    page, copies, term = await _page(stores, job, ""), copies_of(stores), Term.of(job.request["subject"])
    named = []
    for note in page:
        known = note["user_id"] == job.request["subject"] or any(
            term.in_text(note[name]) for name in ("key", "user_id")
        )
        if known or term.in_stored(await copies.held(note)):
            named.append(note)
    return await _removed(stores, job, page, named)


async def remove_copies_again(stores: Stores, job: ErasureJob) -> Slice:
    """Remove a page of the copies once more, and the notes that lead to them."""
    notes = (await stores.sql.run(_MARKED, job.tenant_id, job.receipt.receipt_id, KEYS)).rows
    if not notes:
        return Slice.DONE
    if any(int(note["noted_at_ms"]) > stores.clock() - GRACE_MS for note in notes):
        return Slice.WAIT
    copies = copies_of(stores)
    done = [note for note in notes if await copies.remove(note)]
    if not done:
        return Slice.WAIT  # a put is about to replace them
    await stores.sql.batch([*job.moved(stores.clock(), {}), copies.forgotten(done)])
    return Slice.MORE


def copies_of(stores: Stores) -> EarlierCopies:
    """Return what removes the copies from KV."""
    return EarlierCopies(stores.sql, KvHot(stores.kv), stores.namespacing, stores.clock)


async def _page(stores: Stores, job: ErasureJob, condition: str, *values: SqlValue) -> Sequence[Row]:
    after = job.cursor or ("", "")
    sql = _PAGE.format(condition=condition)
    return (await stores.sql.run(sql, job.tenant_id, *after, *values, KEYS)).rows


async def _removed(stores: Stores, job: ErasureJob, page: Sequence[Row], chosen: Sequence[Row]) -> Slice:
    """Count and mark the chosen notes of a page, note where the page ends, and remove the copies."""
    if not page:
        return Slice.DONE
    now, copies = stores.clock(), copies_of(stores)
    shown = [note for note in chosen if await copies.held(note) is not None]
    pairs = json.dumps([[note["user_id"], note["key"]] for note in chosen])
    mark: Statement = (_MARK, (job.receipt.receipt_id, now, job.tenant_id, pairs))
    last = page[-1]
    await stores.sql.batch([*job.moved(now, {"kv": len(shown)}, cursor=[last["user_id"], last["key"]]), mark])
    for note in chosen:
        await copies.remove(note)
    return Slice.MORE
