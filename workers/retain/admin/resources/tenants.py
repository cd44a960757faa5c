"""The administrator's routes for tenants, and for what they may hold and spend."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from retain.admin.answers.lifecycle import ErasureJson
from retain.admin.answers.tenants import ListedTenantJson, QuotaNumbersJson, TenantJson, TenantsJson
from retain.admin.context import AdminContext
from retain.admin.erasing import erase_whole_tenant
from retain.errors import Conflict
from retain.http import Response, json_response
from retain.memory.records.limits import END_OF_NUMBERS
from retain.routing.bodies import BodyModel, JsonBody
from retain.routing.queries import PageQuery, QueryModel, QueryString
from retain.routing.requests import PathRequest, TypedRequest
from retain.routing.route import Answer, Resource, Route
from retain.shards.place import at
from retain.tenants.quotas import EVERY_TENANT, TenantQuotas, numbers_of, quotas_of, set_numbers


class TenantBody(BodyModel):
    """What a tenant may hold. An absent field stays as it is."""

    max_memories_per_user: int | None = Field(default=None, ge=0, lt=END_OF_NUMBERS)


async def register_tenant(context: AdminContext, request: TypedRequest[TenantBody, None]) -> Response:
    """Register a tenant, or set its limits. Idempotent. An erased tenant starts again, empty."""
    try:
        created = await context.tenants.register(request.tenant_id)
    except Conflict as error:
        raise Conflict("the tenant is being erased; complete the erasure first", code="tenant_being_erased") from error
    if "max_memories_per_user" in request.body.model_fields_set:
        await context.tenants.limit(request.tenant_id, max_memories_per_user=request.body.max_memories_per_user)
    most = await context.tenants.max_memories_per_user(request.tenant_id)
    return json_response({"tenant": request.tenant_id, "max_memories_per_user": most}, 201 if created else 200)


async def list_tenants(context: AdminContext, request: TypedRequest[None, PageQuery]) -> Response:
    """List the tenants of which the caller is a viewer, by their ids. A key has its own alone."""
    page = await context.tenants.page(limit=request.query.limit, cursor=request.query.cursor, only=request.tenants)
    return json_response({"tenants": [one.to_json() for one in page.tenants], "cursor": page.cursor})


async def show_tenant(context: AdminContext, request: PathRequest) -> Response:
    """Show a tenant."""
    return json_response((await context.tenants.show(request.tenant_id)).to_json())


class DeleteQuery(QueryModel):
    """The confirmation."""

    confirm: str | None = Field(default=None, description="the tenant's id again")


async def delete_tenant(context: AdminContext, request: TypedRequest[None, DeleteQuery]) -> Response:
    """Erase a tenant with everything that it has, or resume it: 202 until it is complete."""
    return await erase_whole_tenant(context, request.tenant_id, request.query.confirm)


Number = Annotated[int | None, Field(ge=0, lt=END_OF_NUMBERS)]


class QuotasBody(BodyModel):
    """The numbers to set. null takes one away; an absent one stays."""

    memories: Number = None
    runs_a_day: Number = None
    tokens_a_day: Number = None


async def show_quotas(context: AdminContext, request: PathRequest) -> Response:
    """Show what a tenant may hold and spend, and what it does."""
    return json_response((await quotas_of(context.sql, request.tenant_id, context.clock())).to_json())


async def set_quotas(context: AdminContext, request: TypedRequest[QuotasBody, None]) -> Response:
    """Set a tenant's own numbers, which replace those of every tenant. Idempotent. What it holds already stays."""
    await set_numbers(context.sql, request.tenant_id, request.body.model_dump(exclude_unset=True))
    return json_response((await quotas_of(context.sql, request.tenant_id, context.clock())).to_json())


async def show_default(context: AdminContext, _: PathRequest) -> Response:
    """Show the numbers of every tenant that has none of its own."""
    return json_response(await numbers_of(context.sql, EVERY_TENANT))


