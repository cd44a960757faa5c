"""The stores of one deployment of items, and the isolates that work on them, as `assembly/items.py` makes them."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Collection, Coroutine, Iterator
from functools import cache
from typing import Any

from retain.host.clock import ManualClock
from retain.host.crypto import HostCrypto
from retain.host.kv import SqliteKv
from retain.host.objects import SqliteObjects
from retain.host.vectors import SqliteVectorIndex
from retain.items.builder import MemoryBuilder
from retain.items.client import MemoryClient
from retain.items.demotion import AgedDemotion, Demotion
from retain.items.placement import MATRIX
from retain.items.rekeying.backfill import Backfill
from retain.items.rekeying.catalogue import LayeredCatalogue
from retain.items.rekeying.flags import Namespacing, namespacing
from retain.items.rekeying.migration import Migration
from retain.items.rekeying.reads import Reads
from retain.items.rekeying.sources import AdoptingSource, LegacySource, SqlItems, WarmSource
from retain.items.rules import HotReads
from retain.items.tiers.sql_warm import SqlWarm
from retain.items.tiers.stores import KvHot, ObjectsCold
from retain.lifecycle.erasure.eraser import Erasure
from retain.lifecycle.stores import Stores
from retain.namespace import Namespace
from retain.ports import Kv, Objects, Sql
from retain.sealing.pii import Sealer
from retain.settings import NamespaceSettings
from retain.tenant_tables import TENANT_TABLES
from tests.support.databases import connection_of, migrated_d1
from tests.support.faults import Faults
from tests.support.instances import shipped_embedder

SERVICE = "shop"
PATTERNS = json.dumps(
    [
        {"template": "{tenantId}:{sessionId}:{memoryKind}:{entityId}", "service": SERVICE},
        {"template": "old/{tenantId}/{memoryKind}/{entityId}", "service": SERVICE, "sessionId": "s-1"},
    ]
)
MARKER = re.compile(r"<\d{5}>")
"""What every value contains, once, and no other text does, nor the base64 of a sealed one."""

_TABLES = """
SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name NOT LIKE 'memory_text%'
"""

Flags = tuple[bool, bool]


@cache
def flags_of(both: Flags) -> Namespacing:
    """Return the legacy patterns under these flags."""
    return namespacing(NamespaceSettings(*both, PATTERNS))


class ItemStores:
    """D1, KV, R2 and the vector index on the host, with a clock that is moved by hand."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.sql = migrated_d1()
        self.kv = SqliteKv.open(clock)
        self.objects = SqliteObjects.open()
        self.index = SqliteVectorIndex.open(256)

    def copy_into(self, other: ItemStores) -> None:
        """Make another one's items equal to these."""
        for name in ("sql", "kv", "objects"):
            content = connection_of(getattr(self, name)).serialize()
            connection_of(getattr(other, name)).deserialize(content)

    def close(self) -> None:
        """Close every database."""
        for store in (self.sql, self.kv, self.objects, self.index):
            store.close()

    def rows(self, sql: str, *values: str | int) -> list[dict[str, Any]]:
        """Return rows of D1, bypassing the port."""
        cursor = connection_of(self.sql).execute(sql, values)
        return [dict(zip([column[0] for column in cursor.description], row, strict=True)) for row in cursor]

    def texts(self) -> Iterator[tuple[str, str, str]]:
        """Yield the store, the key and the text of every stored value of an item, sealed ones too."""
        for row in self.rows("SELECT key, value FROM memory_items WHERE value IS NOT NULL"):
            yield "d1", row["key"], row["value"]
        now = self.clock()
        for key, value, expires_at_ms in connection_of(self.kv).execute("SELECT key, value, expires_at_ms FROM kv"):
            if expires_at_ms is None or now < expires_at_ms:
                yield "kv", key.decode(), value
        for key, value in connection_of(self.objects).execute("SELECT key, value FROM objects"):
            if not key.startswith(b"tenants/"):
                yield "r2", key.decode(), value.decode()

    async def traces(self, markers: Collection[str], sealer: Sealer) -> list[str]:
        """Return where one of the markers is, in any table, key or object, even sealed."""
        found = [f"{store} {key}" for store, key, text in self.texts() if _among(markers, key + text)]
        for (table,) in connection_of(self.sql).execute(_TABLES).fetchall():
            rows = connection_of(self.sql).execute(f'SELECT * FROM "{table}"').fetchall()
            found += [f"d1 {table}" for row in rows if _among(markers, str(row))]
        for row in self.rows("SELECT key, value FROM memory_items WHERE key_id IS NOT NULL"):
            item = flags_of((True, True)).item_of(row["key"])
            if _among(markers, await sealer.open(str(item), row["value"])):
                found.append(f"d1 {row['key']}, sealed")
        return found


