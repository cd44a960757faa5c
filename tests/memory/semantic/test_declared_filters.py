"""What a deployment declares as filterable in the vector index: it is applied there, and follows the record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any

import pytest
from hypothesis import example, given, settings

from retain.errors import Misconfigured
from retain.host.vectors import SqliteVectorIndex
from retain.limits.vector_filter import declared, matches
from retain.memory.filters import names_of
from retain.memory.indexer import NEVER
from retain.memory.recall.recall import RecallQuery
from retain.memory.recall.sources import matching, nearest
from retain.memory.recall.sources.pushed import pushed
from retain.memory.records.record import NewRecord
from tests.memory.semantic.substrate import AGENT_SOURCE, PERSON, ListedIndex, Substrate
from tests.memory.semantic.test_filters import _filters, _records, passes

CURRENT = "The doctor recommended tablets of aspirin"
FACT: dict[str, Any] = {"subject": "pat", "predicate": "treatment"}


@pytest.fixture
def declaring(monkeypatch: pytest.MonkeyPatch) -> Iterator[Substrate]:
    """A substrate whose index filters by validity and by patients, and whose recalls are never widened."""
    monkeypatch.setattr(matching, "MATCHING_LIMIT", 5)
    monkeypatch.setattr(matching, "HELD_LIMIT", 5)
    monkeypatch.setattr(nearest, "MAX_QUERIES", 0)
    with closing(Substrate()) as substrate:
        substrate.vectors = ListedIndex(
            substrate.vectors._connection, substrate.embedder.dimensions, declared("over_at, patient:string")
        )
        substrate.index = substrate.vectors
        yield substrate


async def crowd(substrate: Substrate, contents: list[str], **fields: Any) -> None:
    for content in contents:
        substrate.clock.advance(1000)
        await substrate.store(content, **fields)
    substrate.clock.advance(3_600_000)
    await substrate.reconcile()


async def over_at(substrate: Substrate, record_id: str) -> object:
    [entry] = await substrate.vectors.get_by_ids([f"{record_id}#0"])
    return entry.metadata.get("over_at")


async def test_closed_versions_take_no_places_in_the_index(declaring: Substrate) -> None:
    await crowd(declaring, [f"The doctor prescribed antibiotics, course {n}" for n in range(150)], **FACT)
    await crowd(declaring, [CURRENT], **FACT)
    result = await declaring.memory().recall(RecallQuery("physician medicine medication"))
    assert ([hit.record.content for hit in result.hits], result.degraded) == ([CURRENT], ())


async def test_a_declared_name_is_filtered_in_the_index(declaring: Substrate) -> None:
    await crowd(declaring, ["Paul keeps his automobile in a garage at home"], metadata={"patient": "b"})
    await crowd(declaring, [f"Invoice {n} was sent to the insurer" for n in range(50)], metadata={"patient": "b"})
    await crowd(declaring, [f"The car is parked on level {n}" for n in range(150)], metadata={"patient": "a"})
    result = await declaring.memory().recall(RecallQuery("where is the car parked", filter={"patient": "b"}))
    assert result.hits[0].record.content == "Paul keeps his automobile in a garage at home"
    assert result.degraded == ()


async def test_a_vector_follows_the_end_of_its_record(declaring: Substrate) -> None:
    first = await declaring.store("Ann lives in Bern.", **FACT)
    assert await over_at(declaring, first) == NEVER
    declaring.clock.advance(1000)
    second = await declaring.store("Ann lives in Rome.", **FACT)
    assert await over_at(declaring, first) == declaring.clock()
    await declaring.memory().delete(second, PERSON)
    assert await over_at(declaring, first) == NEVER, "nothing replaces it any more"
    await declaring.memory().edit(first, {"expires_at_ms": declaring.clock() + 5000}, PERSON)
    assert await over_at(declaring, first) == declaring.clock() + 5000
    await declaring.memory().edit(first, {"metadata": {"patient": "c" * 100}}, PERSON)
    [entry] = await declaring.vectors.get_by_ids([f"{first}#0"])
    assert entry.metadata["meta_patient"] == "c" * 64


async def test_a_restored_record_is_found_before_the_index_knows_of_it(
    declaring: Substrate, monkeypatch: pytest.MonkeyPatch
) -> None:
    record_id = await declaring.store("Ann lives in Bern.")
    declaring.clock.advance(1000)
    await declaring.memory().invalidate(record_id, declaring.clock(), PERSON)
    declaring.clock.advance(3_600_000)
    await declaring.reconcile()

    async def lost(*_: object) -> str:
        return "later"

    monkeypatch.setattr(declaring.vectors, "upsert", lost)
    await declaring.memory().restore(record_id, PERSON)
    assert await declaring.found("residence of Ann") == ["Ann lives in Bern."]


async def test_what_was_valid_earlier_is_found_as_well(declaring: Substrate) -> None:
    await declaring.store("Ann lives in Bern.", **FACT)
    then = declaring.clock() + 500
    declaring.clock.advance(1000)
    await declaring.store("Ann lives in Rome.", **FACT)
    declaring.clock.advance(3_600_000)
    assert await declaring.found("residence of Ann", valid_at_ms=then) == ["Ann lives in Bern."]
    assert await declaring.found("residence of Ann", as_of_ms=then) == ["Ann lives in Bern."]
    assert await declaring.found("residence of Ann") == ["Ann lives in Rome."]


PROPERTIES = {**SqliteVectorIndex.open(8).filterable, **declared("a:string b:number x_y:boolean")}


@settings(max_examples=400, deadline=None)
@given(new=_records, wanted=_filters)
@example(new=NewRecord("x", metadata={"b": True}), wanted={"b": 1})
@example(new=NewRecord("x", metadata={"x_y": 1}), wanted={"x_y": True})
@example(new=NewRecord("x", metadata={"a": "é" * 64}), wanted={"a": "é" * 64})
@example(new=NewRecord("x", predicate="a", metadata={"a": "b"}), wanted={"predicate": "a"})
async def test_the_index_refuses_no_record_that_passes(new: NewRecord, wanted: dict[str, Any]) -> None:
    """But one with a list under a declared name, which has no place in a metadata index."""
    with closing(Substrate()) as substrate:
        substrate.index = SqliteVectorIndex(substrate.vectors._connection, 256, PROPERTIES)
        await substrate.memory().store(new, AGENT_SOURCE)
        [record] = await substrate.listed()
        if any(isinstance(record.metadata.get(name), list | Mapping) for name in ("a", "b", "x_y")):
            return
        if any(isinstance(record.metadata.get(name.split(".")[0]), Mapping) for name in names_of(wanted)):
            return
        criteria = pushed(wanted, substrate.clock(), PROPERTIES, {})
        assert not passes(record, wanted) or matches(criteria, substrate.indexer().metadata(record))


def test_a_condition_that_does_not_fit_into_the_index_filter_is_left_to_d1() -> None:
    long = {"$in": [f"{number:063d}" for number in range(40)]}
    assert pushed({"a": long, "kind": "fact"}, 0, PROPERTIES, {}) == {"kind": "fact"}
    assert pushed({"$or": [{"a": "x"}], "b": {"$ne": 1}, "c": 1}, 0, PROPERTIES, {}) == {}
    assert pushed({"$and": [{"a": "x"}, {"b": {"$gte": 1, "$lt": 2}}]}, 0, PROPERTIES, {}) == {
        "meta_a": "x",
        "meta_b": {"$gte": 1, "$lt": 2},
    }


@pytest.mark.parametrize("text", ["patient", "patient:text", "a.b:string", "a:string b:string c:number d:number", ":"])
def test_a_declaration_that_is_not_one_is_refused(text: str) -> None:
    with pytest.raises(Misconfigured) as raised:
        declared(text)
    assert raised.value.code == "invalid_setting"


def test_declarations_are_separated_by_commas_or_spaces() -> None:
    assert declared(" over_at, patient:string amount:number,") == {
        "over_at": "number",
        "meta_patient": "string",
        "meta_amount": "number",
    }
    assert declared("") == {}
