"""The register of tenants and the grants of roles, where they are on several databases."""

from __future__ import annotations

from collections.abc import Sequence

from retain.identifiers import check_tenant
from retain.ports import Clock, Sql
from retain.roles.grants import Grants
from retain.roles.role import EVERY_TENANT, Role, strongest
from retain.shards.place import at_home, everywhere, in_tenant
from retain.shards.placement import Placement
from retain.tenants.register import RegisteredTenant, TenantPage, Tenants


class ShardedTenants(Tenants):
    """The register: each tenant's row is where the tenant is."""

    def __init__(self, sql: Sql, clock: Clock, placement: Placement) -> None:
        super().__init__(sql, clock)
        self._placement = placement

    async def require(self, tenant_id: str) -> str:
        """See the base."""
        with in_tenant(tenant_id):
            return await super().require(tenant_id)

    async def page(self, *, limit: int, cursor: str | None, only: Sequence[str] | None = None) -> TenantPage:
        """See the base."""
        with everywhere():
            return await super().page(limit=limit, cursor=cursor, only=only)

    async def show(self, tenant_id: str) -> RegisteredTenant:
        """See the base."""
        with in_tenant(tenant_id):
            return await super().show(tenant_id)

    async def limit(self, tenant_id: str, *, max_memories_per_user: int | None) -> None:
        """See the base."""
        with in_tenant(tenant_id):
            await super().limit(tenant_id, max_memories_per_user=max_memories_per_user)

    async def max_memories_per_user(self, tenant_id: str) -> int | None:
        """See the base."""
        with in_tenant(tenant_id):
            return await super().max_memories_per_user(tenant_id)

    async def register(self, tenant_id: str) -> bool:
        """See the base. A new tenant goes to the database that has the least in it."""
        check_tenant(tenant_id)
        await self._placement.place(tenant_id)
        with in_tenant(tenant_id):
            return await super().register(tenant_id)


class ShardedGrants(Grants):
    """The grants: those for a tenant are where it is, those for every tenant on the first database."""

    async def role_of(self, subjects: Sequence[str], tenant_id: str) -> Role | None:
        """See the base."""
        with at_home():
            everywhere_held = await super().role_of(subjects, EVERY_TENANT)
        if tenant_id == EVERY_TENANT:
            return everywhere_held
        with in_tenant(tenant_id):
            held = await super().role_of(subjects, tenant_id)
        return strongest([role for role in (everywhere_held, held) if role is not None])

    async def tenants_of(self, subjects: Sequence[str], needed: Role) -> Sequence[str] | None:
        """See the base."""
        with everywhere():
            return await super().tenants_of(subjects, needed)
