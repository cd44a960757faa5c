"""The conformance suite of `VectorMemory`: VM1 to VM8."""

from __future__ import annotations

import inspect
import json
import math
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, replace
from typing import Any

from retain.contracts.vectors import DeletableVectorMemory, RetrievedDocument, VectorDocument, VectorMemory
from retain.identifiers import new_id
from retain.json_text import Json
from retain.testing.suite import Suite, check, invariant

_OPAQUE: tuple[dict[str, Json], ...] = (
    {},
    {"kind": "note"},
    {
        "$gt": 1,
        "a.b": 2,
        '"': 3,
        "": 4,
        "id": "x",
        "score": -1,
        "content": "other",
        "tenant_id": "*",
        "namespace": None,
    },
    {"nested": {"list": [1, 2.5, None, True, False, "", {"deep": [[]]}]}, "big": 2**53 + 1, "text": "é 🦀 \0"},
)
_CONTENTS = (
    "",
    "Hello.",
    "Grüße, 你好 🦀",
    "line\nline",
    "NUL \0 inside",
    "\u2028\ufeff",
    '["not", "a list"]',
    "x" * 5000,
)
_NOT_JSON: tuple[tuple[str, Any], ...] = (
    ("an object", object()),
    ("a set", {1, 2}),
    ("not a number", math.nan),
    ("bytes", b"bytes"),
)


