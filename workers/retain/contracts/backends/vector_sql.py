"""Documents in D1, or in a SQLite file on the host, with exact search."""

from __future__ import annotations

from collections.abc import Sequence

from retain.contracts.backends.document_rows import DocumentRows, deleting
from retain.contracts.documents import best, check_top_k, normalised
from retain.contracts.vectors import RetrievedDocument, VectorDocument
from retain.namespace import Namespace
from retain.ports import Sql, Vector


class SqlVectorMemory:
    """Implements `DeletableVectorMemory` on the SQL port. A search reads every vector of the namespace.

    That suits a few thousand. Scores are cosine similarities of vectors stored as 32-bit floats. A document has at most
    900,000 bytes.

    model: the embedding model's name, as `Embedder.model`; documents of another model are neither stored nor searched.
    """

    def __init__(self, sql: Sql, namespace: Namespace, *, dimensions: int, model: str) -> None:
        self._sql = sql
        self._namespace = namespace
        self._dimensions = dimensions
        self._rows = DocumentRows(sql, namespace, dimensions, model)

    async def store(self, documents: Sequence[VectorDocument]) -> None:
        """Store the documents, in one transaction. See the contract.

        Raises: also Misconfigured (code `vector_model_changed`) when the namespace has documents of another model; Conflict
            (code `constraint`) for a tenant that was erased.
        """
        await self._rows.store(documents, indexed=False)

    async def search(
        self, embedding: Vector, *, top_k: int = 10, threshold: float | None = None
    ) -> list[RetrievedDocument]:
        """Return the nearest documents. See the contract.

        Raises: also Misconfigured (codes `vector_dimensions_changed`, `vector_model_changed`) when the namespace has vectors
            of another length or model.
        """
        check_top_k(top_k)
        query = normalised(embedding, self._dimensions)
        numbers = await self._rows.nearest(query, top_k)
        return best(await self._rows.read(query, numbers), top_k, threshold)

    async def delete(self, ids: Sequence[str]) -> None:
        """Remove the documents. See the contract."""
        await self._sql.batch(deleting(self._namespace, ids))

    async def documents(self, *, after: str = "", limit: int = 100) -> list[VectorDocument]:
        """Return a page of all documents, ordered by id, to copy them elsewhere. Not part of the contract."""
        return await self._rows.page(after, limit)