async def set_default(context: AdminContext, request: TypedRequest[QuotasBody, None]) -> Response:
    """Set the numbers of every tenant that has none of its own. Idempotent."""
    numbers = request.body.model_dump(exclude_unset=True)
    if context.shards is None:
        await set_numbers(context.sql, EVERY_TENANT, numbers)
    else:  # the triggers of each database look for them there
        for place in context.shards.each():
            with at(place):
                await set_numbers(context.sql, EVERY_TENANT, numbers)
    return json_response(await numbers_of(context.sql, EVERY_TENANT))


_TENANT_SHOWN = '`{"tenant", "created_at_ms", "max_memories_per_user"}`'
_TAKES = "`memories`, `runs_a_day`, `tokens_a_day`: numbers, or null to take one away"
_SHOWN = Answer(
    200,
    '`{"memories", "runs_a_day", "tokens_a_day"}`, each with `most` (null without a limit) and `used`',
    model=TenantQuotas,
)
_SET = Answer(200, '`{"memories", "runs_a_day", "tokens_a_day"}`, null where there is no limit', model=QuotaNumbersJson)
_TENANT = "/admin/tenants/{tenant}/quotas"
_DEPLOYMENT = "/admin/quotas"
RESOURCE: Resource[AdminContext] = Resource(
    "Tenants",
    (
        Route(
            "GET",
            "/admin/tenants",
            list_tenants,
            needs="viewer",
            tenant_in="own",
            query=QueryString(PageQuery),
            answers=(Answer(200, f'`{{"tenants", "cursor"}}`, by their ids: each {_TENANT_SHOWN}', TenantsJson),),
            errors=("invalid_limit", "invalid_cursor"),
        ),
        Route(
            "GET",
            "/admin/tenants/{tenant}",
            show_tenant,
            name="get_tenant",
            needs="viewer",
            scope="memory:read",
            answers=(Answer(200, _TENANT_SHOWN, ListedTenantJson),),
            errors=("invalid_tenant", "unknown_tenant"),
        ),
        Route(
            "PUT",
            "/admin/tenants/{tenant}",
            register_tenant,
            needs="owner",
            tenant_in="deployment",
            tenant="any",
            body=JsonBody(TenantBody, required=False),
            takes="`max_memories_per_user`: how many memories each user may have, null for no limit; or no body",
            answers=(
                Answer(201, '`{"tenant", "max_memories_per_user"}`', model=TenantJson),
                Answer(200, "the same, when it was registered", model=TenantJson),
            ),
            errors=("invalid_tenant", "tenant_being_erased"),
        ),
        Route(
            "DELETE",
            "/admin/tenants/{tenant}",
            delete_tenant,
            needs="owner",
            tenant="any",
            query=QueryString(DeleteQuery),
            answers=(
                Answer(
                    202,
                    '`{"receipt", "salt", "retry_after_ms"}` until it is complete: [an erasure](#an-erasure)',
                    ErasureJson,
                ),
                Answer(200, "the same, then", ErasureJson),
            ),
            errors=("invalid_tenant", "unknown_tenant", "not_confirmed", "outbox_waits", "contended"),
        ),
        Route("GET", _TENANT, show_quotas, name="get_quotas", needs="viewer", answers=(_SHOWN,)),
        Route(
            "PUT",
            _TENANT,
            set_quotas,
            needs="owner",
            tenant_in="deployment",
            body=JsonBody(QuotasBody),
            takes=_TAKES,
            answers=(_SHOWN,),
        ),
        Route("GET", _DEPLOYMENT, show_default, name="get_default_quotas", needs="viewer", answers=(_SET,)),
        Route(
            "PUT",
            _DEPLOYMENT,
            set_default,
            name="set_default_quotas",
            needs="owner",
            body=JsonBody(QuotasBody),
            takes=_TAKES,
            answers=(_SET,),
        ),
    ),
)
