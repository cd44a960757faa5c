"""The register of tenants. Everything else belongs to one of them."""

from __future__ import annotations

from retain.errors import NotFound
from retain.identifiers import check_tenant
from retain.ports import Clock, Sql

_CACHE_MS = 60_000


class Tenants:
    """The register of tenants in D1, which caches for a minute each tenant that it has found."""

    def __init__(self, sql: Sql, clock: Clock) -> None:
        self._sql = sql
        self._clock = clock
        self._seen: dict[str, int] = {}

    async def require(self, tenant_id: str) -> str:
        """Return the tenant id when it is valid and registered.

        Raises: InvalidInput; NotFound (code `unknown_tenant`); Unavailable.
        """
        check_tenant(tenant_id)
        now = self._clock()
        if self._seen.get(tenant_id, 0) > now:
            return tenant_id
        if not (await self._sql.run("SELECT 1 FROM tenants WHERE tenant_id = ?", tenant_id)).rows:
            raise NotFound(
                f"there is no tenant {tenant_id}; register it with PUT /admin/tenants/{tenant_id}",
                code="unknown_tenant",
            )
        self._seen[tenant_id] = now + _CACHE_MS
        return tenant_id

    async def limit(self, tenant_id: str, *, max_memories_per_user: int | None) -> None:
        """Set how many memories each of the tenant's users may have; None for no limit. Existing ones stay."""
        await self._sql.run(
            "UPDATE tenants SET max_memories_per_user = ? WHERE tenant_id = ?", max_memories_per_user, tenant_id
        )

    async def max_memories_per_user(self, tenant_id: str) -> int | None:
        """Return how many memories each of the tenant's users may have; None without a limit."""
        rows = (
            await self._sql.run("SELECT max_memories_per_user AS most FROM tenants WHERE tenant_id = ?", tenant_id)
        ).rows
        return None if not rows or rows[0]["most"] is None else int(rows[0]["most"])

    def forget(self, tenant_id: str) -> None:
        """Drop an erased tenant from the cache."""
        self._seen.pop(tenant_id, None)

    async def register(self, tenant_id: str) -> bool:
        """Register a tenant; return False when it was registered already. Idempotent. Raises: InvalidInput."""
        done = await self._sql.run(
            "INSERT INTO tenants (tenant_id, created_at_ms) VALUES (?, ?) ON CONFLICT DO NOTHING RETURNING 1",
            check_tenant(tenant_id),
            self._clock(),
        )
        return bool(done.rows)