def _among(markers: Collection[str], text: str) -> bool:
    return any(marker in markers for marker in MARKER.findall(text))


class Isolate:
    """One isolate: its flags, its counters, and its clients, whose sessions live as long as it does."""

    def __init__(self, stores: ItemStores, both: Flags, sealer: Sealer, faults: Faults | None = None) -> None:
        life = None if faults is None else faults.life("isolate")

        def seen(name: str, port: Any) -> Any:
            return port if faults is None or life is None else faults.wrap(name, port, life)

        self.both = both
        self.flags = flags_of(both)
        self.sql: Sql = seen("sql", stores.sql)
        self.kv: Kv = seen("kv", stores.kv)
        self.objects: Objects = seen("objects", stores.objects)
        self.reads = Reads(self.sql, stores.clock, self._later)
        self.later: list[Coroutine[Any, Any, None]] = []
        self._stores = stores
        self._clock = stores.clock
        self._sealer = sealer
        self._sessions: dict[Namespace, MemoryClient] = {}

    def _later(self, work: Coroutine[Any, Any, None]) -> None:
        self.later.append(work)

    def client(self, namespace: Namespace, hot_reads: HotReads = "checked") -> MemoryClient:
        """Return a client: a new one with checked reads, or the one of this isolate's session."""
        if hot_reads == "session" and namespace in self._sessions:
            return self._sessions[namespace]
        tenant = namespace.tenant_id
        items = SqlItems(self.sql, tenant, self._clock, self._sealer)
        warm = LayeredCatalogue(SqlWarm(self.sql, tenant, self._clock), items, self.flags, self.reads, self._clock)
        builder = MemoryBuilder(namespace, self._clock).with_hot(KvHot(self.kv)).with_warm(warm)
        builder = builder.with_cold(ObjectsCold(self.objects)).with_pii(self._sealer)
        client = builder.with_rules(write_through=True, hot_reads=hot_reads).build()
        if hot_reads == "session":
            self._sessions[namespace] = client
        return client

    def demotion(self) -> Demotion:
        """Return the daily work on items."""
        cold = ObjectsCold(self.objects)
        return Demotion(self.sql, cold, MATRIX, self._clock, AgedDemotion(), self.flags, self._sealer)

    def migration(self) -> Migration:
        """Return the migration of keys."""
        return Migration(self.sql, self._clock, self.flags)

    def backfill(self) -> Backfill:
        """Return the backfill."""
        sources: dict[str, LegacySource] = {
            "warm": WarmSource(self.sql, self._clock, self._sealer),
            "cold": AdoptingSource(self.sql, self.objects, self._clock, self.flags),
        }
        return Backfill(self.sql, self._clock, self.flags, sources)

    def erasure(self) -> Erasure:
        """Return the eraser of every store."""
        return Erasure(self.lifecycle())

    def lifecycle(self) -> Stores:
        """Return the stores as erasure and export see them."""
        return Stores(
            sql=self.sql,
            kv=self.kv,
            objects=self.objects,
            index=self._stores.index,
            instances=_NoInstances(),
            embedder=shipped_embedder,
            clock=self._clock,
            tables=TENANT_TABLES,
            sealer=self._sealer,
            namespacing=lambda: self.flags,
        )


class _NoInstances:
    async def call(self, name: str, method: str, request: Any) -> Any:
        raise AssertionError(f"no agent runs here, and {name} is called")


def sealer_of(number: int, previous: int | None = None) -> Sealer:
    """Return the sealer with the deployment's n-th key, and perhaps an older one."""
    return Sealer(HostCrypto(), _key(number), "" if previous is None else _key(previous))


def _key(number: int) -> str:
    return base64.b64encode(bytes([number % 256]) * 32).decode()
