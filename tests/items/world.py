"""The tiers on the host's adapters, whose calls can be made to fail, and clients on them."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from retain.host.clock import ManualClock
from retain.host.crypto import HostCrypto
from retain.host.kv import SqliteKv
from retain.host.objects import SqliteObjects
from retain.items.builder import MemoryBuilder
from retain.items.client import MemoryClient
from retain.items.demotion import AgedDemotion, Demotion, DemotionPolicy
from retain.items.entry import Held
from retain.items.placement import MATRIX, Matrix
from retain.items.rekeying.flags import Namespacing
from retain.items.rules import Session
from retain.items.tiers.sql_warm import SqlWarm
from retain.items.tiers.stores import KvHot, ObjectsCold
from retain.namespace import Namespace
from retain.sealing.pii import Sealer
from tests.support.databases import connection_of, migrated_d1
from tests.support.faults import Faults

KEY = base64.b64encode(b"k" * 32).decode()
OLDER_KEY = base64.b64encode(b"o" * 32).decode()
DAY_MS = 86_400_000
NAMESPACE = Namespace("shop", "acme", "s-1")
NO_PATTERNS = Namespacing()
UNHURRIED: Matrix = {
    **MATRIX,
    "preferences": replace(MATRIX["preferences"], latency_ms=None),
    "conversation": replace(MATRIX["conversation"], latency_ms=None),
}
"""The default matrix, but the cold tier answers soon enough for preferences and conversations."""


class Tiered:
    """KV, D1 and R2 on the host, with a clock that is moved by hand."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.kv = SqliteKv.open(self.clock)
        self.sql = migrated_d1()
        self.objects = SqliteObjects.open()
        self.faults = Faults(lambda _: None)

    def close(self) -> None:
        """Close every database."""
        for store in (self.kv, self.sql, self.objects):
            store.close()

    def sealer(self, key: str = KEY, previous: str = "") -> Sealer:
        """Return the sealer of PII."""
        return Sealer(HostCrypto(), key, previous)

    def builder(self, namespace: Namespace = NAMESPACE) -> MemoryBuilder:
        """Return a builder with a key and all three tiers, whose calls may fail."""
        life = self.faults.life("client")
        sql = self.faults.wrap("sql", self.sql, life)
        return (
            MemoryBuilder(namespace, self.clock)
            .with_hot(KvHot(self.faults.wrap("kv", self.kv, life)))
            .with_warm(SqlWarm(sql, namespace.tenant_id, self.clock))
            .with_cold(ObjectsCold(self.faults.wrap("objects", self.objects, life)))
            .with_pii(self.sealer())
        )

    def memory(self, *, session: Session | None = None, matrix: Matrix | None = None, **rules: Any) -> MemoryClient:
        """Return a client of all three tiers, with a new session unless one is given."""
        builder = self.builder().with_rules(**rules).with_session(session or Session())
        return (builder if matrix is None else builder.with_placements(matrix)).build()

    def demotion(
        self, policy: DemotionPolicy | None = None, matrix: Matrix = UNHURRIED, namespacing: Namespacing = NO_PATTERNS
    ) -> Demotion:
        """Return the daily demotion."""
        life = self.faults.life("cron")
        sql = self.faults.wrap("sql", self.sql, life)
        cold = ObjectsCold(self.faults.wrap("objects", self.objects, life))
        return Demotion(sql, cold, matrix, self.clock, policy or AgedDemotion(), namespacing)

    def rows(self, table: str = "memory_items") -> list[dict[str, Any]]:
        """Return a table's rows, bypassing the port."""
        cursor = connection_of(self.sql).execute(f"SELECT * FROM {table}")
        return [dict(zip([column[0] for column in cursor.description], row, strict=True)) for row in cursor]

    async def hot(self, key: str) -> str | None:
        """Return the value in KV, without its version."""
        text = await self.kv.get(key)
        return None if text is None else Held.parse(text).value

    async def cold(self) -> dict[str, str]:
        """Return every object."""
        keys = (await self.objects.list("")).keys
        return {key: (await self.objects.get(key) or b"").decode() for key in keys}


@contextmanager
def tiered() -> Iterator[Tiered]:
    """Yield new tiers, and close them at the end."""
    world = Tiered()
    try:
        yield world
    finally:
        world.close()
