"""Documents in D1, searched through a vector index (Vectorize)."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from retain.contracts.backends.document_rows import DocumentRows, deleting
from retain.contracts.documents import best, check_top_k, normalised
from retain.contracts.stored.document_index import DocumentIndex, row_number
from retain.contracts.vectors import RetrievedDocument, VectorDocument
from retain.errors import Misconfigured, RetainError
from retain.limits.vectorize import MAX_TOP_K
from retain.namespace import Namespace
from retain.ports import Clock, Sql, Vector, VectorIndex

FRESH_MS = 300_000
"""How long after a write the index may not show the vector yet: until then its document is compared in D1."""
_GONE = "SELECT COUNT(*) AS n FROM vector_removals WHERE tenant_id = ?"

_log = logging.getLogger(__name__)


class IndexedVectorMemory:
    """Implements `DeletableVectorMemory`: documents in D1, candidates from the index, scores from D1.

    A document is stored once D1 has it. The index shows writes seconds later, or cannot be reached for a while; until it
    shows a document, searches compare that document exactly, so they find every completed store. Which older documents
    are candidates is the index's approximation; their scores and their order are exact. `top_k` is at most 100. A search
    fails when the index fails.

    model: the embedding model's name, as `Embedder.model`; documents of another model are neither stored nor searched.
    """

    def __init__(
        self, sql: Sql, index: VectorIndex, clock: Clock, namespace: Namespace, *, dimensions: int, model: str
    ) -> None:
        self._sql = sql
        self._index = index
        self._clock = clock
        self._namespace = namespace
        self._dimensions = dimensions
        self._rows = DocumentRows(sql, namespace, dimensions, model)
        self._owed = DocumentIndex(sql, index, clock)

    async def store(self, documents: Sequence[VectorDocument]) -> None:
        """Store the documents, in one transaction. See the contract.

        Raises: also Misconfigured (code `vector_dimensions_changed`) for an index with other dimensions, and (code
            `vector_model_changed`) when the namespace has documents of another model; Conflict (code `constraint`) for a
            tenant that was erased.
        """
        if (has := await self._index.dimensions()) != self._dimensions:
            raise Misconfigured(
                f"the index has {has} dimensions, the memory {self._dimensions}",
                code="vector_dimensions_changed",
                expected=self._dimensions,
                found=has,
            )
        await self._rows.store(documents, indexed=True)
        await self._settle()

    async def search(
        self, embedding: Vector, *, top_k: int = 10, threshold: float | None = None
    ) -> list[RetrievedDocument]:
        """Return the nearest documents. See the contract."""
        check_top_k(top_k, MAX_TOP_K)
        query = normalised(embedding, self._dimensions)
        fresh = await self._rows.nearest(query, top_k, since_ms=self._clock() - FRESH_MS)
        gone = int((await self._sql.run(_GONE, self._namespace.tenant_id)).rows[0]["n"])
        # Removed and replaced documents may still be among the index's matches.
        count = min(MAX_TOP_K, top_k + gone)
        candidates = [row_number(match.id) for match in await self._owed.candidates(self._namespace, query, count)]
        found = await self._rows.read(query, sorted({*fresh, *candidates}))
        return best(found, top_k, threshold)

    async def delete(self, ids: Sequence[str]) -> None:
        """Remove the documents. See the contract."""
        await self._sql.batch(deleting(self._namespace, ids))
        await self._settle()

    async def documents(self, *, after: str = "", limit: int = 100) -> list[VectorDocument]:
        """Return a page of all documents, ordered by id, to copy them elsewhere. Not part of the contract."""
        return await self._rows.page(after, limit)

    async def _settle(self) -> None:
        """Send the index what it is owed. What it does not take now waits for the next write or the daily brief."""
        try:
            await self._owed.settle(self._namespace.tenant_id)
        except RetainError as error:
            _log.warning("the vector index is owed documents", extra={"code": error.code})
