"""The administrator's routes for the life cycle: export, import, reindex, verify, erase, history."""

from __future__ import annotations

import re
from dataclasses import asdict
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from retain.admin.answers.lifecycle import (
    ErasureJson,
    HistoryJson,
    MutationsJson,
    ReceiptJson,
    ReceiptsJson,
    VerificationJson,
)
from retain.admin.context import AdminContext
from retain.admin.erasing import erase_whole_tenant, erase_whole_user, require_tenant_or, shown_erasure
from retain.admin.imported_lines import import_permitted
from retain.errors import InvalidInput
from retain.http import Response, json_response
from retain.lifecycle.erasure.eraser import Erasure
from retain.lifecycle.export import export_page
from retain.lifecycle.heads import Head, verified
from retain.lifecycle.importing import Imported
from retain.lifecycle.reindexing import IndexJob, Reindexing
from retain.lifecycle.verification import verify_page
from retain.roles.role import EVERY_TENANT
from retain.routing.bodies import BodyModel, JsonBody
from retain.routing.queries import MAX_LIMIT, Cursor, Flag, PageLimit, PageQuery, QueryModel, QueryString
from retain.routing.requests import PathRequest, TextBody, TypedRequest
from retain.routing.route import Answer, ErrorGroup, Resource, Route
from retain.tenants.history import ChainVerdict
from retain.tenants.mutation_log import MutationFilter, MutationLog

_HEAD = re.compile(r"([0-9]{1,15}):([0-9a-f]{64})")
_NUMBER = re.compile(r"[0-9]{1,15}")


class EraseBody(BodyModel):
    """The body of an erasure: a subject, a user, or the whole tenant with its id as confirmation."""

    subject: str | None = None
    user: str | None = None
    match: Literal["subject", "mention"] = "subject"
    tenant: Literal[True] | None = None
    confirm: str | None = None


class ExportQuery(QueryModel):
    """Which page to export."""

    cursor: str | None = Field(default=None, description="`x-next-cursor` of the previous page")


class ImportQuery(QueryModel):
    """How to import."""

    include_erased: Flag = Field(
        default=False, description="`true`: bring back records and users that were erased in this tenant"
    )


class VerifyQuery(QueryModel):
    """Which page to verify."""

    cursor: Cursor = None
    repair: Flag = Field(default=False, description="`true`: repair the indexes")


def _number(text: str) -> int:
    if _NUMBER.fullmatch(text) is None:
        raise InvalidInput("after is the number of an entry", code="invalid_cursor")
    return int(text)


def _head(text: str) -> Head:
    found = _HEAD.fullmatch(text)
    if found is None:
        raise InvalidInput("a head is the number of an entry, a colon, and its hash", code="invalid_head")
    return Head(int(found[1]), found[2])


class HistoryQuery(QueryModel):
    """Which entries of world history to list."""

    after: Annotated[int, BeforeValidator(_number)] = Field(default=0, description="`cursor` of the previous page")
    limit: PageLimit = MAX_LIMIT


class MutationQuery(HistoryQuery):
    """Which entries of the mutation log to list."""

    kind: str | None = Field(default=None, description="only entries of this [kind](lifecycle.md#the-mutation-log)")
    thing: str | None = Field(default=None, description="with `key`: only entries about this thing, while it exists")
    key: str | None = Field(default=None, description="the thing's [key](lifecycle.md#the-mutation-log)")


class HeadQuery(QueryModel):
    """An entry that the chain must still contain, and where to continue."""

    head: Annotated[Head, BeforeValidator(_head, json_schema_input_type=str)] | None = Field(
        default=None, description="`{seq}:{hash}` of an entry that you kept"
    )
    cursor: str | None = Field(default=None, description="from the answer before: continue there")


async def export_memories(context: AdminContext, request: TypedRequest[None, ExportQuery]) -> Response:
    """Return a page of JSON lines; `x-next-cursor` has the next page's cursor, absent on the last."""
    page = await export_page(context.stores, request.tenant_id, request.query.cursor)
    following = {} if page.cursor is None else {"x-next-cursor": page.cursor}
    return Response(200, page.text, {"content-type": "application/x-ndjson", **following})


async def import_memories(context: AdminContext, request: TypedRequest[str, ImportQuery]) -> Response:
    """Import up to 500 JSON lines, all or none. Idempotent. What was erased in the tenant is left out, unless asked for."""
    return json_response(asdict(await import_permitted(context, request, include_erased=request.query.include_erased)))


async def reindex(context: AdminContext, request: PathRequest) -> Response:
    """Start rebuilding the tenant's index, or resume it: 202 until it is completed."""
    return _shown(await Reindexing(context.stores).advance(request.tenant_id))


async def show_index_job(context: AdminContext, request: PathRequest) -> Response:
    """Show the progress of a reindexing."""
    job = await Reindexing(context.stores).job(request.tenant_id, request.path["job_id"])
    return json_response(job.to_json())


