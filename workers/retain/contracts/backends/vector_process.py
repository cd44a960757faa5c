"""Documents in this process's memory, for tests, scripts and small collections. Lost when the process ends."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from retain.contracts.documents import PreparedDocument, check_model, check_top_k, normalised, prepared, similarity
from retain.contracts.vectors import RetrievedDocument, VectorDocument
from retain.json_text import read_own_json
from retain.namespace import Namespace
from retain.ports import Vector


class ProcessVectorMemory:
    """Implements `DeletableVectorMemory` in a dictionary, with exact search.

    model: the embedding model's name, as `Embedder.model`; documents of another model are neither stored nor searched.

    Two objects share documents only if they are given the same `store`: namespace key to documents by id.
    """

    def __init__(
        self,
        namespace: Namespace,
        *,
        dimensions: int,
        model: str,
        store: dict[str, dict[str, PreparedDocument]] | None = None,
    ) -> None:
        self._documents = ({} if store is None else store).setdefault(str(namespace), {})
        self._dimensions = dimensions
        self._model = model

    async def store(self, documents: Sequence[VectorDocument]) -> None:
        """Store the documents. See the contract. Raises: also Misconfigured (code `vector_model_changed`)."""
        kept = prepared(documents, self._dimensions, self._model)
        self._check_model()
        self._documents.update({one.id: one for one in kept})

    async def search(
        self, embedding: Vector, *, top_k: int = 10, threshold: float | None = None
    ) -> list[RetrievedDocument]:
        """Return the nearest documents. See the contract. Raises: also Misconfigured (code `vector_model_changed`)."""
        check_top_k(top_k)
        self._check_model()
        query = normalised(embedding, self._dimensions)
        scored = [(similarity(query, one.embedding), one) for one in self._documents.values()]
        scored = [(score, one) for score, one in scored if threshold is None or score > threshold]
        nearest = heapq.nsmallest(top_k, scored, key=lambda pair: (-pair[0], pair[1].id))
        return [
            RetrievedDocument(one.id, content, score, metadata)
            for score, one in nearest
            for content, metadata in [read_own_json(one.text)]
        ]

    async def delete(self, ids: Sequence[str]) -> None:
        """Remove the documents. See the contract."""
        for id_ in ids:
            self._documents.pop(id_, None)

    def _check_model(self) -> None:
        for one in self._documents.values():
            check_model(one.model, self._model)
            return  # all are of one model
