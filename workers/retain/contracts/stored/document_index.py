"""Keeps a vector index in agreement with the documents in D1.

D1 is the source of truth; the index only yields candidates, which are then read from D1. Each version of a document has
its own vector there, which never changes, so two writers cannot overwrite each other. When a row is replaced or deleted, a
trigger (migrations/0005_contracts.sql) notes that the index is owed the removal of its vector; a removal is repeated until
no earlier write can still be under way.
"""

from __future__ import annotations

import json
import logging
from array import array
from collections.abc import Sequence
from hashlib import sha256

from retain.contracts.stored.packing import packed, unpacked
from retain.errors import RetainError
from retain.ledgers.errors import Trouble, park, settle_earlier
from retain.limits.d1_calls import used_up
from retain.limits.vectorize import GRACE_MS
from retain.namespace import Namespace
from retain.ports import Clock, Row, Sql, Vector, VectorEntry, VectorIndex, VectorMatch

NEVER_MS = 2**53 - 1
"""Stored as the time at which a document was sent to the index, until it is sent."""
UPSERT_LIMIT = 500
REMOVAL_LIMIT = 100
_OWED = f"""
SELECT * FROM vector_documents WHERE indexed = 1 AND sent_at_ms = {NEVER_MS} AND tenant_id = ? AND length(embedding) = ?
ORDER BY number LIMIT ?
"""
_SENT = """
UPDATE vector_documents SET sent_at_ms = ?1 WHERE number = ?2 AND version = ?3
"""
# For a version that was replaced while it was written: its removal may have been done before the write.
_STALE = """
INSERT OR REPLACE INTO vector_removals (vector_id, tenant_id, at_ms)
SELECT ?1, ?2, ?3 WHERE NOT EXISTS (SELECT 1 FROM vector_documents WHERE number = ?4 AND version = ?5)
"""
_REMOVALS = """
SELECT vector_id, at_ms FROM vector_removals WHERE tenant_id = ? AND vector_id > ? ORDER BY vector_id LIMIT ?
"""
_TIMED = "UPDATE vector_removals SET at_ms = ? WHERE tenant_id = ? AND at_ms = 0"
_DONE = """
DELETE FROM vector_removals WHERE at_ms BETWEEN 1 AND ? AND vector_id IN (SELECT value FROM json_each(?))
"""
# A tenant that could not be settled comes after all others, and of several the one that was tried first.
_TENANTS = f"""
SELECT o.tenant_id, o.size FROM (SELECT tenant_id, NULL AS size FROM vector_removals
  UNION SELECT tenant_id, length(embedding) FROM vector_documents WHERE indexed = 1 AND sent_at_ms = {NEVER_MS}) o
LEFT JOIN error_ledger p ON p.tenant_id = o.tenant_id AND p.stage = 'documents' AND p.state = 'parked'
ORDER BY p.last_at_ms, o.tenant_id
"""

_log = logging.getLogger(__name__)


def index_namespace(tenant_id: str) -> str:
    """Return the index's namespace for a tenant's documents. At most 64 bytes."""
    return f"vector_memory:{tenant_id}"


def index_scope(namespace: Namespace) -> str:
    """Return the digest of a namespace that its vectors' metadata contain: the key may be too long to filter by."""
    return f"memory.{sha256(str(namespace).encode()).hexdigest()[:40]}"


class DocumentIndex:
    """Sends an index what D1 owes it. Idempotent: it depends only on the current state."""

    def __init__(self, sql: Sql, index: VectorIndex, clock: Clock) -> None:
        self._sql = sql
        self._index = index
        self._clock = clock

    async def candidates(self, namespace: Namespace, query: Vector, count: int) -> list[VectorMatch]:
        """Return the nearest vectors of a namespace that the index shows."""
        criteria = {"tenant_id": namespace.tenant_id, "scope_id": index_scope(namespace)}
        return await self._index.query(
            query, namespace=index_namespace(namespace.tenant_id), filter=criteria, top_k=count
        )

    async def settle(self, tenant_id: str) -> None:
        """Write and remove everything that the index is owed for a tenant. Raises: as the ports; the rest stays owed.

        Vectors whose dimensions differ from the index's stay owed.
        """
        await self.settle_removals(tenant_id)
        size = await self._size()
        while rows := (await self._sql.run(_OWED, tenant_id, size, UPSERT_LIMIT)).rows:
            await self._index.upsert(await self._entries(rows))
            now = self._clock()
            await self._sql.batch(
                [(_SENT, (now, row["number"], row["version"])) for row in rows]
                + [(_STALE, (vector_id(row), tenant_id, now, row["number"], row["version"])) for row in rows]
            )

    async def settle_removals(self, tenant_id: str) -> bool:
        """Remove the vectors whose removal is owed; return whether some removals are so recent that they are repeated."""
        await self._sql.run(_TIMED, self._clock(), tenant_id)
        after, young = "", False
        while rows := (await self._sql.run(_REMOVALS, tenant_id, after, REMOVAL_LIMIT)).rows:
            ids = [row["vector_id"] for row in rows]
            await self._index.delete_by_ids(ids)
            horizon = self._clock() - GRACE_MS
            await self._sql.run(_DONE, horizon, json.dumps(ids))
            young = young or any(int(row["at_ms"]) > horizon for row in rows)
            after = ids[-1]
        return young

    async def reconcile(self) -> int:
        """Settle every tenant, until the calls of D1 are used up; return for how many it failed. Each failure is logged."""
        began_ms = self._clock()
        failed: list[str] = []
        for tenant_id in await self._tenants():
            try:
                await self.settle(tenant_id)
            except RetainError as error:
                if used_up():
                    return len(failed)
                _log.warning("documents not settled", extra={"tenant_id": tenant_id, "code": error.code})
                await park(self._sql, Trouble("documents", tenant_id, error.code, self._clock(), tenant_id))
                failed.append(tenant_id)
        await settle_earlier(self._sql, self._clock(), "documents", began_ms, failed=failed)
        return len(failed)

    async def _tenants(self) -> list[str]:
        """Return the tenants of which the index is owed something that it takes."""
        rows = (await self._sql.run(_TENANTS)).rows
        size = await self._size() if rows else None
        return list(dict.fromkeys(row["tenant_id"] for row in rows if row["size"] in (None, size)))

    async def _size(self) -> int:
        """Return the bytes of an embedding that the index takes, as it is stored."""
        return len(packed(array("f", [0.0]) * await self._index.dimensions()))

    async def _entries(self, rows: Sequence[Row]) -> list[VectorEntry]:
        dimensions = await self._index.dimensions()
        return [
            VectorEntry(
                vector_id(row),
                unpacked(row["embedding"], dimensions).tolist(),
                index_namespace(row["tenant_id"]),
                {"tenant_id": row["tenant_id"], "scope_id": index_scope(Namespace.parse(row["namespace_key"]))},
            )
            for row in rows
        ]


def vector_id(row: Row) -> str:
    """Return the id of the vector of a row's version. The migration's triggers spell it the same way."""
    return f"document.{row['number']}.{row['version']}"


def row_number(vector: str) -> int:
    """Return the number of the row that a vector's id names."""
    return int(vector.split(".")[1])
