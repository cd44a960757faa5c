"""The contract of `retain.ports.VectorIndex`.

Each case works in its own namespace, so they may share an index, whatever its dimensions (at least four) and
whatever else it has. Writes must be visible when they return: no index of Vectorize itself guarantees that, its
stand-in does when no visibility delay is set.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass

from retain.errors import InvalidInput, LimitExceeded
from retain.identifiers import new_id
from retain.ports import MetadataFilter, MetadataValue, VectorEntry, VectorIndex, VectorMatch
from tests.ports import raises

NOTHING: Mapping[str, MetadataValue] = {}

_TEXT_BYTES = 10 * 1024 - len('{"text":""}')
"""The length of the text that fills an entry's metadata."""


@dataclass(frozen=True)
class _Place:
    """A fresh namespace of the index. Names of entries are short; their ids begin with the namespace."""

    index: VectorIndex
    dimensions: int
    namespace: str

    def id(self, name: str) -> str:
        return f"{self.namespace}-{name}"

    def vector(self, *leading: float) -> list[float]:
        """Return a vector that begins with these values and continues with zeros."""
        return [*leading, *[0.0] * (self.dimensions - len(leading))]

    def entry(self, name: str, *leading: float, metadata: Mapping[str, MetadataValue] = NOTHING) -> VectorEntry:
        return VectorEntry(self.id(name), self.vector(*leading), self.namespace, metadata)

    async def put(self, *entries: VectorEntry) -> str:
        return await self.index.upsert(entries)

    async def search(
        self, *leading: float, criteria: MetadataFilter | None = None, top_k: int = 20, with_metadata: bool = False
    ) -> list[VectorMatch]:
        return await self.index.query(
            self.vector(*leading),
            namespace=self.namespace,
            filter=criteria or {},
            top_k=top_k,
            with_metadata=with_metadata,
        )

    async def names(self, *leading: float, criteria: MetadataFilter | None = None, top_k: int = 20) -> list[str]:
        """Return the names of the found entries, best first."""
        matches = await self.search(*leading, criteria=criteria, top_k=top_k)
        return [match.id.removeprefix(f"{self.namespace}-") for match in matches]


async def _place(index: VectorIndex) -> _Place:
    return _Place(index, await index.dimensions(), new_id())


async def check_the_nearest_are_first_with_their_cosine_similarity(index: VectorIndex) -> None:
    place = await _place(index)
    await place.put(
        place.entry("opposite", -2.0),
        place.entry("same", 5.0),
        place.entry("near", 1.0, 1.0),
        place.entry("right angle", 0.0, 3.0),
    )
    found = await place.search(0.5)
    assert [match.id for match in found] == [place.id(name) for name in ("same", "near", "right angle", "opposite")]
    for match, expected in zip(found, (1.0, math.sqrt(0.5), 0.0, -1.0), strict=True):
        assert abs(match.score - expected) < 1e-6
        assert -1.0 <= match.score <= 1.0


async def check_vectors_of_all_namespaces_are_counted(index: VectorIndex) -> None:
    before = await index.count()
    for place in (await _place(index), await _place(index)):
        await place.put(place.entry("one", 1.0), place.entry("two", 2.0))
    assert await index.count() == before + 4


async def check_every_similarity_is_within_its_bounds(index: VectorIndex) -> None:
    place = await _place(index)
    chance = random.Random(7)
    vectors = [[chance.gauss(0.0, 1.0) for _ in range(place.dimensions)] for _ in range(100)]
    await index.upsert([VectorEntry(place.id(str(n)), vector, place.namespace) for n, vector in enumerate(vectors)])
    for vector in vectors[:50]:
        [match] = await place.search(*vector, top_k=1)
        assert 1.0 - 1e-6 < match.score <= 1.0


async def check_equal_scores_are_ordered_by_id(index: VectorIndex) -> None:
    place = await _place(index)
    await place.put(*(place.entry(name, 0.3, 0.7, 0.1) for name in ("d", "b", "é", "a", "c", "B")))
    assert await place.names(1.0, 1.0) == ["B", "a", "b", "c", "d", "é"]
    assert await place.names(1.0, 1.0, top_k=2) == ["B", "a"]


