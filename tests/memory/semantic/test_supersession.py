"""A newer fact with equal scope, subject and predicate closes the validity of the older one; both stay readable."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retain.memory.records.listing import Listing, list_records
from retain.memory.records.record import Kind, NewRecord, RecordSource, Utterance
from retain.memory.scope import Scope
from tests.memory.semantic.agreement import check_agreement
from tests.memory.semantic.substrate import AGENT, AGENT_SOURCE, HOUSE, PERSON, TENANT, Substrate

CITY: dict[str, Any] = {"subject": "ann", "predicate": "lives_in"}
START = 1_700_000_000_000
"""The time of the substrate's clock."""

Span = tuple[int | tuple[int, int | None] | None, ...]
"""When a fact becomes valid and stops, and the gaps between."""


@dataclass(frozen=True)
class Stated:
    """A fact to be stored. since: when it became valid, in milliseconds."""

    city: str
    since: int

    @property
    def new(self) -> NewRecord:
        return NewRecord(f"Ann lives in {self.city}.", valid_from_ms=START - 1_000 + self.since, **CITY)


async def spans(substrate: Substrate) -> dict[str, Span]:
    """Return by city when its fact becomes valid, when it stops, or None, and the gaps between."""

    def shown(at_ms: int | None) -> int | None:
        return None if at_ms is None else at_ms - START + 1_000

    return {
        record.content.removeprefix("Ann lives in ").removesuffix("."): (
            shown(record.valid_from_ms),
            shown(record.valid_to_ms),
            *((begin - START + 1_000, shown(end)) for begin, end in record.gaps),
        )
        for record in await substrate.listed()
    }


BERLIN, MUNICH, PARIS, ROME = Stated("Berlin", 10), Stated("Munich", 20), Stated("Paris", 30), Stated("Rome", 40)
IN_ORDER = {"Berlin": (10, 20), "Munich": (20, 30), "Paris": (30, None)}

ARRIVALS = {
    "one": ([BERLIN], {"Berlin": (10, None)}),
    "two, in order": ([BERLIN, MUNICH], {"Berlin": (10, 20), "Munich": (20, None)}),
    "two, the older one arrives later": ([MUNICH, BERLIN], {"Berlin": (10, 20), "Munich": (20, None)}),
    "two of equal time: the one stored later is valid": (
        [BERLIN, Stated("Munich", 10)],
        {"Berlin": (10, 10), "Munich": (10, None)},
    ),
    "three of equal time": (
        [BERLIN, Stated("Munich", 10), Stated("Paris", 10)],
        {"Berlin": (10, 10), "Munich": (10, 10), "Paris": (10, None)},
    ),
    "the same again": ([BERLIN, MUNICH, MUNICH, BERLIN], {"Berlin": (10, 20), "Munich": (20, None)}),
    "true again": ([BERLIN, MUNICH, Stated("Berlin", 30)], {"Berlin": (10, None, (20, 30)), "Munich": (20, 30)}),
    "true again and again": (
        [BERLIN, MUNICH, Stated("Berlin", 30), Stated("Munich", 40), Stated("Berlin", 50)],
        {"Berlin": (10, None, (20, 30), (40, 50)), "Munich": (20, 50, (30, 40))},
    ),
} | {
    f"three, stored as {', '.join(fact.city for fact in order)}": (list(order), IN_ORDER)
    for order in itertools.permutations([BERLIN, MUNICH, PARIS])
}


@pytest.mark.parametrize("at_once", [False, True], ids=["one by one", "at once"])
@pytest.mark.parametrize("arrival", ARRIVALS)
async def test_each_fact_is_valid_until_the_next_one_is(substrate: Substrate, arrival: str, at_once: bool) -> None:
    facts, expected = ARRIVALS[arrival]
    if at_once:
        await substrate.memory().store_all([fact.new for fact in facts], AGENT_SOURCE)
    else:
        for fact in facts:
            await substrate.memory().store(fact.new, AGENT_SOURCE)
    assert await spans(substrate) == expected
    await check_agreement(substrate)


