"""Backends that each break one invariant and keep the others. Each name begins with the number of that invariant."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from retain.contracts.backends.vector_process import ProcessVectorMemory
from retain.contracts.vectors import RetrievedDocument, VectorDocument
from retain.errors import Unavailable
from retain.models.chat import ChatMessage
from retain.models.embedding import Embedder
from retain.ports import Vector
from tests.contracts.backends import DIMENSIONS


class SoundChat:
    """Keeps every invariant. It cannot be cleared."""

    def __init__(self, store: dict[str, list[ChatMessage]], session: str) -> None:
        self.store = store
        self.session = session

    async def load(self) -> list[ChatMessage]:
        return list(self.store.get(self.session, []))

    async def save(self, messages: Sequence[ChatMessage]) -> None:
        json.dumps([[dict(call.arguments) for call in message.tool_calls] for message in messages])
        self.store[self.session] = list(messages)


class Cm1TheLiveList(SoundChat):
    """Load returns the stored list itself."""

    async def load(self) -> list[ChatMessage]:
        return self.store.setdefault(self.session, [])

    async def save(self, messages: Sequence[ChatMessage]) -> None:
        json.dumps([[dict(call.arguments) for call in message.tool_calls] for message in messages])
        self.store.setdefault(self.session, [])[:] = messages


class Cm1OnePage(SoundChat):
    """Load returns only one page."""

    async def load(self) -> list[ChatMessage]:
        return (await super().load())[:1000]


class Cm2Appends(SoundChat):
    """Save appends instead of replacing."""

    async def save(self, messages: Sequence[ChatMessage]) -> None:
        await super().save([*self.store.get(self.session, []), *messages])


class Cm3NoRepetition(SoundChat):
    """A message equal to an earlier one is dropped."""

    async def save(self, messages: Sequence[ChatMessage]) -> None:
        await super().save([message for place, message in enumerate(messages) if message not in messages[:place]])


class Cm4OneByOne(SoundChat):
    """Save empties the conversation and then writes the messages one by one."""

    async def save(self, messages: Sequence[ChatMessage]) -> None:
        given = list(messages)
        for place in range(len(given) + 1):
            await super().save(given[:place])
            await asyncio.sleep(0)


class Cm4NoWayBack(SoundChat):
    """Save writes all messages before the first one that it refuses."""

    async def save(self, messages: Sequence[ChatMessage]) -> None:
        for place in range(len(messages) + 1):
            await super().save(messages[:place])


class Cm5Nothing(SoundChat):
    """Load returns None for a new conversation."""

    async def load(self) -> list[ChatMessage]:
        return list(self.store[self.session]) if self.session in self.store else None  # type: ignore[return-value]


class Cm5Raises(SoundChat):
    """Load raises for a new conversation."""

    async def load(self) -> list[ChatMessage]:
        return list(self.store[self.session])


class Cm6NotImplemented(SoundChat):
    """Clear exists, and raises."""

    async def clear(self) -> None:
        raise NotImplementedError


class Cm6ClearsHalf(SoundChat):
    """Clear deletes only the older half."""

    async def clear(self) -> None:
        kept = self.store.get(self.session, [])
        self.store[self.session] = kept[len(kept) // 2 :]


class Vm1KeepsTheFirst(ProcessVectorMemory):
    """Store skips a document with a known id."""

    async def store(self, documents: Sequence[VectorDocument]) -> None:
        before = dict(self._documents)
        await super().store(documents)
        self._documents.update(before)


class Vm1RefusesTheSecond(ProcessVectorMemory):
    """Store refuses a known id."""

    async def store(self, documents: Sequence[VectorDocument]) -> None:
        if any(document.id in self._documents for document in documents):
            raise KeyError("the id is taken")
        await super().store(documents)


class Vm2CutsToLength(ProcessVectorMemory):
    """A vector of another length is cut or padded."""

    async def store(self, documents: Sequence[VectorDocument]) -> None:
        await super().store([replace(document, embedding=_cut(document.embedding)) for document in documents])

    async def search(
        self, embedding: Vector, *, top_k: int = 10, threshold: float | None = None
    ) -> list[RetrievedDocument]:
        return await super().search(_cut(embedding), top_k=top_k, threshold=threshold)


class Vm2KeepsWhatFits(ProcessVectorMemory):
    """A refused store keeps the documents before the invalid one."""

    async def store(self, documents: Sequence[VectorDocument]) -> None:
        fitting = [document for document in documents if len(document.embedding) == DIMENSIONS]
        await super().store(fitting)
        await super().store(documents)


class Vm3AsStored(ProcessVectorMemory):
    """Search returns the nearest in the order in which they were stored."""

    async def search(
        self, embedding: Vector, *, top_k: int = 10, threshold: float | None = None
    ) -> list[RetrievedDocument]:
        places = {id_: place for place, id_ in enumerate(self._documents)}
        found = await super().search(embedding, top_k=top_k, threshold=threshold)
        return sorted(found, key=lambda one: places[one.id])


class Vm3TiesAsTheyCome(ProcessVectorMemory):
    """Equal scores are ordered with the last stored first."""

    async def search(
        self, embedding: Vector, *, top_k: int = 10, threshold: float | None = None
    ) -> list[RetrievedDocument]:
        places = {id_: -place for place, id_ in enumerate(self._documents)}
        found = await super().search(embedding, top_k=top_k, threshold=threshold)
        return sorted(found, key=lambda one: (-one.score, places[one.id]))


class Vm4Pads(ProcessVectorMemory):
    """Fewer than `top_k` results are padded with placeholders."""

    async def search(
        self, embedding: Vector, *, top_k: int = 10, threshold: float | None = None
    ) -> list[RetrievedDocument]:
        found = await super().search(embedding, top_k=top_k, threshold=threshold)
        return found + [RetrievedDocument(f"padding-{place}", "", -2.0) for place in range(top_k - len(found))]


class Vm4OneMore(ProcessVectorMemory):
    """Search returns one more than `top_k`."""

    async def search(
        self, embedding: Vector, *, top_k: int = 10, threshold: float | None = None
    ) -> list[RetrievedDocument]:
        return await super().search(embedding, top_k=top_k + 1, threshold=threshold)


class Vm5Inclusive(ProcessVectorMemory):
    """A score equal to the threshold passes."""

    async def search(
        self, embedding: Vector, *, top_k: int = 10, threshold: float | None = None
    ) -> list[RetrievedDocument]:
        found = await super().search(embedding, top_k=top_k)
        return [one for one in found if threshold is None or one.score >= threshold]


class Vm6Flat(ProcessVectorMemory):
    """Metadata is returned as text."""

    async def search(
        self, embedding: Vector, *, top_k: int = 10, threshold: float | None = None
    ) -> list[RetrievedDocument]:
        found = await super().search(embedding, top_k=top_k, threshold=threshold)
        return [replace(one, metadata={name: str(value) for name, value in one.metadata.items()}) for one in found]


class Vm6Filters(ProcessVectorMemory):
    """Metadata that names another tenant hides a document."""

    async def search(
        self, embedding: Vector, *, top_k: int = 10, threshold: float | None = None
    ) -> list[RetrievedDocument]:
        found = await super().search(embedding, top_k=top_k, threshold=threshold)
        return [one for one in found if "tenant_id" not in one.metadata]


class Vm7NotImplemented(ProcessVectorMemory):
    """Delete exists, and raises."""

    async def delete(self, ids: Sequence[str]) -> None:
        raise NotImplementedError


class Vm7Forgets(ProcessVectorMemory):
    """Delete does nothing."""

    async def delete(self, ids: Sequence[str]) -> None:
        pass


class Vm8AnyPython(ProcessVectorMemory):
    """Metadata that is not JSON is accepted, as text."""

    async def store(self, documents: Sequence[VectorDocument]) -> None:
        metadata = [{name: _as_json(value) for name, value in document.metadata.items()} for document in documents]
        await super().store(
            [replace(document, metadata=fields) for document, fields in zip(documents, metadata, strict=True)]
        )


class Vm8CutsContents(ProcessVectorMemory):
    """Contents are cut at NUL."""

    async def store(self, documents: Sequence[VectorDocument]) -> None:
        await super().store([replace(document, content=document.content.split("\0")[0]) for document in documents])


class SoundEmbedder:
    """Returns the vectors of another embedder."""

    def __init__(self, inner: Embedder) -> None:
        self.inner = inner

    @property
    def model(self) -> str:
        return self.inner.model

    @property
    def dimensions(self) -> int:
        return self.inner.dimensions

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        return await self.inner.embed(texts)


class E1Drifts(SoundEmbedder):
    """Every call returns slightly different vectors."""

    calls = 0

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        E1Drifts.calls += 1
        return [[value * (1 + E1Drifts.calls * 1e-9) for value in vector] for vector in await super().embed(texts)]


class E1KnowsItsNeighbours(SoundEmbedder):
    """The first text of a call gets a slightly different vector."""

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        first, *others = await super().embed(texts) or [[]]
        return [[value * (1 + 1e-8) for value in first], *others][: len(texts)]


class E2SharesItsCache(SoundEmbedder):
    """Embed returns the cached vectors themselves."""

    def __init__(self, inner: Embedder) -> None:
        super().__init__(inner)
        self.cache: dict[str, list[float]] = {}

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        for text, vector in zip(texts, await super().embed(texts), strict=True):
            self.cache.setdefault(text, vector)
        return [self.cache[text] for text in texts]


class E2TidiesUp(SoundEmbedder):
    """Embed changes the caller's list."""

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        vectors = await super().embed(list(texts))
        if isinstance(texts, list):
            texts[:] = [text.strip() for text in texts]
        return vectors