async def check_at_most_top_k_are_returned(index: VectorIndex) -> None:
    place = await _place(index)
    await place.put(*(place.entry(f"{number:03}", 1.0, number / 50) for number in range(120)))
    nearest_first = [f"{number:03}" for number in range(120)]
    assert await place.names(1.0, top_k=1) == nearest_first[:1]
    assert await place.names(1.0, top_k=7) == nearest_first[:7]
    assert await place.names(1.0, top_k=100) == nearest_first[:100]


async def check_fewer_than_top_k_are_returned_when_there_are_fewer(index: VectorIndex) -> None:
    place = await _place(index)
    await place.put(place.entry("only", 1.0))
    assert await place.names(0.0, 1.0, top_k=100) == ["only"]


async def check_an_empty_namespace_has_no_matches(index: VectorIndex) -> None:
    place = await _place(index)
    assert await place.search(1.0) == []
    assert await place.search(1.0, criteria={"kind": "fact"}) == []


async def check_an_upsert_replaces_the_whole_entry(index: VectorIndex) -> None:
    place = await _place(index)
    await place.put(place.entry("a", 1.0, metadata={"kind": "fact", "subject": "sara"}))
    await place.put(place.entry("a", 0.0, 1.0, metadata={"kind": "event"}))
    [match] = await place.search(0.0, 1.0, with_metadata=True)
    assert abs(match.score - 1.0) < 1e-6
    assert dict(match.metadata) == {"kind": "event"}
    assert await place.names(1.0, criteria={"subject": "sara"}) == []


async def check_writing_the_same_again_changes_nothing(index: VectorIndex) -> None:
    place = await _place(index)
    entries = [place.entry("a", 1.0, 0.2), place.entry("b", 1.0, 0.4)]
    await place.put(*entries)
    before = await place.search(1.0)
    await place.put(*entries)
    assert await place.search(1.0) == before


async def check_an_id_belongs_to_one_namespace_at_a_time(index: VectorIndex) -> None:
    first, second = await _place(index), await _place(index)
    await first.put(first.entry("a", 1.0))
    await index.upsert([VectorEntry(first.id("a"), first.vector(1.0), second.namespace)])
    assert await first.search(1.0) == []
    assert [match.id for match in await second.search(1.0)] == [first.id("a")]


async def check_namespaces_are_isolated(index: VectorIndex) -> None:
    first, second = await _place(index), await _place(index)
    await first.put(first.entry("mine", 1.0, metadata={"tenant_id": "a"}))
    await second.put(second.entry("theirs", 1.0, metadata={"tenant_id": "a"}))
    for criteria in ({}, {"tenant_id": "a"}):
        assert await first.names(1.0, criteria=criteria) == ["mine"]
        assert await second.names(1.0, criteria=criteria) == ["theirs"]


async def check_every_filter_operator_selects_its_entries(index: VectorIndex) -> None:
    place = await _place(index)
    await place.put(
        *(
            place.entry(name, 1.0, number / 10, metadata={"kind": kind, "created_at": at})
            for number, (name, kind, at) in enumerate([("a", "fact", 10), ("b", "event", 20), ("c", "task", 30.5)])
        )
    )
    table: list[tuple[MetadataFilter, list[str]]] = [
        ({}, ["a", "b", "c"]),
        ({"kind": "fact"}, ["a"]),
        ({"kind": {"$eq": "event"}}, ["b"]),
        ({"kind": {"$ne": "event"}}, ["a", "c"]),
        ({"kind": {"$in": ["task", "fact", "absent"]}}, ["a", "c"]),
        ({"kind": {"$nin": ["task", "absent"]}}, ["a", "b"]),
        ({"created_at": 20}, ["b"]),
        ({"created_at": {"$in": [10, 30.5]}}, ["a", "c"]),
        ({"created_at": {"$lt": 20}}, ["a"]),
        ({"created_at": {"$lte": 20}}, ["a", "b"]),
        ({"created_at": {"$gt": 20}}, ["c"]),
        ({"created_at": {"$gte": 20.0}}, ["b", "c"]),
        ({"created_at": {"$gt": 10, "$lt": 30.5}}, ["b"]),
        ({"created_at": {"$gte": 10, "$lte": 30.5}}, ["a", "b", "c"]),
        ({"kind": {"$gte": "ev", "$lt": "fb"}}, ["a", "b"]),
        ({"kind": {"$gt": "event"}}, ["a", "c"]),
        ({"kind": {"$ne": "task"}, "created_at": {"$gt": 10}}, ["b"]),
        ({"kind": "fact", "created_at": 20}, []),
    ]
    for criteria, expected in table:
        assert await place.names(1.0, criteria=criteria) == expected, criteria