@settings(max_examples=25, deadline=None)
@given(order=st.permutations([Stated(city, since * 10) for since, city in enumerate("ABCDEF")]), cut=st.integers(0, 6))
async def test_the_order_of_arrival_makes_no_difference(order: list[Stated], cut: int) -> None:
    substrate = Substrate()
    try:
        if order[:cut]:
            await substrate.memory().store_all([fact.new for fact in order[:cut]], AGENT_SOURCE)
        for fact in order[cut:]:
            await substrate.memory().store(fact.new, AGENT_SOURCE)
        expected = {city: (number * 10, number * 10 + 10) for number, city in enumerate("ABCDE")}
        assert await spans(substrate) == expected | {"F": (50, None)}
        by_city = {record.content[13:14]: record for record in await substrate.listed()}
        for older, newer in itertools.pairwise("ABCDEF"):
            assert by_city[older].superseded_by == by_city[newer].id
        await check_agreement(substrate)
    finally:
        substrate.close()


KEPT_APART: dict[str, tuple[Scope, dict[str, Any], Scope, dict[str, Any]]] = {
    "another scope": (AGENT, CITY, HOUSE, CITY),
    "the parent scope": (AGENT, CITY, TENANT, CITY),
    "another agent": (AGENT, CITY, Scope("acme", "triage"), CITY),
    "another tenant": (AGENT, CITY, Scope("other", "sdr", "sales"), CITY),
    "another subject": (AGENT, CITY, AGENT, {"subject": "bob", "predicate": "lives_in"}),
    "another predicate": (AGENT, CITY, AGENT, {"subject": "ann", "predicate": "works_in"}),
    "no subject": (AGENT, CITY, AGENT, {"predicate": "lives_in"}),
    "no predicate": (AGENT, {"subject": "ann"}, AGENT, {"subject": "ann"}),
    "subject and predicate swapped": (AGENT, CITY, AGENT, {"subject": "lives_in", "predicate": "ann"}),
}


@pytest.mark.parametrize("case", KEPT_APART)
async def test_a_fact_about_something_else_closes_nothing(substrate: Substrate, case: str) -> None:
    first_scope, first, second_scope, second = KEPT_APART[case]
    await substrate.store("Ann lives in Berlin.", first_scope, **first)
    substrate.clock.advance(1_000)
    await substrate.store("Ann lives in Munich.", second_scope, **second)
    records = [record for tenant in ("acme", "other") for record in await substrate.listed(Scope(tenant))]
    assert [record.valid_to_ms for record in records] == [None, None]


@pytest.mark.parametrize("edited", [False, True])
async def test_facts_compete_in_whichever_normal_form_their_subject_was_typed(
    substrate: Substrate, edited: bool
) -> None:
    await substrate.store("Zo\u00eb lives in Berlin.", subject="Zo\u00eb", predicate="lives_in")
    substrate.clock.advance(1_000)
    subject = "Bob" if edited else "Zoe\u0308"
    second = await substrate.store("Zoe\u0308 lives in Munich.", subject=subject, predicate="lives_in")
    if edited:
        await substrate.memory().edit(second, {"subject": "Zoe\u0308"}, PERSON)
    records = await substrate.listed()
    assert {record.subject for record in records} == {"Zo\u00eb"}
    assert sorted(record.valid_to_ms is None for record in records) == [False, True]
    assert await substrate.found("Where does Zo\u00eb live?", filter={"subject": "Zoe\u0308"}) == [
        "Zoe\u0308 lives in Munich."
    ]


