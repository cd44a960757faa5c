"""Attachments in an erasure: text files that mention a term, and the objects of rows that are gone."""

from __future__ import annotations

import json

from retain.attachments.attachment import object_key, objects_prefix
from retain.attachments.removal import OWED_OF_TENANT, REMOVED
from retain.lifecycle.erasure.receipts import ErasureJob
from retain.lifecycle.erasure.slices import KEYS, Slice, erase_objects
from retain.lifecycle.stores import Stores
from retain.lifecycle.terms import Term

FILES = 5
"""Text files per slice: each is read whole, one after the other."""
_TEXTS = """
SELECT attachment_id FROM attachments WHERE tenant_id = ? AND attachment_id > ? AND sha256 IS NOT NULL
  AND media_type NOT LIKE 'image/%' AND media_type <> 'application/pdf' ORDER BY attachment_id LIMIT ?
"""
_GONE = "DELETE FROM attachments WHERE attachment_id IN (SELECT value FROM json_each(?))"
_LEFT = "SELECT 1 FROM attachment_objects WHERE tenant_id = ? LIMIT 1"


async def erase_files_that_mention(stores: Stores, job: ErasureJob) -> Slice:
    """Erase the text files whose content names the term. What an image or a PDF shows is not read; their names are."""
    rows = (await stores.sql.run(_TEXTS, job.tenant_id, job.cursor or "", FILES)).rows
    if not rows:
        return Slice.DONE
    term, named = Term.of(job.request["subject"]), list[str]()
    for row in rows:
        content = await stores.objects.get(object_key(job.tenant_id, row["attachment_id"]))
        if content is not None and term.in_text(content.decode("utf-8", "replace")):
            named.append(row["attachment_id"])
    counts = {"d1.attachments": len(named)}
    moved = job.moved(stores.clock(), counts, cursor=rows[-1]["attachment_id"])
    await stores.sql.batch([*moved, (_GONE, (json.dumps(named),))])
    return Slice.MORE


async def remove_their_objects(stores: Stores, job: ErasureJob) -> Slice:
    """Remove a page of the tenant's objects that have no row any more; wait for those that may still be arriving."""
    if job.pending is not None:
        for attachment_id in job.pending:
            await stores.objects.delete(object_key(job.tenant_id, attachment_id))
        removed = json.dumps([[job.tenant_id, attachment_id] for attachment_id in job.pending])
        await stores.sql.batch([*job.moved(stores.clock(), {}), (REMOVED, (removed,))])
        return Slice.MORE
    found = (await stores.sql.run(OWED_OF_TENANT, job.tenant_id, stores.clock(), KEYS)).rows
    ids = [row["attachment_id"] for row in found]
    if ids:
        await stores.sql.batch(job.moved(stores.clock(), {"r2": len(ids)}, pending=ids))
        return Slice.MORE
    return Slice.WAIT if (await stores.sql.run(_LEFT, job.tenant_id)).rows else Slice.DONE


async def erase_all_objects(stores: Stores, job: ErasureJob) -> Slice:
    """Erase a page of the tenant's objects of attachments, whatever D1 knows of them."""
    return await erase_objects(stores, job, prefix=objects_prefix(job.tenant_id))
