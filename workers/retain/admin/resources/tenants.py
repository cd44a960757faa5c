"""The administrator's routes for tenants."""

from __future__ import annotations

from pydantic import Field

from retain.admin.context import AdminContext
from retain.errors import Conflict
from retain.http import Response, json_response
from retain.memory.records.limits import END_OF_NUMBERS
from retain.routing.bodies import BodyModel, JsonBody
from retain.routing.requests import TypedRequest
from retain.routing.route import Answer, Resource, Route


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
    ),
)
