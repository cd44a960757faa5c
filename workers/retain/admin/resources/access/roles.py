"""The administrator's routes for roles: of one tenant, and of every tenant."""

from __future__ import annotations

from typing import Annotated

from retain.admin.answers.tenants import RolesJson
from retain.admin.context import AdminContext
from retain.http import Response, json_response
from retain.roles.grants import RoleGrant
from retain.roles.role import EVERY_TENANT, Role
from retain.roles.subjects import SUBJECT, check_subject
from retain.routing.bodies import BodyModel, JsonBody
from retain.routing.parameters import PathParameter
from retain.routing.queries import Cursor, PageQuery, QueryString, naming
from retain.routing.requests import PathRequest, TypedRequest
from retain.routing.route import Answer, Resource, Route


class RoleBody(BodyModel):
    """The role that a subject gets."""

    role: Role


class RolesQuery(PageQuery):
    """A page of roles."""

    cursor: Annotated[Cursor, naming(check_subject)] = None


async def list_roles(context: AdminContext, request: TypedRequest[None, RolesQuery]) -> Response:
    """List who holds a role: for this tenant, or for every tenant."""
    page = await context.grants.page(_place(request), after=request.query.cursor, limit=request.query.limit)
    return json_response({"roles": [grant.to_json() for grant in page.grants], "cursor": page.cursor})


async def grant_role(context: AdminContext, request: TypedRequest[RoleBody, None]) -> Response:
    """Give a subject a role, instead of the one it held there. Idempotent."""
    subject = request.path["subject"]
    grant = await context.grants.grant(_place(request), subject, request.body.role, request.http.caller)
    return json_response(grant.to_json())


async def revoke_role(context: AdminContext, request: PathRequest) -> Response:
    """Take a subject's role away. It may still work for a minute, in isolates that have read it."""
    await context.grants.revoke(_place(request), request.path["subject"])
    return Response(204, "")


def _place(request: TypedRequest[object, object]) -> str:
    return request.path.get("tenant", EVERY_TENANT)


def _routes(base: str) -> tuple[Route[AdminContext], ...]:
    subject = {"subject": PathParameter(SUBJECT.pattern, check_subject)}
    of_a_tenant = ("invalid_tenant", "unknown_tenant") if "{tenant}" in base else ()
    role = "role" if "{tenant}" in base else "deployment_role"
    return (
        Route(
            "GET",
            base,
            list_roles,
            name=f"list_{role}s",
            needs="owner",
            query=QueryString(RolesQuery),
            answers=(
                Answer(
                    200,
                    '`{"roles", "cursor"}`: each with `subject`, `role`, `granted_by`, `granted_at_ms`',
                    model=RolesJson,
                ),
            ),
            errors=("invalid_limit", "invalid_cursor", *of_a_tenant),
        ),
        Route(
            "PUT",
            f"{base}/{{subject}}",
            grant_role,
            name=f"grant_{role}",
            needs="owner",
            parameters=subject,
            body=JsonBody(RoleBody),
            takes="`role`: `viewer`, `operator` or `owner`",
            answers=(Answer(200, "the role, as in the list", model=RoleGrant),),
            errors=("invalid_role_subject", *of_a_tenant),
        ),
        Route(
            "DELETE",
            f"{base}/{{subject}}",
            revoke_role,
            name=f"revoke_{role}",
            needs="owner",
            parameters=subject,
            answers=(Answer(204),),
            errors=("invalid_role_subject", "no_such_grant", *of_a_tenant),
        ),
    )


RESOURCE: Resource[AdminContext] = Resource(
    "Roles",
    (*_routes("/admin/tenants/{tenant}/roles"), *_routes("/admin/roles")),
    about="Who may do what: see [roles](deployment.md#roles).",
)
