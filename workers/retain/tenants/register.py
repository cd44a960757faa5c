"""The register of tenants. Everything else belongs to one of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from retain.errors import InvalidInput, NotFound
from retain.identifiers import TENANT, check_tenant
from retain.json_text import Json
from retain.ports import Clock, Row, Sql

_CACHE_MS = 60_000
_COLUMNS = "tenant_id, created_at_ms, max_memories_per_user"
_PAGE = f"SELECT {_COLUMNS} FROM tenants WHERE tenant_id > ?{{}} ORDER BY tenant_id LIMIT ?"
_SHOW = f"SELECT {_COLUMNS} FROM tenants WHERE tenant_id = ?"


@dataclass(frozen=True, slots=True)
class RegisteredTenant:
    """A tenant. max_memories_per_user: None without a limit."""

    tenant: str
    created_at_ms: int
    max_memories_per_user: int | None

    def to_json(self) -> dict[str, Json]:
        """Return the tenant as shown."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class TenantPage:
    """Tenants by their ids. cursor: of the next page, None on the last."""

    tenants: Sequence[RegisteredTenant]
    cursor: str | None


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
            raise _unknown(tenant_id)
        self._seen[tenant_id] = now + _CACHE_MS
        return tenant_id

    async def page(self, *, limit: int, cursor: str | None, only: Sequence[str] | None = None) -> TenantPage:
        """Return tenants by their ids. only: those of which tenants are listed; None for every tenant.

        Raises: InvalidInput (code `invalid_cursor`); Unavailable.
        """
        if cursor is not None and TENANT.fullmatch(cursor) is None:
            raise InvalidInput("the cursor is not valid", code="invalid_cursor")
        if only is None:
            rows = (await self._sql.run(_PAGE.format(""), cursor or "", limit + 1)).rows
        else:
            among = " AND tenant_id IN (SELECT value FROM json_each(?))"
            rows = (await self._sql.run(_PAGE.format(among), cursor or "", json.dumps(list(only)), limit + 1)).rows
        tenants = [_shown(row) for row in sorted(rows, key=_by_id)[:limit]]  # of several databases, each in order
        return TenantPage(tenants, tenants[-1].tenant if len(rows) > limit else None)

    async def show(self, tenant_id: str) -> RegisteredTenant:
        """Return a tenant. Raises: NotFound (code `unknown_tenant`); Unavailable."""
        rows = (await self._sql.run(_SHOW, tenant_id)).rows
        if not rows:
            raise _unknown(tenant_id)
        return _shown(rows[0])

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


def _by_id(row: Row) -> str:
    return str(row["tenant_id"])


def _shown(row: Row) -> RegisteredTenant:
    return RegisteredTenant(row["tenant_id"], row["created_at_ms"], row["max_memories_per_user"])


def _unknown(tenant_id: str) -> NotFound:
    return NotFound(
        f"there is no tenant {tenant_id}; register it with PUT /admin/tenants/{tenant_id}", code="unknown_tenant"
    )
