"""Documents whose searches are broken: scores, order, bounds and thresholds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from retain.contracts.vectors import RetrievedDocument, VectorDocument
from retain.ports import Vector
from tests.contracts.backends import DIMENSIONS
from tests.contracts.broken.kinds import Broken, Table, replacing
from tests.contracts.broken.sound import SoundVectors
from tests.contracts.broken.vector_collections import VM4

VECTORS = "test_vectors_without_a_direction_are_refused"
VM2 = "test_vm2_vectors_of_another_length_are_refused"
VM3 = "test_vm3_the_highest_scores_come_first_and_ties_go_by_id"
VM5 = "test_vm5_the_threshold_is_exclusive"
VM8 = "test_vm8_documents_are_json"

Found = Iterable[RetrievedDocument]


def ordering(what: str, key: Any) -> Broken:
    """Return documents whose results are ordered by this key."""
    return replacing(what, VM3, SoundVectors, ranked=lambda _, found, top_k: sorted(found, key=key)[:top_k])


def passing(what: str, passes: Any) -> Broken:
    """Return documents whose threshold works in this way."""
    return replacing(what, VM5, SoundVectors, passes=lambda _, score, threshold: passes(score, threshold))


def scoring(what: str, score: Any) -> Broken:
    """Return documents whose scores are this function of the cosine."""
    return replacing(what, VM3, SoundVectors, score=lambda it, query, each: score(SoundVectors.score(it, query, each)))


BROKEN = Table(
    [
        ordering("The results are in the order of their ids.", lambda one: one.id),
        ordering("The lowest scores come first.", lambda one: (one.score, one.id)),
        ordering("Equal scores are ordered by the ids backwards.", lambda one: (-one.score, [-ord(c) for c in one.id])),
        ordering("Equal scores are ordered by ids without case.", lambda one: (-one.score, one.id.lower())),
        ordering("Equal scores are ordered as UTF-16.", lambda one: (-one.score, one.id.encode("utf-16-be"))),
        ordering("Equal scores are ordered by ids as numbers.", lambda one: (-one.score, len(one.id), one.id)),
        ordering("Equal scores are in the order in which they were stored.", lambda one: -one.score),
        ordering("Scores that agree in two digits count as equal.", lambda one: (-round(one.score, 2), one.id)),
        scoring("The distance is the score.", lambda cosine: 1.0 - cosine),
        scoring("The score has no sign.", abs),
        passing("A score equal to the threshold passes.", lambda score, over: over is None or score >= over),
        passing("The threshold 0.0 counts as none.", lambda score, over: not over or score > over),
        passing("A negative threshold counts as zero.", lambda score, over: over is None or score > max(over, 0.0)),
        passing("Negative scores are left out.", lambda score, over: score > (0.0 if over is None else over)),
        passing(
            "The threshold is compared with a rounded score.",
            lambda score, over: over is None or round(score, 3) > over,
        ),
        passing("The threshold is ignored.", lambda _score, _over: True),
    ]
)


@BROKEN.holds("The scores of a search depend on how many are wanted.", VM3)
class RelativeScores(SoundVectors):
    def ranked(self, found: Found, top_k: int) -> list[RetrievedDocument]:
        first = super().ranked(found, top_k)
        return [replace(one, score=one.score + top_k / 1000) for one in first]


@BROKEN.holds("The results are cut before equal scores are ordered.", VM3)
class CutsThenOrders(SoundVectors):
    def ranked(self, found: Found, top_k: int) -> list[RetrievedDocument]:
        nearest = sorted(found, key=lambda one: -one.score)[:top_k]
        return super().ranked(nearest, top_k)


class Changed(SoundVectors):
    """Lets a search be changed as a whole."""

    async def changed(self, embedding: Vector, top_k: int | None, threshold: float | None) -> list[RetrievedDocument]:
        return await super().search(embedding, top_k=10 if top_k is None else top_k, threshold=threshold)

    async def search(
        self, embedding: Vector, *, top_k: int | None = None, threshold: float | None = None
    ) -> list[RetrievedDocument]:
        return await self.changed(embedding, top_k, threshold)


@BROKEN.holds("Fewer than `top_k` results are filled up.", VM4)
class Pads(Changed):
    async def changed(self, embedding: Vector, top_k: int | None, threshold: float | None) -> list[RetrievedDocument]:
        found = await super().changed(embedding, top_k, threshold)
        missing = (10 if top_k is None else top_k) - len(found)
        return found + [RetrievedDocument(f"padding-{place}", "", -2.0) for place in range(missing)]


@BROKEN.holds("One more than `top_k` is returned.", VM4)
class OneMore(Changed):
    async def changed(self, embedding: Vector, top_k: int | None, threshold: float | None) -> list[RetrievedDocument]:
        return await super().changed(embedding, (10 if top_k is None else top_k) + 1, threshold)


@BROKEN.holds("Without `top_k` five documents are returned.", VM4)
class FiveByDefault(Changed):
    async def changed(self, embedding: Vector, top_k: int | None, threshold: float | None) -> list[RetrievedDocument]:
        return await super().changed(embedding, 5 if top_k is None else top_k, threshold)


@BROKEN.holds("A search takes a list only.", VM4)
class SearchesByLists(SoundVectors):
    def query(self, embedding: Vector) -> list[float]:
        return super().query(list.copy(embedding))  # type: ignore[arg-type]


@BROKEN.holds("`top_k` of zero or less is taken as the default.", VM4)
class ZeroIsTen(Changed):
    async def changed(self, embedding: Vector, top_k: int | None, threshold: float | None) -> list[RetrievedDocument]:
        return await super().changed(embedding, top_k if top_k and top_k > 0 else 10, threshold)


@BROKEN.holds("Ids are returned with the name of their collection.", VM4)
class QualifiesIds(SoundVectors):
    def found(self, document: VectorDocument, score: float) -> RetrievedDocument:
        return replace(super().found(document, score), id=f"{self.collection}/{document.id}")


@BROKEN.holds("A document is returned twice.", VM4)
class ReturnsTwice(SoundVectors):
    def ranked(self, found: Found, top_k: int) -> list[RetrievedDocument]:
        first = super().ranked(found, top_k)
        return [*first, *first[-1:]][:top_k] if 0 < len(first) < 4 else first


@BROKEN.holds("Without a threshold there is one of 0.2.", VM5)
class ThresholdByDefault(Changed):
    async def changed(self, embedding: Vector, top_k: int | None, threshold: float | None) -> list[RetrievedDocument]:
        return await super().changed(embedding, top_k, 0.2 if threshold is None and top_k is None else threshold)


@BROKEN.holds("Vectors of another length are cut or filled up.", VM2)
class CutsToLength(SoundVectors):
    def kept(self, document: VectorDocument) -> VectorDocument:
        return super().kept(replace(document, embedding=_fitting(document.embedding)))

    def query(self, embedding: Vector) -> list[float]:
        return super().query(_fitting(embedding))


@BROKEN.holds("A search compares a shorter or longer vector as far as it goes.", VM2)
class SearchesAnyLength(SoundVectors):
    def query(self, embedding: Vector) -> list[float]:
        return super().query(_fitting(embedding))


@BROKEN.holds("A vector's length is checked only if it is longer.", VM2)
class TakesShorter(SoundVectors):
    def kept(self, document: VectorDocument) -> VectorDocument:
        given = document.embedding
        return super().kept(replace(document, embedding=given if len(given) > DIMENSIONS else _fitting(given)))


@BROKEN.holds("A refused store keeps the documents that fit.", VM2)
class KeepsWhatFits(SoundVectors):
    async def store(self, documents: Sequence[VectorDocument]) -> None:
        await super().store([each for each in documents if len(each.embedding) == DIMENSIONS])
        await super().store(documents)


@BROKEN.holds("`search` takes the number of dimensions.", VM2)
class TakesDimensions(Changed):
    async def search(
        self,
        embedding: Vector,
        *,
        top_k: int | None = None,
        threshold: float | None = None,
        dimensions: int = DIMENSIONS,
    ) -> list[RetrievedDocument]:
        return await self.changed(embedding[:dimensions] if dimensions < DIMENSIONS else embedding, top_k, threshold)


def _each(change: Any, *, stores: bool, searches: bool) -> type[SoundVectors]:
    class Changing(SoundVectors):
        def kept(self, document: VectorDocument) -> VectorDocument:
            given = [change(value) for value in document.embedding] if stores else document.embedding
            return super().kept(replace(document, embedding=given))

        def query(self, embedding: Vector) -> list[float]:
            return super().query([change(value) for value in embedding] if searches else embedding)

    return Changing


def _number_or_zero(value: float) -> float:
    return 0.0 if math.isnan(value) else value


def _finite(value: float) -> float:
    return max(-1e30, min(1e30, value))


BROKEN.append(
    Broken(
        "NaN is stored as zero.",
        VECTORS,
        _each(_number_or_zero, stores=True, searches=False),
    )
)
BROKEN.append(Broken("NaN in a query counts as zero.", VECTORS, _each(_number_or_zero, stores=False, searches=True)))
BROKEN.append(Broken("Infinity is stored as a large number.", VECTORS, _each(_finite, stores=True, searches=False)))


@BROKEN.holds("A vector of zeros is stored.", VECTORS)
class StoresZeros(SoundVectors):
    def kept(self, document: VectorDocument) -> VectorDocument:
        some = any(document.embedding) or len(document.embedding) != DIMENSIONS
        return super().kept(document if some else replace(document, embedding=[1e-9] * DIMENSIONS))


@BROKEN.holds("A store with an infinite vector has stored the documents before it.", VECTORS)
class StoresUntilInfinity(SoundVectors):
    async def store(self, documents: Sequence[VectorDocument]) -> None:
        if all(len(each.embedding) == DIMENSIONS for each in documents):
            for each in documents:
                if any(map(math.isinf, each.embedding)):
                    break
                self.put([self.kept(each)])
        await super().store(documents)


@BROKEN.holds("A search by zeros finds nothing.", VECTORS)
class ZerosFindNothing(SoundVectors):
    async def search(
        self, embedding: Vector, *, top_k: int = 10, threshold: float | None = None
    ) -> list[RetrievedDocument]:
        if len(embedding) == DIMENSIONS and not any(embedding):
            return []
        return await super().search(embedding, top_k=top_k, threshold=threshold)


@BROKEN.holds("A document without content has no score, but NaN.", VM8)
class NoContentNoScore(SoundVectors):
    def ranked(self, found: Found, top_k: int) -> list[RetrievedDocument]:
        return [one if one.content else replace(one, score=math.nan) for one in super().ranked(found, top_k)]


@BROKEN.holds("A score is not a JSON number.", VM8)
class DecimalScores(SoundVectors):
    def ranked(self, found: Found, top_k: int) -> list[RetrievedDocument]:
        scored: list[Any] = super().ranked(found, top_k)
        return [replace(one, score=Decimal(one.score)) for one in scored]


def _fitting(vector: Vector) -> Vector:
    return [*vector, *[0.1] * DIMENSIONS][:DIMENSIONS]
