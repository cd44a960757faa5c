"""Metadata filters, compared with a naive model of each operator."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from retain.errors import InvalidInput, LimitExceeded
from retain.memory.filters import FIELDS, TIMES, compile_filter, names_of
from retain.memory.records.listing import Listing, list_records
from retain.memory.records.record import NewRecord, Record, Utterance
from retain.memory.scope import Scope
from tests.memory.semantic.substrate import AGENT, AGENT_SOURCE, TENANT, Substrate

ORDERED: dict[str, Callable[[Any, Any], bool]] = {
    "$lt": operator.lt,
    "$lte": operator.le,
    "$gt": operator.gt,
    "$gte": operator.ge,
}

_numbers = st.one_of(st.integers(-3, 3), st.sampled_from([0.5, -0.5, 2.0, 1e12, 2**53, 1e-9]))
_texts = st.sampled_from(["", "a", "b", "ab", "A", "é", "1", "1.0", "true", "0.5", "日本", "a'b", 'a"b', "\\", "\n"])
_values = st.one_of(_numbers, _texts, st.booleans())
_listed = st.lists(_values | st.none(), max_size=3)
_metadata = st.recursive(
    st.dictionaries(st.sampled_from(["a", "b", "c-1", "x_y", "0"]), _values | st.none() | _listed, max_size=4),
    lambda inner: st.dictionaries(st.sampled_from(["a", "b", "n"]), inner | _values, max_size=3),
    max_leaves=6,
)
_names = st.one_of(
    st.sampled_from(["a", "b", "c-1", "x_y", "0", "n", "missing", "a.b", "n.a", "n.a.b", "n.n.a"]),
    st.sampled_from(["metadata.a", "metadata.kind", "metadata.n.a"]),
    st.sampled_from(sorted({*FIELDS} - {*TIMES})),
)
_criteria = st.one_of(
    _values | st.none(),
    st.dictionaries(st.sampled_from(["$eq", "$ne"]), _values | st.none(), min_size=1),
    st.dictionaries(st.sampled_from([*ORDERED]), _values, min_size=1, max_size=2),
    st.dictionaries(
        st.sampled_from(["$in", "$nin"]), st.lists(_values | st.none(), min_size=1, max_size=4), min_size=1
    ),
)
_simple = st.dictionaries(_names, _criteria, max_size=3)
_filters = _simple | st.dictionaries(st.sampled_from(["$or", "$and"]), st.lists(_simple, min_size=1, max_size=3))
_records = st.builds(
    NewRecord,
    content=st.just("x"),
    metadata=_metadata,
    kind=st.sampled_from(["fact", "task"]),
    subject=st.none() | _texts.filter(bool),
    predicate=st.none() | st.sampled_from(["a", "2", "2.0"]),
    confidence=st.sampled_from([0.0, 0.5, 1.0]),
    importance=st.sampled_from([0.25, 0.5]),
    utterance=st.none()
    | st.builds(Utterance, st.sampled_from(["a", "chat-1"]), st.just(0), st.sampled_from(["b", "1"])),
)


def value_of(record: Record, name: str) -> Any:
    """Return a record's value for a name, None when it has none. Booleans are 0 and 1, as in the filter."""
    if name in FIELDS:
        place = record.utterance
        value = getattr(place, name, None) if name in ("conversation", "speaker") else getattr(record, name)
    else:
        value = record.metadata
        for part in name.removeprefix("metadata.").split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
    return int(value) if isinstance(value, bool) else value


def passes(record: Record, wanted: Mapping[str, Any]) -> bool:
    """Return whether a record passes a filter: the naive model."""
    for name, criterion in wanted.items():
        if name in ("$or", "$and"):
            if not (any if name == "$or" else all)([passes(record, one) for one in criterion]):
                return False
            continue
        value = value_of(record, name)
        operators = criterion if isinstance(criterion, Mapping) else {"$eq": criterion}
        if not all(_holds(value, given, operand) for given, operand in operators.items()):
            return False
    return True


