"""What the stand-in refuses when it is called directly, in the binding's words."""

from __future__ import annotations

import pytest

from retain.errors import InvalidInput, Unavailable
from retain.limits.vectorize import platform_error
from tests.vectorize.http_index import HttpBinding, Refused

pytestmark = pytest.mark.workerd

GOOD = {"id": "a", "values": [1, 0, 0, 0]}

WRITES = {
    "no vector": ([], r"\(code = 40023\)"),
    "1,001 vectors": ([GOOD] * 1001, r"\(code = 40007\): too many vectors in payload; max is 1000, got 1001"),
    "an id of 65 bytes": ([{**GOOD, "id": "x" * 65}], r"\(code = 40008\): id too long; max is 64 bytes, got 65 bytes"),
    "an id of 66 bytes in 33 characters": ([{**GOOD, "id": "é" * 33}], r"\(code = 40008\): .* got 66 bytes"),
    "an empty id": ([{**GOOD, "id": ""}], "an id must be a string that is not empty"),
    "an id that is a number": ([{**GOOD, "id": 7}], "an id must be a string that is not empty"),
    "five values": ([{**GOOD, "values": [1, 0, 0, 0, 0]}], r"\(code = 40012\): .* 4 dimensions, and got 5 dimensions"),
    "three values": (
        [{**GOOD, "values": [1, 0, 0]}],
        r'\(code = 40012\): invalid vector for id="a", expected 4 dimensions, and got 3 dimensions',
    ),
    "values that are not numbers": ([{**GOOD, "values": ["1", 0, 0, 0]}], r"\(code = 40023\): .*finite numbers"),
    "a namespace of 65 bytes": ([{**GOOD, "namespace": "n" * 65}], "namespace too long; max is 64 bytes, got 65 bytes"),
    "10,241 bytes of metadata": (
        [{**GOOD, "metadata": {"t": "x" * (10241 - len('{"t":""}'))}}],
        r"\(code = 40016\): metadata too large .*; max is 10240 bytes, got 10241 bytes",
    ),
    "metadata that is a list": ([{**GOOD, "metadata": []}], "must be an object"),
    "a key with a dot": ([{**GOOD, "metadata": {"a.b": 1}}], 'invalid metadata key "a.b"'),
    "a key with a quote": ([{**GOOD, "metadata": {'a"b': 1}}], "invalid metadata key"),
    "a nested key with a dollar": ([{**GOOD, "metadata": {"a": {"$b": 1}}}], 'invalid metadata key "\\$b"'),
}


@pytest.mark.parametrize("method", ["upsert", "insert"])
@pytest.mark.parametrize(("vectors", "message"), WRITES.values(), ids=WRITES.keys())
async def test_a_write_is_refused(steered: HttpBinding, method: str, vectors: object, message: str) -> None:
    with pytest.raises(Refused, match=f"^VECTOR_{method.upper()}_ERROR.*{message}"):
        await steered.call(method, vectors)


QUERIES = {
    "101 matches": ({"topK": 101}, r" \(code = 40025\): max top K is 100, but got 101"),
    "21 matches with values": (
        {"topK": 21, "returnValues": True},
        r" \(code = 40025\): with returnValues=true or returnMetadata=all, max top K is 20, but got 21",
    ),
    "21 matches with all metadata": ({"topK": 21, "returnMetadata": "all"}, r" \(code = 40025\): .*max top K is 20"),
    "no match": ({"topK": 0}, r" \(code = 40026\): .*topK"),
    "half a match": ({"topK": 1.5}, r" \(code = 40026\): .*topK"),
    "metadata by a boolean": ({"returnMetadata": False}, r" \(code = 40026\): .*returnMetadata"),
    "metadata by another word": ({"returnMetadata": "some"}, r" \(code = 40026\): .*returnMetadata"),
    "a namespace of 65 bytes": ({"namespace": "n" * 65}, ": namespace too long"),
}

FILTERS: dict[str, object] = {
    "an empty filter": {},
    "a list": ["kind"],
    "2,048 bytes": {"kind": "x" * (2048 - len('{"kind":""}'))},
    "an empty key": {"": 1},
    "an empty part of a key": {"pandas.": 1},
    "a key that begins with a dollar": {"$and": "x"},
    "a key with a quote": {'a"b': 1},
    "a key of 513 characters": {"k" * 513: 1},
    "an unknown operator": {"kind": {"$like": "x"}},
    "an inherited operator": {"kind": {"constructor": "x"}},
    "no operator": {"kind": {}},
    "a list for a value": {"kind": ["x"]},
    "a list for $eq": {"kind": {"$eq": ["x"]}},
    "an object for $in": {"kind": {"$in": [{}]}},
    "a value for $in": {"kind": {"$in": "x"}},
    "a range of booleans": {"live": {"$gt": True}},
    "a range from null": {"created_at": {"$gt": None}},
    "two lower bounds": {"created_at": {"$gt": 1, "$gte": 2}},
    "an equality and a bound": {"created_at": {"$eq": 1, "$lt": 2}},
}


