"""Storing a content again adds what its record lacks, replaces nothing, and names the fields it added and those it kept."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retain.memory.records.record import EDITABLE, NewRecord, RecordSource
from retain.memory.semantic import StoreResult
from tests.memory.semantic.agreement import check_agreement
from tests.memory.semantic.substrate import AGENT, AGENT_SOURCE, HOUSE, PERSON, Substrate

START = 1_700_000_000_000
"""The time of the substrate's clock."""
TEXT = "Ann lives in Berlin."
CITY: dict[str, Any] = {"subject": "ann", "predicate": "lives_in"}


async def stored_again(
    substrate: Substrate,
    first: dict[str, Any],
    second: dict[str, Any],
    *,
    by: tuple[RecordSource, RecordSource] = (AGENT_SOURCE, AGENT_SOURCE),
) -> tuple[StoreResult, dict[str, Any]]:
    """Store a content twice with these fields; return the second result, and the record's fields that differ now."""
    record_id = await substrate.store(TEXT, source=by[0], **first)
    before = await substrate.record(record_id)
    substrate.clock.advance(1_000)
    result = await substrate.memory().store(NewRecord(TEXT, **second), by[1])
    after = await substrate.record(record_id)
    assert (result.id, result.created) == (record_id, False)
    names = [name for name in (*EDITABLE, "valid_from_ms", "valid_to_ms") if name != "content"]
    return result, {name: getattr(after, name) for name in names if getattr(after, name) != getattr(before, name)}


LONG = {"long": "x" * 6_000}
RULES: dict[str, tuple[dict[str, Any], dict[str, Any], tuple[str, ...], tuple[str, ...], dict[str, Any]]] = {
    "nothing new": ({"metadata": {"a": 1}}, {"metadata": {"a": 1}}, (), (), {}),
    "nothing but the content": ({"metadata": {"a": 1}, **CITY, "object": "berlin"}, {}, (), (), {}),
    "another key of the metadata": (
        {"metadata": {"a": 1}},
        {"metadata": {"b": 2}},
        ("metadata.b",),
        (),
        {"metadata": {"a": 1, "b": 2}},
    ),
    "another value of the metadata": (
        {"metadata": {"user": "ann"}},
        {"metadata": {"user": "bob"}},
        (),
        ("metadata.user",),
        {},
    ),
    "one of each": (
        {"metadata": {"user": "ann"}},
        {"metadata": {"user": "bob", "desk": 7}},
        ("metadata.desk",),
        ("metadata.user",),
        {"metadata": {"user": "ann", "desk": 7}},
    ),
    "a falsy value is a value": (
        {"metadata": {"n": 0}},
        {"metadata": {"n": None, "m": None}},
        ("metadata.m",),
        ("metadata.n",),
        {"metadata": {"n": 0, "m": None}},
    ),
    "metadata of other scripts within the limit, which is one of UTF-8": (
        {"metadata": {"a": "語" * 1_000}},
        {"metadata": {"b": "語" * 1_000}},
        ("metadata.b",),
        (),
        {"metadata": {"a": "語" * 1_000, "b": "語" * 1_000}},
    ),
    "metadata that is too large together": (
        {"metadata": LONG},
        {"metadata": {"other": "y" * 6_000}},
        (),
        ("metadata.other",),
        {},
    ),
    "the parts of a fact": (
        {},
        {**CITY, "object": "berlin"},
        ("subject", "predicate", "object"),
        (),
        {**CITY, "object": "berlin"},
    ),
    "a missing part": (CITY, {**CITY, "object": "berlin"}, ("object",), (), {"object": "berlin"}),
    "another subject": (CITY, {**CITY, "subject": "bob", "object": "berlin"}, (), ("subject", "object"), {}),
    "a later expiry": (
        {"expires_at_ms": START + 5_000},
        {"expires_at_ms": START + 9_000},
        ("expires_at_ms",),
        (),
        {"expires_at_ms": START + 9_000},
    ),
    "an earlier expiry": (
        {"expires_at_ms": START + 5_000},
        {"expires_at_ms": START + 3_000},
        (),
        ("expires_at_ms",),
        {},
    ),
    "an expiry for what had none": ({}, {"expires_at_ms": START + 3_000}, (), ("expires_at_ms",), {}),
    "no expiry for what had one": ({"expires_at_ms": START + 5_000}, {}, (), ("expires_at_ms",), {}),
    "more confidence and importance": (
        {"confidence": 0.4, "importance": 0.2},
        {"confidence": 0.9, "importance": 0.9},
        (),
        ("confidence", "importance"),
        {},
    ),
    "less confidence": ({"confidence": 0.9}, {"confidence": 0.4}, (), ("confidence",), {}),
    "another kind": ({"kind": "instruction"}, {"kind": "task"}, (), ("kind",), {}),
    "an earlier beginning": (
        {},
        {"valid_from_ms": START - 50},
        ("valid_from_ms",),
        (),
        {"valid_from_ms": START - 50},
    ),
    "a later beginning": ({}, {"valid_from_ms": START + 50}, (), ("valid_from_ms",), {}),
}


