"""Tiered memory on the stores of a deployment on the host."""

from __future__ import annotations

from retain.items.builder import MemoryBuilder
from retain.items.client import MemoryClient
from retain.items.tiers.sql_warm import SqlWarm
from retain.items.tiers.stores import KvHot, ObjectsCold
from retain.lifecycle.stores import Stores
from retain.lifecycle.transfer.items import Items
from retain.namespace import Namespace
from retain.sealing.pii import Sealer


def items_of(stores: Stores, sealer: Sealer | None = None) -> Items:
    """Return what gives the tiered memory of a namespace."""

    def client(place: Namespace) -> MemoryClient:
        builder = MemoryBuilder(place, stores.clock).with_hot(KvHot(stores.kv)).with_cold(ObjectsCold(stores.objects))
        whole = builder.with_warm(SqlWarm(stores.sql, place.tenant_id, stores.clock))
        return (whole if sealer is None else whole.with_pii(sealer)).build()

    return client