async def test_a_superseded_fact_names_its_successor_and_the_reason(substrate: Substrate) -> None:
    old = await substrate.store("Ann lives in Berlin.", **CITY)
    substrate.clock.advance(1_000)
    new = await substrate.store("Ann lives in Munich.", **CITY)
    record, events = await substrate.memory().get(old)
    assert (record.superseded_by, record.valid_to_ms) == (new, START + 1_000)
    assert [event.kind for event in events] == ["stored", "superseded"]
    assert dict(events[1].source) == {"origin": "extraction", "record_id": new}
    assert (await substrate.record(new)).superseded_by is None


async def test_what_is_superseded_is_not_recalled_but_still_listed(substrate: Substrate) -> None:
    await substrate.store("Ann lives in Berlin.", **CITY)
    substrate.clock.advance(1_000)
    await substrate.store("Ann lives in Munich.", **CITY)
    assert await substrate.found("Where does Ann live?") == ["Ann lives in Munich."]
    assert await substrate.contents() == ["Ann lives in Berlin.", "Ann lives in Munich."]


async def test_restoring_a_superseded_fact_makes_it_valid_again_instead_of_the_other(substrate: Substrate) -> None:
    old = await substrate.store("Ann lives in Berlin.", **CITY)
    substrate.clock.advance(1_000)
    new = await substrate.store("Ann lives in Munich.", **CITY)
    substrate.clock.advance(1_000)
    restored = await substrate.memory().restore(old, PERSON)
    assert (restored.valid_to_ms, restored.superseded_by) == (None, None)
    assert restored.gaps == ((START + 1_000, START + 2_000),)
    assert (await substrate.record(new)).superseded_by == old
    assert await substrate.found("Where does Ann live?") == ["Ann lives in Berlin."]
    assert [event.kind for event in (await substrate.memory().get(old))[1]] == ["stored", "superseded", "restored"]


async def test_a_fact_that_was_closed_by_hand_is_not_reopened_by_an_older_one(substrate: Substrate) -> None:
    paris = (await substrate.memory().store(PARIS.new, AGENT_SOURCE)).id
    await substrate.memory().invalidate(paris, START - 1_000 + 35, PERSON)
    await substrate.memory().store(BERLIN.new, AGENT_SOURCE)
    assert await spans(substrate) == {"Berlin": (10, 30), "Paris": (30, 35)}
    await substrate.memory().store(ROME.new, AGENT_SOURCE)
    assert await spans(substrate) == {"Berlin": (10, 30), "Paris": (30, 35), "Rome": (40, None)}


async def test_a_statement_in_a_conversation_is_valid_from_the_time_of_its_turn(substrate: Substrate) -> None:
    for position, (city, at_ms) in enumerate([("Berlin", START - 500), ("Munich", START - 300)]):
        await substrate.store(f"I live in {city}.", utterance=Utterance("chat-1", position, "Ann", at_ms), **CITY)
    assert [(record.valid_from_ms, record.valid_to_ms) for record in await substrate.listed()] == [
        (START - 500, START - 300),
        (START - 300, None),
    ]


async def test_a_fact_that_becomes_true_again_is_recalled_again(substrate: Substrate) -> None:
    for city in ("Berlin", "Munich", "Berlin"):
        await substrate.store(f"Ann lives in {city}.", **CITY)
        substrate.clock.advance(1_000)
    assert await substrate.found("Where does Ann live?") == ["Ann lives in Berlin."]


