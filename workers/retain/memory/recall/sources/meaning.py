"""What the query means: its vector and what the vector index found, joined with what D1 found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from retain.memory.recall.evidence import CosineScale, Evidence, closest, estimated
from retain.memory.recall.preparation import signature
from retain.memory.recall.sources.first_trip import Found
from retain.memory.recall.sources.nearest import CANDIDATES, Nearest, VectorSearch
from retain.ports import Vector

Degradation = Literal["embedding", "vectors", "width", "rerank"]
"""What a recall can do without."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """The query's vector, and what the vector index found. search: None without a vector or scopes.

    unrelated: the model's cosine of unrelated texts. degraded: `embedding` if the model is away.
    """

    vector: Vector
    unrelated: float
    search: VectorSearch | None
    nearest: Nearest
    degraded: tuple[Degradation, ...]


def evidence_of(meant: Meaning, found: Found, named: frozenset[str]) -> Evidence:
    """Return what all sources found together. named: the records of conversations that the query names."""
    scale = CosineScale.of_model(meant.unrelated)
    own = int(signature([meant.vector]), 16) if any(meant.vector) else 0
    lately = found.fresh.nearest(own, {*found.bm25, *found.exact, *meant.nearest.cosine}) if own else {}
    return Evidence(
        cosine={
            **({one: scale.scaled(estimated(own, bits)) for one, bits in found.uttered_then} if own else {}),
            **{one: scale.scaled(cosine) for one, (cosine, _) in lately.items()},
            **meant.nearest.cosine,
            **{one: scale.scaled(cosine) for one, (cosine, changed) in lately.items() if changed},
            **({one: scale.scaled(estimated(own, bits)) for one, bits in found.earlier} if own else {}),
        },
        fresh=found.fresh.all if own else frozenset(),
        floor=meant.nearest.floor,
        query_signature=own,
        bm25=found.bm25,
        context=found.context,
        exact=found.exact,
        matching=[] if found.matching is None else closest(found.matching, own, CANDIDATES),
        met=None if found.matching is None else found.matching.numbers,
        dated=found.dated | meant.nearest.dated | named | frozenset([one for one, _ in found.uttered_then]),
        standing=found.standing,
        indexed=frozenset(meant.nearest.cosine),
        scale=scale,
    )
