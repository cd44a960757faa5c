"""`VectorIndex` over several: a tenant's vectors are in the index of the database that it lives on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from retain.errors import RetainError
from retain.ports import MetadataFilter, PropertyType, Vector, VectorEntry, VectorIndex, VectorMatch
from retain.shards.directory import TenantDirectory
from retain.shards.place import HOME, OfTenant, OnShard, current_place


class ShardedIndex:
    """Implements `VectorIndex` on several.

    An index cannot refuse, so it is asked only if its database said within the last 30 seconds that the tenant lives there.
    """

    def __init__(self, directory: TenantDirectory, indexes: Mapping[str, VectorIndex]) -> None:
        """indexes: by the names of their databases."""
        self._directory = directory
        self._indexes = indexes

    @property
    def filterable(self) -> Mapping[str, PropertyType]:
        """See the port. All indexes are made alike."""
        return self._indexes[HOME].filterable

    @property
    def lag_ms(self) -> int:
        """See the port."""
        return self._indexes[HOME].lag_ms

    async def upsert(self, entries: Sequence[VectorEntry]) -> str:
        """See the port."""
        shard = await self._shard()
        place = current_place()
        if isinstance(place, OfTenant):
            place.vectors_on = shard
        return await self._indexes[shard].upsert(entries)

    async def query(
        self,
        vector: Vector,
        *,
        namespace: str,
        filter: MetadataFilter,  # noqa: A002 -- the platform's name
        top_k: int,
        with_metadata: bool = False,
    ) -> list[VectorMatch]:
        """See the port."""
        index = self._indexes[await self._shard()]
        return await index.query(vector, namespace=namespace, filter=filter, top_k=top_k, with_metadata=with_metadata)

    async def get_by_ids(self, ids: Sequence[str]) -> list[VectorEntry]:
        """See the port."""
        return await self._indexes[await self._shard()].get_by_ids(ids)

    async def delete_by_ids(self, ids: Sequence[str]) -> str:
        """See the port."""
        return await self._indexes[await self._shard()].delete_by_ids(ids)

    async def dimensions(self) -> int:
        """See the port. All indexes are made alike."""
        return await self._indexes[HOME].dimensions()

    async def count(self) -> int:
        """See the port."""
        return await self._indexes[await self._shard()].count()

    async def _shard(self) -> str:
        place = current_place()
        if isinstance(place, OfTenant):
            return await self._directory.surely_shard_of(place.tenant_id)
        if isinstance(place, OnShard):
            return place.shard
        raise RetainError("an index was to be asked without a place: this is a fault in Retain")
