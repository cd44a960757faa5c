"""Every store that holds a tenant's data, and the sealer of the PII in them."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import bindings
from retain.items.rekeying.flags import namespacing
from retain.lifecycle.backups.backing_up import Backups
from retain.lifecycle.stores import OneDatabase, Stores
from retain.sealing.pii import Sealer, read_fields
from retain.tenant_tables import TENANT_TABLES

if TYPE_CHECKING:
    from assembly.root import Assembly
    from retain.lifecycle.moving.mover import Mover


class LifecycleParts:
    """Every store that holds a tenant's data. sealer: seals the PII of tiered memory. backups: backs tenants up."""

    def __init__(self, root: Assembly) -> None:
        platform, settings = root.platform, root.platform.settings
        self._shards = platform.shards
        fields = read_fields(settings.memory_pii_fields)
        self.sealer = Sealer(platform.crypto, settings.memory_key, settings.previous_memory_key, fields)
        self.stores = Stores(
            sql=platform.sql,
            kv=platform.kv,
            objects=platform.objects,
            index=platform.index,
            instances=platform.instances,
            embedder=lambda: root.models.embedder,
            clock=bindings.now_ms,
            tables=TENANT_TABLES,
            sealer=self.sealer,
            namespacing=lambda: namespacing(settings.namespaces),
            places=OneDatabase() if platform.shards is None else platform.shards.placement,
        )
        self.backups = Backups(self.stores, settings.backups_kept_days)

    @cached_property
    def mover(self) -> Mover | None:
        """What moves tenants between databases, None where there is one."""
        shards = self._shards
        if shards is None:
            return None
        from retain.lifecycle.moving.mover import Mover

        return Mover(shards, TENANT_TABLES, bindings.now_ms)
