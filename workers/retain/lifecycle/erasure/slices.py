"""Slices of an erasure outside D1: instances, KV, objects. Each erases one page and can be repeated.

Listed keys are noted as counted and pending before they are erased, so that after a crash none is counted twice, and none
that was counted is left.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from enum import Enum

from retain.attachments.attachment import object_key, objects_prefix
from retain.attachments.removal import OWED_OF_TENANT, REMOVED
from retain.errors import Conflict
from retain.lifecycle.erasure.receipts import ErasureJob
from retain.lifecycle.stores import Stores
from retain.ports import Row

KEYS = 40
"""Keys or objects per slice: reading and erasing each takes a call, and a request has 1,000.

Source: https://developers.cloudflare.com/workers/platform/limits/#subrequests
"""
INSTANCES = 20
_END = 0
"""The cursor after the last page. Cursors of listings are text, so it is not one of them."""

_LEFT = "SELECT 1 FROM attachment_objects WHERE tenant_id = ? LIMIT 1"
_INSTANCES = (
    "SELECT DISTINCT agent_type, instance_id FROM {table} WHERE tenant_id = ?1 AND (agent_type, instance_id) > (?2, ?3)"
)


MAX_UNITED = 5
"""Most queries that D1 unites: as many as workerd lets SQLite take.

Source: https://github.com/cloudflare/workerd/blob/main/src/workerd/util/sqlite.c%2B%2B
"""


class Slice(Enum):
    """The result of a slice: there is more, its step is done, it has to wait, or the erasure starts again."""

    MORE = "more"
    DONE = "done"
    WAIT = "wait"
    AGAIN = "again"


Step = Callable[[Stores, ErasureJob], Awaitable[Slice]]
"""Does one slice of a step of an erasure."""


def tenant_prefix(tenant_id: str) -> str:
    """Return the prefix of all objects of a tenant in the object store."""
    return f"tenants/{tenant_id}/"


def union_of(selects: Sequence[str]) -> str:
    """Return the query for the distinct rows of any number of queries: D1 unites few of them in one statement."""
    while len(selects) > MAX_UNITED:
        selects = [
            f"SELECT * FROM ({' UNION '.join(selects[first : first + MAX_UNITED])})"
            for first in range(0, len(selects), MAX_UNITED)
        ]
    return " UNION ".join(selects)


async def erase_instances(stores: Stores, job: ErasureJob) -> Slice:
    """Erase a page of instances in their Durable Objects: everything, or what names the request's term."""
    agent_type, instance_id = job.cursor or ("", "")
    tables = [table.name for table in stores.tables if table.instances]
    if not tables:
        return Slice.DONE
    known = union_of([_INSTANCES.format(table=table) for table in tables])
    page = f"{known} ORDER BY agent_type, instance_id LIMIT ?4"
    rows = (await stores.sql.run(page, job.tenant_id, agent_type, instance_id, INSTANCES)).rows
    whole = job.receipt.kind == "tenant"
    return await erase_these(stores, job, rows, {"cancel": True} if whole else {"term": job.request["subject"]})


async def erase_these(stores: Stores, job: ErasureJob, rows: Sequence[Row], what: Mapping[str, str | bool]) -> Slice:
    """Erase a page of instances in their Durable Objects. what: the request, besides the instance's identity."""
    if not rows:
        return Slice.DONE
    for row in rows:
        identity = {"tenant_id": job.tenant_id, "agent_type": row["agent_type"], "instance_id": row["instance_id"]}
        name = f"{row['agent_type']}:{job.tenant_id}:{row['instance_id']}"
        try:
            await stores.instances.call(name, "erase", {**identity, **what})
        except Conflict:
            return Slice.WAIT  # a run is under way, also if it was cancelled, or will be resumed after an interruption
    cursor = [rows[-1]["agent_type"], rows[-1]["instance_id"]]
    await stores.sql.batch(job.moved(stores.clock(), {"durable_objects": len(rows)}, cursor=cursor))
    return Slice.MORE


async def erase_keys(
    stores: Stores, job: ErasureJob, prefix: str, wanted: Callable[[str, str], Awaitable[bool]] | None = None
) -> Slice:
    """Erase a page of KV keys. wanted: selects by key and value; None selects all."""
    if job.pending is not None:
        for key in job.pending:
            await stores.kv.delete(key)
        await stores.sql.batch(job.moved(stores.clock(), {}, cursor=job.cursor))
        return Slice.MORE
    if job.cursor == _END:
        return Slice.DONE
    page = await stores.kv.list(prefix, cursor=job.cursor, limit=KEYS)
    keys = page.keys
    if wanted is not None:
        found, keys = keys, []
        for key in found:  # a value may have megabytes: one at a time
            if (value := await stores.kv.get(key)) is not None and await wanted(key, value):
                keys.append(key)
    cursor = page.cursor or _END
    await stores.sql.batch(job.moved(stores.clock(), {"kv": len(keys)}, cursor=cursor, pending=keys or None))
    return Slice.MORE


async def erase_objects(
    stores: Stores, job: ErasureJob, wanted: Callable[[str, bytes], bool] | None = None, *, prefix: str | None = None
) -> Slice:
    """Erase a page of the tenant's objects. wanted: selects by key and content; None selects all. prefix: of other keys."""
    if job.pending is not None:
        for key in job.pending:
            await stores.objects.delete(key)
        await stores.sql.batch(job.moved(stores.clock(), {}, cursor=job.cursor))
        return Slice.MORE
    if job.cursor == _END:
        return Slice.DONE
    page = await stores.objects.list(prefix or tenant_prefix(job.tenant_id), cursor=job.cursor, limit=KEYS)
    keys = page.keys
    if wanted is not None:
        found, keys = keys, []
        for key in found:
            if (content := await stores.objects.get(key)) is not None and wanted(key, content):
                keys.append(key)
    cursor = page.cursor or _END
    await stores.sql.batch(job.moved(stores.clock(), {"r2": len(keys)}, cursor=cursor, pending=keys or None))
    return Slice.MORE


async def remove_attached_objects(stores: Stores, job: ErasureJob) -> Slice:
    """Remove a page of the objects of attachments that have no row any more; wait for those that may still be arriving."""
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


async def erase_attached_objects(stores: Stores, job: ErasureJob) -> Slice:
    """Erase a page of the tenant's objects of attachments, whatever D1 knows of them."""
    return await erase_objects(stores, job, prefix=objects_prefix(job.tenant_id))
