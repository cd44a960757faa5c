"""The route that says what the caller may do: pages leave out what would be refused."""

from __future__ import annotations

from retain.admin.answers.tenants import OwnAccessJson
from retain.admin.context import AdminContext
from retain.http import Response, json_response
from retain.roles.role import EVERY_TENANT
from retain.routing.permission import operations_of
from retain.routing.requests import PathRequest
from retain.routing.route import Answer, Resource, Route


async def show_own_access(context: AdminContext, request: PathRequest) -> Response:
    """Show what the caller may do in a tenant, and in the deployment."""
    http, authority = request.http, request.http.authority
    everywhere = None if authority is None else await authority.role(EVERY_TENANT)
    operations = operations_of(context.routes(), http, request.role, everywhere)
    return json_response(
        {"name": http.caller, "role": request.role, "everywhere": everywhere, "operations": operations}
    )


RESOURCE: Resource[AdminContext] = Resource(
    "Access",
    (
        Route(
            "GET",
            "/admin/tenants/{tenant}/access",
            show_own_access,
            name="get_own_access",
            needs="viewer",
            answers=(
                Answer(
                    200,
                    '`{"name", "role", "everywhere", "operations"}`: who asks, as history names them; the role for the'
                    " tenant, and the one for every tenant, or null; and the operations that these allow, by their names",
                    model=OwnAccessJson,
                ),
            ),
        ),
    ),
    about="What the caller may do themselves: see [roles](deployment.md#roles).",
)
