"""Tiered memory: items on KV, D1 and R2, and the migration of their keys."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import bindings
from retain.items.builder import MemoryBuilder
from retain.items.client import MemoryClient
from retain.items.demotion import AgedDemotion, Demotion
from retain.items.placement import Matrix, read_placements
from retain.items.rekeying.backfill import Backfill
from retain.items.rekeying.catalogue import LayeredCatalogue
from retain.items.rekeying.flags import Namespacing, namespacing
from retain.items.rekeying.migration import Migration
from retain.items.rekeying.reads import Reads
from retain.items.rekeying.sources import AdoptingSource, LegacySource, SqlItems, WarmSource
from retain.items.rules import HotReads
from retain.items.tiers.protocols import ItemCatalogue
from retain.items.tiers.sql_warm import SqlWarm
from retain.items.tiers.stores import KvHot, ObjectsCold
from retain.ledgers.kv_audit import AuditedKv, KvOwner, noting
from retain.namespace import Namespace
from retain.ports import Kv

if TYPE_CHECKING:
    from assembly.root import Assembly


class ItemParts:
    """Tiered memory. Whatever needs the legacy patterns raises Misconfigured when they are unusable."""

    def __init__(self, root: Assembly) -> None:
        self._root = root
        self._platform = root.platform

    def client(self, namespace: Namespace, *, hot_reads: HotReads = "session") -> MemoryClient:
        """Return the tiered memory of a namespace."""
        return (
            MemoryBuilder(namespace, bindings.now_ms)
            .with_hot(KvHot(self._kv(namespace)))
            .with_warm(self._catalogue(namespace.tenant_id))
            .with_cold(ObjectsCold(self._platform.objects))
            .with_rules(read_fallback=True, promote_on_read=True, write_through=True, hot_reads=hot_reads)
            .with_placements(self._placements)
            .with_pii(self._root.lifecycle.sealer)
            .build()
        )

    def _kv(self, namespace: Namespace) -> Kv:
        owner = KvOwner(namespace.tenant_id)
        return AuditedKv(self._platform.kv, lambda: owner, bindings.now_ms, noting(self._root.write_changes))

    def demotion(self) -> Demotion:
        """Return the demotion of items, by the built-in policy."""
        cold = ObjectsCold(self._platform.objects)
        policy, now, sealer = AgedDemotion(), bindings.now_ms, self._root.lifecycle.sealer
        return Demotion(self._platform.sql, cold, self._placements, now, policy, self._namespacing, sealer)

    def migration(self) -> Migration:
        """Return the migration of keys."""
        return Migration(self._platform.sql, bindings.now_ms, self._namespacing)

    def backfill(self) -> Backfill:
        """Return the backfill, which copies legacy values to canonical keys."""
        sql, objects, sealer = self._platform.sql, self._platform.objects, self._root.lifecycle.sealer
        sources: dict[str, LegacySource] = {
            "warm": WarmSource(sql, bindings.now_ms, sealer),
            "cold": AdoptingSource(sql, objects, bindings.now_ms, self._namespacing, self._placements, sealer.fields),
        }
        return Backfill(sql, bindings.now_ms, self._namespacing, sources)

    @cached_property
    def _placements(self) -> Matrix:
        return read_placements(self._platform.settings.memory_placements)

    @cached_property
    def _namespacing(self) -> Namespacing:
        return namespacing(self._platform.settings.namespaces)

    @cached_property
    def _reads(self) -> Reads:
        return Reads(self._platform.sql, bindings.now_ms, bindings.in_background)

    def _catalogue(self, tenant_id: str) -> ItemCatalogue:
        """Return a tenant's warm tier, over legacy keys as well if the deployment has any.

        Hot copies have only canonical keys: each carries the version that this catalogue knows.
        """
        sql = self._platform.sql
        warm = SqlWarm(sql, tenant_id, bindings.now_ms)
        if not self._namespacing.patterns:
            return warm
        items = SqlItems(sql, tenant_id, bindings.now_ms, self._root.lifecycle.sealer)
        return LayeredCatalogue(warm, items, self._namespacing, self._reads, bindings.now_ms)