@pytest.mark.parametrize(("options", "message"), QUERIES.values(), ids=QUERIES.keys())
async def test_a_query_is_refused(steered: HttpBinding, options: object, message: str) -> None:
    with pytest.raises(Refused, match=f"^VECTOR_QUERY_ERROR{message}"):
        await steered.call("query", [1, 0, 0, 0], options)


@pytest.mark.parametrize("criteria", FILTERS.values(), ids=FILTERS.keys())
async def test_a_filter_is_refused(steered: HttpBinding, criteria: object) -> None:
    with pytest.raises(Refused, match=r"^VECTOR_QUERY_ERROR: invalid filter: "):
        await steered.call("query", [1, 0, 0, 0], {"filter": criteria})


async def test_the_largest_query_is_answered(steered: HttpBinding) -> None:
    for options in ({"topK": 100, "returnMetadata": "indexed"}, {"filter": {"k" * 512: 1}}):
        assert (await steered.call("query", [1, 0, 0, 0], {"namespace": "empty", **options}))["count"] == 0


@pytest.mark.parametrize("vector", [[], [1, 0, 0], [1, 0, 0, 0, 0], "1000", None], ids=repr)
async def test_a_query_vector_of_other_dimensions_is_refused(steered: HttpBinding, vector: object) -> None:
    with pytest.raises(
        Refused, match=r"^VECTOR_QUERY_ERROR \(code = 40006\): invalid query vector, expected 4 dimensions"
    ):
        await steered.call("query", vector, {})


async def test_too_many_ids_and_one_that_is_too_long_are_refused(steered: HttpBinding) -> None:
    ids = [str(number) for number in range(101)]
    with pytest.raises(Refused, match=r"^VECTOR_DELETE_ERROR \(code = 40007\): .*max id count is 100, got 101"):
        await steered.call("deleteByIds", ids)
    with pytest.raises(Refused, match=r"^VECTOR_GET_ERROR \(code = 40007\): .*max id count is 20, got 21"):
        await steered.call("getByIds", ids[:21])
    for method in ("getByIds", "deleteByIds"):
        with pytest.raises(Refused, match=r"\(code = 40008\): id too long; max is 64 bytes, got 65 bytes"):
            await steered.call(method, ["x" * 65])


async def test_control_is_refused_unless_it_is_allowed(configured: HttpBinding) -> None:
    with pytest.raises(Refused, match="ALLOW_CONTROL"):
        await configured.call("control", {"failNext": 1})


async def test_planned_failures_happen_before_or_after_the_work(steered: HttpBinding) -> None:
    await steered.call("deleteByIds", ["lost", "kept"])
    await steered.call("control", {"failNext": 2, "method": "upsert"})
    for _ in range(2):
        with pytest.raises(Refused, match="upsert fails before its work, as planned"):
            await steered.call("upsert", [{**GOOD, "id": "lost"}])
    await steered.call("control", {"failNext": 1, "method": "upsert", "after": True})
    with pytest.raises(Refused, match="upsert fails after its work, as planned"):
        await steered.call("upsert", [{**GOOD, "id": "kept"}])
    assert [one["id"] for one in await steered.call("getByIds", ["lost", "kept"])] == ["kept"]
    await steered.call("upsert", [{**GOOD, "id": "lost"}])


PLATFORM = {
    "dimensions of a query": (
        "VECTOR_QUERY_ERROR (code = 40006): invalid query vector, expected 4 dimensions, and got 3 dimensions",
        InvalidInput,
        "vector_dimensions",
    ),
    "dimensions of a write": ("VECTOR_UPSERT_ERROR (code = 40012): invalid vector", InvalidInput, "vector_dimensions"),
    "any other refusal": ("Error: VECTOR_GET_ERROR (code = 40007): too many", InvalidInput, "vector_index_refused"),
    "too many requests": ("VECTOR_UPSERT_ERROR (code = 40041): Too Many", Unavailable, "vector_index_unavailable"),
    "a failure of the platform": ("VECTOR_UPSERT_ERROR: Status + 502", Unavailable, "vector_index_unavailable"),
    "a planned failure": ("VECTORIZE_ERROR (code = 50000): planned", Unavailable, "vector_index_unavailable"),
    "anything else": ("Network connection lost.", Unavailable, "vector_index_unavailable"),
}


@pytest.mark.parametrize(("text", "kind", "code"), PLATFORM.values(), ids=PLATFORM.keys())
def test_an_error_of_the_binding_becomes_an_error_class_of_the_library(
    text: str, kind: type[Exception], code: str
) -> None:
    error = platform_error(text)
    assert type(error) is kind
    assert error.code == code
