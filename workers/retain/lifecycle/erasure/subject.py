"""Erasing one subject: records with that subject or, in every store, all that names it as an exact term.

Learning events are read in the order of world history, which numbers them without gaps: the erasure completes in a
mutation of the tenant that finds nothing unread. If a record is no longer about the subject, its current state stays, and
its past is erased.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from retain.json_text import read_own_json
from retain.lifecycle.erasure.backups import erase_from_backups
from retain.lifecycle.erasure.contracts import erase_conversations, forget_vectors
from retain.lifecycle.erasure.earlier_copies import (
    remove_copies_again,
    remove_copies_of_user,
    remove_copies_that_mention,
)
from retain.lifecycle.erasure.items import (
    bury_items_of_user,
    bury_items_that_mention,
    remove_items,
    remove_loose_objects,
)
from retain.lifecycle.erasure.legacy import erase_legacy_objects, erase_legacy_values
from retain.lifecycle.erasure.mentions import erase_files_that_mention, erase_texts, erase_with_parts
from retain.lifecycle.erasure.receipts import ErasureJob
from retain.lifecycle.erasure.records import erase_records_by_id, settle_erased
from retain.lifecycle.erasure.slices import (
    Slice,
    Step,
    erase_instances,
    erase_keys,
    erase_objects,
    remove_attached_objects,
    tenant_prefix,
)
from retain.lifecycle.stores import Stores
from retain.lifecycle.surplus import purge_words
from retain.lifecycle.terms import Term, is_subject
from retain.tenants.history import Change, HistoryEntry

EVENTS = 200

_HEAD = "SELECT COALESCE(MAX(seq), 0) AS seq FROM world_history WHERE tenant_id = ?"
_UNREAD = """
SELECT h.seq, e.* FROM world_history h JOIN memory_events e ON e.record_id = h.subject_id AND e.digest = h.digest
WHERE h.tenant_id = ? AND h.seq > ? AND h.seq <= ? {condition} ORDER BY h.seq LIMIT ?
"""
# What is not ASCII alone is compared in code: an earlier version stored subjects in other normal forms.
_BY_SUBJECT = "AND (json_extract(e.data, '$.subject') = ? OR json_extract(e.data, '$.subject') GLOB '*[^ -~]*')"


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
    ids = sorted({row["record_id"] for row in rows if _named(job, read_own_json(row["data"]))})
    if ids:
        await erase_records_by_id(stores, job, ids, partial(_named, job), cursor=read_to)
    elif read_to > after:
        await sql.batch(job.moved(stores.clock(), {}, cursor=read_to))
    if read_to > after:
        return Slice.MORE
    waits = await settle_erased(stores, tenant_id)
    if waits is not None:
        return waits
    if job.receipt.counts.get("d1.memory_events"):
        await purge_words(sql)
    return await _finish(stores, job, after)


async def _finish(stores: Stores, job: ErasureJob, read_to: int) -> Slice:
    if await stores.places.moving(job.tenant_id):
        return Slice.WAIT

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
        return is_subject(fields.get("subject"), job.request["subject"])
    texts = [fields.get(name) for name in ("content", "metadata", "subject", "predicate", "object")]
    place = fields.get("utterance") or {}
    texts += [place.get("conversation"), place.get("speaker"), (fields.get("source") or {}).get("message")]
    return Term.of(job.request["subject"]).in_json(texts)


def _working(stores: Stores, job: ErasureJob) -> Awaitable[Slice]:
    prefix = f"agent_working:{job.tenant_id}:"
    term = Term.of(job.request["subject"])

    async def named(key: str, value: str) -> bool:
        return term.in_text(key.removeprefix(prefix)) or term.in_stored(value)

    return erase_keys(stores, job, prefix, named)


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


BY_SUBJECT: Mapping[str, Step] = {
    "backups": erase_from_backups,
    "items": bury_items_of_user,
    "items_gone": remove_items,
    "earlier_copies": remove_copies_of_user,
    "earlier_copies_gone": remove_copies_again,
    "loose_objects": remove_loose_objects,
    "records": erase_records,
}
BY_MENTION: Mapping[str, Step] = {
    "backups": erase_from_backups,
    "items": bury_items_that_mention,
    "items_gone": remove_items,
    "earlier_copies": remove_copies_that_mention,
    "earlier_copies_gone": remove_copies_again,
    "loose_objects": remove_loose_objects,
    "legacy_values": erase_legacy_values,
    "legacy_objects": erase_legacy_objects,
    "instances": erase_instances,
    "working": _working,
    "runs": erase_with_parts,
    "files": erase_files_that_mention,
    "texts": erase_texts,
    "attachments": remove_attached_objects,
    "conversations": erase_conversations,
    "vectors": forget_vectors,
    "objects": _objects,
    "records": erase_records,
}
"""The steps in their order. Instances come before the tables to which they owe rows, so that those rows are read too."""
