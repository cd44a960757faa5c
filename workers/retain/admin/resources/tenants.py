"""The administrator's routes for tenants, and for what they may hold and spend."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from retain.admin.context import AdminContext
from retain.errors import Conflict
from retain.http import Response, json_response
from retain.memory.records.limits import END_OF_NUMBERS
from retain.routing.bodies import BodyModel, JsonBody
from retain.routing.requests import PathRequest, TypedRequest
from retain.routing.route import Answer, Resource, Route
from retain.tenants.quotas import EVERY_TENANT, numbers_of, quotas_of, set_numbers


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
    await set_numbers(context.sql, EVERY_TENANT, request.body.model_dump(exclude_unset=True))
    return json_response(await numbers_of(context.sql, EVERY_TENANT))


_TAKES = "`memories`, `runs_a_day`, `tokens_a_day`: numbers, or null to take one away"
_SHOWN = Answer(200, '`{"memories", "runs_a_day", "tokens_a_day"}`, each with `most` (null without a limit) and `used`')
_SET = Answer(200, '`{"memories", "runs_a_day", "tokens_a_day"}`, null where there is no limit')
_TENANT = "/admin/tenants/{tenant}/quotas"
_DEPLOYMENT = "/admin/quotas"
RESOURCE: Resource[AdminContext] = Resource(
    "Tenants",
    (
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
                Answer(201, '`{"tenant", "max_memories_per_user"}`'),
                Answer(200, "the same, when it was registered"),
            ),
            errors=("invalid_tenant", "tenant_being_erased"),
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
