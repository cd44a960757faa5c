"""The tests of a `VectorMemory` that concern several collections, several views of one, and what callers hold."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Self

from retain.contracts.vectors import DeletableVectorMemory, RetrievedDocument, VectorDocument, VectorMemory
from retain.identifiers import new_id
from retain.json_text import Json
from retain.testing.chat_sessions import similar
from retain.testing.suite import Suite, check, exact, invariant, raises

Opening = Callable[[str, str], Awaitable[VectorMemory]]


class VectorCollections(Suite):
    """What a `VectorMemory` keeps apart: collections, models, and its own copy from its callers'."""

    dimensions = 8
    """Length of the vectors that the opened memories take; at least 4."""
    _ids: frozenset[str] = frozenset()

    async def open(self, collection: str) -> VectorMemory:
        """Return the memory of a collection, which is empty when it is new. Opened again, it has what was stored.

        collection: 1 to 64 ASCII letters and digits, never used by another test. Names that differ only in case, in
        leading zeros, or in that one begins with the other are different collections.
        """
        raise NotImplementedError("override this to open a collection of your backend")

    async def open_of_model(self, collection: str, model: str) -> VectorMemory | None:  # noqa: ARG002
        """Return the memory of a collection for the vectors of this embedding model; None if it keeps no model's name."""
        return None

    @classmethod
    def of(
        cls,
        open_collection: Callable[[str], Awaitable[VectorMemory]],
        *,
        dimensions: int,
        open_of_model: Opening | None = None,
    ) -> Self:
        """Return the suite of the backend that `open_collection` opens, for `cases`."""
        suite = cls()
        suite.dimensions = dimensions
        setattr(suite, "open", open_collection)  # noqa: B010 -- the type checker sees a method
        if open_of_model is not None:
            setattr(suite, "open_of_model", open_of_model)  # noqa: B010
        return suite

    @invariant
    async def test_collections_are_separate(self) -> None:
        """No store, no search and no delete reaches another collection, whatever its name."""
        names = similar(new_id())
        kept = {name: {"a": name, "b": name} for name in names}
        await asyncio.gather(
            *[
                (await self.open(name)).store([self.document(id_, 1.0, content=name) for id_ in ("a", "b")])
                for name in names
            ]
        )
        await self._each_has(kept, "all were stored at once")
        for name in names:
            memory = await self.open(name)
            if not isinstance(memory, DeletableVectorMemory):
                return
            await memory.delete(["a"])
            kept[name] = {"b": name}
            await self._each_has(kept, f"a was deleted from {name}")

    @invariant
    async def test_every_view_sees_what_was_stored(self) -> None:
        """A search that begins after a store or a delete returned sees it, through whichever object; none is lost."""
        collection = new_id()
        views = [await self.open(collection), await self.open(collection)]
        for view in views:
            found = await self.search(view, 1.0)
            check(not found, "Views", f"a new collection has {found}")
        expected: dict[str, str] = {}
        for turn, name in enumerate(("a", "b", "a", "c")):
            content = f"{name} of turn {turn}"
            await views[turn % 2].store([self.document(name, 1.0, turn / 4, content=content)])
            expected[name] = content
            await self._all_see(collection, views, expected)
        if isinstance(views[0], DeletableVectorMemory):
            await views[0].delete(["a"])
            del expected["a"]
            await self._all_see(collection, views, expected)
            await views[1].store([self.document("a", 1.0, content="again")])
            expected["a"] = "again"
            await self._all_see(collection, views, expected)
        for turn, name in enumerate(("d", "e", "a", "f")):
            await views[turn % 2].store([self.document(name, 1.0, content="without a search between")])
            expected[name] = "without a search between"
        await self._all_see(collection, views, expected)

    @invariant
    async def test_concurrent_stores_are_all_kept(self) -> None:
        """Of stores at the same time none is lost, and of those with one id one is kept as a whole."""
        collection = new_id()
        views = [await self.open(collection), await self.open(collection)]
        await asyncio.gather(*[views[n % 2].store([self.document(f"{n}", 1.0, n / 8)]) for n in range(8)])
        found = await self.contents(views[0])
        check(len(found) == 8, "Concurrency", f"of eight stores at once, {sorted(found)} were kept")
        collection = new_id()
        views = [await self.open(collection), await self.open(collection)]
        versions = [self.document("a", 1.0, n, content=f"{n}", metadata={"n": n}) for n in range(6)]
        scores = {}
        for each in versions:
            await views[0].store([each])
            scores[each.content] = (await self.only(views[0])).score
        await asyncio.gather(*[views[n % 2].store([each]) for n, each in enumerate(versions)])
        last = await self.only(views[1])
        score = scores.get(last.content, math.nan)
        check(
            last.metadata.get("n") == int(last.content) and math.isclose(last.score, score, abs_tol=1e-6),
            "Concurrency",
            f"stores of one id at once were mixed: {last}",
        )

    @invariant
    async def test_nothing_is_shared_with_the_caller(self) -> None:
        """What the caller changes later, in what was stored or in what was found, changes nothing that is stored."""
        collection = new_id()
        memory = await self.open(collection)
        metadata: dict[str, Any] = {"list": [{"n": 1}], "text": "x"}
        vector = self.vector(1.0)
        documents = [VectorDocument("a", "content", vector, metadata)]
        self.claim("a", "b")
        await memory.store(documents)
        kept = exact(await self.only(memory))
        metadata["list"][0]["n"] = 2
        metadata["added"] = True
        vector[:] = self.vector(-1.0)
        documents.append(VectorDocument("b", "content", self.vector(1.0)))
        await self._still(collection, memory, kept, "what was stored")
        found, other = await self.only(memory), await self.only(memory)
        changed: Any = found.metadata
        changed["list"].append("added")
        changed.pop("text")
        check(exact(other) == kept, "Aliasing", "two searches share metadata")
        await self._still(collection, memory, kept, "what was found")
        query = [3.0 * value for value in self.vector(1.0, 2.0)]
        given = list(query)
        await memory.search(query)
        check(query == given, "Aliasing", "search changed the caller's vector")

    @invariant
    async def test_two_models_do_not_mix(self) -> None:
        """If a memory keeps its embedding model's name, vectors of another model are neither stored nor searched."""
        collection = new_id()
        memory = await self.open_of_model(collection, "model-a")
        other = await self.open_of_model(collection, "model-b")
        if memory is None or other is None:
            return
        await memory.store([self.document("a", 1.0)])
        mixed = "it searched one model's documents with another model's vector"
        check(await raises(other.search(self.vector(1.0))), "Models", mixed)
        check(await raises(other.store([self.document("b", 1.0)])), "Models", "it stored two models' vectors together")
        replaced = "it replaced a document by another model's"
        check(await raises(other.store([self.document("a", 0.0, 1.0)])), "Models", replaced)
        again = await self.open_of_model(collection, "model-a")
        check(again is not None and list(await self.contents(again)) == ["a"], "Models", "the documents are lost")

    def vector(self, *leading: float) -> list[float]:
        """Return a vector of length one that begins in these proportions."""
        norm = math.hypot(*leading)
        return [*(value / norm for value in leading), *[0.0] * (self.dimensions - len(leading))]

    def claim(self, *ids: str) -> None:
        """Note that the test stores documents with these ids."""
        self._ids = self._ids.union(ids)

    def document(
        self, id_: str, *leading: float, content: str = "content", metadata: dict[str, Json] | None = None
    ) -> VectorDocument:
        """Return a document with the vector that begins in these proportions."""
        self.claim(id_)
        return VectorDocument(id_, content, self.vector(*leading), metadata or {})

    async def search(
        self, memory: VectorMemory, *leading: float, top_k: int = 20, threshold: float | None = None
    ) -> list[RetrievedDocument]:
        """Return what is found near the vector that begins in these proportions."""
        return await memory.search(self.vector(*leading), top_k=top_k, threshold=threshold)

    async def own(
        self, memory: VectorMemory, *leading: float, top_k: int = 20, threshold: float | None = None
    ) -> list[RetrievedDocument]:
        """Return which of the test's documents were found; VM4 tests that nothing else is."""
        found = await self.search(memory, *leading, top_k=top_k, threshold=threshold)
        return [one for one in found if one.id in self._ids]

    async def only(self, memory: VectorMemory) -> RetrievedDocument:
        """Return the only document of the test's that the memory has."""
        found = await self.own(memory, 1.0)
        check(len(found) == 1, "VM1", f"one document was stored, and {len(found)} are found")
        return found[0]

    async def contents(self, memory: VectorMemory) -> dict[str, str]:
        """Return the contents of the test's documents, of at most twenty, by id."""
        return {one.id: one.content for one in await self.own(memory, 1.0)}

    async def _each_has(self, kept: dict[str, dict[str, str]], when: str) -> None:
        for name, expected in kept.items():
            found = await self.contents(await self.open(name))
            check(found == expected, "Collections", f"after {when}, {name} has {found}")

    async def _all_see(self, collection: str, views: Sequence[VectorMemory], expected: dict[str, str]) -> None:
        for view in (*views, await self.open(collection)):
            found = await self.contents(view)
            check(found == expected, "Views", f"stored are {expected}, a view finds {found}")

    async def _still(self, collection: str, memory: VectorMemory, kept: object, what: str) -> None:
        for view in (memory, await self.open(collection)):
            found = await self.own(view, 1.0)
            check([exact(one) for one in found] == [kept], "Aliasing", f"the caller changed {what}, and it is {found}")
