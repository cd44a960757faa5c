"""The contract of documents that are found by vector search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from retain.json_text import JsonObject
from retain.ports import Vector

Metadata = JsonObject
"""A JSON object. The store does not interpret it."""


@dataclass(frozen=True, slots=True)
class VectorDocument:
    """One document to store.

    id: text without NUL, of 1 to 512 bytes as UTF-8. embedding: of `content`, by the model that the caller chose; finite
    numbers, not all zeros.
    """

    id: str
    content: str
    embedding: Vector
    metadata: Metadata = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RetrievedDocument:
    """One document that was found. score: higher is nearer; comparable within one backend."""

    id: str
    content: str
    score: float
    metadata: Metadata = field(default_factory=dict)


class VectorMemory(Protocol):
    """Documents of one namespace, which the constructor determines.

    VM1. Store is an upsert by id: a document with a known id replaces the stored one as a whole; that is not an error.
    VM2. The constructor determines the number of dimensions: no method has it as an argument. A vector of another
        length is refused, by store and by search, and nothing of that store is kept.
    VM3. Results are ordered by score, the highest first; equal scores by id, in the order of code points. One backend
        has one metric.
    VM4. `top_k` is an upper bound: where fewer documents match, fewer are returned, and none is made up. What was deleted
        or replaced takes no place.
    VM5. `threshold` is exclusive: only documents with a score greater than it are returned.
    VM6. Metadata are opaque: they are returned as they were given, and neither their keys nor their values change what is
        found. Filters are not part of the contract.
    VM7. Deleting is opt-in: `DeletableVectorMemory`. A backend that does not offer it has no such method.
    VM8. Documents are JSON except for their vectors: what was stored is returned equal, and can be written as JSON and
        stored elsewhere. What JSON cannot express is refused, and nothing of that store is kept.

    Collections are separate: no method reaches the documents of another namespace.
    Views agree: a search that begins after a store or a delete returned sees it, through whichever object, and whatever
    the underlying index shows by then.
    Stores are whole: one that raised leaves all documents as they were, one that was cancelled has stored all or nothing.
    Of concurrent stores none is lost; of those with one id, one is kept as a whole.
    Ids are exact: those that differ in anything are different documents.
    Vectors have a direction: a number that is not finite, or zeros only, are refused by store and search.
    Nothing is shared: what a caller changes later, in what it stored or found, changes nothing that is stored.
    Models do not mix: a backend that keeps its embedding model's name refuses to store and to search another model's
    vectors. Keeping it is opt-in; all of Retain's backends do.

    Stability: stable. docs/contracts.md says what that promises.
    """

    async def store(self, documents: Sequence[VectorDocument]) -> None:
        """Store the documents, all of them or none (VM1). Of equal ids the last wins. Idempotent.

        Raises: InvalidInput (code `vector_dimensions`, `vector_not_finite`, `vector_is_zero`, `invalid_document`);
            LimitExceeded (code `vector_document_too_large`); Unavailable.
        """
        ...

    async def search(
        self, embedding: Vector, *, top_k: int = 10, threshold: float | None = None
    ) -> list[RetrievedDocument]:
        """Return at most `top_k` documents, the nearest first (VM3), of those with a score above the threshold (VM5).

        top_k: at least 1. threshold: None for all documents, also those with negative scores.

        Raises: InvalidInput (code `vector_dimensions`, `vector_not_finite`, `vector_is_zero`, `vector_top_k`);
            LimitExceeded (code `vector_top_k_too_large`) if the backend has a bound; Unavailable.
        """
        ...


@runtime_checkable
class DeletableVectorMemory(VectorMemory, Protocol):
    """Documents that can be deleted (VM7)."""

    async def delete(self, ids: Sequence[str]) -> None:
        """Remove the documents, so that no search that begins later finds them. Absent ids are not an error."""
        ...
