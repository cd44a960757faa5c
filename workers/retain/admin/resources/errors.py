"""The administrator's routes for the error ledger."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict

from pydantic import Field

from retain.admin.answers.runs import DebtsJson, ErrorsJson, ReplayJson, ShownErrorJson
from retain.admin.context import AdminContext
from retain.http import Response, json_response
from retain.identifiers import check_tenant
from retain.ledgers.debts import debts_of
from retain.ledgers.errors import (
    ERROR_ID,
    FIND,
    ErrorState,
    ParkedError,
    Stage,
    check_error_id,
    dismiss,
    find_error,
    list_errors,
)
from retain.ledgers.put_aside import dropping, put_aside_for
from retain.routing.parameters import PathParameter
from retain.routing.queries import AgentType, PageQuery, QueryString
from retain.routing.requests import PathRequest, TypedRequest
from retain.routing.route import Answer, Resource, Route
from retain.shards.place import at, at_home, everywhere, in_tenant


class ErrorsQuery(PageQuery):
    """Which errors to list."""

    tenant: str | None = Field(default=None, max_length=40, description="only this tenant's")
    stage: Stage | None = Field(default=None, description="only this stage's")
    state: ErrorState | None = Field(default=None, description="only those in this state")
    code: str | None = Field(default=None, max_length=100, description="only those with this code")
    agent_type: AgentType | None = Field(default=None, description="only this agent's")


async def get_errors(context: AdminContext, request: TypedRequest[None, ErrorsQuery]) -> Response:
    """List what went wrong and was parked, the last to go wrong first."""
    query = request.query
    page = await list_errors(
        context.sql,
        tenants=request.tenants,
        tenant_id=None if query.tenant is None else check_tenant(query.tenant),
        stage=query.stage,
        state=query.state,
        code=query.code,
        agent_type=query.agent_type,
        limit=query.limit,
        cursor=query.cursor,
    )
    return json_response({"errors": [entry.to_json() for entry in page.entries], "cursor": page.cursor})


async def get_error(context: AdminContext, request: PathRequest) -> Response:
    """Show one error of the ledger, and what it owes D1 if it is a write of an instance."""
    error = await find_error(context.sql, request.path["error_id"], request.tenants)
    put_aside = await put_aside_for(context.sql, error)
    return json_response({**error.to_json(), "owed": None if put_aside is None else put_aside.to_json()})


async def replay_error(context: AdminContext, request: PathRequest) -> Response:
    """Do the work of a parked error again, by the part that owns it. Idempotent."""
    with everywhere():
        found = await find_error(context.sql, request.path["error_id"], request.tenants)
    for place in await _places_of(context, found):
        with place:
            replay = await context.replaying().replay(found.error_id, request.http.caller)
        if replay.error.state == "parked":
            break
    return json_response(replay.to_json())


async def dismiss_error(context: AdminContext, request: PathRequest) -> Response:
    """Note that nothing is to be done about a parked error, and drop the write that it owes. Idempotent."""
    error_id = request.path["error_id"]
    with everywhere():
        error = await find_error(context.sql, error_id, request.tenants)
    for place in await _places_of(context, error):
        with place:
            await dismiss(context.sql, context.clock(), error_id, request.http.caller, dropping(error))
            error = await find_error(context.sql, error_id)
    return json_response(error.to_json())


async def _places_of(context: AdminContext, error: ParkedError) -> Sequence[AbstractContextManager[None]]:
    """Return where an error is to be dealt with, at least one place: where its tenant is, or where the work failed.

    The work of the deployment is done on each database, and is one error, by its id, on all on which it failed.
    """
    if error.tenant_id or context.shards is None:
        return [in_tenant(error.tenant_id)]
    known: dict[bool, list[AbstractContextManager[None]]] = {True: [], False: []}
    for place in context.shards.each():
        for row in (await context.shards.databases[place.shard].run(FIND, error.error_id)).rows:
            known[row["state"] == "parked"].append(at(place))
    return known[True] or known[False][:1] or [at_home()]


async def list_debts(context: AdminContext, request: PathRequest) -> Response:
    """Show what is still to be done for a tenant, and is retried without anybody's help."""
    return json_response({"debts": [asdict(debt) for debt in await debts_of(context.sql, request.tenant_id)]})


_ERRORS = "/admin/errors"
_ID = {"error_id": PathParameter(ERROR_ID.pattern, check_error_id)}
RESOURCE: Resource[AdminContext] = Resource(
    "Errors",
    (
        Route(
            "GET",
            _ERRORS,
            get_errors,
            name="list_errors",
            needs="viewer",
            tenant_in="own",
            query=QueryString(ErrorsQuery),
            answers=(Answer(200, '`{"errors", "cursor"}`, the last to go wrong first', model=ErrorsJson),),
            errors=("invalid_tenant", "invalid_agent_type", "invalid_limit", "invalid_cursor"),
        ),
        Route(
            "GET",
            f"{_ERRORS}/{{error_id}}",
            get_error,
            needs="viewer",
            tenant_in="own",
            parameters=_ID,
            answers=(
                Answer(
                    200,
                    "the error; `owed`: null, or of the stage `outbox` `{statement, code, bytes, failed_at_ms}`",
                    model=ShownErrorJson,
                ),
            ),
            errors=("no_such_error", "invalid_error_id"),
        ),
        Route(
            "POST",
            f"{_ERRORS}/{{error_id}}/replay",
            replay_error,
            needs="operator",
            tenant_in="own",
            parameters=_ID,
            answers=(
                Answer(
                    200,
                    '`{"error", "outcome"}`: the error, `replayed` if the work succeeded and `parked` if not; and what was'
                    " reported by the part that owns the work, or the code and the message of its failure; null for an error"
                    " that was not parked",
                    model=ReplayJson,
                ),
            ),
            errors=("no_such_error", "invalid_error_id", "not_replayable"),
        ),
        Route(
            "POST",
            f"{_ERRORS}/{{error_id}}/dismiss",
            dismiss_error,
            needs="operator",
            tenant_in="own",
            parameters=_ID,
            answers=(Answer(200, "the error; one that was not parked is unchanged", model=ParkedError),),
            errors=("no_such_error", "invalid_error_id"),
        ),
        Route(
            "GET",
            "/admin/tenants/{tenant}/debts",
            list_debts,
            needs="viewer",
            answers=(
                Answer(
                    200,
                    '`{"debts"}`: of each `kind` the `count`, 10,000 at most, and `oldest_at_ms`, null without any.'
                    " `vectors`: memories that the index is owed; `deliveries`: messages to webhooks; open `ingests`,"
                    " `erasures`, `reindexing`, `backups`, `restores` and `evaluations`; `ingests` and `evaluations` are"
                    " those among the tenant's newest 10,000",
                    model=DebtsJson,
                ),
            ),
        ),
    ),
    about="What Retain gave up, and what can be done about it: see [the error ledger](lifecycle.md#the-error-ledger).",
)