def _holds(value: Any, given: str, operand: Any) -> bool:
    if given in ORDERED:
        operand = int(operand) if isinstance(operand, bool) else operand
        return (
            isinstance(value, str | int | float)
            and isinstance(value, str) == isinstance(operand, str)
            and ORDERED[given](value, operand)
        )
    operands = [
        int(one) if isinstance(one, bool) else one for one in (operand if isinstance(operand, list) else [operand])
    ]
    elements = [one for one in value if one is not None] if isinstance(value, list) else [value]
    found = any(one in operands for one in elements)
    return found if given in ("$eq", "$in") else not found


@settings(max_examples=200, deadline=None)
@given(new=_records, wanted=_filters)
@example(new=NewRecord("x", subject="2.0"), wanted={"subject": 2})
@example(new=NewRecord("x", confidence=0.5), wanted={"confidence": "0.5"})
@example(new=NewRecord("x", confidence=0.5), wanted={"confidence": {"$in": ["0.5"]}})
@example(new=NewRecord("x", metadata={"a": "1"}), wanted={"a": 1})
@example(new=NewRecord("x", metadata={"a": "b"}), wanted={"a": {"$gt": 1}})
@example(new=NewRecord("x", metadata={"a": ["b", 1]}), wanted={"a": {"$in": ["c", True]}})
@example(new=NewRecord("x", metadata={"a": ["b"]}), wanted={"a": {"$gt": "a"}})
@example(new=NewRecord("x", metadata={"a": []}), wanted={"a": None})
@example(new=NewRecord("x"), wanted={"$or": [{"a": 1}, {"a": None}]})
async def test_a_filter_passes_the_same_records_as_the_model(new: NewRecord, wanted: dict[str, Any]) -> None:
    with closing(Substrate()) as substrate:
        for other in (Scope("acme-2", "sdr"), Scope("acme", "clerk")):
            await substrate.memory(other).store(new, AGENT_SOURCE)
        await substrate.memory().store(new, AGENT_SOURCE)
        record = (await substrate.listed())[-1]
        if any(_nested(record, name) for name in names_of(wanted)):
            return  # objects are not compared
        expected = [record] if passes(record, wanted) else []
        assert (await list_records(substrate.d1, AGENT, Listing(filter=wanted)))[0] == expected
        assert len((await list_records(substrate.d1, TENANT, Listing(filter=wanted)))[0]) == 2 * len(expected)
        assert [hit.record for hit in await substrate.hits("x", AGENT, filter=wanted)] == expected


def _nested(record: Record, name: str) -> bool:
    return isinstance(value_of(record, name), Mapping)