@pytest.mark.parametrize("case", RULES)
async def test_each_field_is_merged_by_its_rule_or_kept(substrate: Substrate, case: str) -> None:
    first, second, merged, kept, changed = RULES[case]
    result, differing = await stored_again(substrate, first, second)
    assert (result.merged, result.kept, differing) == (merged, kept, changed)
    await check_agreement(substrate)


async def test_what_has_expired_or_was_closed_says_that_it_is_valid_again(substrate: Substrate) -> None:
    result, _ = await stored_again(substrate, {"expires_at_ms": START + 500}, {"expires_at_ms": START + 9_000})
    assert (result.merged, result.kept) == (("expires_at_ms",), ())
    await substrate.memory().invalidate(result.id, substrate.clock(), AGENT_SOURCE)
    again = await substrate.memory().store(NewRecord(TEXT, expires_at_ms=START + 9_000), AGENT_SOURCE)
    assert (again.merged, again.kept) == (("valid_to_ms",), ())


async def test_what_a_person_closed_says_that_it_stays_closed(substrate: Substrate) -> None:
    record_id = await substrate.store(TEXT)
    await substrate.memory().invalidate(record_id, substrate.clock(), PERSON)
    result = await substrate.memory().store(NewRecord(TEXT, {"a": 1}), AGENT_SOURCE)
    assert (result.merged, result.kept) == ((), ("metadata.a", "valid_to_ms"))
    assert (await substrate.record(record_id)).metadata == {}


WRITERS = {
    "an agent told it, a person tells it again": (AGENT_SOURCE, PERSON, True),
    "a person told it, and tells it again": (PERSON, PERSON, True),
    "a person told it, an agent tells it again": (PERSON, AGENT_SOURCE, False),
    "a person told it, ingest tells it again": (PERSON, RecordSource("extraction"), False),
}


@pytest.mark.parametrize("case", WRITERS)
async def test_what_a_person_wrote_only_a_person_adds_to(substrate: Substrate, case: str) -> None:
    first, second, added = WRITERS[case]
    result, _ = await stored_again(substrate, {}, {"metadata": {"a": 1}, **CITY}, by=(first, second))
    names = ("metadata.a", "subject", "predicate")
    assert (result.merged, result.kept) == ((names, ()) if added else ((), names))
    assert len((await substrate.memory().get(result.id))[1]) == 1 + added


async def test_an_addition_is_a_learning_event_with_its_source(substrate: Substrate) -> None:
    record_id = await substrate.store(TEXT, metadata={"a": 1})
    await substrate.store(TEXT, source=RecordSource("agent", run_id="run-2"), metadata={"b": 2})
    _, [_, event] = await substrate.memory().get(record_id)
    assert (event.kind, dict(event.data)) == ("edited", {"metadata": {"a": 1, "b": 2}})
    assert dict(event.source) == {"origin": "agent", "run_id": "run-2"}
    assert not (await substrate.record(record_id)).edited


async def test_the_same_call_again_writes_nothing(substrate: Substrate) -> None:
    for metadata in ({"a": 1}, {"b": 2}, {"a": 3}, {"b": 2}, {"a": 1}):
        record_id = await substrate.store(TEXT, metadata=metadata, **CITY)
    record, events = await substrate.memory().get(record_id)
    assert (record.metadata, len(events)) == ({"a": 1, "b": 2}, 2)


async def test_text_that_becomes_a_fact_closes_the_one_before_it(substrate: Substrate) -> None:
    munich = await substrate.store("Ann lives in Munich.", **CITY)
    substrate.clock.advance(1_000)
    berlin = await substrate.store(TEXT)
    substrate.clock.advance(1_000)
    result = await substrate.memory().store(NewRecord(TEXT, **CITY), AGENT_SOURCE)
    assert result == StoreResult(berlin, False, ("subject", "predicate"), ())
    assert (await substrate.record(munich)).superseded_by == berlin
    assert await substrate.found("Where does Ann live?") == [TEXT]
    await check_agreement(substrate)


