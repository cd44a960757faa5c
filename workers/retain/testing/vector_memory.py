"""The conformance suite of `VectorMemory`: VM1 to VM8, and the tests of `vector_collections` and `vector_stores`."""

from __future__ import annotations

import inspect
import json
import math
import random
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from retain.contracts.vectors import DeletableVectorMemory, VectorDocument, VectorMemory
from retain.identifiers import new_id
from retain.json_text import Json, read_own_json
from retain.testing.suite import check, exact, invariant, raises
from retain.testing.vector_stores import VectorStores

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
    {
        "one": 1,
        "float": 1.0,
        "true": True,
        "number": "007",
        "date": "2026-01-01",
        "Key": "A",
        "key": "a",
        "u\u0308": "\u00fc",
    },
    {"zero": 0, "zero.0": 0.0, "no": False, "none": None, "text": "", "list": [], "object": {}, "space": " x "},
    {"nested": {"list": [1, 2.5, None, True, False, "", {"deep": [[]]}]}, "big": 2**53 + 1, "text": "é 🦀 \0"},
)
_LONG = 200_000
_CONTENTS = (
    "",
    "Hello.",
    "Grüße, 你好 🦀",
    "Gr\u00fc\u00dfe and Gru\u0308\u00dfe",
    "line\nline\r\n ",
    "&lt;b&gt; %s {} \\n",
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
    ("a tuple", (1, 2)),
    ("a key that is not text", {1: "one"}),
    ("text that is not Unicode", "\ud800"),
)