METADATA: dict[str, dict[str, Any]] = {
    "paid": {"state": "paid", "amount": 12, "tags": {"region": "eu"}, "gift": True},
    "open": {"state": "open", "amount": 99.5, "tags": {"region": "us"}, "gift": False},
    "listed": {"labels": ["vip", "eu", 7], "closed_on": "2026-03-01", "note": None},
    "bare": {},
}


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({}, ["paid", "open", "listed", "bare"]),
        ({"state": "paid"}, ["paid"]),
        ({"state": {"$eq": "open"}}, ["open"]),
        ({"state": {"$ne": "open"}}, ["paid", "listed", "bare"]),
        ({"state": {"$in": ["paid", "lost"]}}, ["paid"]),
        ({"state": {"$nin": ["paid", "lost"]}}, ["open", "listed", "bare"]),
        ({"amount": {"$gt": 12}}, ["open"]),
        ({"amount": {"$gte": 12}}, ["paid", "open"]),
        ({"amount": {"$lt": 99.5}}, ["paid"]),
        ({"amount": {"$lte": 99.5}}, ["paid", "open"]),
        ({"amount": {"$gte": 12, "$lt": 13}}, ["paid"]),
        ({"amount": "12"}, []),
        ({"state": {"$gt": 0}}, []),
        ({"state": {"$gte": "open", "$lt": "paid"}}, ["open"]),
        ({"tags.region": "eu"}, ["paid"]),
        ({"tags.region": {"$ne": "eu"}}, ["open", "listed", "bare"]),
        ({"gift": True}, ["paid"]),
        ({"gift": {"$ne": True}}, ["open", "listed", "bare"]),
        ({"state": "paid", "amount": {"$gt": 12}}, []),
        ({"kind": "fact", "importance": {"$lt": 0.9}}, ["paid", "open", "listed", "bare"]),
        ({"kind": "task"}, []),
        ({"speaker": {"$ne": "Ann"}}, ["paid", "open", "listed", "bare"]),
        ({"labels": "vip"}, ["listed"]),
        ({"labels": {"$in": ["us", 7]}}, ["listed"]),
        ({"labels": {"$ne": "vip"}}, ["paid", "open", "bare"]),
        ({"labels": {"$nin": ["us"]}}, ["paid", "open", "listed", "bare"]),
        ({"labels": {"$gt": "a"}}, []),
        ({"note": None, "labels": {"$ne": None}}, ["listed"]),
        ({"state": None}, ["listed", "bare"]),
        ({"state": {"$in": ["paid", None]}}, ["paid", "listed", "bare"]),
        ({"state": {"$nin": ["paid", None]}}, ["open"]),
        ({"closed_on": {"$gte": "2026-02-01", "$lt": "2026-04-01"}}, ["listed"]),
        ({"$or": [{"state": "paid"}, {"labels": "eu"}]}, ["paid", "listed"]),
        ({"$or": [{"state": "paid"}, {"labels": "eu"}], "amount": 12}, ["paid"]),
        (
            {"$and": [{"state": {"$ne": "paid"}}, {"$or": [{"amount": {"$gt": 1}}, {"labels": "eu"}]}]},
            ["open", "listed"],
        ),
        ({"$or": [{}]}, ["paid", "open", "listed", "bare"]),
        ({"metadata.state": "paid"}, ["paid"]),
        ({"recorded_at_ms": {"$gte": "2020-01-01"}, "expires_at_ms": None}, ["paid", "open", "listed", "bare"]),
        ({"valid_from_ms": {"$gt": "2500-01-01T00:00:00Z"}}, []),
    ],
    ids=str,
)
async def test_each_operator(substrate: Substrate, wanted: dict[str, Any], expected: list[str]) -> None:
    for name, metadata in METADATA.items():
        await substrate.store(f"Order {name}.", metadata=metadata)
    page, _ = await list_records(substrate.d1, TENANT, Listing(filter=wanted))
    assert [record.content for record in page] == [f"Order {name}." for name in expected]
    assert sorted(await substrate.found("order", filter=wanted)) == sorted(f"Order {name}." for name in expected)


@pytest.mark.parametrize(
    "wanted",
    [
        {"": 1},
        {"a..b": 1},
        {".a": 1},
        {"a b": 1},
        {"a'": 1},
        {'a"': 1},
        {"$.a": 1},
        {"a.b.c.d.e.f": 1},
        {"x" * 65: 1},
        {"a": {}},
        {"a": {"$like": "x"}},
        {"a": {"$regex": ".*"}},
        {"a": {"eq": 1}},
        {"a": [1]},
        {"a": {"$gt": None}},
        {"a": float("nan")},
        {"id": "01J00000000000000000000000"},
        {"content": "x"},
        {"Kind": "fact"},
        {"validFrom": 1},
        {"recorded_at": 1},
        {"recorded_at_ms": "last week"},
        {"$or": {"a": 1}},
        {"$or": []},
        {"$or": [1]},
        {"$not": [{"a": 1}]},
        {"$or": [{"$or": [{"$or": [{"$or": [{"$or": [{"a": 1}]}]}]}]}]},
        {"a": {"$eq": [1]}},
        {"a": {"$eq": {"b": 1}}},
        {"a": {"$in": "ab"}},
        {"a": {"$in": []}},
        {"a": {"$in": list(range(201))}},
        {"a": {"$nin": 1}},
        {"a": {"$and": [{}]}},
    ],
    ids=str,
)
def test_an_invalid_filter_is_refused(wanted: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput) as raised:
        compile_filter(wanted)
    assert raised.value.code == "invalid_filter"


@pytest.mark.parametrize(
    "wanted",
    [
        {"a": "x" * 2048},
        {f"a{number}": 1 for number in range(17)},
        {"$or": [{"a": 1, "b": {"$gt": 1, "$lt": 2}} for _ in range(6)]},
    ],
    ids=["bytes", "conditions", "joined"],
)
def test_a_filter_that_is_too_large_is_refused(wanted: dict[str, Any]) -> None:
    with pytest.raises(LimitExceeded) as raised:
        compile_filter(wanted)
    assert raised.value.code == "filter_too_large"