async def test_a_fact_that_becomes_true_again_was_not_true_in_between(substrate: Substrate) -> None:
    for city in ("Berlin", "Munich", "Berlin"):
        await substrate.store(f"Ann lives in {city}.", **CITY)
        substrate.clock.advance(1_000)
    assert [
        await substrate.found("Where does Ann live?", as_of_ms=START + seconds * 1_000 + 1) for seconds in range(3)
    ] == [["Ann lives in Berlin."], ["Ann lives in Munich."], ["Ann lives in Berlin."]]
    [berlin, munich] = await substrate.listed()
    assert munich.superseded_by == berlin.id
    assert (berlin.valid_from_ms, berlin.gaps) == (START, ((START + 1_000, START + 2_000),))
    assert berlin.superseded_by is None
    await check_agreement(substrate)


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
async def test_a_fact_stored_twice_is_valid_twice_in_whatever_order_it_arrives(
    substrate: Substrate, order: tuple[int, ...]
) -> None:
    facts = (BERLIN, MUNICH, Stated("Berlin", 30), ROME)
    for number in order:
        await substrate.memory().store(facts[number].new, AGENT_SOURCE)
    assert await spans(substrate) == {"Berlin": (10, 40, (20, 30)), "Munich": (20, 30), "Rome": (40, None)}
    await check_agreement(substrate)


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
async def test_two_facts_stored_in_turn_are_valid_in_turn_in_whatever_order_they_arrive(
    substrate: Substrate, order: tuple[int, ...]
) -> None:
    facts = (BERLIN, MUNICH, Stated("Berlin", 30), Stated("Munich", 40))
    for number in order:
        await substrate.memory().store(facts[number].new, AGENT_SOURCE)
    assert await spans(substrate) == {"Berlin": (10, 40, (20, 30)), "Munich": (20, None, (30, 40))}


CLOSED_AND_STORED_AGAIN: dict[str, tuple[RecordSource, RecordSource, bool]] = {
    "an agent stores again what it closed": (AGENT_SOURCE, AGENT_SOURCE, True),
    "a person stores again what an agent closed": (AGENT_SOURCE, PERSON, True),
    "a person stores again what a person closed": (PERSON, PERSON, True),
    "an agent stores again what a person closed": (PERSON, AGENT_SOURCE, False),
    "ingest stores again what a person closed": (PERSON, RecordSource("ingest", message="m-1"), False),
    "an import stores again what a person closed": (PERSON, RecordSource("import"), False),
    "ingest stores again what a rule closed": (RecordSource("extraction"), RecordSource("ingest"), True),
}


@pytest.mark.parametrize("case", CLOSED_AND_STORED_AGAIN)
async def test_a_closed_record_becomes_valid_again_when_stored_again_unless_a_person_closed_it(
    substrate: Substrate, case: str
) -> None:
    closer, writer, opened = CLOSED_AND_STORED_AGAIN[case]
    record_id = await substrate.store("The office is closed.")
    substrate.clock.advance(1_000)
    await substrate.memory().invalidate(record_id, substrate.clock(), closer)
    assert await substrate.found("office") == []
    substrate.clock.advance(1_000)
    result = await substrate.memory().store(NewRecord("The office is closed."), writer)
    assert (result.id, result.created) == (record_id, False)
    assert await substrate.found("office") == (["The office is closed."] if opened else [])
    [record] = await substrate.listed()
    expected = (None, ((START + 1_000, START + 2_000),)) if opened else (START + 1_000, ())
    assert (record.valid_to_ms, record.gaps) == expected
    assert record.valid_from_ms == START
    await check_agreement(substrate)


async def test_the_last_one_who_closed_it_counts(substrate: Substrate) -> None:
    """A person closed it and restored it; then an agent closed it."""
    record_id = await substrate.store("The office is closed.")
    memory = substrate.memory()
    for closer in (PERSON, AGENT_SOURCE):
        await memory.invalidate(record_id, substrate.clock(), closer)
        if closer is PERSON:
            await memory.restore(record_id, PERSON)
    await memory.edit(record_id, {"importance": 0.9}, PERSON)
    await substrate.store("The office is closed.")
    assert await substrate.found("office") == ["The office is closed."]


async def test_what_a_person_closed_stays_closed_among_others_of_one_call(substrate: Substrate) -> None:
    berlin = await substrate.store("Ann lives in Berlin.", **CITY)
    substrate.clock.advance(1_000)
    await substrate.memory().invalidate(berlin, substrate.clock(), PERSON)
    substrate.clock.advance(1_000)
    news = [NewRecord(f"Ann lives in {city}.", **CITY) for city in ("Munich", "Berlin")]
    await substrate.memory().store_all(news, AGENT_SOURCE)
    assert await substrate.found("Where does Ann live?") == ["Ann lives in Munich."]