async def check_an_entry_without_the_property_passes_only_negations(index: VectorIndex) -> None:
    place = await _place(index)
    await place.put(
        place.entry("bare", 1.0), place.entry("dressed", 1.0, 0.1, metadata={"subject": "x", "created_at": 0})
    )
    assert await place.names(1.0, criteria={"subject": {"$ne": "x"}}) == ["bare"]
    assert await place.names(1.0, criteria={"subject": {"$nin": ["y"]}}) == ["bare", "dressed"]
    for criteria in ({"subject": {"$gte": ""}}, {"created_at": {"$lte": 0}}, {"created_at": {"$in": [0]}}):
        assert await place.names(1.0, criteria=criteria) == ["dressed"], criteria


async def check_the_filter_is_applied_before_the_search(index: VectorIndex) -> None:
    place = await _place(index)
    await place.put(
        place.entry("far", -1.0, 0.1, metadata={"agent_id": "wanted"}),
        place.entry("farther", -1.0, 0.0, metadata={"agent_id": "wanted"}),
    )
    for start in (0, 1000):
        await place.put(
            *(
                place.entry(f"near{number}", 1.0, number / 10000, metadata={"agent_id": "other"})
                for number in range(start, start + 1000)
            )
        )
    assert await place.names(1.0, criteria={"agent_id": "wanted"}, top_k=5) == ["far", "farther"]


async def check_a_filter_compares_the_first_64_bytes_of_a_string(index: VectorIndex) -> None:
    place = await _place(index)
    shared = "x" * 64
    # The last character begins at byte 63, so the index keeps only the 63 bytes before it.
    wide = "x" * 63
    await place.put(
        place.entry("a", 1.0, 0.0, metadata={"subject": shared + "-one"}),
        place.entry("b", 1.0, 0.1, metadata={"subject": shared + "-two"}),
        place.entry("c", 1.0, 0.2, metadata={"subject": wide + "é-one"}),
        place.entry("d", 1.0, 0.3, metadata={"subject": wide}),
    )
    assert await place.names(1.0, criteria={"subject": shared + "-one"}) == ["a", "b"]
    assert await place.names(1.0, criteria={"subject": {"$ne": shared}}) == ["c", "d"]
    assert await place.names(1.0, criteria={"subject": {"$in": [wide + "ü"]}}) == ["c", "d"]
    assert await place.names(1.0, criteria={"subject": {"$gt": shared + "-one"}}) == []


async def check_strings_are_ordered_by_code_point(index: VectorIndex) -> None:
    place = await _place(index)
    # In UTF-16 the emoji's first unit is smaller than the private-use character.
    await place.put(
        place.entry("emoji", 1.0, metadata={"subject": "\U0001f600"}),
        place.entry("private", 1.0, metadata={"subject": "\ue000"}),
        place.entry("\U0001f600", -1.0),
        place.entry("\ue000", -1.0),
    )
    assert await place.names(1.0, criteria={"subject": {"$gt": "\ue000"}}) == ["emoji"]
    assert await place.names(-1.0, top_k=2) == ["\ue000", "\U0001f600"]


async def check_metadata_is_returned_whole_and_only_on_request(index: VectorIndex) -> None:
    place = await _place(index)
    metadata: dict[str, MetadataValue] = {
        "subject": "é" * 50,
        "unindexed": "yes",
        "ratio": 0.5,
        "count": 3,
        "flag": True,
    }
    await place.put(place.entry("a", 1.0, metadata=metadata))
    [bare] = await place.search(1.0)
    assert dict(bare.metadata) == {}
    [dressed] = await place.search(1.0, with_metadata=True)
    assert dict(dressed.metadata) == metadata
    assert dressed.metadata["flag"] is True


