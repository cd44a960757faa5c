"""Filters: the library and the stand-in must interpret them in the same way."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

import httpx
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from retain.limits.vector_filter import INDEXED_BYTES, check_filter, indexed_text, matches
from retain.ports import MetadataFilter, MetadataValue, PropertyType
from tests.vectorize.conftest import STEERED_INDEXES

FILTERABLE: Final[Mapping[str, PropertyType]] = {"kind": "string", "created_at": "number", "live": "boolean"}
LONG = "x" * 62

_text = st.one_of(
    st.text(st.characters(codec="utf-8"), max_size=3),
    st.builds(lambda tail: LONG + tail, st.text("éx\U0001f600\ue000", max_size=4)),
)
_numbers = st.one_of(st.integers(-3, 3), st.sampled_from([0.5, -0.0, 1e300, 2**53, -(2**53)]))
_of_type: Mapping[PropertyType, st.SearchStrategy[MetadataValue]] = {
    "string": _text,
    "number": _numbers,
    "boolean": st.booleans(),
}
_any_value = st.one_of(*_of_type.values())
_metadata = st.fixed_dictionaries({}, optional=dict.fromkeys(FILTERABLE, _any_value))


def _condition(kind: PropertyType) -> st.SearchStrategy[object]:
    value = _of_type[kind]
    several = st.lists(value, min_size=1, max_size=3)
    choices: list[st.SearchStrategy[object]] = [
        value,
        st.builds(lambda given, operand: {given: operand}, st.sampled_from(["$eq", "$ne"]), value),
        st.builds(lambda given, operands: {given: operands}, st.sampled_from(["$in", "$nin"]), several),
    ]
    if kind != "boolean":
        lower, upper = st.sampled_from(["$gt", "$gte"]), st.sampled_from(["$lt", "$lte"])
        choices.append(st.builds(lambda given, bound: {given: bound}, st.one_of(lower, upper), value))
        choices.append(st.builds(lambda low, a, high, b: {low: a, high: b}, lower, value, upper, value))
    return st.one_of(choices)


_filters = st.fixed_dictionaries({}, optional={name: _condition(kind) for name, kind in FILTERABLE.items()}).filter(
    bool
)


@given(st.text(st.characters(codec="utf-8"), max_size=80))
@example("x" * 62 + "\U0001f600")
@example("x" * 60 + "\U0001f600x")
def test_an_index_keeps_the_longest_prefix_of_whole_characters_within_64_bytes(text: str) -> None:
    kept = indexed_text(text)
    assert text.startswith(kept)
    assert len(kept.encode()) <= INDEXED_BYTES
    assert kept == text or len(text[: len(kept) + 1].encode()) > INDEXED_BYTES


@given(_filters, _metadata)
def test_a_negation_passes_exactly_what_its_opposite_does_not(
    criteria: MetadataFilter, metadata: dict[str, MetadataValue]
) -> None:
    opposites = {"$eq": "$ne", "$ne": "$eq", "$in": "$nin", "$nin": "$in"}
    for name, condition in criteria.items():
        if isinstance(condition, Mapping) and condition.keys() <= opposites.keys():
            opposite = {opposites[given]: operand for given, operand in condition.items()}
            assert matches({name: condition}, metadata) is not matches({name: opposite}, metadata)


@pytest.fixture(scope="module")
def passes(gateway: str) -> Iterator[Callable[[MetadataFilter, dict[str, MetadataValue]], bool]]:
    """Return whether the stand-in lets an entry with the metadata pass the filter."""
    assert all(STEERED_INDEXES[name] == kind for name, kind in FILTERABLE.items())
    with httpx.Client(base_url=f"{gateway}STEERED/", timeout=60) as client:

        def ask(criteria: MetadataFilter, metadata: dict[str, MetadataValue]) -> bool:
            vector = {"id": "filtered", "values": [1, 0, 0, 0], "namespace": "filtered", "metadata": metadata}
            client.post("upsert", json=[[vector]]).raise_for_status()
            response = client.post("query", json=[[1, 0, 0, 0], {"namespace": "filtered", "filter": criteria}])
            response.raise_for_status()
            return bool(response.json()["result"]["count"])

        yield ask


@pytest.mark.workerd
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(criteria=_filters, metadata=_metadata)
@example(criteria={"kind": {"$gt": "\ue000"}}, metadata={"kind": "\U0001f600"})
@example(criteria={"kind": LONG + "xx-one"}, metadata={"kind": LONG + "xx-two"})
@example(criteria={"created_at": 1}, metadata={"created_at": True})
@example(criteria={"live": {"$ne": True}}, metadata={"live": 1})
def test_the_standin_interprets_filters_as_the_library_does(
    criteria: MetadataFilter,
    metadata: dict[str, MetadataValue],
    passes: Callable[[MetadataFilter, dict[str, MetadataValue]], bool],
) -> None:
    check_filter(criteria, FILTERABLE)
    assert passes(criteria, metadata) is matches(criteria, metadata)
