"""Erasing what lies under legacy keys in KV and R2: values of other programs, which no row of an item may know.

The legacy patterns say which keys are a tenant's. With the patterns removed from the configuration, such keys are no
longer known, and stay.
"""

from __future__ import annotations

from collections.abc import Awaitable

from retain.lifecycle.erasure.receipts import ErasureJob
from retain.lifecycle.erasure.slices import KEYS, Slice
from retain.lifecycle.stores import Stores
from retain.lifecycle.terms import Term
from retain.ports import KeyPage


def erase_legacy_values(stores: Stores, job: ErasureJob) -> Awaitable[Slice]:
    """Erase a page of the tenant's legacy keys in KV."""
    return _erase(stores, job, "kv")


def erase_legacy_objects(stores: Stores, job: ErasureJob) -> Awaitable[Slice]:
    """Erase a page of the tenant's objects under legacy keys."""
    return _erase(stores, job, "r2")


async def _erase(stores: Stores, job: ErasureJob, store: str) -> Slice:
    """Erase a page of one pattern's keys: all, or those that name the request's term in key or value.

    The cursor is the pattern's number and the listing's cursor. Chosen keys are pending until they are erased.
    """
    if job.pending is not None:
        for key in job.pending:
            await _delete(stores, store, key)
        await stores.sql.batch(job.moved(stores.clock(), {}, cursor=job.cursor))
        return Slice.MORE
    number, cursor = job.cursor or (0, None)
    patterns = stores.namespacing().patterns
    if number == len(patterns):
        return Slice.DONE
    pattern, page = patterns[number], KeyPage([], None)
    prefix = pattern.prefix_of(job.tenant_id)
    if prefix is not None:
        listing = stores.kv if store == "kv" else stores.objects
        page = await listing.list(prefix, cursor=cursor, limit=KEYS)
    items = [(key, pattern.item_of(key)) for key in page.keys]
    keys = [key for key, item in items if item is not None and item.namespace.tenant_id == job.tenant_id]
    if job.receipt.kind != "tenant":
        term = Term.of(job.request["subject"])
        keys = [key for key in keys if term.in_text(key) or term.in_stored(await _text(stores, store, key))]
    following = (number + 1, None) if page.cursor is None else (number, page.cursor)
    moved = job.moved(stores.clock(), {store: len(keys)}, cursor=following, pending=keys or None)
    await stores.sql.batch(moved)
    return Slice.MORE


async def _text(stores: Stores, store: str, key: str) -> str | None:
    if store == "kv":
        return await stores.kv.get(key)
    content = await stores.objects.get(key)
    return None if content is None else content.decode("utf-8", "replace")


async def _delete(stores: Stores, store: str, key: str) -> None:
    await (stores.kv.delete(key) if store == "kv" else stores.objects.delete(key))
