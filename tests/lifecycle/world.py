"""A deployment on the host whose every store can be inspected, copied, and made to fail."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, cast

from retain.agents.catalogue import AgentCatalogue
from retain.agents.definitions import AgentDefinition
from retain.agents.identity import identity_of
from retain.agents.methods import METHODS
from retain.errors import RetainError
from retain.lifecycle.erasure.eraser import Outcome
from retain.lifecycle.stores import Stores
from retain.lifecycle.verification import verify_page
from retain.memory.records.record import NewRecord, RecordSource
from retain.memory.scope import Scope
from retain.memory.semantic import Hit, RecallQuery, SemanticMemory, StoreResult
from retain.models.chat import ChatModel
from retain.models.embedding import Embedder
from retain.ports import Row
from retain.rpc import answer, refusal
from retain.sealing.pii import Sealer
from retain.tenant_tables import TENANT_TABLES
from tests.support.databases import connection_of
from tests.support.instances import Deployment, LocalInstances, shipped_embedder
from tests.support.object_storage import ObjectStorage

PERSON = RecordSource("person")
AGENT = RecordSource("agent")
MINUTE_MS = 60_000

Snapshot = dict[str, bytes]


class World(Deployment):
    """Agents on the host, an object store, and all stores as the lifecycle sees them."""

    def __init__(
        self, agents: AgentCatalogue | None = None, chat: Callable[[AgentDefinition], ChatModel] | None = None
    ) -> None:
        super().__init__(agents, chat=chat)
        self.embedder: Embedder = shipped_embedder()

    def stores(self) -> Stores:
        """Return every store; each call of a store may fail."""
        life = self.faults.life("lifecycle")
        wrap = self.faults.wrap
        return Stores(
            sql=wrap("sql", self.sql, life),
            kv=wrap("kv", self.kv, life),
            objects=wrap("objects", self.objects_store, life),
            index=wrap("index", self.index, life),
            instances=wrap("instances", LocalInstances(self), life),
            embedder=lambda: self.embedder,
            clock=self.clock,
            tables=TENANT_TABLES,
        )

    def stores_with(self, sealer: Sealer) -> Stores:
        """Return every store, with what opens sealed items."""
        return replace(self.stores(), sealer=sealer)

    def memory(self, tenant: str = "acme", agent_type: str | None = None, **more: Any) -> SemanticMemory:
        """Return the semantic memory of a scope, without injected faults."""
        return SemanticMemory(Scope(tenant, agent_type, **more), self.sql, self.index, self.embedder, self.clock)

    async def store(
        self,
        content: str,
        *,
        tenant: str = "acme",
        agent_type: str | None = None,
        source: RecordSource = AGENT,
        **fields: Any,
    ) -> str:
        """Store one memory and return its id."""
        return (await self.memory(tenant, agent_type).store(NewRecord(content, **fields), source)).id

    async def store_all(self, news: Sequence[NewRecord], *, tenant: str = "acme") -> list[StoreResult]:
        """Store several memories in one transaction."""
        return await self.memory(tenant).store_all(news, AGENT)

    async def recall(self, query: str, *, tenant: str = "acme", **more: Any) -> list[Hit]:
        """Recall over the whole tenant."""
        return await self.memory(tenant).search(RecallQuery(query, below=True, **{"top_k": 20, **more}))

    async def drift(self, tenant: str = "acme") -> set[str]:
        """Return in what the tenant's indexes differ from its records, page by page."""
        found: set[str] = set()
        cursor: str | None = None
        while True:
            report = await verify_page(self.stores(), tenant, cursor, repair=False)
            found |= set(report.drift)
            cursor = report.cursor
            if cursor is None:
                return found

    async def rest(self) -> None:
        """Advance ten minutes and reconcile, so that there are no index debts and no fresh writes."""
        self.clock.advance(11 * MINUTE_MS)
        await self.stores().indexer().reconcile()

    async def completed(self, erase: Callable[[], Awaitable[Outcome]]) -> Outcome:
        """Repeat a call until the erasure is complete; return its outcome."""
        for _ in range(80):
            outcome = await erase()
            if outcome.retry_after_ms is None:
                return outcome
            self.clock.advance(outcome.retry_after_ms)
        raise AssertionError("the erasure never completes")

    async def receive(self, name: str, method: str, request: str) -> str:
        """Call a method of the object of this name, as the Durable Object's shell does."""
        if method != "erase":
            return await super().receive(name, method, request)
        storage, life = self.storages.setdefault(name, ObjectStorage()), self.faults.life(name)
        try:
            content = json.loads(request)
            result = await METHODS["erase"].call(self.living(name, identity_of(content)), content)
            self._living.pop(name, None)
            self.faults.reach(life, "answer")
            storage.commit()
            return answer(result)
        except RetainError as error:
            return refusal(error)

    def sql_now(self, sql: str, *values: object) -> list[dict[str, Any]]:
        """Run a statement on D1 bypassing the port, as only an attacker would; return its rows."""
        cursor = connection_of(self.sql).execute(sql, cast("Any", values))
        return [dict(zip([column[0] for column in cursor.description or ()], row, strict=True)) for row in cursor]

    async def steps_of(self, work: Callable[[], Awaitable[object]]) -> int:
        """Return how many hundreds of steps SQLite's virtual machine takes in D1 for some work."""
        steps = 0

        def counted() -> int:
            nonlocal steps
            steps += 1
            return 0

        connection = connection_of(self.sql)
        connection.set_progress_handler(counted, 100)
        try:
            await work()
        finally:
            connection.set_progress_handler(None, 0)
        return steps

    def plant(self, table: str, **values: object) -> None:
        """Insert a row into a table of D1, with harmless values in the remaining required columns."""
        for column in self.sql_now(f"SELECT * FROM pragma_table_info('{table}')"):
            if column["notnull"] and column["dflt_value"] is None:
                values.setdefault(column["name"], 0 if column["type"] == "INTEGER" else "[]")
        self.sql_now(
            f"INSERT INTO {table} ({', '.join(values)}) VALUES ({', '.join('?' * len(values))})", *values.values()
        )

    def vectors(self) -> dict[str, dict[str, Any]]:
        """Return every vector's metadata by its id."""
        rows = connection_of(self.index).execute("SELECT id, namespace, metadata FROM vectors ORDER BY id")
        return {row[0]: {"namespace": row[1], **json.loads(row[2])} for row in rows}

    def everything(self) -> dict[str, list[tuple[Any, ...]]]:
        """Return every row of every store, by store and table."""
        found: dict[str, list[tuple[Any, ...]]] = {}
        for store, connection in self._connections().items():
            for name, rows in _tables(connection):
                found[f"{store}/{name}"] = rows
        return found

    def mentions(self, text: str, *, tenant: str | None = None) -> list[str]:
        """Return the tables that contain a text, literally and in any case."""
        sought = text.lower()
        return [
            table
            for table, rows in self.everything().items()
            if any(
                sought in _text(value).lower()
                for row in rows
                if tenant is None or any(tenant in _text(value) for value in row)
                for value in row
            )
        ]

    def snapshot(self) -> Snapshot:
        """Return all stored data, to be restored elsewhere."""
        return {"clock": str(self.clock()).encode()} | {
            name: connection.serialize() for name, connection in self._connections().items()
        }

    @classmethod
    def restored(cls, snapshot: Mapping[str, bytes]) -> World:
        """Return a new deployment with the data of the snapshot."""
        world = cls()
        for name in snapshot:
            if name.startswith("object "):
                world.storages[name.removeprefix("object ")] = ObjectStorage()
        for name, connection in world._connections().items():
            connection.deserialize(snapshot[name])
        world.clock.set(int(snapshot["clock"]))
        return world

    def _connections(self) -> dict[str, sqlite3.Connection]:
        return {
            "d1": connection_of(self.sql),
            "kv": connection_of(self.kv),
            "vectors": connection_of(self.index),
            "r2": connection_of(self.objects_store),
            **{f"object {name}": connection_of(storage) for name, storage in sorted(self.storages.items())},
        }


@contextmanager
def living(snapshot: Mapping[str, bytes] | None = None) -> Iterator[World]:
    """Yield a deployment, new or restored, and close it at the end."""
    world = World() if snapshot is None else World.restored(snapshot)
    try:
        yield world
    finally:
        world.close()


def _tables(connection: sqlite3.Connection) -> Iterator[tuple[str, list[tuple[Any, ...]]]]:
    names = connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name NOT LIKE 'memory_text_%'"
        " AND name NOT LIKE 'memory_earlier_text_%'"
        " AND name NOT IN ('memory_occurrences', 'memory_earlier_occurrences', 'd1_migrations') ORDER BY name"
    ).fetchall()
    for (name,) in names:
        yield name, connection.execute(f'SELECT * FROM "{name}"').fetchall()


def _text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


__all__ = ["AGENT", "PERSON", "Row", "World", "living"]
