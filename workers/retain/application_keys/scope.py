"""What a key allows: its scopes, and the authority of its bearer over its own tenant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

from retain.roles.role import Role

KeyScope = Literal["runs", "memory:read", "memory:write", "users:erase", "admin"]
"""runs: run agents, follow, answer and cancel runs, and read conversations. memory:read: recall, list and read what the
tenant remembers. memory:write: store, ingest, edit and delete it. users:erase: erase a user with everything that is kept
of them. admin: everything that an owner of the tenant may do."""
KEY_SCOPES: tuple[KeyScope, ...] = get_args(KeyScope)


class OwnTenant:
    """The authority of a key: an owner of its tenant, and nobody elsewhere. Its scopes say what it may do there."""

    def __init__(self, tenant_id: str) -> None:
        self._tenant_id = tenant_id

    async def role(self, tenant_id: str) -> Role | None:
        """See `Authority`."""
        return "owner" if tenant_id == self._tenant_id else None

    async def tenants(self, needed: Role) -> Sequence[str] | None:  # noqa: ARG002 -- an owner's include each
        """See `Authority`."""
        return [self._tenant_id]
