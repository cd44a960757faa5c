"""The administrator's routes for tenants."""

from __future__ import annotations

from retain.admin.context import AdminContext
from retain.errors import Conflict
from retain.http import Response, json_response
from retain.routing.requests import PathRequest
from retain.routing.route import Answer, Resource, Route


async def register_tenant(context: AdminContext, request: PathRequest) -> Response:
    """Register a tenant. Idempotent. An erased tenant starts again, empty."""
    try:
        created = await context.tenants.register(request.tenant_id)
    except Conflict as error:
        raise Conflict("the tenant is being erased; complete the erasure first", code="tenant_being_erased") from error
    return json_response({"tenant": request.tenant_id}, 201 if created else 200)


RESOURCE: Resource[AdminContext] = Resource(
    "Tenants",
    (
        Route(
            "PUT",
            "/admin/tenants/{tenant}",
            register_tenant,
            tenant="any",
            answers=(Answer(201, '`{"tenant"}`'), Answer(200, "the same, when it was registered")),
            errors=("invalid_tenant", "tenant_being_erased"),
        ),
    ),
)
