"""Vector indexes that misbehave, each in one way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from retain.errors import UpstreamFailed
from retain.host.clock import ManualClock
from retain.limits.vectorize import LAG_MS
from retain.ports import MetadataFilter, Vector, VectorEntry, VectorIndex, VectorMatch
from tests.memory.semantic.substrate import ListedIndex


class _Passing:
    """Forwards every call."""

    def __init__(self, index: VectorIndex) -> None:
        self.inner = index
        self.filterable = index.filterable
        self.lag_ms: int = LAG_MS

    async def upsert(self, entries: Sequence[VectorEntry]) -> str:
        return await self.inner.upsert(entries)

    async def query(
        self,
        vector: Vector,
        *,
        namespace: str,
        filter: MetadataFilter,  # noqa: A002 -- the port's name
        top_k: int,
        with_metadata: bool = False,
    ) -> list[VectorMatch]:
        return await self.inner.query(
            vector, namespace=namespace, filter=filter, top_k=top_k, with_metadata=with_metadata
        )

    async def get_by_ids(self, ids: Sequence[str]) -> list[VectorEntry]:
        return await self.inner.get_by_ids(ids)

    async def delete_by_ids(self, ids: Sequence[str]) -> str:
        return await self.inner.delete_by_ids(ids)

    async def dimensions(self) -> int:
        return await self.inner.dimensions()

    async def count(self) -> int:
        return await self.inner.count()


class HostileIndex(_Passing):
    """Ignores namespace and filter: it answers every query with all vectors, as perfect matches."""

    def __init__(self, index: ListedIndex) -> None:
        super().__init__(index)
        self._held = index.held

    async def query(self, vector: Vector, **asked: object) -> list[VectorMatch]:
        more = ["", "#", "nobody", "01ARZ3NDEKTSV4RRFFQ69G5FAV#0"]
        return [VectorMatch(found, 1.0) for found in [*self._held(), *more]]


class WatchingIndex(_Passing):
    """Records its queries."""

    def __init__(self, index: VectorIndex) -> None:
        super().__init__(index)
        self.asked: list[dict[str, Any]] = []

    async def query(self, vector: Vector, **asked: Any) -> list[VectorMatch]:
        self.asked.append(asked)
        return await self.inner.query(vector, **asked)


class SilentIndex(_Passing):
    """Accepts writes and never finds anything."""

    async def query(self, vector: Vector, **asked: object) -> list[VectorMatch]:
        return []


class LaggingIndex(_Passing):
    """Applies a write some time after answering it, as Vectorize does."""

    def __init__(self, index: VectorIndex, clock: ManualClock, lag_ms: int) -> None:
        super().__init__(index)
        self._clock = clock
        self._lag_ms = lag_ms
        self._pending: list[tuple[int, Sequence[VectorEntry], Sequence[str]]] = []

    async def upsert(self, entries: Sequence[VectorEntry]) -> str:
        self._pending.append((self._clock() + self._lag_ms, list(entries), ()))
        return "pending"

    async def delete_by_ids(self, ids: Sequence[str]) -> str:
        self._pending.append((self._clock() + self._lag_ms, (), list(ids)))
        return "pending"

    async def query(self, vector: Vector, **asked: object) -> list[VectorMatch]:
        while self._pending and self._pending[0][0] <= self._clock():
            _, entries, ids = self._pending.pop(0)
            if entries:
                await self.inner.upsert(entries)
            if ids:
                await self.inner.delete_by_ids(ids)
        return await self.inner.query(vector, **asked)  # type: ignore[arg-type]


class RefusingIndex(_Passing):
    """Refuses every call that concerns a vector of certain records."""

    def __init__(self, index: VectorIndex, refused: set[str]) -> None:
        super().__init__(index)
        self.refused = refused

    async def upsert(self, entries: Sequence[VectorEntry]) -> str:
        self._check([entry.id for entry in entries])
        return await self.inner.upsert(entries)

    async def delete_by_ids(self, ids: Sequence[str]) -> str:
        self._check(ids)
        return await self.inner.delete_by_ids(ids)

    def _check(self, ids: Sequence[str]) -> None:
        if self.refused & {vector_id.partition("#")[0] for vector_id in ids}:
            raise UpstreamFailed("the test refuses this vector")
