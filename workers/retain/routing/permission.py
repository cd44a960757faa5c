"""The one place where a caller's role is compared with what a route needs: before the handler, for every route."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from retain.application_keys.scope import OwnTenant
from retain.errors import Forbidden
from retain.http import Request
from retain.roles.role import EVERY_TENANT, Authority, Role, includes
from retain.routing.route import Route


@dataclass(frozen=True, slots=True)
class Permission:
    """What a caller may do on a route. Its fields are those of `TypedRequest`."""

    role: Role | None = None
    tenants: Sequence[str] | None = ()


async def permission(route: Route[Any], request: Request, path: Mapping[str, str]) -> Permission:
    """Return what the caller may do on the route. path: the parameters, with the tenant if they name one.

    A tenant that does not exist is refused like one of others. Where the body names the tenant and has not been read, it
    is enough to hold the role for any tenant.
    Raises: Forbidden (code `role_required`; `scope_required` for an application's key, `token_not_allowed`
        for a token of its user); RateLimited, for the tenant;
        Unavailable, so that nobody is let in when D1 does not answer.
    """
    if route.guard != "Access":
        return Permission()
    if not _in_scope(route, request):
        raise Forbidden(
            f"the key lacks the scope {route.scope}: create one that has it", code="scope_required", needs=route.scope
        )
    if request.bound is not None and not (route.for_users and request.bound.reaches(path.get("agent_type"))):
        raise Forbidden("the token of a user does not allow this", code="token_not_allowed")
    needed: Role = route.needs or "owner"
    authority = request.authority
    tenant_id = path.get("tenant") if route.tenant_in in ("path", "body") else None
    if authority is None:
        raise _refused(needed, tenant_id, authority)
    if tenant_id is None and route.tenant_in in ("own", "body"):
        tenants = await authority.tenants(needed)
        if tenants is not None and not tenants:
            raise _refused(needed, None, authority)
        return Permission(tenants=tenants)
    role = await require_role(authority, needed, EVERY_TENANT if tenant_id is None else tenant_id)
    if request.rates is not None and tenant_id is not None:
        await request.rates.check_tenant(tenant_id)
    return Permission(role)


def operations_of(
    routes: Iterable[Route[Any]], request: Request, role: Role | None, everywhere: Role | None
) -> list[str]:
    """Return the names of the routes that the caller may call for a tenant, and for the deployment, in the routes' order.

    role: the caller's for the tenant; everywhere: for every tenant. Routes without Access are left out.
    """
    allowed: list[str] = []
    for route in routes:
        held = everywhere if route.tenant_in == "deployment" else role
        if route.guard != "Access" or not includes(held, route.needs or "owner") or not _in_scope(route, request):
            continue
        if request.bound is None or route.for_users:
            allowed.append(route.name)
    return allowed


def _in_scope(route: Route[Any], request: Request) -> bool:
    """Return whether the caller is not a key, or one with the scope that the route needs."""
    return request.scopes is None or bool({route.scope, "admin"} & set(request.scopes))


async def require_role(authority: Authority | None, needed: Role, tenant_id: str) -> Role | None:
    """Return the caller's role for a tenant, also for one that only the body names.

    Raises: Forbidden (code `role_required`) when it does not include the needed one; Unavailable.
    """
    role = None if authority is None else await authority.role(tenant_id)
    if not includes(role, needed):
        raise _refused(needed, tenant_id, authority)
    return role


def _refused(needed: Role, tenant_id: str | None, authority: Authority | None) -> Forbidden:
    where = {None: "a tenant", EVERY_TENANT: "every tenant"}.get(tenant_id, f"the tenant {tenant_id}")
    how = "an owner grants it, and the setting OWNERS names the first owners"
    if isinstance(authority, OwnTenant):
        how = "the key is another tenant's" if tenant_id not in (None, EVERY_TENANT) else "a key is one tenant's"
    return Forbidden(
        f"this needs the role {needed} for {where}: {how}",
        code="role_required",
        needs=needed,
        tenant=tenant_id,
    )