class VectorMemorySuite(Suite):
    """The tests of a `VectorMemory`. Name the subclass `Test…`, override `open`, and pytest runs them."""

    dimensions = 8
    """Length of the vectors that the opened memories take; at least 4."""
    _ids: frozenset[str] = frozenset()

    async def open(self, collection: str) -> VectorMemory:
        """Return the memory of a collection, which is empty when it is new. Opened again, it has what was stored.

        collection: 26 letters and digits, never used by another test.
        """
        raise NotImplementedError("override this to open a collection of your backend")

    @classmethod
    def of(cls, open_collection: Callable[[str], Awaitable[VectorMemory]], *, dimensions: int) -> VectorMemorySuite:
        """Return the suite of the backend that `open_collection` opens, for `cases`."""
        suite = cls()
        suite.dimensions = dimensions
        setattr(suite, "open", open_collection)  # noqa: B010 -- the type checker sees a method
        return suite

    @invariant
    async def test_vm1_store_is_an_upsert_by_id(self) -> None:
        """A second document with an id replaces the first as a whole; of two in one call the last wins."""
        collection = new_id()
        memory = await self.open(collection)
        await memory.store([self._document("a", 1.0, content="first", metadata={"only": "in the first"})])
        await self._stored(memory, [self._document("a", 0.0, 1.0, content="second")])
        for again in (memory, await self.open(collection)):
            found = await self._own(again, 0.0, 1.0)
            kept = [(one.id, one.content, dict(one.metadata)) for one in found]
            check(kept == [("a", "second", {})], "VM1", f"after a second store of the id the memory has {kept}")
        nearest = await self._own(memory, 0.0, 1.0)
        farther = await self._own(memory, 1.0, 0.0)
        check(nearest[0].score > farther[0].score, "VM1", "a replaced document is found by the vector it had before")
        await self._stored(memory, [self._document("b", 1.0, content="one"), self._document("b", 1.0, content="two")])
        found = [one for one in await self._own(memory, 1.0) if one.id == "b"]
        check([one.content for one in found] == ["two"], "VM1", "of two documents with one id, not the last was kept")

    @invariant
    async def test_vm2_vectors_of_another_length_are_refused(self) -> None:
        """The constructor determines the length: no method takes it, and a vector of another length is an error."""
        memory = await self.open(new_id())
        for method in (memory.store, memory.search):
            named = [name for name in inspect.signature(method).parameters if "dimension" in name]
            check(not named, "VM2", f"a method takes {named}")
        await memory.store([self._document("kept", 1.0)])
        for length in (self.dimensions - 1, self.dimensions + 1):
            other = [1.0] * length
            wrong = replace(self._document("wrong", 1.0), embedding=other)
            how = f"{length} dimensions where {self.dimensions} were configured"
            check(await _raises(memory.store([self._document("valid", 1.0), wrong])), "VM2", f"store took {how}")
            check(await _raises(memory.search(other)), "VM2", f"search took {how}")
        found = [one.id for one in await self._own(memory, 1.0)]
        check(found == ["kept"], "VM2", f"stores that were refused left {found}")

    @invariant
    async def test_vm3_the_highest_scores_come_first_and_ties_go_by_id(self) -> None:
        """Scores never rise along the results, ties are ordered by id, and a document's score does not depend on top_k."""
        memory = await self.open(new_id())
        chance = random.Random(7)
        documents = [
            self._document(f"{chance.randrange(10**6)}-{number}", *(chance.gauss(0.0, 1.0) for _ in range(4)))
            for number in range(40)
        ]
        twins = [self._document(name, 0.3, 0.7, 0.1) for name in ("d", "b", "é", "a", "c", "B")]
        for some in (documents[:25], twins, documents[25:]):
            await memory.store(some)
        for query in ((1.0,), (1.0, 1.0), (0.3, 0.7, 0.1), (-1.0, 0.5), (0.0, 0.0, 1.0, 1.0)):
            found = await self._own(memory, *query, top_k=46)
            order = [(-one.score, one.id) for one in found]
            check(
                order == sorted(order), "VM3", f"the results are not ordered: {[(one.score, one.id) for one in found]}"
            )
            few = (await self._own(memory, *query, top_k=5))[:5]
            same = {one.id: one.score for one in found}
            check(all(same.get(one.id) == one.score for one in few), "VM3", "a score depends on how many are wanted")
        nearest = await self._own(memory, 0.3, 0.7, 0.1, top_k=6)
        check(
            {one.id for one in nearest[:6]} == {one.id for one in twins}, "VM3", "the equal vectors are not the nearest"
        )

    @invariant
    async def test_vm4_top_k_is_an_upper_bound(self) -> None:
        """At most top_k documents are returned: missing ones are not invented."""
        memory = await self.open(new_id())
        check(await self._search(memory, 1.0) == [], "VM4", "an empty memory returned documents")
        stored = [self._document(name, 1.0, step) for name, step in (("a", 0.0), ("b", 0.5), ("c", 1.0))]
        await memory.store(stored)
        for top_k, expected in ((1, 1), (2, 2), (3, 3), (4, 3), (50, 3)):
            found = await self._search(memory, 1.0, top_k=top_k)
            check(len(found) == expected, "VM4", f"{len(found)} results for top_k={top_k} over three documents")
            check(
                {one.id for one in found} <= {"a", "b", "c"} and len({one.id for one in found}) == len(found),
                "VM4",
                f"results that were never stored: {[one.id for one in found]}",
            )

    @invariant
    async def test_vm5_the_threshold_is_exclusive(self) -> None:
        """A document whose score equals the threshold is not returned; one with a greater score is."""
        memory = await self.open(new_id())
        await memory.store([self._document(f"{n}", 1.0, n / 4) for n in range(6)])
        scores = {one.id: one.score for one in await self._own(memory, 1.0)}
        check(len(scores) == 6, "VM5", f"without a threshold {len(scores)} of six documents were found")
        for limit in sorted(scores.values()):
            for threshold in (limit, math.nextafter(limit, -math.inf)):
                found = {one.id for one in await self._own(memory, 1.0, threshold=threshold)}
                over = {id_ for id_, score in scores.items() if score > threshold}
                check(found == over, "VM5", f"for the threshold {threshold} it returned {found}, above it are {over}")

    @invariant
    async def test_vm6_metadata_are_opaque(self) -> None:
        """Any JSON metadata are returned equal, and have no influence on what is found."""
        memory = await self.open(new_id())
        await memory.store([self._document(f"{n}", 1.0, metadata=each) for n, each in enumerate(_OPAQUE)])
        found = {one.id: one for one in await self._own(memory, 1.0)}
        check(
            len(found) == len(_OPAQUE), "VM6", f"of documents that differ in their metadata, {sorted(found)} were found"
        )
        for number, given in enumerate(_OPAQUE):
            back = dict(found[f"{number}"].metadata)
            check(_text(back) == _text(given), "VM6", f"the metadata {given!r} were returned as {back!r}")
        check(len({one.score for one in found.values()}) == 1, "VM6", "metadata changed a score")

    @invariant
    async def test_vm7_delete_is_opt_in(self) -> None:
        """If a memory has `delete`, it removes documents; a memory that cannot has no such method."""
        collection = new_id()
        memory = await self.open(collection)
        if not isinstance(memory, DeletableVectorMemory):
            return
        await memory.store([self._document(name, 1.0) for name in ("a", "b", "c")])
        try:
            await memory.delete(["a", "absent"])
            await memory.delete(["a"])
            await memory.delete([])
        except Exception as error:
            raise AssertionError(f"VM7: it has a delete, which raised {type(error).__name__}") from error
        for again in (memory, await self.open(collection)):
            left = {one.id for one in await self._own(again, 1.0)}
            check(left == {"b", "c"}, "VM7", f"of a, b and c, a was deleted, and {sorted(left)} are left")
        await memory.store([self._document("a", 1.0, content="new")])
        found = {one.id: one.content for one in await self._own(memory, 1.0)}
        check(found.get("a") == "new", "VM7", "what was deleted cannot be stored again")

    @invariant
    async def test_vm8_documents_are_json(self) -> None:
        """Contents are returned equal and results are JSON; a store with anything that is not JSON is refused as a whole."""
        memory = await self.open(new_id())
        await memory.store([self._document(f"{n}", 1.0, content=each) for n, each in enumerate(_CONTENTS)])
        found = {one.id: one for one in await self._own(memory, 1.0)}
        for number, content in enumerate(_CONTENTS):
            back = found[f"{number}"]
            check(back.content == content, "VM8", f"the content {content!r} was returned as {back.content!r}")
            written = asdict(back)
            check(json.loads(json.dumps(written)) == written, "VM8", f"{back!r} is not JSON")
        for what, value in _NOT_JSON:
            bad = self._document("bad", 1.0, metadata={"value": value})
            check(
                await _raises(memory.store([self._document("valid", 1.0), bad])), "VM8", f"it took {what} as metadata"
            )
        left = {one.id for one in await self._own(memory, 1.0)}
        check(left == set(found), "VM8", f"stores that were refused left {sorted(left - set(found))}")

    def _vector(self, *leading: float) -> list[float]:
        norm = math.hypot(*leading)
        return [*(value / norm for value in leading), *[0.0] * (self.dimensions - len(leading))]

    def _document(
        self, id_: str, *leading: float, content: str = "content", metadata: dict[str, Json] | None = None
    ) -> VectorDocument:
        self._ids = self._ids | {id_}
        return VectorDocument(id_, content, self._vector(*leading), metadata or {})

    async def _search(
        self, memory: VectorMemory, *leading: float, top_k: int = 20, threshold: float | None = None
    ) -> list[RetrievedDocument]:
        return await memory.search(self._vector(*leading), top_k=top_k, threshold=threshold)

    async def _own(
        self, memory: VectorMemory, *leading: float, top_k: int = 20, threshold: float | None = None
    ) -> list[RetrievedDocument]:
        """Return which of the suite's documents were found; VM4 tests that nothing else is."""
        found = await self._search(memory, *leading, top_k=top_k, threshold=threshold)
        return [one for one in found if one.id in self._ids]

    async def _stored(self, memory: VectorMemory, documents: Sequence[VectorDocument]) -> None:
        try:
            await memory.store(documents)
        except Exception as error:
            raise AssertionError(f"VM1: storing a known id again raised {type(error).__name__}") from error


async def _raises(work: Awaitable[object]) -> bool:
    try:
        await work
    except Exception:  # noqa: BLE001 -- the backend chooses the error
        return True
    return False


def _text(value: object) -> str:
    return json.dumps(value, sort_keys=True)