@pytest.mark.parametrize("known", [0, 1, 2, 3])
async def test_facts_stored_in_one_call_are_stored_in_their_order(substrate: Substrate, known: int) -> None:
    """As when stored one by one: of facts that become true in turn the last is valid, whichever were known before."""
    cities = ["Berlin", "Munich", "Berlin", "Rome", "Munich"]
    for city in ("Munich", "Rome", "Berlin")[:known]:
        await substrate.store(f"Ann lives in {city}.", **CITY)
        substrate.clock.advance(1_000)
    start = substrate.clock()
    news = [NewRecord(f"Ann lives in {city}.", valid_from_ms=start + n, **CITY) for n, city in enumerate(cities)]
    substrate.clock.advance(1_000)
    results = await substrate.memory().store_all(news, AGENT_SOURCE)
    assert await substrate.found("Where does Ann live?") == ["Ann lives in Munich."]
    assert results[0].id == results[2].id
    assert results[1].id == results[4].id
    assert sum(result.created for result in results) == 3 - known
    records = {record.content[13:-1]: record for record in await substrate.listed()}
    for n, city in enumerate(cities):
        valid = {name for name, record in records.items() if replace(record, recorded_at_ms=0).holds_at(start + n)}
        assert valid == {city}, f"at {n} ms"
    await check_agreement(substrate)


async def test_what_is_stored_with_a_time_before_it_was_closed_stays_closed(substrate: Substrate) -> None:
    record_id = await substrate.store("The office is closed.")
    await substrate.memory().invalidate(record_id, START + 5_000, PERSON)
    substrate.clock.advance(10_000)
    await substrate.store("The office is closed.", valid_from_ms=START + 4_000)
    assert await substrate.found("office") == []


async def test_what_has_expired_is_recalled_again_when_it_is_stored_again(substrate: Substrate) -> None:
    await substrate.store("The lift is broken.", expires_at_ms=START + 1_000)
    substrate.clock.advance(2_000)
    assert await substrate.found("lift") == []
    await substrate.store("The lift is broken.")
    assert await substrate.found("lift") == ["The lift is broken."]


@pytest.mark.parametrize("ends", [None, 500, 5_000], ids=["no expiry", "a past expiry", "a future expiry"])
@pytest.mark.parametrize("kind", ["fact", "task"])
async def test_what_has_expired_gets_the_expiry_that_it_is_stored_with(
    substrate: Substrate, kind: Kind, ends: int | None
) -> None:
    record_id = await substrate.store("The lift is broken.", expires_at_ms=START + 1_000, kind=kind)
    substrate.clock.advance(2_000)
    if kind == "task":  # as consolidation closes it
        await substrate.memory().invalidate(record_id, START + 1_000, RecordSource("extraction"))
    expires_at_ms = None if ends is None else START + ends
    assert await substrate.store("The lift is broken.", expires_at_ms=expires_at_ms) == record_id
    if ends == 500:
        assert await substrate.found("lift") == []
    else:
        record = await substrate.record(record_id)
        assert (record.valid_from_ms, record.valid_to_ms, record.expires_at_ms) == (START, None, expires_at_ms)
        assert record.gaps == ((START + 1_000, START + 2_000),)
        assert await substrate.found("lift") == ["The lift is broken."]
    assert await substrate.found("lift", as_of_ms=START + 1_500) == []
    assert await substrate.found("lift", as_of_ms=START + 500) == ["The lift is broken."]
    await check_agreement(substrate)


async def test_what_has_not_expired_keeps_its_expiry_when_it_is_stored_again(substrate: Substrate) -> None:
    record_id = await substrate.store("The lift is broken.", expires_at_ms=START + 1_000)
    await substrate.store("The lift is broken.")
    assert (await substrate.record(record_id)).expires_at_ms == START + 1_000


