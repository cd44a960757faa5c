"""The vector index on the host."""

from __future__ import annotations

import math
import sqlite3
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retain.errors import Misconfigured, RetainError
from retain.host import vectors
from retain.host.vectors import SqliteVectorIndex
from retain.limits.vector_filter import matches
from retain.ports import MetadataFilter, MetadataValue, VectorEntry, VectorMatch
from tests.ports import Case, cases, vector_index

DIMENSIONS = 4


@pytest.fixture(params=["numpy", "plain"], autouse=True)
def arrays(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With numpy and without: both answer the same."""
    if request.param == "plain":
        monkeypatch.setattr(vectors, "numpy", None)


@pytest.fixture
def index() -> Iterator[SqliteVectorIndex]:
    index = SqliteVectorIndex.open(DIMENSIONS)
    yield index
    index.close()


@pytest.mark.parametrize("case", cases(vector_index).values(), ids=cases(vector_index).keys())
async def test_contract(case: Case, index: SqliteVectorIndex) -> None:
    await case(index)


async def test_a_file_keeps_the_vectors(tmp_path: Path) -> None:
    first = SqliteVectorIndex.open(DIMENSIONS, tmp_path / "vectors.sqlite")
    await first.upsert([VectorEntry("a", [1.0, 2.0, 3.0, 4.0], "n", {"kind": "fact"})])
    first.close()
    second = SqliteVectorIndex.open(DIMENSIONS, tmp_path / "vectors.sqlite")
    assert await second.get_by_ids(["a"]) == [VectorEntry("a", [1.0, 2.0, 3.0, 4.0], "n", {"kind": "fact"})]
    second.close()


async def test_a_file_with_other_dimensions_is_refused(tmp_path: Path) -> None:
    first = SqliteVectorIndex.open(DIMENSIONS, tmp_path / "vectors.sqlite")
    await first.upsert([VectorEntry("a", [1.0, 0.0, 0.0, 0.0], "n")])
    first.close()
    with pytest.raises(Misconfigured, match="has 4 dimensions, not 3"):
        SqliteVectorIndex.open(3, tmp_path / "vectors.sqlite")


async def test_a_failure_in_the_middle_of_a_batch_writes_nothing(tmp_path: Path) -> None:
    index = SqliteVectorIndex.open(DIMENSIONS, tmp_path / "vectors.sqlite")
    with sqlite3.connect(tmp_path / "vectors.sqlite") as other:
        other.execute(
            "CREATE TRIGGER refuse AFTER INSERT ON vectors WHEN NEW.id = 'b' BEGIN SELECT RAISE(ABORT, 'no'); END"
        )
    other.close()
    entries = [VectorEntry(name, [1.0, 0.0, 0.0, 0.0], "n") for name in ("a", "b", "c")]
    with pytest.raises(RetainError):
        await index.upsert(entries)
    assert await index.get_by_ids(["a", "b", "c"]) == []
    await index.upsert([entries[0]])
    assert [entry.id for entry in await index.get_by_ids(["a"])] == ["a"]
    index.close()


# The law: after any writes, a query answers as a scan over a dictionary would.

_ids = st.sampled_from("abcdefgh")
_namespaces = st.sampled_from(["one", "two"])
_values = st.lists(st.sampled_from([-1.0, 0.0, 0.25, 0.5, 1.0, 3.0]), min_size=DIMENSIONS, max_size=DIMENSIONS).filter(
    any
)
_kinds = st.sampled_from(["fact", "event", "x" * 64, "x" * 64 + "y"])
_metadata: st.SearchStrategy[dict[str, MetadataValue]] = st.fixed_dictionaries(
    {}, optional={"kind": _kinds, "created_at": st.integers(0, 5)}
)
_entries = st.builds(VectorEntry, _ids, _values, _namespaces, _metadata)
_writes = st.one_of(st.lists(_entries, min_size=1, max_size=6), st.lists(_ids, max_size=3).map(tuple))
_filters: st.SearchStrategy[MetadataFilter] = st.one_of(
    st.just({}),
    st.builds(lambda kind: {"kind": kind}, _kinds),
    st.builds(lambda kind: {"kind": {"$ne": kind}}, _kinds),
    st.builds(lambda low, high: {"created_at": {"$gte": low, "$lt": high}}, st.integers(0, 5), st.integers(0, 5)),
)


@given(st.lists(_writes, max_size=8), _values, _namespaces, _filters, st.integers(1, 10))
async def test_it_equals_a_scan_over_a_dictionary(
    writes: list[list[VectorEntry] | tuple[str, ...]],
    vector: list[float],
    namespace: str,
    criteria: MetadataFilter,
    top_k: int,
) -> None:
    index = SqliteVectorIndex.open(DIMENSIONS)
    model: dict[str, VectorEntry] = {}
    for write in writes:
        if isinstance(write, tuple):
            await index.delete_by_ids(write)
            for id_ in write:
                model.pop(id_, None)
        else:
            await index.upsert(write)
            model.update({entry.id: entry for entry in write})
    found = await index.query(vector, namespace=namespace, filter=criteria, top_k=top_k, with_metadata=True)
    scores = {
        entry.id: _cosine(vector, entry.values)
        for entry in model.values()
        if entry.namespace == namespace and matches(criteria, entry.metadata)
    }
    assert len(found) == min(top_k, len(scores))
    assert found == sorted(found, key=lambda match: (-match.score, match.id))
    assert all(abs(match.score - scores[match.id]) < 1e-9 for match in found)
    assert all(match.metadata == model[match.id].metadata for match in found)
    _assert_nothing_better_was_left_out(found, scores, model)
    index.close()


def _assert_nothing_better_was_left_out(
    found: list[VectorMatch], scores: Mapping[str, float], model: Mapping[str, VectorEntry]
) -> None:
    for id_ in scores.keys() - {match.id for match in found}:
        last = found[-1]
        assert scores[id_] <= last.score + 1e-9
        if model[id_].values == model[last.id].values:
            assert last.id < id_


def _cosine(a: list[float], b: object) -> float:
    assert isinstance(b, list)
    return math.fsum(x * y for x, y in zip(a, b, strict=True)) / math.sqrt(
        math.fsum(x * x for x in a) * math.fsum(y * y for y in b)
    )


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=DIMENSIONS, max_size=DIMENSIONS))
async def test_values_are_returned_as_32_bit_floats(values: list[float]) -> None:
    if not any(values):
        values[0] = 1.0
    index = SqliteVectorIndex.open(DIMENSIONS)
    await index.upsert([VectorEntry("a", values, "n")])
    [entry] = await index.get_by_ids(["a"])
    assert struct.pack("4f", *entry.values) == struct.pack("4f", *values)
    index.close()


async def test_what_another_connection_writes_is_found(tmp_path: Path) -> None:
    """What is kept in memory is read again."""
    one = SqliteVectorIndex.open(DIMENSIONS, tmp_path / "vectors.sqlite")
    other = SqliteVectorIndex.open(DIMENSIONS, tmp_path / "vectors.sqlite")

    async def found(index: SqliteVectorIndex) -> list[str]:
        matches = await index.query([1.0, 0.0, 0.0, 0.0], namespace="n", filter={"kind": "fact"}, top_k=9)
        return [match.id for match in matches]

    await one.upsert([VectorEntry("a", [1.0, 0.0, 0.0, 0.0], "n", {"kind": "fact"})])
    assert await found(one) == await found(other) == ["a"]
    await other.upsert([VectorEntry("b", [1.0, 1.0, 0.0, 0.0], "n", {"kind": "fact"})])
    assert await found(one) == await found(other) == ["a", "b"]
    await one.upsert([VectorEntry("a", [1.0, 0.0, 0.0, 0.0], "n", {"kind": "task"})])
    await other.upsert([VectorEntry("c", [1.0, 2.0, 0.0, 0.0], "n", {"kind": "fact"})])
    assert await found(one) == await found(other) == ["b", "c"]
    await one.delete_by_ids(["b"])
    assert await found(one) == await found(other) == ["c"]
    one.close()
    other.close()
