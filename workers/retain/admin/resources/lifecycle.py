"""The administrator's handlers for the life cycle: export, import, reindex, verify, erase, history."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict
from typing import Literal

from pydantic import BaseModel, ConfigDict

from retain.admin.context import AdminContext
from retain.admin.resources.runs import page_limit
from retain.bodies import parsed
from retain.errors import InvalidInput, NotFound
from retain.http import Request, Response, json_response
from retain.identifiers import check_tenant
from retain.lifecycle.erasure.eraser import Erasure
from retain.lifecycle.erasure.receipts import Receipts
from retain.lifecycle.export import export_page
from retain.lifecycle.heads import Head, verified
from retain.lifecycle.importing import import_lines
from retain.lifecycle.reindexing import IndexJob, Reindexing
from retain.lifecycle.verification import verify_page

_HEAD = re.compile(r"([0-9]{1,15}):([0-9a-f]{64})")
_NUMBER = re.compile(r"[0-9]{1,15}")


class EraseBody(BaseModel):
    """The body of an erasure: a subject, or the whole tenant with its id as confirmation."""

    model_config = ConfigDict(extra="forbid")

    subject: str | None = None
    match: Literal["subject", "mention"] = "subject"
    tenant: Literal[True] | None = None
    confirm: str | None = None


async def export_memories(context: AdminContext, request: Request, parameters: Mapping[str, str]) -> Response:
    """Answer a page of JSON lines; `x-next-cursor` leads to the next one and is absent at the end."""
    tenant_id = await context.tenants.require(parameters["tenant"])
    page = await export_page(context.sql, tenant_id, request.query.get("cursor"))
    following = {} if page.cursor is None else {"x-next-cursor": page.cursor}
    return Response(200, page.text, {"content-type": "application/x-ndjson", **following})


async def import_memories(context: AdminContext, request: Request, parameters: Mapping[str, str]) -> Response:
    """Import up to 500 JSON lines, all or none. Idempotent."""
    tenant_id = await context.tenants.require(parameters["tenant"])
    return json_response(asdict(await import_lines(context.stores, tenant_id, request.body)))


async def reindex(context: AdminContext, request: Request, parameters: Mapping[str, str]) -> Response:  # noqa: ARG001
    """Start rebuilding the tenant's index, or go on with it: 202 until it is completed."""
    tenant_id = await context.tenants.require(parameters["tenant"])
    return _shown(await Reindexing(context.stores).advance(tenant_id))


async def show_index_job(context: AdminContext, request: Request, parameters: Mapping[str, str]) -> Response:  # noqa: ARG001
    """Show where a rebuilding stands."""
    tenant_id = await context.tenants.require(parameters["tenant"])
    job = await Reindexing(context.stores).job(tenant_id, parameters["job_id"])
    return json_response(job.to_json())


async def verify(context: AdminContext, request: Request, parameters: Mapping[str, str]) -> Response:
    """Compare a page of records with their events and indexes; `repair=true` mends the indexes."""
    tenant_id = await context.tenants.require(parameters["tenant"])
    repair = request.query.get("repair") == "true"
    report = await verify_page(context.stores, tenant_id, request.query.get("cursor"), repair=repair)
    return json_response(report.to_json())


async def erase(context: AdminContext, request: Request, parameters: Mapping[str, str]) -> Response:
    """Erase a subject or the whole tenant, or go on with it: 202 until it is complete."""
    body = parsed(EraseBody, request)
    tenant_id = check_tenant(parameters["tenant"])
    erasure = Erasure(context.stores)
    if (body.subject is None) == (body.tenant is None):
        raise InvalidInput("name a subject, or the whole tenant with tenant: true", code="invalid_body")
    if body.subject is not None:
        await context.tenants.require(tenant_id)
        outcome = await erasure.erase_subject(tenant_id, body.subject, body.match)
    else:
        if body.confirm != tenant_id:
            raise InvalidInput("confirm the erasure of a whole tenant with its id", code="not_confirmed")
        await _require_tenant_or(context, tenant_id, _was_erased)
        outcome = await erasure.erase_tenant(tenant_id)
        context.tenants.forget(tenant_id)
    shown = {"receipt": outcome.receipt.to_json(), "salt": outcome.salt, "retry_after_ms": outcome.retry_after_ms}
    return json_response(shown, 200 if outcome.retry_after_ms is None else 202)


async def show_receipt(context: AdminContext, request: Request, parameters: Mapping[str, str]) -> Response:  # noqa: ARG001
    """Show the receipt of an erasure, also of a tenant that is erased."""
    tenant_id = check_tenant(parameters["tenant"])
    receipt = await Erasure(context.stores).receipt(tenant_id, parameters["receipt_id"])
    return json_response(receipt.to_json())


async def show_history(context: AdminContext, request: Request, parameters: Mapping[str, str]) -> Response:
    """List the entries of world history after a number, oldest first, also of a tenant that is erased."""
    tenant_id = check_tenant(parameters["tenant"])
    await _require_tenant_or(context, tenant_id, _has_history)
    after = request.query.get("after", "0")
    if _NUMBER.fullmatch(after) is None:
        raise InvalidInput("after is the number of an entry", code="invalid_cursor")
    limit = page_limit(request.query.get("limit"), 200)
    rows = await context.stores.history().page(tenant_id, after=int(after), limit=limit)
    cursor = str(rows[-1]["seq"]) if len(rows) == limit else None
    return json_response({"entries": [dict(row) for row in rows], "cursor": cursor})


async def verify_history(context: AdminContext, request: Request, parameters: Mapping[str, str]) -> Response:
    """Recompute the whole chain, and compare it with the learning stream, the kept head, and the head asked for."""
    tenant_id = check_tenant(parameters["tenant"])
    await _require_tenant_or(context, tenant_id, _has_history)
    text = request.query.get("head")
    head = None
    if text is not None:
        found = _HEAD.fullmatch(text)
        if found is None:
            raise InvalidInput("a head is the number of an entry, a colon, and its hash", code="invalid_head")
        head = Head(int(found[1]), found[2])
    return json_response(asdict(await verified(context.stores, tenant_id, head)))


def _shown(job: IndexJob) -> Response:
    return json_response(job.to_json(), 200 if job.state == "completed" else 202)


async def _require_tenant_or(
    context: AdminContext, tenant_id: str, known: Callable[[AdminContext, str], Awaitable[bool]]
) -> None:
    """Accept a tenant that is registered, or that left what is asked for. Raises: as `Tenants.require`."""
    try:
        await context.tenants.require(tenant_id)
    except NotFound:
        if not await known(context, tenant_id):
            raise


async def _was_erased(context: AdminContext, tenant_id: str) -> bool:
    return await Receipts(context.sql).last_of_tenant(tenant_id) is not None


async def _has_history(context: AdminContext, tenant_id: str) -> bool:
    return bool(await context.stores.history().page(tenant_id, after=0, limit=1))
