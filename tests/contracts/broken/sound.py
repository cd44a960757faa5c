"""Small backends that keep every law. The broken ones replace single parts of them."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Iterable, Sequence
from copy import deepcopy

from retain.contracts.documents import check_top_k, normalised, prepared
from retain.contracts.messages import message_of, message_texts
from retain.contracts.vectors import RetrievedDocument, VectorDocument
from retain.errors import Unavailable
from retain.models.chat import ChatMessage
from retain.models.embedding import Embedder
from retain.ports import Vector
from tests.contracts.backends import DIMENSIONS

ChatStore = dict[str, list[ChatMessage]]
VectorStore = dict[str, dict[str, VectorDocument]]
_LIMIT = 10_000_000
BATCH = 50


class SoundChat:
    """A conversation in a dictionary of all sessions. It can be cleared."""

    def __init__(self, store: ChatStore, session: str) -> None:
        self.store = store
        self.session = session

    def key(self) -> str:
        return self.session

    def kept(self, messages: Sequence[ChatMessage]) -> list[ChatMessage]:
        """Return what is stored of these messages."""
        texts = message_texts(messages, max_message_bytes=_LIMIT, max_session_bytes=_LIMIT)
        return [message_of(text) for text in texts]

    def shown(self, messages: list[ChatMessage]) -> list[ChatMessage]:
        """Return what is loaded of what is stored."""
        return [deepcopy(each) if each.tool_calls else each for each in messages]

    async def load(self) -> list[ChatMessage]:
        return self.shown(self.store.get(self.key(), []))

    async def save(self, messages: Sequence[ChatMessage]) -> None:
        self.store[self.key()] = self.kept(messages)

    async def clear(self) -> None:
        self.store.pop(self.key(), None)


class SoundVectors:
    """Documents in a dictionary of all collections, of one embedding model. They can be deleted."""

    def __init__(self, store: VectorStore, collection: str, model: str = "model") -> None:
        self.all = store
        self.collection = collection
        self.model = model

    def key(self) -> str:
        return self.collection

    def rows(self) -> dict[str, VectorDocument]:
        """Return the stored documents, by what their ids become."""
        return self.all.setdefault(self.key(), {})

    def row(self, id_: str) -> str:
        """Return the key of a document's row."""
        return id_

    def kept(self, document: VectorDocument) -> VectorDocument:
        """Return what is stored of a document."""
        [one] = prepared([document], DIMENSIONS)
        content, metadata = json.loads(one.text)
        return VectorDocument(one.id, content, list(one.embedding), metadata)

    def query(self, embedding: Vector) -> list[float]:
        """Return the vector that the documents are compared with."""
        return normalised(embedding, DIMENSIONS)

    def score(self, query: Sequence[float], document: VectorDocument) -> float:
        return math.sumprod(query, document.embedding) if hasattr(math, "sumprod") else _product(query, document)

    def found(self, document: VectorDocument, score: float) -> RetrievedDocument:
        """Return what a search says of a document."""
        return RetrievedDocument(document.id, document.content, score, json.loads(json.dumps(document.metadata)))

    def passes(self, score: float, threshold: float | None) -> bool:
        return threshold is None or score > threshold

    def ranked(self, found: Iterable[RetrievedDocument], top_k: int) -> list[RetrievedDocument]:
        """Return the first of what was found."""
        return sorted(found, key=lambda one: (-one.score, one.id))[:top_k]

    def same_model(self, documents: Sequence[VectorDocument]) -> None:
        """Refuse documents of another model than the stored ones'. It is kept next to the collections."""
        models = self.all.setdefault(f"{self.key()}/models", {})
        if models and self.model not in models:
            raise ValueError("another model's vectors")
        if documents:
            models[self.model] = documents[0]

    def put(self, documents: Sequence[VectorDocument]) -> None:
        self.rows().update({self.row(each.id): each for each in documents})

    async def store(self, documents: Sequence[VectorDocument]) -> None:
        kept = [self.kept(each) for each in documents]
        self.same_model(kept)
        self.put(kept)

    async def search(
        self, embedding: Vector, *, top_k: int = 10, threshold: float | None = None
    ) -> list[RetrievedDocument]:
        check_top_k(top_k)
        self.same_model([])
        query = self.query(embedding)
        scored = [(each, self.score(query, each)) for each in self.rows().values()]
        return self.ranked([self.found(each, score) for each, score in scored if self.passes(score, threshold)], top_k)

    async def delete(self, ids: Sequence[str]) -> None:
        for id_ in ids:
            self.rows().pop(self.row(id_), None)


class SoundEmbedder:
    """Returns the vectors of another embedder, which it asks for a batch at a time."""

    def __init__(self, inner: Embedder) -> None:
        self.inner = inner

    @property
    def model(self) -> str:
        return self.inner.model

    @property
    def dimensions(self) -> int:
        return self.inner.dimensions

    async def ask(self, texts: Sequence[str]) -> list[list[float]]:
        """Return the vectors of one batch."""
        await asyncio.sleep(0)
        return await self.inner.embed(texts)

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        batches = [await self.ask(texts[at : at + BATCH]) for at in range(0, len(texts), BATCH)]
        return [vector for batch in batches for vector in batch]


class Failing:
    """An embedder whose model answers a number of requests, and is down after them."""

    model = "down"
    dimensions = 256

    def __init__(self, inner: Embedder, answered: int = 0) -> None:
        self.inner = inner
        self.left = answered

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        self.left -= 1
        if self.left < 0:
            raise Unavailable("the model is down")
        return await self.inner.embed(texts)


def _product(query: Sequence[float], document: VectorDocument) -> float:
    return sum(a * b for a, b in zip(query, document.embedding, strict=True))
