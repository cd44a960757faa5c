"""Roles, and what a request carries of its caller's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol, get_args

Role = Literal["viewer", "operator", "owner"]
"""What a caller may do. viewer: read. operator: also run agents and change memory. owner: also export, import, erase, and
grant roles."""
ROLES: tuple[Role, ...] = get_args(Role)
"""Every role, the weakest first. Each includes those before it."""
EVERY_TENANT = "*"
"""Where a tenant is named: the role is for every tenant, and for what belongs to the deployment."""


def includes(held: Role | None, needed: Role) -> bool:
    """Return whether a role includes another one; None, for no role, includes none."""
    return held is not None and ROLES.index(held) >= ROLES.index(needed)


def strongest(held: Sequence[Role]) -> Role | None:
    """Return the role that includes the others, or None without any."""
    return max(held, key=ROLES.index, default=None)


class Authority(Protocol):
    """What one caller may do."""

    async def role(self, tenant_id: str) -> Role | None:
        """Return the caller's role for a tenant, or for `EVERY_TENANT`; None for no role. Raises: Unavailable."""
        ...

    async def tenants(self, needed: Role) -> Sequence[str] | None:
        """Return the tenants for which the caller holds at least this role; None for every tenant. Raises: Unavailable."""
        ...


class OwnerOfAll:
    """The authority of an owner of every tenant."""

    async def role(self, tenant_id: str) -> Role | None:  # noqa: ARG002 -- the same for each
        """Return `owner`."""
        return "owner"

    async def tenants(self, needed: Role) -> Sequence[str] | None:  # noqa: ARG002 -- the same for each
        """Return None: every tenant."""
        return None