async def test_a_fact_that_becomes_valid_later_is_not_recalled_before(substrate: Substrate) -> None:
    await substrate.store("Ann lives in Berlin.", **CITY)
    await substrate.store("Ann lives in Munich.", valid_from_ms=START + 5_000, **CITY)
    assert await substrate.found("Where does Ann live?") == ["Ann lives in Berlin."]
    substrate.clock.advance(5_000)
    assert await substrate.found("Where does Ann live?") == ["Ann lives in Munich."]


async def test_deleting_a_future_fact_leaves_the_present_one_valid(substrate: Substrate) -> None:
    await substrate.store("Ann lives in Berlin.", **CITY)
    future = await substrate.store("Ann lives in Munich.", valid_from_ms=START + 3_000, **CITY)
    await substrate.memory().delete(future, PERSON)
    substrate.clock.advance(5_000)
    assert await substrate.found("Where does Ann live?") == ["Ann lives in Berlin."]
    await check_agreement(substrate)


async def test_closing_a_future_fact_before_it_begins_leaves_the_present_one_valid(substrate: Substrate) -> None:
    await substrate.store("Ann lives in Berlin.", **CITY)
    future = await substrate.store("Ann lives in Munich.", valid_from_ms=START + 3_000, **CITY)
    await substrate.memory().invalidate(future, START + 1_000, PERSON)
    substrate.clock.advance(5_000)
    assert await substrate.found("Where does Ann live?") == ["Ann lives in Berlin."]
    await substrate.store("Ann lives in Rome.", **CITY)
    assert [record.valid_to_ms for record in await substrate.listed()] == [START + 5_000, START + 1_000, None]


async def test_a_fact_that_was_a_mistake_and_is_deleted_leaves_the_one_before_it_valid(substrate: Substrate) -> None:
    berlin = await substrate.store("Ann lives in Berlin.", **CITY)
    substrate.clock.advance(1_000)
    mistake = await substrate.store("Ann lives in Munich.", **CITY)
    await substrate.memory().delete(mistake, PERSON)
    assert await substrate.found("Where does Ann live?") == ["Ann lives in Berlin."]
    record, events = await substrate.memory().get(berlin)
    assert (record.valid_to_ms, record.superseded_by) == (None, None)
    assert [event.kind for event in events] == ["stored", "superseded", "restored"]


async def test_a_fact_that_expires_gives_way_to_the_one_before_it(substrate: Substrate) -> None:
    await substrate.store("Ann lives in Berlin.", **CITY)
    substrate.clock.advance(1_000)
    await substrate.store("Ann lives in Paris.", expires_at_ms=START + 8_000, **CITY)
    assert await substrate.found("Where does Ann live?") == ["Ann lives in Paris."]
    substrate.clock.advance(7_000)
    assert await substrate.found("Where does Ann live?") == ["Ann lives in Berlin."]
    now = substrate.clock()
    held = Listing(held_at_ms=now)
    assert [one.content for one in (await list_records(substrate.d1, TENANT, held))[0]] == ["Ann lives in Berlin."]


async def test_an_edit_into_the_same_subject_and_predicate_closes_one_of_the_two(substrate: Substrate) -> None:
    await substrate.store("Ann drives a Polo.", subject="ann", predicate="drives")
    substrate.clock.advance(1_000)
    golf = await substrate.store("Ann drives a Golf.", subject="anne", predicate="drives")
    await substrate.memory().edit(golf, {"subject": "ann"}, PERSON)
    assert await substrate.found("What does Ann drive?") == ["Ann drives a Golf."]
    await substrate.memory().edit(golf, {"subject": "anne"}, PERSON)
    assert len(await substrate.found("What does Ann drive?")) == 2
    await check_agreement(substrate)