class VectorMemorySuite(VectorStores):
    """The tests of a `VectorMemory`. Name the subclass `Test…`, override `open`, and pytest runs them."""

    @invariant
    async def test_vm1_store_is_an_upsert_by_id(self) -> None:
        """A second document with an id replaces the first as a whole; of two in one call the last wins."""
        collection = new_id()
        memory = await self.open(collection)
        await memory.store([self.document("a", 1.0, content="first", metadata={"only": "in the first"})])
        await self._stored(memory, [self.document("a", 0.0, 1.0, content="second")])
        for again in (memory, await self.open(collection)):
            found = await self.own(again, 0.0, 1.0)
            kept = [(one.id, one.content, dict(one.metadata)) for one in found]
            check(kept == [("a", "second", {})], "VM1", f"after a second store of the id the memory has {kept}")
        nearest = [one.score for one in await self.own(memory, 0.0, 1.0)]
        farther = [one.score for one in await self.own(memory, 1.0, 0.0)]
        check(nearest > farther, "VM1", "a replaced document is found by the vector it had before")
        await self._stored(memory, [self.document("b", 1.0, content="one"), self.document("b", 1.0, content="two")])
        found = [one for one in await self.own(memory, 1.0) if one.id == "b"]
        check([one.content for one in found] == ["two"], "VM1", "of two documents with one id, not the last was kept")

    @invariant
    async def test_vm2_vectors_of_another_length_are_refused(self) -> None:
        """The constructor determines the length: no method takes it, and a vector of another length is an error."""
        memory = await self.open(new_id())
        for method in (memory.store, memory.search):
            named = [name for name in inspect.signature(method).parameters if "dimension" in name]
            check(not named, "VM2", f"a method takes {named}")
        await memory.store([self.document("kept", 1.0)])
        for length in (0, 1, self.dimensions - 1, self.dimensions + 1, 2 * self.dimensions):
            other = [1.0] * length
            wrong = replace(self.document("wrong", 1.0), embedding=other)
            how = f"{length} dimensions where {self.dimensions} were configured"
            check(await raises(memory.store([self.document("valid", 1.0), wrong])), "VM2", f"store took {how}")
            check(await raises(memory.search(other)), "VM2", f"search took {how}")
        found = [one.id for one in await self.own(memory, 1.0)]
        check(found == ["kept"], "VM2", f"stores that were refused left {found}")

    @invariant
    async def test_vm3_the_highest_scores_come_first_and_ties_go_by_id(self) -> None:
        """Scores never rise along the results, ties are ordered by id, and a document's score does not depend on top_k."""
        memory = await self.open(new_id())
        chance = random.Random(7)
        documents = [
            self.document(f"{chance.randrange(10**6)}-{number}", *(chance.gauss(0.0, 1.0) for _ in range(4)))
            for number in range(40)
        ]
        twins = [self.document(name, 0.3, 0.7, 0.1) for name in ("d", "b", "\U0001f980", "a", "10", "B", "9", "\uff21")]
        for some in (documents[:25], twins, documents[25:]):
            await memory.store(some)
        for query in ((1.0,), (1.0, 1.0), (0.3, 0.7, 0.1), (-1.0, 0.5), (0.0, 0.0, 1.0, 1.0)):
            found = await self.own(memory, *query, top_k=48)
            order = [(-one.score, one.id) for one in found]
            check(
                order == sorted(order), "VM3", f"the results are not ordered: {[(one.score, one.id) for one in found]}"
            )
            for few in (1, 3, 5):
                first = [(-one.score, one.id) for one in await self.own(memory, *query, top_k=few)]
                check(first == order[:few], "VM3", f"of {few} wanted it returned {first}, of all {order[:few]}")
        await memory.store([self.document("opposite", -0.3, -0.7, -0.1)])
        last = (await self.own(memory, 0.3, 0.7, 0.1, top_k=49))[-1:]
        nearest = await self.own(memory, 0.3, 0.7, 0.1, top_k=8)
        ends = [sorted(one.id for one in nearest), [one.id for one in last]]
        expected = [sorted(one.id for one in twins), ["opposite"]]
        check(
            ends == expected, "VM3", f"the nearest and the farthest are {ends}, not the equal and the opposite vectors"
        )

    @invariant
    async def test_vm4_top_k_is_an_upper_bound(self) -> None:
        """At most top_k documents are returned: missing ones are not invented."""
        memory = await self.open(new_id())
        check(await self.search(memory, 1.0) == [], "VM4", "an empty memory returned documents")
        stored = [self.document(name, 1.0, step) for name, step in (("a", 0.0), ("b", 0.5), ("c", 1.0))]
        await memory.store(stored)
        for top_k, expected in ((1, 1), (2, 2), (3, 3), (4, 3), (50, 3)):
            found = await self.search(memory, 1.0, top_k=top_k)
            check(len(found) == expected, "VM4", f"{len(found)} results for top_k={top_k} over three documents")
            check(
                {one.id for one in found} <= {"a", "b", "c"} and len({one.id for one in found}) == len(found),
                "VM4",
                f"results that were never stored: {[one.id for one in found]}",
            )
        await memory.store([self.document(f"{n:02}", 1.0, n / 20) for n in range(12)])
        check(len(await memory.search(tuple(self.vector(1.0)))) == 10, "VM4", "without top_k it does not return ten")
        for top_k in (0, -1):
            check(await raises(self.search(memory, 1.0, top_k=top_k)), "VM4", f"it took top_k={top_k}")
        await self._the_removed_take_no_place()

    @invariant
    async def test_vm5_the_threshold_is_exclusive(self) -> None:
        """A document whose score equals the threshold is not returned; one with a greater score is."""
        memory = await self.open(new_id())
        await memory.store([self.document(f"{n}", 1.0, n / 4) for n in range(6)])
        await memory.store([self.document("across", 0.0, 0.0, 1.0), self.document("opposite", -1.0)])
        scores = {one.id: one.score for one in await self.own(memory, 1.0)}
        check(len(scores) == 8, "VM5", f"without a threshold {len(scores)} of eight documents were found")
        check(len(await memory.search(self.vector(1.0))) == 8, "VM5", "there is a threshold where none was given")
        for limit in sorted({0.0, *scores.values()}):
            for threshold in (limit, math.nextafter(limit, -math.inf), math.nextafter(limit, math.inf)):
                found = {one.id for one in await self.own(memory, 1.0, threshold=threshold)}
                over = {id_ for id_, score in scores.items() if score > threshold}
                check(found == over, "VM5", f"for the threshold {threshold} it returned {found}, above it are {over}")

    @invariant
    async def test_vm6_metadata_are_opaque(self) -> None:
        """Any JSON metadata are returned equal, and have no influence on what is found."""
        memory = await self.open(new_id())
        await memory.store([self.document(f"{n}", 1.0, metadata=each) for n, each in enumerate(_OPAQUE)])
        found = {one.id: one for one in await self.own(memory, 1.0)}
        check(
            len(found) == len(_OPAQUE), "VM6", f"of documents that differ in their metadata, {sorted(found)} were found"
        )
        for number, given in enumerate(_OPAQUE):
            back = dict(found[f"{number}"].metadata)
            check(found[f"{number}"].content == "content", "VM6", f"the metadata {given!r} changed a content")
            check(exact(back) == exact(given), "VM6", f"the metadata {given!r} were returned as {back!r}")
        check(len({one.score for one in found.values()}) == 1, "VM6", "metadata changed a score")

    @invariant
    async def test_vm7_delete_is_opt_in(self) -> None:
        """If a memory has `delete`, it removes documents; a memory that cannot has no such method."""
        collection = new_id()
        memory = await self.open(collection)
        if not isinstance(memory, DeletableVectorMemory):
            return
        await memory.store([self.document(name, 1.0) for name in ("a", "b", "c", "d")])
        for ids, expected in (([], "abcd"), (["absent", "a", "a", "d"], "bc"), (["a"], "bc")):
            try:
                await memory.delete(tuple(ids))
            except Exception as error:
                raise AssertionError(f"VM7: it has a delete, which raised {type(error).__name__} for {ids}") from error
            for again in (memory, await self.open(collection)):
                left = {one.id for one in await self.own(again, 1.0)}
                check(left == set(expected), "VM7", f"of a to d, {ids} were deleted, and {sorted(left)} are left")
        await memory.store([self.document("a", 1.0, content="new")])
        found = {one.id: one.content for one in await self.own(memory, 1.0)}
        check(found.get("a") == "new", "VM7", "what was deleted cannot be stored again")

    @invariant
    async def test_vm8_documents_are_json(self) -> None:
        """Contents are returned equal and results are JSON; a store with anything that is not JSON is refused as a whole."""
        memory = await self.open(new_id())
        await memory.store([self.document(f"{n}", 1.0, content=each) for n, each in enumerate(_CONTENTS)])
        found = {one.id: one for one in await self.own(memory, 1.0)}
        for number, content in enumerate(_CONTENTS):
            back = found[f"{number}"]
            check(back.content == content, "VM8", f"the content {content!r} was returned as {back.content!r}")
            written = asdict(back)
            check(read_own_json(json.dumps(written)) == written, "VM8", f"{back!r} is not JSON")
        await self._long_contents_are_kept_or_refused(memory)
        for what, value in _NOT_JSON:
            bad = self.document("bad", 1.0, metadata={"value": value})
            check(await raises(memory.store([self.document("valid", 1.0), bad])), "VM8", f"it took {what} as metadata")
        left = {one.id for one in await self.own(memory, 1.0)} - {"long"}
        check(left == set(found), "VM8", f"stores that were refused left {sorted(left - set(found))}")

    async def _long_contents_are_kept_or_refused(self, memory: VectorMemory) -> None:
        content = "é" * _LONG
        if await raises(memory.store([self.document("long", 1.0, content=content)])):
            return
        kept = (await self.contents(memory)).get("long", "")
        check(
            kept == content, "VM8", f"of a content of {_LONG} characters {len(kept)} were kept, and store did not raise"
        )

    async def _the_removed_take_no_place(self) -> None:
        near = [f"near-{n}" for n in range(12)]
        for remove in (True, False):
            memory = await self.open(new_id())
            await memory.store([self.document(id_, 1.0) for id_ in near])
            await memory.store([self.document("far", 0.2, 1.0)])
            if not remove:
                await memory.store([self.document(id_, 0.0, 0.0, 1.0) for id_ in near])
            elif isinstance(memory, DeletableVectorMemory):
                await memory.delete(near)
            else:
                continue
            found = [one.id for one in await self.own(memory, 1.0, top_k=1)]
            how = "deleted" if remove else "replaced"
            check(found == ["far"], "VM4", f"documents that were {how} take a place: top_k=1 found {found}")

    async def _stored(self, memory: VectorMemory, documents: Sequence[VectorDocument]) -> None:
        try:
            await memory.store(documents)
        except Exception as error:
            raise AssertionError(f"VM1: storing a known id again raised {type(error).__name__}") from error
