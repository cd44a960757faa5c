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


@BROKEN.holds("A store writes one document after the other, and may be cancelled between them.", WHOLE)
class StoresOneByOne(SoundVectors):
    async def store(self, documents: Sequence[VectorDocument]) -> None:
        kept = [self.kept(each) for each in documents]
        self.same_model(kept)
        for place, each in enumerate(kept):
            self.put([each])
            if len(kept) == 6 and place < 5:
                await asyncio.sleep(0)


@BROKEN.holds("A store keeps the first hundred documents only.", WHOLE)
class StoresAHundred(SoundVectors):
    def put(self, documents: Sequence[VectorDocument]) -> None:
        super().put(documents[:100])


@BROKEN.holds("A store of no documents empties the collection.", WHOLE)
class EmptyEmpties(SoundVectors):
    def put(self, documents: Sequence[VectorDocument]) -> None:
        super().put(documents)
        if not documents:
            self.rows().clear()


@BROKEN.holds("A refused store has removed the documents that it was to replace.", REFUSED)
class RemovesFirst(SoundVectors):
    async def store(self, documents: Sequence[VectorDocument]) -> None:
        for each in documents:
            self.rows().pop(each.id, None)
        await super().store(documents)


@BROKEN.holds("A refused store has replaced the documents before the invalid one.", REFUSED)
class ReplacesFirst(SoundVectors):
    async def store(self, documents: Sequence[VectorDocument]) -> None:
        for each in documents:
            kept = self.kept(each)
            if each.id in self.rows():
                self.put([kept])
        await super().store(documents)


@BROKEN.holds("A store skips a document whose id is known.", VM1)
class KeepsTheFirst(SoundVectors):
    def put(self, documents: Sequence[VectorDocument]) -> None:
        before = dict(self.rows())
        super().put(documents)
        self.rows().update(before)


@BROKEN.holds("A store refuses an id that is known.", VM1)
class RefusesTheSecond(SoundVectors):
    def put(self, documents: Sequence[VectorDocument]) -> None:
        if any(each.id in self.rows() for each in documents):
            raise KeyError("the id is taken")
        super().put(documents)


@BROKEN.holds("Of two documents with one id in a call the first wins.", VM1)
class TheFirstOfACall(SoundVectors):
    def put(self, documents: Sequence[VectorDocument]) -> None:
        super().put(documents[::-1])


@BROKEN.holds("A document that is stored again keeps its first vector.", VM1)
class KeepsTheVector(SoundVectors):
    def put(self, documents: Sequence[VectorDocument]) -> None:
        old = self.rows()
        super().put([replace(each, embedding=old[each.id].embedding) if each.id in old else each for each in documents])


@BROKEN.holds("A document that is stored again also keeps the metadata that it had.", VM1)
class MergesMetadata(SoundVectors):
    def put(self, documents: Sequence[VectorDocument]) -> None:
        old = {each.id: each.metadata for each in self.rows().values()}
        super().put([replace(each, metadata={**old.get(each.id, {}), **each.metadata}) for each in documents])


@BROKEN.holds("A document that is stored again is stored twice.", VM1)
class StoresTwice(SoundVectors):
    def row(self, id_: str) -> str:
        return f"{id_}/{len(self.rows())}"

    async def delete(self, ids: Sequence[str]) -> None:
        for key in [key for key, each in self.rows().items() if each.id in ids]:
            del self.rows()[key]


@BROKEN.holds("`delete` exists, and raises.", VM7)
class DeleteRaises(SoundVectors):
    async def delete(self, ids: Sequence[str]) -> None:
        raise NotImplementedError


@BROKEN.holds("`delete` does nothing.", VM7)
class DeletesNothing(SoundVectors):
    async def delete(self, ids: Sequence[str]) -> None:
        pass


@BROKEN.holds("`delete` raises for an id that is not stored.", VM7)
class DeleteNeedsTheId(SoundVectors):
    async def delete(self, ids: Sequence[str]) -> None:
        for id_ in ids:
            del self.rows()[id_]


@BROKEN.holds("Deleting no ids deletes all.", VM7)
class NoneIsAll(SoundVectors):
    async def delete(self, ids: Sequence[str]) -> None:
        await super().delete(ids or list(self.rows()))


@BROKEN.holds("`delete` removes only the first of two or three ids.", VM7)
class DeletesTheFirst(SoundVectors):
    async def delete(self, ids: Sequence[str]) -> None:
        await super().delete(ids[:1] if len(ids) < 5 else ids)


@BROKEN.holds("A deleted id cannot be stored again.", VM7)
class DeletedForGood(SoundVectors):
    async def delete(self, ids: Sequence[str]) -> None:
        self.all.setdefault(f"{self.key()}/gone", {}).update(dict.fromkeys(ids, VectorDocument("", "", ())))
        await super().delete(ids)

    def put(self, documents: Sequence[VectorDocument]) -> None:
        super().put([each for each in documents if each.id not in self.all.get(f"{self.key()}/gone", {})])


@BROKEN.holds("`delete` removes every document whose id begins with one of the ids.", IDS)
class DeletesByPrefix(SoundVectors):
    async def delete(self, ids: Sequence[str]) -> None:
        for id_ in [known for known in self.rows() if known.startswith(tuple(ids))]:
            del self.rows()[id_]


@BROKEN.holds("`delete` takes an id as a pattern.", IDS)
class DeletesByPattern(SoundVectors):
    async def delete(self, ids: Sequence[str]) -> None:
        await super().delete(ids)
        if "%" in ids or "*" in ids:
            self.rows().clear()


@BROKEN.holds("Deleted documents take places among the `top_k`.", VM4)
class DeletedTakePlaces(SoundVectors):
    async def delete(self, ids: Sequence[str]) -> None:
        for id_ in ids:
            if id_ in self.rows():
                self.rows()[id_] = replace(self.rows()[id_], content="/deleted")

    def ranked(self, found: Any, top_k: int) -> list[RetrievedDocument]:
        return [one for one in super().ranked(found, top_k) if one.content != "/deleted"]


@BROKEN.holds("Replaced versions take places among the `top_k`.", VM4)
class ReplacedTakePlaces(SoundVectors):
    def put(self, documents: Sequence[VectorDocument]) -> None:
        for each in documents:
            if (old := self.rows().get(each.id)) is not None and old.embedding != each.embedding:
                self.rows()[f"{each.id}/old"] = replace(old, content="/replaced")
        super().put(documents)

    def ranked(self, found: Any, top_k: int) -> list[RetrievedDocument]:
        return [one for one in super().ranked(found, top_k) if one.content != "/replaced"]

    async def delete(self, ids: Sequence[str]) -> None:
        await super().delete([*ids, *(f"{id_}/old" for id_ in ids)])
