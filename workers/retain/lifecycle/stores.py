"""Every store that has data of tenants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from retain.items.rekeying.flags import Namespacing
from retain.memory.indexer import Indexer
from retain.models.embedding import Embedder
from retain.ports import AgentInstances, Clock, Kv, Objects, Sql, VectorIndex
from retain.sealing.pii import Sealer
from retain.tenants.history import WorldHistory
from retain.tenants.tables import TenantTable


class Places(Protocol):
    """The databases that tenants live on."""

    async def place_with(self, tenant_id: str, other_id: str) -> None:
        """Let a tenant that is about to be registered live where another one lives. Idempotent."""

    async def moving(self, tenant_id: str) -> bool:
        """Return whether a move of the tenant is open: another database than its own may have rows and vectors of it."""


class OneDatabase:
    """Implements `Places` where there is one."""

    async def place_with(self, tenant_id: str, other_id: str) -> None:
        """Do nothing."""

    async def moving(self, _: str) -> bool:
        """Return False."""
        return False


@dataclass(frozen=True, slots=True)
class Stores:
    """The stores of one deployment. embedder: creates the configured model on first use.

    tables: every table with rows of tenants (`retain.tenant_tables`). sealer: opens items that contain PII, to find what
    they mention; None if there are none. namespacing: returns the legacy keys that items may have; may raise Misconfigured.
    """

    sql: Sql
    kv: Kv
    objects: Objects
    index: VectorIndex
    instances: AgentInstances
    embedder: Callable[[], Embedder]
    clock: Clock
    tables: Sequence[TenantTable]
    sealer: Sealer | None = None
    namespacing: Callable[[], Namespacing] = Namespacing
    places: Places = field(default_factory=OneDatabase)

    def history(self) -> WorldHistory:
        """Return the world history, through which a tenant's memory is changed."""
        return WorldHistory(self.sql, self.clock)

    def indexer(self) -> Indexer:
        """Return the indexer, which keeps the indexes in agreement with D1."""
        return Indexer(self.sql, self.index, self.embedder(), self.clock)
