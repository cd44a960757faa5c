"""A deployment with several databases on the host, which can be copied, inspected, and made to fail at any call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from retain.host.clock import ManualClock
from retain.host.kv import SqliteKv
from retain.host.vectors import SqliteVectorIndex
from retain.lifecycle.moving.mover import KEPT_MS, Mover
from retain.lifecycle.moving.moves import Move
from retain.limits.d1_calls import spend
from retain.memory.records.record import NewRecord, RecordSource
from retain.memory.scope import Scope
from retain.memory.semantic import RecallQuery, SemanticMemory
from retain.shards.place import HOME, in_tenant
from retain.shards.shards import Shards
from retain.tenant_tables import TENANT_TABLES
from retain.tenants.tenant_tables import OF_MOVES
from tests.support.databases import connection_of, migrated_d1
from tests.support.faults import Faults
from tests.support.instances import shipped_embedder

MOVED = [table.name for table in TENANT_TABLES if table.name not in OF_MOVES]
_VALUES: Mapping[str, Mapping[str, object]] = {
    "schedules": {"state": "active"},
    "eval_runs": {"state": "completed"},
    "eval_results": {"state": "scored", "outcome": "passed"},
    "index_jobs": {"state": "completed"},
    "backup_jobs": {"state": "completed", "kind": "backup"},
    "erasure_receipts": {"state": "completed", "kind": "subject"},
    "ingest_jobs": {"state": "completed"},
    "memory_items": {"tier": "warm"},
    "memory_outbox": {"state": "sent"},
    "procedure_outcomes": {"score": 0.5},
    "error_ledger": {"error_id": "e" * 32},
    "kv_audit": {"operation": "put"},
    "decision_log": {"kind": "outcome"},
    "decision_memories": {"kind": "record", "source": "tool"},
    "role_grants": {"role": "viewer"},
    "erased_users": {"last_run_id": ""},
    "erased_tenants": {"closed": 0, "last_run_id": ""},
}
Rows = dict[str, list[tuple[Any, ...]]]
_AGENT = RecordSource("agent")


class ShardedDeployment:
    """Databases with their indexes. begun: what the first of them has in it, else nothing."""

    def __init__(self, count: int = 3, begun: Mapping[str, bytes] | None = None) -> None:
        self.clock = ManualClock(1_700_000_000_000)
        self.kv = SqliteKv.open(self.clock)
        names = [HOME, *(f"DB_{number}" for number in range(1, count))]
        self.databases = {name: migrated_d1() for name in names}
        self.indexes = {name: SqliteVectorIndex.open(256) for name in names}
        if begun is not None:
            self.clock.set(int(begun["clock"]))
            connection_of(self.databases[HOME]).deserialize(begun["d1"])
            connection_of(self.indexes[HOME]).deserialize(begun["vectors"])
        self.faults = Faults(lambda _: None)
        self.isolate()

    def plant_missing(self, tenant: str) -> None:
        """Plant a row into each table in which a tenant of the first database has none."""
        database = connection_of(self.databases[HOME])
        for table in [name for name in MOVED if name not in {*self.rows(HOME, tenant), "eval_scratches"}]:
            values: dict[str, object] = {"tenant_id": tenant, **_VALUES.get(table, {})}
            for column in database.execute(
                f"SELECT name, type, \"notnull\", dflt_value, pk FROM pragma_table_info('{table}')"
            ):
                if (column[2] or (column[4] and column[1] == "TEXT")) and column[3] is None:
                    values.setdefault(column[0], 7 if column[1] == "INTEGER" else "[]")
            marks = ", ".join("?" * len(values))
            database.execute(f"INSERT INTO {table} ({', '.join(values)}) VALUES ({marks})", list(values.values()))
        database.commit()

    def isolate(self) -> None:
        """Let the isolate end: what it remembers is gone."""
        life = self.faults.life("mover")
        wrap = self.faults.wrap
        self.shards = Shards.of(
            {
                name: (wrap(f"sql {name}", sql, life, before=spend), wrap(f"index {name}", self.indexes[name], life))
                for name, sql in self.databases.items()
            },
            wrap("kv", self.kv, life),
            self.clock,
        )
        self.mover = Mover(self.shards, TENANT_TABLES, self.clock)

    async def moved(self, tenant: str, target: str, *, most: int = 2000) -> Move:
        """Move a tenant, in as many calls as it takes."""
        move = await self.mover.start(tenant, target, "person:ada")
        for _ in range(most):
            move = await self.mover.advance(move)
            if move.state != "running":
                return move
            self.clock.advance(KEPT_MS if move.step == "remove" else 100)
        raise AssertionError(f"the move does not end: {move}")

    def memory(self, tenant: str) -> SemanticMemory:
        """Return the memory of a tenant, wherever it is, without injected faults."""
        shards = Shards.of(
            {name: (sql, self.indexes[name]) for name, sql in self.databases.items()}, self.kv, self.clock
        )
        return SemanticMemory(Scope(tenant), shards.sql, shards.index, shipped_embedder(), self.clock)

    async def store(self, tenant: str, content: str) -> str:
        """Store a memory of a tenant."""
        with in_tenant(tenant):
            return (await self.memory(tenant).store(NewRecord(content, metadata={"n": len(content)}), _AGENT)).id

    async def recalled(self, tenant: str, query: str) -> list[str]:
        """Return what a tenant recalls."""
        with in_tenant(tenant):
            hits = await self.memory(tenant).search(RecallQuery(query, below=True, top_k=20))
        return [hit.record.content for hit in hits]

    async def register(self, tenant: str) -> None:
        """Register a tenant on the first database."""
        await self.databases[HOME].run("INSERT INTO tenants VALUES (?, 0, NULL)", tenant)

    def numbers(self) -> dict[int, set[str]]:
        """Return the ids of the records by their numbers, on all databases."""
        found: dict[int, set[str]] = {}
        for database in self.databases.values():
            query = "SELECT number, id FROM memory_records WHERE id <> 'range'"
            for number, record in connection_of(database).execute(query):
                found.setdefault(number, set()).add(record)
        return found

    def rows(self, shard: str, tenant: str) -> Rows:
        """Return a tenant's rows on a database by table, with its full texts, without the time of what is owed."""
        database = connection_of(self.databases[shard])
        found = {}
        for table in MOVED:
            rows = database.execute(f"SELECT * FROM {table} WHERE tenant_id = ?", (tenant,)).fetchall()
            found[table] = sorted(rows, key=repr)
        for text, table in (("memory_text", "memory_search"), ("memory_earlier_text", "memory_earlier")):
            query = f"SELECT rowid, content FROM {text} WHERE rowid IN (SELECT number FROM {table} WHERE tenant_id = ?)"
            found[text] = sorted(database.execute(query, (tenant,)).fetchall())
        return {name: rows for name, rows in found.items() if rows}

    def vectors(self, shard: str, tenant: str) -> dict[str, Any]:
        """Return a tenant's vectors in an index."""
        rows = connection_of(self.indexes[shard]).execute("SELECT * FROM vectors").fetchall()
        return {row[0]: row for row in rows if f":{tenant}" in repr(row)}


@contextmanager
def living(count: int = 3, begun: Mapping[str, bytes] | None = None) -> Iterator[ShardedDeployment]:
    """Yield a deployment, and close its databases."""
    deployment = ShardedDeployment(count, begun)
    try:
        yield deployment
    finally:
        for port in (deployment.kv, *deployment.databases.values(), *deployment.indexes.values()):
            connection_of(port).close()