async def verify(context: AdminContext, request: TypedRequest[None, VerifyQuery]) -> Response:
    """Compare a page of records with their events and indexes; `repair=true` repairs the indexes."""
    report = await verify_page(context.stores, request.tenant_id, request.query.cursor, repair=request.query.repair)
    return json_response(report.to_json())


async def erase(context: AdminContext, request: TypedRequest[EraseBody, None]) -> Response:
    """Erase a subject, a user or the whole tenant, or resume it: 202 until it is complete."""
    body, tenant_id = request.body, request.tenant_id
    if [body.subject, body.user, body.tenant].count(None) != 2:
        raise InvalidInput("name a subject, a user, or the whole tenant with tenant: true", code="invalid_body")
    if body.user is not None:
        return await erase_whole_user(context, tenant_id, body.user)
    if body.subject is None:
        return await erase_whole_tenant(context, tenant_id, body.confirm)
    await context.tenants.require(tenant_id)
    return shown_erasure(await Erasure(context.stores).erase_subject(tenant_id, body.subject, body.match))


async def list_receipts(context: AdminContext, request: TypedRequest[None, PageQuery]) -> Response:
    """List the receipts of a tenant's erasures, even of an erased one."""
    query = request.query
    found, cursor = await Erasure(context.stores).receipts(request.tenant_id, before=query.cursor, limit=query.limit)
    return json_response({"receipts": [one.to_json() for one in found], "cursor": cursor})


async def show_receipt(context: AdminContext, request: PathRequest) -> Response:
    """Show the receipt of an erasure, even for an erased tenant."""
    receipt = await Erasure(context.stores).receipt(request.tenant_id, request.path["receipt_id"])
    return json_response(receipt.to_json())


async def show_history(context: AdminContext, request: TypedRequest[None, HistoryQuery]) -> Response:
    """List the entries of the world history of a tenant, even an erased one, or of the deployment, oldest first."""
    tenant_id, query = await _owner_of_history(context, request), request.query
    rows = await context.stores.history().page(tenant_id, after=query.after, limit=query.limit)
    cursor = str(rows[-1]["seq"]) if len(rows) == query.limit else None
    return json_response({"entries": [dict(row) for row in rows], "cursor": cursor})


async def show_mutations(context: AdminContext, request: TypedRequest[None, MutationQuery]) -> Response:
    """List the entries of the mutation log of a tenant, even an erased one, or of the deployment, oldest first."""
    tenant_id, query = await _owner_of_history(context, request), request.query
    log = MutationLog(context.sql, context.stores.clock)
    only = MutationFilter(query.kind, query.thing, query.key)
    page = await log.page(tenant_id, after=query.after, limit=query.limit, only=only)
    cursor = None if page.cursor is None else str(page.cursor)
    return json_response({"entries": [dict(row) for row in page.entries], "cursor": cursor})


async def verify_history(context: AdminContext, request: TypedRequest[None, HeadQuery]) -> Response:
    """Recompute the whole chain, and compare it with the learning stream, the kept head, and the head in the query."""
    tenant_id = await _owner_of_history(context, request)
    verdict = await verified(context.stores, tenant_id, request.query.head, cursor=request.query.cursor)
    return json_response(asdict(verdict))


def _shown(job: IndexJob) -> Response:
    return json_response(job.to_json(), 200 if job.state == "completed" else 202)


async def _owner_of_history(context: AdminContext, request: TypedRequest[object, object]) -> str:
    """Return whose history is asked for: a tenant that has or had one, or `EVERY_TENANT`. Raises: as `Tenants.require`."""
    if "tenant" not in request.path:
        return EVERY_TENANT
    await require_tenant_or(context, request.tenant_id, _has_history)
    return request.tenant_id


async def _has_history(context: AdminContext, tenant_id: str) -> bool:
    return bool(await context.stores.history().page(tenant_id, after=0, limit=1))


_TENANT = "/admin/tenants/{tenant}"
_LINES = "application/x-ndjson"


