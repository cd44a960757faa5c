"""Documents whose stores and deletes are broken."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from retain.contracts.vectors import RetrievedDocument, VectorDocument
from tests.contracts.broken.kinds import Table
from tests.contracts.broken.sound import SoundVectors
from tests.contracts.broken.vector_collections import IDS, REFUSED, VM1, VM4, VM7, WHOLE

BROKEN = Table()


@BROKEN.holds("A store writes one document after the other, and may be cancelled between them.", WHOLE)
class StoresOneByOne(SoundVectors):
    async def store(self, documents: Sequence[VectorDocument]) -> None:
        kept = [self.kept(each) for each in documents]
        self.same_model(kept)
        for place, each in enumerate(kept):
            self.put([each])
            if len(kept) == 6 and place < 5:
                await asyncio.sleep(0)


@BROKEN.holds("A store takes lists only, as documents and as vectors.", WHOLE)
class StoresLists(SoundVectors):
    def kept(self, document: VectorDocument) -> VectorDocument:
        return super().kept(replace(document, embedding=list.copy(document.embedding)))  # type: ignore[arg-type]


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


@BROKEN.holds("`delete` takes a list of ids only.", VM7)
class DeletesLists(SoundVectors):
    async def delete(self, ids: Sequence[str]) -> None:
        await super().delete(list.copy(ids))  # type: ignore[arg-type]


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
