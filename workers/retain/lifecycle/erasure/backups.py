"""Erasing from backups: a tenant's backups go with it; of a user or a subject their lines go.

The step comes first, and waits for a worker that has a backup or a restore of the tenant in hand. Later ones wait for the
erasure, so nothing that is erased after this step enters a backup or is restored from one.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence

from retain.json_text import read_own_json
from retain.lifecycle.backups.objects import backups_prefix, pages_prefix
from retain.lifecycle.erasure.receipts import ErasureJob
from retain.lifecycle.erasure.slices import Slice, erase_objects, union_of
from retain.lifecycle.erasure.user_rows import serving
from retain.lifecycle.stores import Stores
from retain.lifecycle.terms import Term, is_subject
from retain.lifecycle.transfer.items import opened
from retain.memory.scope import OF_USER, user_scope_id

PAGES = 10
"""Pages that one slice reads: each may have a megabyte."""
_AT_WORK = "SELECT 1 FROM backup_jobs WHERE tenant_id = ? AND lease_until_ms > ? LIMIT 1"
_INSTANCES = "SELECT agent_type, instance_id FROM ({serving})"
_OF_INSTANCES = """
SELECT r.{key} AS id FROM json_each(?3) one CROSS JOIN {table} r ON r.{key} = one.value
WHERE r.tenant_id = ?1 AND (r.agent_type, r.instance_id) IN ({serving})
"""
_PARENTS = "SELECT scope_id FROM scopes WHERE tenant_id = ? AND kind IN ('tenant', 'agent')"

Line = Mapping[str, object]
Selection = Callable[[Sequence[Line]], Awaitable[list[bool]]]
"""Returns of each line whether it is to be erased."""


async def erase_backups(stores: Stores, job: ErasureJob) -> Slice:
    """Remove a page of the objects of the tenant's backups."""
    if (await stores.sql.run(_AT_WORK, job.tenant_id, stores.clock())).rows:
        return Slice.WAIT
    return await erase_objects(stores, job, prefix=backups_prefix(job.tenant_id))


async def erase_from_backups(stores: Stores, job: ErasureJob) -> Slice:
    """Write some pages of the tenant's backups again, without the lines of the request's user or subject."""
    if (await stores.sql.run(_AT_WORK, job.tenant_id, stores.clock())).rows:
        return Slice.WAIT
    if job.cursor == 0:
        return Slice.DONE
    named = await _lines_of(stores, job)
    page = await stores.objects.list(pages_prefix(job.tenant_id), cursor=job.cursor, limit=PAGES)
    gone = 0
    for key in page.keys:
        content = await stores.objects.get(key)
        lines = [] if content is None else content.decode().split("\n")
        theirs = await named([_parsed(line) if line else {} for line in lines])
        kept = [line for line, is_theirs in zip(lines, theirs, strict=True) if not is_theirs]
        if len(kept) < len(lines):
            gone += len(lines) - len(kept)
            await stores.objects.put(key, "\n".join(kept).encode(), content_type="application/x-ndjson")
    await stores.sql.batch(job.moved(stores.clock(), {"backup_lines": gone}, cursor=page.cursor or 0))
    return Slice.MORE


async def _lines_of(stores: Stores, job: ErasureJob) -> Selection:
    """Return what tells which lines are the request's."""
    if job.receipt.kind == "user":
        return await _lines_of_user(stores, job)
    subject = str(job.request["subject"])

    async def about(line: Line) -> bool:
        if line.get("kind") == "item":
            return line.get("owner") == subject
        return any(isinstance(data, Mapping) and is_subject(data.get("subject"), subject) for data in _data(line))

    async def mentioning(line: Line) -> bool:
        return await _mentions(stores, line, Term.of(subject))

    chosen = about if job.request["match"] == "subject" else mentioning

    async def named(lines: Sequence[Line]) -> list[bool]:
        return [await chosen(line) for line in lines]

    return named


async def _lines_of_user(stores: Stores, job: ErasureJob) -> Selection:
    """Return what tells which lines are a user's: also those of nobody in an instance that has served the user since."""
    user_id, values = str(job.request["user"]), (job.tenant_id, job.request["user"])
    of_user, parents, served = await stores.sql.batch(
        [(OF_USER, values), (_PARENTS, (job.tenant_id,)), (_INSTANCES.format(serving=serving(stores.tables)), values)]
    )
    scopes = {row["scope_id"] for row in of_user.rows}
    scopes |= {user_scope_id(one, user_id) for one in ("tenant", *(row["scope_id"] for row in parents.rows))}
    instances = {(row["agent_type"], row["instance_id"]) for row in served.rows}
    owning = [table for table in stores.tables if table.instances and len(table.keys) == 1]
    query = union_of(
        [_OF_INSTANCES.format(key=table.keys[0], table=table.name, serving=serving(stores.tables)) for table in owning]
    )

    async def theirs(lines: Sequence[Line]) -> list[bool]:
        listed = json.dumps(sorted({_run_id(line) for line in lines if line.get("owner") is None}))
        runs = {row["id"] for row in (await stores.sql.run(query, *values, listed)).rows}
        return [_is_users(line, user_id, scopes) or _is_of(line, instances, runs) for line in lines]

    return theirs


def _parsed(line: str) -> Line:
    value = read_own_json(line)
    return value if isinstance(value, Mapping) else {}


def _is_users(line: Line, user_id: str, scopes: set[str]) -> bool:
    match line.get("kind"):
        case "user":
            return _field(line, "user", "id") == user_id
        case "scope":
            return _field(line, "scope", "scope_id") in scopes or _field(line, "scope", "parent_id") in scopes
        case "record":
            return any(isinstance(data, Mapping) and data.get("scope_id") in scopes for data in _data(line))
        case _:
            return line.get("owner") == user_id


def _is_of(line: Line, instances: set[tuple[object, object]], runs: set[str]) -> bool:
    """Return whether a line is nobody's, of one of the instances or runs."""
    if line.get("owner") is not None or not isinstance(line.get("row"), Mapping):
        return False
    return (_field(line, "row", "agent_type"), _field(line, "row", "instance_id")) in instances or _run_id(line) in runs


def _run_id(line: Line) -> str:
    """Return the run of a row, which the id of a decision begins with."""
    return str(_field(line, "row", "run_id") or _field(line, "row", "decision_id") or "").partition(".")[0]


async def _mentions(stores: Stores, line: Line, term: Term) -> bool:
    """Return whether the content of a line names the term, in JSON inside a column and in sealed values, too."""
    match line.get("kind"):
        case "record":
            return term.in_json([*_data(line), line.get("record")])
        case "scope" | "page":
            return False
        case "user":
            return term.in_json(line.get("user"))
        case "item":
            key, value = str(_field(line, "item", "key")), str(_field(line, "item", "value"))
            if _field(line, "item", "sealed"):
                value = await opened(stores.sealer, key, value)
            return term.in_text(f"{key} {line.get('owner') or ''}") or term.in_stored(value)
        case _:
            row = line.get("row")
            cells = row.values() if isinstance(row, Mapping) else ()
            return any(term.in_stored(cell) for cell in cells if isinstance(cell, str))


def _data(line: Line) -> list[object]:
    events = line.get("events")
    return [event.get("data") for event in events if isinstance(event, Mapping)] if isinstance(events, list) else []


def _field(line: Line, name: str, field: str) -> object:
    content = line.get(name)
    return content.get(field) if isinstance(content, Mapping) else None