def _history_routes(base: str) -> tuple[Route[AdminContext], ...]:
    """Return the routes of a tenant's history, or of the deployment's own, which is that of `EVERY_TENANT`."""
    whose, also = ("", ("unknown_tenant",)) if "{tenant}" in base else ("deployment_", ())
    return (
        Route(
            "GET",
            base,
            show_history,
            name=f"list_{whose}history",
            needs="viewer",
            query=QueryString(HistoryQuery),
            tenant="any",
            answers=(
                Answer(
                    200,
                    '`{"entries", "cursor"}`, oldest first; pass `cursor` as `after` for the next page',
                    model=HistoryJson,
                ),
            ),
            errors=("invalid_limit", "invalid_cursor", *also),
        ),
        Route(
            "GET",
            f"{base}/mutations",
            show_mutations,
            name=f"list_{whose}mutations",
            needs="viewer",
            query=QueryString(MutationQuery),
            tenant="any",
            answers=(
                Answer(
                    200,
                    '`{"entries", "cursor"}`, oldest first: [what they say](lifecycle.md#the-mutation-log). A page looks at'
                    " 5,000 entries, so with a filter it may be empty and still have a `cursor`",
                    model=MutationsJson,
                ),
            ),
            errors=("invalid_limit", "invalid_cursor", "invalid_filter", *also),
        ),
        Route(
            "GET",
            f"{base}/verify",
            verify_history,
            name=f"verify_{whose}history",
            needs="viewer",
            query=QueryString(HeadQuery),
            tenant="any",
            answers=(
                Answer(
                    200,
                    '`{"entries", "head", "problem", "broken_at", "cursor"}`:'
                    " [what they mean](lifecycle.md#world-history)."
                    " With a `cursor` the verification is not complete: pass it to the next call",
                    model=ChainVerdict,
                ),
            ),
            errors=("invalid_head", "invalid_cursor", *also),
        ),
    )


RESOURCE: Resource[AdminContext] = Resource(
    "Life cycle",
    (
        Route(
            "GET",
            f"{_TENANT}/export",
            export_memories,
            needs="owner",
            query=QueryString(ExportQuery),
            answers=(
                Answer(
                    200,
                    "[JSON lines](lifecycle.md#export-and-import); header `x-next-cursor` until the last page",
                    media_types=(_LINES,),
                ),
            ),
            errors=("invalid_cursor",),
        ),
        Route(
            "POST",
            f"{_TENANT}/import",
            import_memories,
            needs="owner",
            body=TextBody(_LINES),
            query=QueryString(ImportQuery),
            takes="[JSON lines](lifecycle.md#export-and-import), at most 500 and 1 MiB; all are imported or none",
            answers=(
                Answer(
                    200,
                    '`{"scopes", "users", "created", "changed", "unchanged", "duplicates", "events", "erased",'
                    ' "rows", "items"}`;'
                    " `erased`: lines left out, because their record or user was erased",
                    model=Imported,
                ),
            ),
            errors=(
                "invalid_line",
                "too_many_lines",
                "import_too_large",
                "content_taken",
                "row_refused",
                "role_required",
                "contended",
                ErrorGroup("those of putting an item"),
            ),
        ),
        Route(
            "POST",
            f"{_TENANT}/reindex",
            reindex,
            name="start_reindex",
            needs="operator",
            answers=(
                Answer(202, "[the job](lifecycle.md#reindex), which the next call resumes", model=IndexJob),
                Answer(200, "the job, when it is completed", model=IndexJob),
            ),
            errors=("contended", ErrorGroup("those of the embedding model")),
        ),
        Route(
            "GET",
            f"{_TENANT}/reindex/{{job_id}}",
            show_index_job,
            name="get_reindex_job",
            needs="viewer",
            answers=(Answer(200, "the job", model=IndexJob),),
            errors=("no_such_job", "invalid_id"),
        ),
        Route(
            "POST",
            f"{_TENANT}/verify",
            verify,
            name="verify_memories",
            needs="operator",
            query=QueryString(VerifyQuery),
            answers=(
                Answer(
                    200,
                    '[what drifted](lifecycle.md#verify): `{"checked", "behind", "drift", "repaired", "cursor"}`',
                    model=VerificationJson,
                ),
            ),
            errors=("invalid_cursor",),
        ),
        Route(
            "POST",
            f"{_TENANT}/erase",
            erase,
            name="erase_memories",
            needs="owner",
            body=JsonBody(EraseBody),
            tenant="any",
            takes="[an erasure](#an-erasure)",
            answers=(
                Answer(202, '`{"receipt", "salt", "retry_after_ms"}` until it is complete', model=ErasureJson),
                Answer(200, "the same, then", model=ErasureJson),
            ),
            errors=("invalid_body", "invalid_term", "invalid_user", "not_confirmed", "outbox_waits", "contended"),
        ),
        Route(
            "GET",
            f"{_TENANT}/erase",
            list_receipts,
            name="list_erasure_receipts",
            needs="viewer",
            query=QueryString(PageQuery),
            tenant="any",
            answers=(
                Answer(
                    200, '`{"receipts", "cursor"}`, the newest first, even for an erased tenant', model=ReceiptsJson
                ),
            ),
            errors=("invalid_limit", "invalid_cursor"),
        ),
        Route(
            "GET",
            f"{_TENANT}/erase/{{receipt_id}}",
            show_receipt,
            name="get_erasure_receipt",
            needs="viewer",
            tenant="any",
            answers=(Answer(200, "the receipt, even for an erased tenant", model=ReceiptJson),),
            errors=("no_such_receipt", "invalid_id"),
        ),
        *_history_routes(f"{_TENANT}/history"),
        *_history_routes("/admin/history"),
    ),
)
