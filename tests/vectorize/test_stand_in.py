"""The stand-in for Vectorize on the real workerd: the port's contract, and the binding's own calls."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable

import pytest

from retain.identifiers import new_id
from retain.limits.vector_filter import matches
from retain.ports import MetadataFilter, MetadataValue, VectorEntry
from tests.ports import Case, cases, vector_index
from tests.vectorize.http_index import HttpBinding, HttpVectorIndex, Refused

pytestmark = pytest.mark.workerd

DIMENSIONS = 256


@pytest.mark.parametrize("case", cases(vector_index).values(), ids=cases(vector_index).keys())
async def test_contract(case: Case, configured: HttpBinding) -> None:
    await case(HttpVectorIndex(configured, DIMENSIONS))


FILTERS: list[MetadataFilter] = [
    {},
    {"tenant_id": "a", "agent_id": "x"},
    {"kind": {"$in": ["fact", "task"]}, "created_at": {"$gte": 200, "$lt": 700}},
    {"subject": {"$ne": "sara"}, "agent_id": {"$nin": ["x", "y"]}},
    {"subject": {"$gt": "bob"}},
    {"created_at": {"$lt": 3}},
]


async def test_five_thousand_vectors_are_searched_exactly(configured: HttpBinding) -> None:
    """Also after some were replaced and others deleted, which moves what the index keeps of each and of each filter."""
    index, namespace = HttpVectorIndex(configured, DIMENSIONS), new_id()
    chance = random.Random(5)

    def entry(number: int) -> VectorEntry:
        return VectorEntry(f"{namespace}-{number}", _random_vector(chance), namespace, _random_metadata(chance))

    present: dict[str, VectorEntry] = {}

    async def write(numbers: Iterable[int]) -> None:
        entries = [entry(number) for number in numbers]
        for start in range(0, len(entries), 1000):
            await index.upsert(entries[start : start + 1000])
        present.update({one.id: one for one in entries})

    async def delete(count: int) -> None:
        gone = chance.sample(sorted(present), count)
        for start in range(0, count, 1000):
            await index.delete_by_ids(gone[start : start + 1000])
        for one in gone:
            del present[one]

    async def check() -> None:
        for criteria in FILTERS:
            query = _random_vector(chance)
            scores = {one.id: _cosine(query, one.values) for one in present.values() if matches(criteria, one.metadata)}
            expected = sorted(scores, key=lambda id_: (-scores[id_], id_))[:100]
            found = await index.query(query, namespace=namespace, filter=criteria, top_k=100)
            assert [match.id for match in found] == expected
            assert all(abs(match.score - scores[match.id]) < 1e-6 for match in found)

    await write(range(5000))
    await delete(700)
    await check()
    await write(range(4000, 5500))
    await delete(1200)
    await check()
    await delete(len(present) - 50)
    await check()
    await write(range(3000))
    await check()


async def test_a_query_without_a_namespace_searches_all_of_them(steered: HttpBinding) -> None:
    tag = new_id()
    await steered.call(
        "upsert",
        [
            {"id": f"{tag}-a", "values": [1, 0, 0, 0], "namespace": "one", "metadata": {"kind": tag}},
            {"id": f"{tag}-b", "values": [1, 1, 0, 0], "namespace": "two", "metadata": {"kind": tag}},
            {"id": f"{tag}-c", "values": [0, 1, 0, 0], "metadata": {"kind": tag}},
        ],
    )
    answer = await steered.call("query", [1, 0, 0, 0], {"filter": {"kind": tag}})
    assert [(one["id"], one.get("namespace")) for one in answer["matches"]] == [
        (f"{tag}-a", "one"),
        (f"{tag}-b", "two"),
        (f"{tag}-c", None),
    ]


async def test_answers_have_the_form_of_the_bindings(steered: HttpBinding) -> None:
    space, id_ = new_id(), new_id()
    metadata = {"kind": "x" * 70, "note": ["not", "indexed"], "pandas": {"nice": 42}}
    vector = {"id": id_, "values": [3, 4, 0, 0], "namespace": space, "metadata": metadata}
    assert (await steered.call("upsert", [vector])).keys() == {"mutationId"}
    assert await steered.call("getByIds", [id_, id_, "absent"]) == [vector]
    match = {"id": id_, "score": pytest.approx(0.6), "namespace": space}
    kept = {"kind": "x" * 64, "pandas.nice": 42}
    for options, more in (
        ({}, {}),
        ({"returnMetadata": "none"}, {}),
        ({"returnMetadata": "indexed"}, {"metadata": kept}),
        ({"returnMetadata": "all"}, {"metadata": metadata}),
        ({"returnMetadata": True}, {"metadata": metadata}),
        ({"returnValues": True}, {"values": [3, 4, 0, 0]}),
    ):
        answer = await steered.call("query", [1, 0, 0, 0], {"namespace": space, **options})
        assert answer == {"count": 1, "matches": [{**match, **more}]}
    assert (await steered.call("deleteByIds", [id_])).keys() == {"mutationId"}
    assert await steered.call("query", [1, 0, 0, 0], {"namespace": space}) == {"count": 0, "matches": []}


async def test_five_matches_are_returned_by_default(steered: HttpBinding) -> None:
    space = new_id()
    await steered.call(
        "upsert", [{"id": f"{space}-{number}", "values": [1, number, 0, 0], "namespace": space} for number in range(9)]
    )
    assert (await steered.call("query", [1, 0, 0, 0], {"namespace": space}))["count"] == 5


async def test_describe_reports_the_last_processed_mutation(steered: HttpBinding) -> None:
    before = await steered.call("describe")
    await steered.call("control", {"nowMs": 1_700_000_000_123})
    mutation = await steered.call("upsert", [{"id": new_id(), "values": [1, 0, 0, 0]}])
    assert await steered.call("describe") == {
        "dimensions": 4,
        "vectorCount": before["vectorCount"] + 1,
        "processedUpToDatetime": "2023-11-14T22:13:20.123Z",
        "processedUpToMutation": mutation["mutationId"],
    }


async def test_insert_keeps_what_is_there(steered: HttpBinding) -> None:
    old, new = new_id(), new_id()
    await steered.call("upsert", [{"id": old, "values": [1, 0, 0, 0]}])
    await steered.call("insert", [{"id": old, "values": [9, 9, 9, 9]}, {"id": new, "values": [0, 1, 0, 0]}])
    found = {one["id"]: one["values"] for one in await steered.call("getByIds", [old, new])}
    assert found == {old: [1, 0, 0, 0], new: [0, 1, 0, 0]}


async def test_a_vector_can_be_the_query(steered: HttpBinding) -> None:
    space = new_id()
    vectors = [
        {"id": f"{space}-{name}", "values": [1, y, 0, 0], "namespace": space} for name, y in (("a", 0), ("b", 1))
    ]
    await steered.call("upsert", vectors)
    answer = await steered.call("queryById", f"{space}-b", {"namespace": space})
    assert [one["id"] for one in answer["matches"]] == [f"{space}-b", f"{space}-a"]
    with pytest.raises(Refused, match="there is no vector"):
        await steered.call("queryById", "absent", {})


async def test_filters_reach_booleans_nulls_and_nested_properties(steered: HttpBinding) -> None:
    space = new_id()
    metadata: dict[str, dict[str, object]] = {
        "a": {"live": True, "pandas": {"nice": 42}},
        "b": {"live": False, "pandas": {"nice": 7}},
        "c": {"live": "true", "pandas": {"nice": "42"}, "kind": None},
        "d": {},
    }
    await steered.call(
        "upsert",
        [
            {"id": f"{space}-{name}", "values": [1, number, 0, 0], "namespace": space, "metadata": held}
            for number, (name, held) in enumerate(metadata.items())
        ],
    )
    table: list[tuple[dict[str, object], str]] = [
        ({"live": True}, "a"),
        ({"live": {"$ne": True}}, "bcd"),
        ({"live": None}, "cd"),
        ({"live": {"$in": [True, False]}}, "ab"),
        ({"pandas.nice": 42}, "a"),
        ({"pandas.nice": {"$gt": 0}}, "ab"),
        ({"pandas.nice": {"$gt": 0}, "live": False}, "b"),
        ({"kind": {"$nin": ["x"]}}, "abcd"),
    ]
    for criteria, expected in table:
        answer = await steered.call("query", [1, 0, 0, 0], {"namespace": space, "filter": criteria})
        assert "".join(one["id"][-1] for one in answer["matches"]) == expected, criteria


async def test_a_filter_that_was_asked_before_finds_what_was_written_and_deleted_since(steered: HttpBinding) -> None:
    space = new_id()

    async def write(**kinds: str) -> None:
        vectors = [
            {"id": f"{space}-{name}", "values": [1, 0, 0, 0], "namespace": space, "metadata": {"kind": kind}}
            for name, kind in kinds.items()
        ]
        await steered.call("upsert", vectors)

    async def found(kind: str) -> str:
        answer = await steered.call("query", [1, 0, 0, 0], {"namespace": space, "filter": {"kind": kind}})
        return "".join(one["id"][-1] for one in answer["matches"])

    await write(a="x")
    assert await found("x") == "a"
    await write(b="x", c="y")
    assert await found("x") == "ab"
    await steered.call("deleteByIds", [f"{space}-a"])
    assert (await found("x"), await found("y")) == ("b", "c")


@pytest.mark.parametrize("condition", ["y", {"$ne": "x"}, {"$nin": ["x"]}], ids=["eq", "ne", "nin"])
async def test_a_filter_on_a_property_without_an_index_finds_nothing(steered: HttpBinding, condition: object) -> None:
    space = new_id()
    vector = {"id": space, "values": [1, 0, 0, 0], "namespace": space, "metadata": {"colour": "y"}}
    await steered.call("upsert", [vector])
    answer = await steered.call("query", [1, 0, 0, 0], {"namespace": space, "filter": {"colour": condition}})
    assert answer == {"count": 0, "matches": []}


async def test_a_vector_of_zeros_is_similar_to_nothing(steered: HttpBinding) -> None:
    space = new_id()
    await steered.call("upsert", [{"id": space, "values": [0, 0, 0, 0], "namespace": space}])
    answer = await steered.call("query", [1, 0, 0, 0], {"namespace": space})
    assert [one["score"] for one in answer["matches"]] == [0]


def _random_vector(chance: random.Random) -> list[float]:
    return [chance.gauss(0, 1) for _ in range(DIMENSIONS)]


def _random_metadata(chance: random.Random) -> dict[str, MetadataValue]:
    every: dict[str, MetadataValue] = {
        "tenant_id": chance.choice("ab"),
        "agent_id": chance.choice("xyz"),
        "kind": chance.choice(["fact", "event", "task"]),
        "created_at": chance.randrange(1000),
        "subject": chance.choice(["sara", "bob", "zoë", "\U0001f600", "y" * 64 + "1", "y" * 64 + "2"]),
    }
    return {name: value for name, value in every.items() if chance.random() < 0.9}


def _cosine(a: list[float], b: object) -> float:
    assert isinstance(b, list)
    product = math.fsum(x * y for x, y in zip(a, b, strict=True))
    return product / (math.hypot(*a) * math.hypot(*b))
