"""Documents in this process's memory, for tests, scripts and small collections. Lost when the process ends."""

from __future__ import annotations

import heapq
import json
from collections.abc import Sequence

from retain.contracts.documents import PreparedDocument, check_top_k, normalised, prepared, similarity
from retain.contracts.vectors import RetrievedDocument, VectorDocument
from retain.namespace import Namespace
from retain.ports import Vector


class ProcessVectorMemory:
    """Implements `DeletableVectorMemory` in a dictionary, with exact search.

    Two objects share documents only if they are given the same `store`: namespace key to documents by id.
    """

    def __init__(
        self, namespace: Namespace, *, dimensions: int, store: dict[str, dict[str, PreparedDocument]] | None = None
    ) -> None:
        self._documents = ({} if store is None else store).setdefault(str(namespace), {})
        self._dimensions = dimensions

    async def store(self, documents: Sequence[VectorDocument]) -> None:
        """Store the documents. See the contract."""
        self._documents.update({one.id: one for one in prepared(documents, self._dimensions)})

    async def search(
        self, embedding: Vector, *, top_k: int = 10, threshold: float | None = None
    ) -> list[RetrievedDocument]:
        """Return the nearest documents. See the contract."""
        check_top_k(top_k)
        query = normalised(embedding, self._dimensions)
        scored = [(similarity(query, one.embedding), one) for one in self._documents.values()]
        scored = [(score, one) for score, one in scored if threshold is None or score > threshold]
        nearest = heapq.nsmallest(top_k, scored, key=lambda pair: (-pair[0], pair[1].id))
        return [
            RetrievedDocument(one.id, content, score, metadata)
            for score, one in nearest
            for content, metadata in [json.loads(one.text)]
        ]

    async def delete(self, ids: Sequence[str]) -> None:
        """Remove the documents. See the contract."""
        for id_ in ids:
            self._documents.pop(id_, None)