async def test_text_that_becomes_a_fact_was_closed_by_a_newer_one_and_is_valid_again_as_of_its_statement(
    substrate: Substrate,
) -> None:
    berlin = await substrate.store(TEXT)
    substrate.clock.advance(1_000)
    munich = await substrate.store("Ann lives in Munich.", **CITY)
    substrate.clock.advance(1_000)
    result = await substrate.memory().store(NewRecord(TEXT, **CITY), AGENT_SOURCE)
    assert (result.merged, result.kept) == (("subject", "predicate"), ())
    record, other = await substrate.record(berlin), await substrate.record(munich)
    assert (record.valid_to_ms, record.gaps) == (None, ((START + 1_000, START + 2_000),))
    assert (other.superseded_by, other.valid_to_ms) == (berlin, START + 2_000)
    repeated = await substrate.memory().store(NewRecord(TEXT, **CITY), AGENT_SOURCE)
    assert (repeated.merged, await substrate.record(berlin)) == ((), record)
    await check_agreement(substrate)


async def test_equal_contents_of_one_call_are_merged_in_their_order(substrate: Substrate) -> None:
    news = [NewRecord(TEXT, metadata) for metadata in ({"a": 1}, {"a": 2, "b": 2}, {"b": 2})]
    first, second, third = await substrate.memory().store_all(news, AGENT_SOURCE)
    assert (first.created, second.merged, second.kept) == (True, ("metadata.b",), ("metadata.a",))
    assert (third.merged, third.kept) == ((), ())
    [record] = await substrate.listed()
    assert record.metadata == {"a": 1, "b": 2}
    await check_agreement(substrate)


async def test_an_equal_content_of_another_scope_is_another_record(substrate: Substrate) -> None:
    first = await substrate.store(TEXT, HOUSE, metadata={"a": 1})
    result = await substrate.memory(AGENT).store(NewRecord(TEXT, {"a": 2}), AGENT_SOURCE)
    assert result.created
    assert (await substrate.record(first)).metadata == {"a": 1}


fields = st.fixed_dictionaries(
    {},
    optional={
        "metadata": st.dictionaries(st.sampled_from("abc"), st.integers(0, 2), max_size=3),
        "subject": st.sampled_from(("ann", "bob")),
        "predicate": st.sampled_from(("lives_in", "works_in")),
        "object": st.sampled_from(("berlin", "paris")),
        "confidence": st.sampled_from((0.2, 0.8)),
        "expires_at_ms": st.integers(START + 10_000, START + 90_000),
    },
)


@settings(max_examples=40, deadline=None)
@given(several=st.lists(fields, min_size=2, max_size=4))
async def test_invariant_6_a_history_of_calls_repeated_whole_changes_nothing(several: list[dict[str, Any]]) -> None:
    substrate = Substrate()
    try:
        for one in several:
            record_id = await substrate.store(TEXT, **one)
        record, events = await substrate.memory().get(record_id)
        for one in several:
            result = await substrate.memory().store(NewRecord(TEXT, **one), AGENT_SOURCE)
            assert result.merged == ()
        assert await substrate.memory().get(record_id) == (record, events)
        assert record.confidence == several[0].get("confidence", 1.0)
    finally:
        substrate.close()


async def test_a_later_expiry_counts_from_the_earlier_one_even_if_the_fact_is_stated_for_later_as_well(
    substrate: Substrate,
) -> None:
    now = substrate.clock()
    home: dict[str, Any] = {"subject": "ann", "predicate": "lives_in", "valid_from_ms": now}
    await substrate.store("Ann lives in Paris.", **home)
    await substrate.store("Ann lives in Berlin.", **home, expires_at_ms=now + 6_000)
    again = home | {"valid_from_ms": now + 36_000, "expires_at_ms": now + 56_000}
    await substrate.store("Ann lives in Berlin.", **again)
    for later_ms, valid in ((5_000, "Berlin"), (5_000, "Berlin"), (40_000, "Berlin"), (10_000, "Paris")):
        substrate.clock.advance(later_ms)
        assert await substrate.found("Where does Ann live?") == [f"Ann lives in {valid}."]