async def check_get_by_ids_returns_those_that_exist(index: VectorIndex) -> None:
    place = await _place(index)
    await place.put(place.entry("a", 0.1, 2.0, metadata={"kind": "fact"}), place.entry("b", 3.0))
    found = {entry.id: entry for entry in await index.get_by_ids([place.id("b"), place.id("absent"), place.id("a")])}
    assert found.keys() == {place.id("a"), place.id("b")}
    entry = found[place.id("a")]
    assert entry.namespace == place.namespace
    assert dict(entry.metadata) == {"kind": "fact"}
    assert len(entry.values) == place.dimensions
    # Values are returned as they were given, not normalised, with the precision of 32-bit floats.
    assert all(abs(got - given) < 1e-7 for got, given in zip(entry.values, place.vector(0.1, 2.0), strict=True))
    assert await index.get_by_ids([]) == []


async def check_deleted_vectors_are_gone_and_absent_ids_are_not_an_error(index: VectorIndex) -> None:
    place = await _place(index)
    await place.put(place.entry("a", 1.0), place.entry("b", 1.0, 0.1), place.entry("c", 1.0, 0.2))
    await index.delete_by_ids([place.id("a"), place.id("absent")])
    await index.delete_by_ids([place.id("a")])
    assert await place.names(1.0) == ["b", "c"]
    assert await index.get_by_ids([place.id("a")]) == []
    await place.put(place.entry("a", 1.0))
    assert await place.names(1.0) == ["a", "b", "c"]


async def check_a_thousand_vectors_are_written_and_deleted_in_one_call(index: VectorIndex) -> None:
    place = await _place(index)
    entries = [place.entry(f"{number:04}", 1.0, number / 1000) for number in range(1000)]
    await place.put(*entries)
    assert await place.names(1.0, top_k=2) == ["0000", "0001"]
    await index.delete_by_ids([entry.id for entry in entries[:-1]] + [place.id("absent")])
    assert await place.names(1.0) == ["0999"]


async def check_every_mutation_has_its_own_id(index: VectorIndex) -> None:
    place = await _place(index)
    mutations = [await place.put(place.entry("a", 1.0)), await place.put(place.entry("a", 1.0))]
    mutations.append(await index.delete_by_ids([place.id("a")]))
    mutations.append(await index.delete_by_ids([]))
    assert all(mutations)
    assert len(set(mutations)) == len(mutations)


async def check_the_largest_allowed_is_accepted(index: VectorIndex) -> None:
    place = await _place(index)
    id_ = place.namespace + "é" * 19
    namespace = "n" * 38 + place.namespace
    text = "x" * _TEXT_BYTES
    await index.upsert([VectorEntry(id_, place.vector(1.0), namespace, {"text": text})])
    filled = {"subject": {"$in": ["x" * (2047 - len('{"subject":{"$in":[""]}}'))]}}
    assert await index.query(place.vector(1.0), namespace=namespace, filter=filled, top_k=100) == []
    [match] = await index.query(place.vector(1.0), namespace=namespace, filter={}, top_k=20, with_metadata=True)
    assert match.id == id_
    assert match.metadata["text"] == text


async def check_more_than_the_limits_is_refused(index: VectorIndex) -> None:
    place = await _place(index)
    vector = place.vector(1.0)
    writes: list[tuple[str, list[VectorEntry]]] = [
        ("vector_id_too_long", [VectorEntry("x" * 65, vector, place.namespace)]),
        ("vector_id_too_long", [VectorEntry("é" * 33, vector, place.namespace)]),
        ("vector_namespace_too_long", [VectorEntry("x", vector, "é" * 33)]),
        ("vector_metadata_too_large", [place.entry("a", 1.0, metadata={"text": "é" + "x" * (_TEXT_BYTES - 1)})]),
        ("vector_batch_too_large", [place.entry(str(number), 1.0) for number in range(1001)]),
    ]
    for code, entries in writes:
        with raises(LimitExceeded, code=code):
            await index.upsert(entries)
    with raises(LimitExceeded, code="vector_top_k_too_large"):
        await place.search(1.0, top_k=101)
    with raises(LimitExceeded, code="vector_top_k_too_large"):
        await place.search(1.0, top_k=21, with_metadata=True)
    with raises(LimitExceeded, code="vector_filter_too_large"):
        await place.search(1.0, criteria={"subject": {"$in": ["x" * (2048 - len('{"subject":{"$in":[""]}}'))]}})
    with raises(LimitExceeded, code="vector_namespace_too_long"):
        await index.query(vector, namespace="n" * 65, filter={}, top_k=1)
    with raises(LimitExceeded, code="vector_ids_too_many"):
        await index.get_by_ids([str(number) for number in range(21)])
    with raises(LimitExceeded, code="vector_ids_too_many"):
        await index.delete_by_ids([str(number) for number in range(1001)])
    with raises(LimitExceeded, code="vector_id_too_long"):
        await index.delete_by_ids(["x" * 65])


