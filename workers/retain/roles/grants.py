"""Grants of roles, in D1, and what they allow a caller."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass

from retain.errors import NotFound
from retain.ports import Clock, Sql
from retain.roles.role import EVERY_TENANT, ROLES, Role, includes, strongest

FRESH_MS = 60_000
"""How long an isolate uses a grant that it has read: a revoked one is effective everywhere after that."""
MAX_TENANTS = 1_000
"""Most tenants over which a list without a tenant goes, for a caller without a role for every tenant."""
_REMEMBERED = 1_000

_HELD = "SELECT role FROM role_grants WHERE subject IN (SELECT value FROM json_each(?)) AND tenant_id IN (?, '*')"
_TENANTS = """
SELECT DISTINCT tenant_id FROM role_grants
WHERE subject IN (SELECT value FROM json_each(?)) AND role IN (SELECT value FROM json_each(?))
ORDER BY tenant_id LIMIT ?
"""
_GRANT = """
INSERT INTO role_grants (tenant_id, subject, role, granted_by, granted_at_ms) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (tenant_id, subject) DO UPDATE
SET role = excluded.role, granted_by = excluded.granted_by, granted_at_ms = excluded.granted_at_ms
WHERE role <> excluded.role
"""
_REVOKE = "DELETE FROM role_grants WHERE tenant_id = ? AND subject = ? RETURNING 1"
_ONE = "SELECT subject, role, granted_by, granted_at_ms FROM role_grants WHERE tenant_id = ? AND subject = ?"
_PAGE = """
SELECT subject, role, granted_by, granted_at_ms FROM role_grants
WHERE tenant_id = ? AND subject > ? ORDER BY subject LIMIT ?
"""


@dataclass(frozen=True, slots=True)
class RoleGrant:
    """A role that a subject holds for a tenant. granted_by: who granted it, as Access names them."""

    subject: str
    role: Role
    granted_by: str
    granted_at_ms: int

    def to_json(self) -> dict[str, object]:
        """Return the grant as HTTP answers have it."""
        return dict(zip(self.__slots__, astuple(self), strict=True))


@dataclass(frozen=True, slots=True)
class GrantPage:
    """Grants in the order of their subjects, and the cursor of the next page: None on the last."""

    grants: Sequence[RoleGrant]
    cursor: str | None


class Grants:
    """The grants of a deployment. One per isolate: it keeps what it has read for a minute."""

    def __init__(self, sql: Sql, clock: Clock) -> None:
        self._sql = sql
        self._clock = clock
        self._known: dict[tuple[tuple[str, ...], str], tuple[Role, int]] = {}

    async def role_of(self, subjects: Sequence[str], tenant_id: str) -> Role | None:
        """Return the strongest role that a caller with these subjects holds for the tenant. Raises: Unavailable."""
        caller = (tuple(subjects), tenant_id)
        now_ms = self._clock()
        known = self._known.get(caller)
        if known is not None and now_ms < known[1]:
            return known[0]
        rows = (await self._sql.run(_HELD, json.dumps(subjects), tenant_id)).rows
        role = strongest([row["role"] for row in rows])
        if len(self._known) >= _REMEMBERED:
            self._known.clear()
        if role is not None:  # a refused caller is looked up again: the next grant is then effective at once
            self._known[caller] = (role, now_ms + FRESH_MS)
        return role

    async def tenants_of(self, subjects: Sequence[str], needed: Role) -> Sequence[str] | None:
        """Return the tenants for which a caller holds at least the role, at most 1,000; None for every tenant.

        Raises: Unavailable.
        """
        enough = [role for role in ROLES if includes(role, needed)]
        rows = (await self._sql.run(_TENANTS, json.dumps(subjects), json.dumps(enough), MAX_TENANTS)).rows
        tenants = sorted({str(row["tenant_id"]) for row in rows})[:MAX_TENANTS]  # of several databases, each in order
        return None if EVERY_TENANT in tenants else tenants

    async def grant(self, tenant_id: str, subject: str, role: Role, granted_by: str) -> RoleGrant:
        """Give a subject a role for a tenant, or for `EVERY_TENANT`, instead of the one it held there. Idempotent."""
        await self._sql.run(_GRANT, tenant_id, subject, role, granted_by, self._clock())
        self._known.clear()
        rows = (await self._sql.run(_ONE, tenant_id, subject)).rows
        if not rows:
            raise NotFound("the grant was revoked meanwhile", code="no_such_grant")
        return RoleGrant(**rows[0])

    async def revoke(self, tenant_id: str, subject: str) -> None:
        """Take a subject's role away. Raises: NotFound (code `no_such_grant`)."""
        found = (await self._sql.run(_REVOKE, tenant_id, subject)).rows
        self._known.clear()
        if not found:
            raise NotFound("the subject holds no role there", code="no_such_grant")

    async def page(self, tenant_id: str, *, after: str | None, limit: int) -> GrantPage:
        """Return the grants for a tenant, or for `EVERY_TENANT`, whose subjects follow `after`."""
        rows = (await self._sql.run(_PAGE, tenant_id, after or "", limit + 1)).rows
        grants = [RoleGrant(**row) for row in rows[:limit]]
        return GrantPage(grants, grants[-1].subject if len(rows) > limit else None)


class GrantedAuthority:
    """What grants and the setting `OWNERS` allow one caller.

    owners: the subjects that are owners of every tenant without a grant.
    """

    def __init__(self, grants: Grants, subjects: Sequence[str], owners: Iterable[str]) -> None:
        self._grants = grants
        self._subjects = subjects
        self._owns_all = not set(owners).isdisjoint(subjects)

    async def role(self, tenant_id: str) -> Role | None:
        """See the protocol."""
        return "owner" if self._owns_all else await self._grants.role_of(self._subjects, tenant_id)

    async def tenants(self, needed: Role) -> Sequence[str] | None:
        """See the protocol."""
        return None if self._owns_all else await self._grants.tenants_of(self._subjects, needed)