@pytest.mark.parametrize(
    "wanted",
    [
        {f"a{number}": {"$ne": 1} for number in range(13)},
        {f"a{number}": 1 for number in range(16)},
        {"a": {"$in": list(range(200))}, "b": {"$in": list(range(200))}},
        {"$or": [{f"b{number}": {"$in": [number, "x", None]}} for number in range(16)]},
        {"kind": {"$nin": [str(number) for number in range(20)]}, "subject": {"$nin": ["x"] * 20}},
    ],
    ids=["$ne", "$eq", "$in", "$or", "fields"],
)
async def test_the_largest_filters_are_answered(substrate: Substrate, wanted: dict[str, Any]) -> None:
    """D1 binds at most 100 values: the filter's values and those that a recall adds must fit together."""
    metadata = {name: 1 for name in wanted if name.startswith("a") and wanted[name] == 1}
    metadata |= {"a": 3, "b": 4} if "b" in wanted else {}
    await substrate.store("An order.", metadata=metadata)
    assert await substrate.found("order", filter=wanted, as_of_ms=substrate.clock()) == ["An order."]
    held = Listing(filter=wanted, held_at_ms=substrate.clock(), cursor="0")
    assert len((await list_records(substrate.d1, AGENT, held))[0]) == 1


async def test_a_narrow_filter_finds_what_neither_words_nor_vectors_rank_high(substrate: Substrate) -> None:
    """The index returns a hundred vectors, and none of the query's words is in the one that passes the filter."""
    await substrate.store("Заказ отменён", metadata={"order": "SO-1"})
    for number in range(130):
        await substrate.store(f"Parcel {number} was sent.", metadata={"order": "SO-2"})
    assert await substrate.found("parcel sent", filter={"order": "SO-1"}) == ["Заказ отменён"]


@pytest.mark.parametrize("number", [2**53 + 1, -(2**53) - 1, 2**62 + 1])
async def test_a_number_that_no_double_is_exactly_is_compared_exactly(substrate: Substrate, number: int) -> None:
    for one in (number - 1, number, number + 1):
        await substrate.store(f"Order {one}.", metadata={"serial": one, "deep": {"serial": one}})
    for name in ("serial", "deep.serial"):
        for wanted in (
            number,
            {"$eq": number},
            {"$in": [number]},
            {"$in": [number, 0]},
            {"$gte": number, "$lt": number + 1},
        ):
            assert await substrate.found("order", filter={name: wanted}) == [f"Order {number}."]
            page, _ = await list_records(substrate.d1, TENANT, Listing(filter={name: wanted}))
            assert [record.content for record in page] == [f"Order {number}."]
        page, _ = await list_records(substrate.d1, TENANT, Listing(filter={name: {"$ne": number}}))
        assert len(page) == 2


async def test_a_filter_value_is_never_sql(substrate: Substrate) -> None:
    await substrate.store("An order.", metadata={"a": "x' OR '1'='1"})
    assert await substrate.found("order", filter={"a": "x' OR '1'='1"}) == ["An order."]
    assert await substrate.found("order", filter={"a": "' OR 1=1 --"}) == []


@pytest.mark.parametrize("recalled", [True, False], ids=["recall", "list"])
async def test_alternatives_of_a_filter_find_nothing_of_another_scope(substrate: Substrate, recalled: bool) -> None:
    for scope in (Scope("acme-2", "sdr"), Scope("acme", "clerk"), AGENT):
        await substrate.store(f"A secret of {scope.tenant_id} {scope.agent_type}.", scope, metadata={"level": 1})
    for wanted in (
        {"$or": [{"level": 1}, {"level": {"$gt": 0}}]},
        {"$or": [{"no": 1}, {"$or": [{"no": 2}, {"level": 1}]}]},
    ):
        if recalled:
            found = await substrate.found("secret", AGENT, filter=wanted)
        else:
            found = [record.content for record in (await list_records(substrate.d1, AGENT, Listing(filter=wanted)))[0]]
        assert found == ["A secret of acme sdr."]