class E3Zeros(SoundEmbedder):
    """A failure returns vectors of zeros."""

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        try:
            return await super().embed(texts)
        except Unavailable:
            return [[0.0] * self.dimensions for _ in texts]


class E3Nothing(SoundEmbedder):
    """A failure returns no vectors."""

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        try:
            return await super().embed(texts)
        except Unavailable:
            return []


class Failing:
    """An embedder whose model is down."""

    model = "down"
    dimensions = 256

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        raise Unavailable("the model is down")


def _cut(vector: Vector) -> Vector:
    return [*vector, *[0.0] * DIMENSIONS][:DIMENSIONS]


def _as_json(value: Any) -> Any:
    try:
        return json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError):
        return repr(value)


BROKEN_CHATS = (
    Cm1TheLiveList,
    Cm1OnePage,
    Cm2Appends,
    Cm3NoRepetition,
    Cm4OneByOne,
    Cm4NoWayBack,
    Cm5Nothing,
    Cm5Raises,
    Cm6NotImplemented,
    Cm6ClearsHalf,
)
BROKEN_VECTORS = (
    Vm1KeepsTheFirst,
    Vm1RefusesTheSecond,
    Vm2CutsToLength,
    Vm2KeepsWhatFits,
    Vm3AsStored,
    Vm3TiesAsTheyCome,
    Vm4Pads,
    Vm4OneMore,
    Vm5Inclusive,
    Vm6Flat,
    Vm6Filters,
    Vm7NotImplemented,
    Vm7Forgets,
    Vm8AnyPython,
    Vm8CutsContents,
)
BROKEN_EMBEDDERS = (E1Drifts, E1KnowsItsNeighbours, E2SharesItsCache, E2TidiesUp, E3Zeros, E3Nothing)