async def check_wrong_dimensions_are_refused(index: VectorIndex) -> None:
    place = await _place(index)
    for values in (place.vector(1.0)[:-1], [*place.vector(1.0), 0.0], []):
        with raises(InvalidInput, code="vector_dimensions"):
            await index.upsert([VectorEntry("a", values, place.namespace)])
        with raises(InvalidInput, code="vector_dimensions"):
            await index.query(values, namespace=place.namespace, filter={}, top_k=1)


async def check_meaningless_values_are_refused(index: VectorIndex) -> None:
    place = await _place(index)
    writes: list[tuple[str, list[VectorEntry]]] = [
        ("vector_batch_empty", []),
        ("vector_id_empty", [VectorEntry("", place.vector(1.0), place.namespace)]),
        ("vector_namespace_empty", [VectorEntry("a", place.vector(1.0), "")]),
        ("vector_is_zero", [place.entry("a")]),
        ("vector_not_finite", [place.entry("a", math.nan)]),
        ("vector_not_finite", [place.entry("a", -math.inf)]),
        ("vector_not_finite", [place.entry("a", 1e39)]),
        ("invalid_metadata", [place.entry("a", 1.0, metadata={"": 1})]),
        ("invalid_metadata", [place.entry("a", 1.0, metadata={"a.b": 1})]),
        ("invalid_metadata", [place.entry("a", 1.0, metadata={"$a": 1})]),
        ("invalid_metadata", [place.entry("a", 1.0, metadata={'a"': 1})]),
        ("invalid_metadata", [place.entry("a", 1.0, metadata={"a": math.inf})]),
        ("invalid_metadata", [place.entry("a", 1.0, metadata={"a": 2**53 + 1})]),
        ("unsupported_value", [VectorEntry("\ud800", place.vector(1.0), place.namespace)]),
    ]
    for code, entries in writes:
        with raises(InvalidInput, code=code):
            await index.upsert(entries)
    for vector, code in (((), "vector_is_zero"), ((math.nan,), "vector_not_finite")):
        with raises(InvalidInput, code=code):
            await place.search(*vector)
    with raises(InvalidInput, code="vector_top_k"):
        await place.search(1.0, top_k=0)
    with raises(InvalidInput, code="vector_namespace_empty"):
        await index.query(place.vector(1.0), namespace="", filter={}, top_k=1)


async def check_an_invalid_filter_is_refused(index: VectorIndex) -> None:
    place = await _place(index)
    await place.put(place.entry("a", 1.0, metadata={"kind": "fact", "created_at": 1}))
    filters: list[MetadataFilter] = [
        {"unindexed": "x"},
        {"": "x"},
        {"kind": {}},
        {"kind": 5},
        {"kind": True},
        {"kind": {"$in": []}},
        {"kind": {"$in": ["fact", 5]}},
        {"kind": {"$in": "fact"}},
        {"kind": {"$eq": ["fact"]}},
        {"kind": {"$like": "f"}},
        {"kind": {"eq": "fact"}},
        {"kind": {"$eq": "fact", "$ne": "event"}},
        {"kind": {"$eq": "fact", "$gt": "a"}},
        {"created_at": {"$gt": 1, "$gte": 2}},
        {"created_at": {"$gt": 1, "$lt": 3, "$lte": 2}},
        {"created_at": "1"},
        {"created_at": True},
        {"created_at": math.nan},
        {"created_at": {"$lt": "1"}},
        {"subject": "\ud800"},
    ]
    for criteria in filters:
        with raises(InvalidInput, code="invalid_filter"):
            await place.search(1.0, criteria=criteria)


async def check_a_refused_batch_writes_nothing(index: VectorIndex) -> None:
    place = await _place(index)
    with raises(LimitExceeded):
        await place.put(place.entry("a", 1.0), VectorEntry("x" * 65, place.vector(1.0), place.namespace))
    assert await place.search(1.0) == []
