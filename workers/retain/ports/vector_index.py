"""A vector index as a port, with what it is given and what it finds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

Vector = Sequence[float]
MetadataValue = str | int | float | bool
MetadataFilter = Mapping[str, MetadataValue | Mapping[str, MetadataValue | Sequence[MetadataValue]]]
"""Vectorize's filter: field to value, or field to {operator: value}, with $eq $ne $in $nin $lt $lte $gt $gte."""


@dataclass(frozen=True, slots=True)
class VectorEntry:
    """One vector to write: id (at most 64 bytes), values, namespace (at most 64 bytes), metadata (at most 10 KiB)."""

    id: str
    values: Vector
    namespace: str
    metadata: Mapping[str, MetadataValue] = field(default_factory=dict)


PropertyType = Literal["string", "number", "boolean"]
"""The type of the values of a property with a metadata index."""


@dataclass(frozen=True, slots=True)
class VectorMatch:
    """One hit: id, cosine similarity in [-1, 1], and the metadata when asked for."""

    id: str
    score: float
    metadata: Mapping[str, MetadataValue] = field(default_factory=dict)


class VectorIndex(Protocol):
    """A vector index with Vectorize's rules.

    Writes may be asynchronous: a vector may become visible `lag_ms` after `upsert` returned, as on Vectorize.
    Source: https://developers.cloudflare.com/vectorize/platform/limits/
    """

    @property
    def filterable(self) -> Mapping[str, PropertyType]:
        """The properties by which a query may filter, and the type of their values."""
        ...

    @property
    def lag_ms(self) -> int:
        """For how long after `upsert` or `delete_by_ids` returned a query may answer as before; 0 if it never does."""
        ...

    async def upsert(self, entries: Sequence[VectorEntry]) -> str:
        """Write at most 1,000 vectors, replacing those with equal ids; return the mutation's id. Idempotent.

        Raises: LimitExceeded; InvalidInput for a wrong number of dimensions; Unavailable.
        """
        ...

    async def query(
        self,
        vector: Vector,
        *,
        namespace: str,
        filter: MetadataFilter,  # noqa: A002 -- the platform's name
        top_k: int,
        with_metadata: bool = False,
    ) -> list[VectorMatch]:
        """Return the `top_k` nearest vectors of the namespace that pass the filter, best first.

        The filter is applied before the search. top_k: at most 100, or 20 with metadata.
        """
        ...

    async def get_by_ids(self, ids: Sequence[str]) -> list[VectorEntry]:
        """Return those of the at most 20 ids that exist, in any order."""
        ...

    async def delete_by_ids(self, ids: Sequence[str]) -> str:
        """Remove at most 1,000 vectors; return the mutation's id. Absent ids are not an error."""
        ...

    async def dimensions(self) -> int:
        """Return the number of dimensions that the index was created with."""
        ...

    async def count(self) -> int:
        """Return the number of vectors, in all namespaces. It may lag like the vectors themselves."""
        ...
