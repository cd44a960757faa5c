"""Items of a tenant that are still under legacy keys, in a world of the lifecycle's tests."""

from __future__ import annotations

import json
from dataclasses import replace

from retain.host.crypto import HostCrypto
from retain.items.builder import MemoryBuilder
from retain.items.client import MemoryClient
from retain.items.rekeying.backfill import Backfill
from retain.items.rekeying.catalogue import LayeredCatalogue
from retain.items.rekeying.compatible import ReadOutcome
from retain.items.rekeying.flags import Namespacing, namespacing
from retain.items.rekeying.migration import Migration
from retain.items.rekeying.reads import SETTLE_MS
from retain.items.rekeying.sources import AdoptingSource, LegacySource, SqlItems, WarmSource
from retain.items.tiers.sql_warm import SqlWarm
from retain.items.tiers.stores import KvHot, ObjectsCold
from retain.lifecycle.erasure.eraser import Erasure, Outcome
from retain.lifecycle.stores import Stores
from retain.namespace import Namespace
from retain.sealing.pii import Sealer
from retain.settings import NamespaceSettings
from tests.items.world import KEY
from tests.lifecycle.world import World

ANN = "ann@shop.example"
SEALER = Sealer(HostCrypto(), KEY)
PATTERNS = json.dumps(
    [
        {"template": "{tenantId}:{sessionId}:{memoryKind}:{entityId}", "service": "shop"},
        {"template": "old/{tenantId}/{memoryKind}/{entityId}", "service": "shop", "sessionId": "s-1"},
    ]
)
PHASES = ((False, False), (False, True), (True, True), (True, False))
"""Both flags in every phase of the migration, from before it to its completion."""


def flags(write_canonical: bool, compat_read: bool) -> Namespacing:
    """Return the patterns under these flags."""
    return namespacing(NamespaceSettings(write_canonical, compat_read, PATTERNS))


def memory(world: World, both: tuple[bool, bool], tenant: str = "acme") -> MemoryClient:
    """Return a client as an isolate with these flags makes it, after the wait of phase 2."""
    warm, items = SqlWarm(world.sql, tenant, world.clock), SqlItems(world.sql, tenant, world.clock, SEALER)
    layered = LayeredCatalogue(warm, items, flags(*both), Permitting(), world.clock)
    builder = MemoryBuilder(Namespace("shop", tenant, "s-1"), world.clock).with_hot(KvHot(world.kv)).with_pii(SEALER)
    return builder.with_warm(layered).with_cold(ObjectsCold(world.objects_store)).with_rules(write_through=True).build()


async def backfilled(world: World) -> dict[str, int]:
    """Copy every legacy value, as phase 2 does; return how many of each tier were refused."""
    stands = (await Migration(world.sql, world.clock, flags(False, True)).standing()).phase
    for phase, both in ((1, (False, True)), (2, (True, True))):
        if stands < phase:
            await Migration(world.sql, world.clock, flags(*both)).advance(phase)
    world.clock.advance(SETTLE_MS)
    sources: dict[str, LegacySource] = {
        "warm": WarmSource(world.sql, world.clock, SEALER),
        "cold": AdoptingSource(world.sql, world.objects_store, world.clock, flags(True, True)),
    }
    backfill = Backfill(world.sql, world.clock, flags(True, True), sources)
    await backfill.again()
    while not await backfill.step():
        pass
    rows = world.sql_now("SELECT tier, SUM(refused) AS refused FROM namespace_backfill GROUP BY tier")
    return {row["tier"]: row["refused"] for row in rows}


def stores(world: World) -> Stores:
    """Return every store, with the legacy patterns."""
    return replace(world.stores(), sealer=SEALER, namespacing=lambda: flags(True, True))


async def erased(world: World, match: str) -> Outcome:
    """Erase Ann (by `subject`, `mention` or `user`) or the `tenant`, to completion."""
    erasure = Erasure(stores(world))
    if match == "tenant":
        return await world.completed(lambda: erasure.erase_tenant("acme"))
    if match == "user":
        return await world.completed(lambda: erasure.erase_user("acme", ANN))
    return await world.completed(lambda: erasure.erase_subject("acme", ANN, match))  # type: ignore[arg-type]


class Permitting:
    """Counts nothing, and lets every legacy value be copied."""

    def found(self, tier: str, where: ReadOutcome) -> None:
        pass

    def repaired(self, tier: str, done: bool) -> None:
        pass

    def probes(self, tier: str) -> bool:
        return False

    async def may_repair(self) -> bool:
        return True
