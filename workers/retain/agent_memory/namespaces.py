"""Namespaces: the tenants whose ids the interface can name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from retain.agent_memory.memories import timestamp
from retain.agent_memory.names import check_namespace
from retain.errors import Conflict, NotFound
from retain.lifecycle.erasure.eraser import SLICES_TO_COMPLETE, Erasure
from retain.lifecycle.stores import Stores
from retain.ports import Row, Sql
from retain.shards.place import in_tenant
from retain.tenants.register import Tenants

Direction = Literal["asc", "desc"]
_NAMED = "length(tenant_id) <= 32 AND tenant_id GLOB '*[a-z0-9]'"
_ONE = f"SELECT tenant_id, created_at_ms FROM tenants WHERE tenant_id = ? AND {_NAMED}"
_PAGE = """
SELECT tenant_id, created_at_ms FROM tenants WHERE {named} AND tenant_id {beyond} ?1
  AND (?2 IS NULL OR tenant_id IN (SELECT value FROM json_each(?2))) ORDER BY tenant_id {direction} LIMIT ?3
"""
_PAGES = {
    "asc": _PAGE.format(named=_NAMED, beyond=">", direction="ASC"),
    "desc": _PAGE.format(named=_NAMED, beyond="<", direction="DESC"),
}
_FIRST = {"asc": "", "desc": "~"}
"""What sorts before every name, in each direction."""


@dataclass(frozen=True, slots=True)
class Namespaces:
    """The namespaces of a deployment."""

    sql: Sql
    tenants: Tenants
    stores: Stores

    async def create(self, name: str) -> Row:
        """Register a tenant and return it. Raises: Conflict (code `namespace_exists`), also while it is erased."""
        try:
            created = await self.tenants.register(check_namespace(name))
        except Conflict as error:
            raise _taken("the namespace is being deleted; its name is free after that") from error
        if not created:
            raise _taken("the namespace's name is taken")
        with in_tenant(name):
            return await self.get(name)

    async def get(self, name: str) -> Row:
        """Return a namespace. Raises: NotFound (code `unknown_tenant`)."""
        rows = (await self.sql.run(_ONE, name)).rows
        if not rows:
            raise NotFound("there is no such namespace", code="unknown_tenant")
        return rows[0]

    async def page(
        self, direction: Direction, *, after: str | None, limit: int, only: str | None
    ) -> tuple[Sequence[Row], str | None]:
        """Return namespaces by name, and the next page's cursor. only: a JSON list of the tenants to choose from."""
        found = (await self.sql.run(_PAGES[direction], after or _FIRST[direction], only, limit + 1)).rows
        rows = sorted(found, key=_by_name, reverse=direction == "desc")  # of several databases, each in order
        return rows[:limit], str(rows[limit - 1]["tenant_id"]) if len(rows) > limit else None

    async def delete(self, name: str) -> bool:
        """Erase the tenant, or continue to; return whether it is complete. It is not served from now on."""
        await self.tenants.require(name)
        outcome = await Erasure(self.stores, slices=SLICES_TO_COMPLETE).erase_tenant(name)
        self.tenants.forget(name)
        return outcome.retry_after_ms is None


def _by_name(row: Row) -> str:
    return str(row["tenant_id"])


def namespace_json(row: Row, account: str) -> dict[str, object]:
    """Return a namespace as the interface shows it. Its id is its name: a tenant has no other."""
    created = timestamp(int(row["created_at_ms"]))
    name = str(row["tenant_id"])
    return {"id": name, "name": name, "account_id": account, "created_at": created, "updated_at": created}


def _taken(message: str) -> Conflict:
    return Conflict(message, code="namespace_exists")
