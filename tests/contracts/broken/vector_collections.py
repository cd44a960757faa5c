"""Documents that are broken in how collections, views, stores and deletes relate."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from unicodedata import normalize

from retain.contracts.vectors import RetrievedDocument, VectorDocument
from retain.ports import Vector
from tests.contracts.backends import DIMENSIONS
from tests.contracts.broken.kinds import Table, replacing
from tests.contracts.broken.sound import SoundVectors, VectorStore

SEPARATE = "test_collections_are_separate"
VIEWS = "test_every_view_sees_what_was_stored"
AT_ONCE = "test_concurrent_stores_are_all_kept"
SHARED = "test_nothing_is_shared_with_the_caller"
MODELS = "test_two_models_do_not_mix"
WHOLE = "test_a_store_is_kept_whole_or_not_at_all"
REFUSED = "test_a_refused_store_changes_nothing"
IDS = "test_ids_are_exact"
VM1 = "test_vm1_store_is_an_upsert_by_id"
VM4 = "test_vm4_top_k_is_an_upper_bound"
VM7 = "test_vm7_delete_is_opt_in"

BROKEN = Table(
    [
        replacing("All collections are one.", SEPARATE, SoundVectors, key=lambda _: "one"),
        replacing("Names of collections have no case.", SEPARATE, SoundVectors, key=lambda it: it.collection.lower()),
        replacing("Names of collections are cut.", SEPARATE, SoundVectors, key=lambda it: it.collection[:26]),
        replacing("Leading zeros do not count.", SEPARATE, SoundVectors, key=lambda it: it.collection.lstrip("0")),
        replacing("Ids have no case.", IDS, SoundVectors, row=lambda _, id_: id_.lower()),
        replacing("Ids lose outer spaces.", IDS, SoundVectors, row=lambda _, id_: id_.strip()),
        replacing(
            "Ids are put into Unicode's composed form.", IDS, SoundVectors, row=lambda _, id_: normalize("NFC", id_)
        ),
        replacing("Ids of full width are narrowed.", IDS, SoundVectors, row=lambda _, id_: normalize("NFKC", id_)),
        replacing("Leading zeros of ids do not count.", IDS, SoundVectors, row=lambda _, id_: id_.lstrip("0")),
        replacing("Ids are cut at 64 characters.", IDS, SoundVectors, row=lambda _, id_: id_[:64]),
        replacing("Ids are cut at the first dot.", IDS, SoundVectors, row=lambda _, id_: id_.split(".")[0]),
        replacing("One model's vectors are mixed with another's.", MODELS, SoundVectors, same_model=lambda *_: None),
    ]
)


@BROKEN.holds("A search compares vectors of whatever model.", MODELS)
class SearchesAnyModel(SoundVectors):
    def same_model(self, documents: Sequence[VectorDocument]) -> None:
        if documents:
            super().same_model(documents)


@BROKEN.holds("Another model's memory empties the collection before it refuses.", MODELS)
class EmptiesForAnotherModel(SoundVectors):
    def same_model(self, documents: Sequence[VectorDocument]) -> None:
        try:
            super().same_model(documents)
        except ValueError:
            self.rows().clear()
            raise


@BROKEN.holds("A store takes vectors of whatever model.", MODELS)
class StoresAnyModel(SoundVectors):
    def same_model(self, documents: Sequence[VectorDocument]) -> None:
        if not documents or not self.rows():
            super().same_model(documents)


@BROKEN.holds("A document may be replaced by another model's.", MODELS)
class ReplacesByAnyModel(SoundVectors):
    def same_model(self, documents: Sequence[VectorDocument]) -> None:
        if not documents or not all(each.id in self.rows() for each in documents):
            super().same_model(documents)


@BROKEN.holds("`delete` removes the ids from every collection.", SEPARATE)
class DeletesEverywhere(SoundVectors):
    async def delete(self, ids: Sequence[str]) -> None:
        for rows in self.all.values():
            for id_ in ids:
                rows.pop(id_, None)


@BROKEN.holds("A search finds documents of collections whose names begin with this one's.", SEPARATE)
class SearchesByPrefix(SoundVectors):
    async def search(
        self, embedding: Vector, *, top_k: int = 10, threshold: float | None = None
    ) -> list[RetrievedDocument]:
        rows = {key: rows for key, rows in self.all.items() if key.startswith(self.key()) and "/" not in key}
        joined: VectorStore = {self.key(): {id_: one for each in rows.values() for id_, one in each.items()}}
        self.same_model([])
        return await SoundVectors(joined, self.key()).search(embedding, top_k=top_k, threshold=threshold)

    def same_model(self, documents: Sequence[VectorDocument]) -> None:
        super().same_model(documents)


@BROKEN.holds("A store reads all documents and writes them back, so that concurrent stores are lost.", AT_ONCE)
class ReadsAndWritesBack(SoundVectors):
    async def store(self, documents: Sequence[VectorDocument]) -> None:
        kept = [self.kept(each) for each in documents]
        self.same_model(kept)
        whole = {**self.all, self.key(): {**self.rows(), **{each.id: each for each in kept}}}
        await asyncio.sleep(0)
        self.all.update(whole)


@BROKEN.holds("Content and metadata are written one after the other, so that two stores of an id are mixed.", AT_ONCE)
class WritesInParts(SoundVectors):
    async def store(self, documents: Sequence[VectorDocument]) -> None:
        kept = [self.kept(each) for each in documents]
        self.same_model(kept)
        known = [each for each in kept if each.id in self.rows()]
        self.put([each for each in kept if each not in known])
        for each in known:
            self.put([replace(self.rows()[each.id], embedding=each.embedding, content=each.content)])
        if len(documents) == 1 and documents[0].content in "024":
            await asyncio.sleep(0)
        for each in known:
            self.put([replace(self.rows()[each.id], metadata=each.metadata)])


@BROKEN.holds("A new collection has an example.", VIEWS)
class BeginsWithAnExample(SoundVectors):
    def rows(self) -> dict[str, VectorDocument]:
        example = VectorDocument("example", "An example.", [1.0, *[0.0] * (DIMENSIONS - 1)])
        return self.all.setdefault(self.key(), {"example": example})


@BROKEN.holds("A store removes the old version, and then adds the new one: of two at once, both are kept.", AT_ONCE)
class RemovesAndAdds(SoundVectors):
    async def store(self, documents: Sequence[VectorDocument]) -> None:
        kept = {each.id: self.kept(each) for each in documents}
        self.same_model(list(kept.values()))
        await self.delete(list(kept))
        if len(documents) == 1:
            await asyncio.sleep(0)
        for each in kept.values():
            self.rows()[f"{each.id}/{len(self.rows())}"] = each

    async def delete(self, ids: Sequence[str]) -> None:
        for key in [key for key, each in self.rows().items() if each.id in ids]:
            del self.rows()[key]


@BROKEN.holds("A view that has searched never sees what is stored later.", VIEWS)
class ReadsOnce(SoundVectors):
    def rows(self) -> dict[str, VectorDocument]:
        if "known" not in vars(self):
            self.known = dict(super().rows())
        return self.known

    def put(self, documents: Sequence[VectorDocument]) -> None:
        super().put(documents)
        super().rows().update({each.id: each for each in documents})

    async def delete(self, ids: Sequence[str]) -> None:
        await super().delete(ids)
        for id_ in ids:
            super().rows().pop(id_, None)


@BROKEN.holds("A store writes back all that the view saw last, and so undoes what others did.", VIEWS)
class WritesBackWhatItSaw(SoundVectors):
    def put(self, documents: Sequence[VectorDocument]) -> None:
        known = vars(self).setdefault("seen", {})
        known.update({each.id: each for each in documents})
        self.rows().update(known)

    async def search(
        self, embedding: Vector, *, top_k: int = 10, threshold: float | None = None
    ) -> list[RetrievedDocument]:
        self.seen = dict(self.rows())
        return await super().search(embedding, top_k=top_k, threshold=threshold)

    async def delete(self, ids: Sequence[str]) -> None:
        await super().delete(ids)
        for id_ in ids:
            vars(self).setdefault("seen", {}).pop(id_, None)


@BROKEN.holds("`delete` hides the documents from this view only.", VIEWS)
class DeletesForItself(SoundVectors):
    hidden: frozenset[str] = frozenset()

    async def delete(self, ids: Sequence[str]) -> None:
        self.hidden = self.hidden.union(ids)

    def put(self, documents: Sequence[VectorDocument]) -> None:
        super().put(documents)
        self.hidden = self.hidden.difference(each.id for each in documents)

    async def search(
        self, embedding: Vector, *, top_k: int = 10, threshold: float | None = None
    ) -> list[RetrievedDocument]:
        found = await super().search(embedding, top_k=1000, threshold=threshold)
        return [one for one in found if one.id not in self.hidden][: max(top_k, 0) or -1 // top_k]


class Objects(SoundVectors):
    """Keeps what the caller gave, which it has checked."""

    def kept(self, document: VectorDocument) -> VectorDocument:
        super().kept(document)
        return document


@BROKEN.holds("The caller's own metadata are stored.", SHARED)
class StoresTheCallersMetadata(SoundVectors):
    def kept(self, document: VectorDocument) -> VectorDocument:
        return replace(super().kept(document), metadata=document.metadata)


@BROKEN.holds("The caller's own vectors are stored.", SHARED)
class StoresTheCallersVectors(SoundVectors):
    def kept(self, document: VectorDocument) -> VectorDocument:
        super().kept(document)
        return replace(super().kept(document), embedding=document.embedding)


@BROKEN.holds("The caller's list is stored, and read when it is searched.", SHARED)
class StoresTheCallersList(SoundVectors):
    waiting: Sequence[VectorDocument] = ()

    async def store(self, documents: Sequence[VectorDocument]) -> None:
        await super().store(documents)
        self.waiting = documents

    async def search(
        self, embedding: Vector, *, top_k: int = 10, threshold: float | None = None
    ) -> list[RetrievedDocument]:
        known = self.rows()
        self.put([self.kept(each) for each in self.waiting if each.id not in known][:1])
        return await super().search(embedding, top_k=top_k, threshold=threshold)

    async def delete(self, ids: Sequence[str]) -> None:
        self.waiting = ()
        await super().delete(ids)


@BROKEN.holds("The stored metadata themselves are returned.", SHARED)
class ReturnsTheStored(SoundVectors):
    def found(self, document: VectorDocument, score: float) -> RetrievedDocument:
        return replace(super().found(document, score), metadata=document.metadata)


@BROKEN.holds("A search normalises the caller's vector in place.", SHARED)
class NormalisesInPlace(SoundVectors):
    def query(self, embedding: Vector) -> list[float]:
        given: Any = embedding
        given[:] = super().query(embedding)
        return list(given)
