"""The tests of a `VectorMemory` that concern what one store takes: all of it or nothing, every id, only real vectors."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import replace

from retain.contracts.vectors import DeletableVectorMemory, VectorDocument, VectorMemory
from retain.identifiers import new_id
from retain.testing.suite import cancelled, check, invariant, raises
from retain.testing.vector_collections import VectorCollections

_INTERRUPTIONS = 12
_MANY = 260
_PROBED = (0, 1, 63, 64, 99, 100, 127, 128, 199, 255, 256, _MANY - 1)
SIMILAR_IDS = (
    "1", "01", "1.0", "1.", "a", "A", "ab", "a ", " a", "a%", "a_", "a*", "a.b", "a:b", "a/b", "../a", "a'b", 'a"b', "%",
    "*", "null", "\u00e9", "e\u0301", "\uff21", "\U0001f980", "x" * 200, "x" * 201,
)  # fmt: skip
"""Different ids that a careless store takes for one another, or for a pattern."""


class VectorStores(VectorCollections):
    """What a store of a `VectorMemory` does when it is interrupted, large, empty, or given what it must not take."""

    @invariant
    async def test_a_store_is_kept_whole_or_not_at_all(self) -> None:
        """A store that fails or is cancelled leaves all of it or nothing; many documents are all kept; none changes none."""
        old = {f"{n}": "old" for n in range(4)}
        new = {f"{n}": "new" for n in range(2, 8)}
        for turns in range(_INTERRUPTIONS):
            memory = await self.open(new_id())
            await memory.store([self.document(id_, 1.0, content=content) for id_, content in old.items()])
            given = [self.document(id_, 1.0, 1.0, content=content) for id_, content in new.items()]
            unfinished = await cancelled(_stored(memory, given), turns)
            found = await self._settled(memory)
            check(found in (old, old | new), "Whole", f"a store that was cancelled left {found}")
            if not unfinished:
                break
        memory = await self.open(new_id())
        await memory.store([self.document(id_, 1.0, content=content) for id_, content in old.items()])
        await memory.store([])
        check(await self.contents(memory) == old, "Whole", "storing no documents changed what is stored")
        await self._many_are_kept()

    @invariant
    async def test_a_refused_store_changes_nothing(self) -> None:
        """A store with one document that is refused stores none of its documents, and replaces none."""
        memory = await self.open(new_id())
        await memory.store([self.document("kept", 1.0, content="old")])
        nothing = await self.contents(memory)
        refused = replace(self.document("bad", 1.0), embedding=[1.0] * (self.dimensions + 1))
        for given in ([self.document("kept", 1.0, content="new"), self.document("valid", 1.0), refused], [refused]):
            await raises(memory.store(given))  # VM2 tests that it does
            found = await self.contents(memory)
            check(found == nothing, "Whole", f"a store with a vector of another length left {found}")

    @invariant
    async def test_ids_are_exact(self) -> None:
        """Ids that differ in anything are different documents: in case, spaces, zeros, or the form of their Unicode."""
        collection = new_id()
        memory = await self.open(collection)
        await memory.store([self.document(id_, 1.0, content=f"of {id_}") for id_ in SIMILAR_IDS])
        expected = {id_: f"of {id_}" for id_ in SIMILAR_IDS}
        await self._has_exactly(memory, expected, "they were stored at once")
        await memory.store([self.document("a", 1.0, content="new")])
        expected["a"] = "new"
        await self._has_exactly(memory, expected, "a was stored again")
        if isinstance(memory, DeletableVectorMemory):
            for id_ in ("%", "*", "a", "1", "e\u0301", "a_", "x" * 200):
                await memory.delete([id_])
                del expected[id_]
                await self._has_exactly(await self.open(collection), expected, f"{id_[:9]!r} was deleted")

    @invariant
    async def test_vectors_without_a_direction_are_refused(self) -> None:
        """A vector with a number that is not finite, or of zeros only, is refused by store and search."""
        memory = await self.open(new_id())
        await memory.store([self.document("kept", 1.0)])
        for what, value in (("NaN", math.nan), ("infinity", math.inf), ("-infinity", -math.inf), ("zeros", 0.0)):
            rest = 0.0 if what == "zeros" else 1.0
            vector = [value, *[rest] * (self.dimensions - 1)]
            bad = replace(self.document("bad", 1.0), embedding=vector)
            check(await raises(memory.store([self.document("valid", 1.0), bad])), "Vectors", f"store took {what}")
            check(await raises(memory.search(vector)), "Vectors", f"search took {what}")
            found = await self.contents(memory)
            check(found == {"kept": "content"}, "Vectors", f"a store of {what} was refused, and left {found}")

    async def _many_are_kept(self) -> None:
        collection = new_id()
        chance = random.Random(5)
        vectors = [[chance.gauss(0.0, 1.0) for _ in range(4)] for _ in range(_MANY)]
        listed = [self.document(f"{n:03}", *each, content=f"{n}") for n, each in enumerate(vectors)]
        documents = tuple(replace(each, embedding=tuple(each.embedding)) for each in listed)
        await (await self.open(collection)).store(documents)
        memory = await self.open(collection)
        for place in _PROBED:
            found = await self.own(memory, *vectors[place], top_k=1)
            check(
                [one.content for one in found] == [f"{place}"],
                "Whole",
                f"of a store of {_MANY} documents, number {place} is not found by its own vector",
            )

    async def _has_exactly(self, memory: VectorMemory, expected: dict[str, str], when: str) -> None:
        found = {one.id: one.content for one in await self.own(memory, 1.0, top_k=40)}
        wrong = sorted(id_[:9] for id_ in found.keys() | expected.keys() if found.get(id_) != expected.get(id_))
        check(not wrong, "Ids", f"after {when}, these documents are lost or wrong: {wrong}")

    async def _settled(self, memory: VectorMemory) -> dict[str, str]:
        """Return what is found once it no longer changes: a cancelled store may still be under way in the store itself."""
        found = await self.contents(memory)
        while (again := await self.contents(memory)) != found:
            found = again
        return found


async def _stored(memory: VectorMemory, documents: Sequence[VectorDocument]) -> None:
    await memory.store(documents)
