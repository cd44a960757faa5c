"""A deployment on the host: D1, R2, the layered warm and cold tier of its tenants, and the migration's commands."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from retain.host.clock import ManualClock
from retain.host.objects import SqliteObjects
from retain.items.rekeying.backfill import Backfill
from retain.items.rekeying.catalogue import LayeredCatalogue
from retain.items.rekeying.flags import Namespacing, namespacing
from retain.items.rekeying.layers import LayeredCold
from retain.items.rekeying.migration import Migration
from retain.items.rekeying.reads import FLUSH_MS, SETTLE_MS, Reads
from retain.items.rekeying.sources import ColdSource, LegacySource, SqlItems, WarmSource
from retain.items.tiers.sql_warm import SqlWarm
from retain.items.tiers.stores import ObjectsCold
from retain.ports import Objects, Sql
from retain.settings import NamespaceSettings
from tests.items.rekeying.stores import PATTERNS
from tests.support.databases import migrated_d1


class Isolate:
    """One isolate: its flags and its counters. sql, objects: as it sees them."""

    def __init__(self, deployment: Deployment, flags: Namespacing, sql: Sql, objects: Objects) -> None:
        self._deployment = deployment
        self.flags = flags
        self.sql = sql
        self.objects = objects
        self.reads = Reads(sql, deployment.clock, deployment.background)

    def warm(self, tenant_id: str = "acme") -> LayeredCatalogue:
        clock = self._deployment.clock
        inner, items = SqlWarm(self.sql, tenant_id, clock), SqlItems(self.sql, tenant_id, clock)
        return LayeredCatalogue(inner, items, self.flags, self.reads, clock)

    def cold(self) -> LayeredCold:
        return LayeredCold(ObjectsCold(self.objects), self.flags, self.reads, ColdSource(self.objects).add)

    def migration(self) -> Migration:
        return Migration(self.sql, self._deployment.clock, self.flags)

    def backfill(self) -> Backfill:
        sources: dict[str, LegacySource] = {
            "warm": WarmSource(self.sql, self._deployment.clock),
            "cold": ColdSource(self.objects),
        }
        return Backfill(self.sql, self._deployment.clock, self.flags, sources)


class Deployment:
    """The stores and the clock of a deployment."""

    def __init__(self) -> None:
        self.clock = ManualClock(1_700_000_000_000)
        self.sql = migrated_d1()
        self.objects = SqliteObjects.open()
        self.tasks: list[asyncio.Task[None]] = []

    def background(self, work: Coroutine[Any, Any, None]) -> None:
        self.tasks.append(asyncio.ensure_future(work))

    async def settled(self) -> None:
        """Wait for the work in the background."""
        tasks, self.tasks = self.tasks, []
        await asyncio.gather(*tasks)

    def isolate(self, write_canonical: bool, compat_read: bool, **seen: Any) -> Isolate:
        """Return an isolate with these flags. sql, objects: the stores as it sees them."""
        flags = namespacing(NamespaceSettings(write_canonical, compat_read, PATTERNS))
        return Isolate(self, flags, seen.get("sql", self.sql), seen.get("objects", self.objects))

    def close(self) -> None:
        """Close the stores."""
        self.sql.close()
        self.objects.close()

    async def rows(self, sql: str, *values: str | int) -> list[dict[str, Any]]:
        """Return rows of D1."""
        return [dict(row) for row in (await self.sql.run(sql, *values)).rows]

    async def to_phase_2(self) -> Isolate:
        """Advance to phase 2 and let it settle; return an isolate in that phase."""
        await self.isolate(False, True).migration().advance(1)
        later = self.isolate(True, True)
        await later.migration().advance(2)
        self.clock.advance(SETTLE_MS)
        return later

    async def backfilled(self, isolate: Isolate) -> int:
        """Run the backfill to completion; return the number of steps."""
        steps = 1
        while not await isolate.backfill().step():
            steps += 1
        return steps

    async def stable_cycle(self, isolate: Isolate, name: str, reads: int = 120) -> None:
        """Let items be found under their canonical keys, and record a release."""
        from retain.items.rekeying.compatible import ReadOutcome

        for _ in range(reads):
            isolate.reads.found("warm", ReadOutcome.CANONICAL)
        await isolate.reads.flush()
        self.clock.advance(FLUSH_MS)
        await isolate.migration().release(name)
