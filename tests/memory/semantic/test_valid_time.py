"""`valid_at_ms` asks what was valid at a time, as far as is known now, or was known at `as_of_ms`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from retain.errors import InvalidInput
from retain.memory.records.listing import Listing, list_records
from retain.memory.records.record import NewRecord, RecordSource, Utterance
from retain.memory.semantic import RecallQuery
from tests.memory.semantic.substrate import AGENT, PERSON, TENANT, Substrate

HOME: dict[str, Any] = {"subject": "ann", "predicate": "lives_in"}
YEAR = 31_557_600_000
START = 1_700_000_000_000
"""The time of the substrate's clock, in November 2023."""


async def valid_at(substrate: Substrate, at_ms: int | None, **wanted: Any) -> list[str]:
    return sorted(await substrate.found("Where does Ann live?", AGENT, valid_at_ms=at_ms, top_k=50, **wanted))


async def listed_at(substrate: Substrate, at_ms: int) -> list[str]:
    records, _ = await list_records(substrate.d1, TENANT, Listing(held_at_ms=at_ms, limit=200))
    return sorted(record.content for record in records)


async def test_what_was_valid_in_another_year_is_known_today(substrate: Substrate) -> None:
    """All of it is stated today, out of order."""
    for city, years in (("Berlin", 6), ("Lyon", 1), ("Rome", 3)):
        await substrate.store(f"Ann lives in {city}.", valid_from_ms=START - years * YEAR, **HOME)
    substrate.clock.advance(1000)
    for months, city in ((84, ""), (60, "Berlin"), (36, "Rome"), (24, "Rome"), (6, "Lyon"), (-12, "Lyon")):
        at_ms = START - months * YEAR // 12
        expected = [f"Ann lives in {city}."] if city else []
        assert await valid_at(substrate, at_ms) == await listed_at(substrate, at_ms) == expected
    assert await valid_at(substrate, None) == ["Ann lives in Lyon."]
    assert await valid_at(substrate, None, as_of_ms=START - 2 * YEAR) == [], "nothing was known then"


async def test_a_conversation_of_another_year_is_recalled_as_valid_then(substrate: Substrate) -> None:
    turn = Utterance("chat", 0, "Ann", START - 3 * YEAR)
    new = NewRecord("I live in Berlin.", utterance=turn, expires_at_ms=START + YEAR)
    await substrate.memory().store(new, RecordSource("ingest"))
    assert await valid_at(substrate, START - 2 * YEAR) == ["I live in Berlin."]
    assert await valid_at(substrate, START - 4 * YEAR) == []
    assert await valid_at(substrate, START + 2 * YEAR) == []


async def test_both_times_together_ask_what_was_then_known_of_another_time(substrate: Substrate) -> None:
    await substrate.store("Ann lives in Berlin.", valid_from_ms=START - 3 * YEAR, **HOME)
    substrate.clock.advance(1000)
    first = substrate.clock()
    substrate.clock.advance(1000)
    await substrate.store("Ann lives in Rome.", valid_from_ms=START - 2 * YEAR, **HOME)
    substrate.clock.advance(1000)
    last_year = START - YEAR
    assert await valid_at(substrate, last_year, as_of_ms=first) == ["Ann lives in Berlin."]
    assert await valid_at(substrate, last_year, as_of_ms=substrate.clock()) == ["Ann lives in Rome."]
    assert await valid_at(substrate, START - 3 * YEAR + 1) == ["Ann lives in Berlin."]


async def test_a_text_of_the_past_is_found_at_another_time_of_validity(substrate: Substrate) -> None:
    record_id = await substrate.store("Ann lives in Berlin.", valid_from_ms=START - 3 * YEAR)
    substrate.clock.advance(1000)
    first = substrate.clock()
    substrate.clock.advance(1000)
    await substrate.memory().edit(record_id, {"content": "The parcel was sent."}, PERSON)
    assert await valid_at(substrate, START - YEAR, as_of_ms=first) == ["Ann lives in Berlin."]
    assert await valid_at(substrate, START - YEAR) == ["The parcel was sent."]


async def test_in_a_gap_of_validity_a_record_is_not_valid(substrate: Substrate) -> None:
    record_id = await substrate.store("Ann lives in Berlin.", **HOME)
    substrate.clock.advance(1000)
    closed = substrate.clock()
    await substrate.memory().invalidate(record_id, closed, PERSON)
    substrate.clock.advance(1000)
    again = substrate.clock()
    await substrate.store("Ann lives in Berlin.", source=PERSON, **HOME)
    substrate.clock.advance(1000)
    for at_ms, expected in ((closed - 1, True), (closed, False), (again - 1, False), (again, True)):
        assert bool(await valid_at(substrate, at_ms)) == bool(await listed_at(substrate, at_ms)) == expected


@pytest.mark.parametrize(
    "asked",
    [
        lambda at_ms: RecallQuery("Where?", valid_at_ms=at_ms),
        lambda at_ms: Listing(held_at_ms=at_ms),
    ],
    ids=["recall", "list"],
)
@pytest.mark.parametrize("at_ms", [-1, 2**53])
def test_an_impossible_time_is_refused(asked: Callable[[int], object], at_ms: int) -> None:
    with pytest.raises(InvalidInput) as raised:
        asked(at_ms)
    assert raised.value.code == "invalid_valid_at"


cities = st.sampled_from(("Berlin", "Lyon", "Rome"))
years = st.integers(-6, 2)
stated = st.tuples(st.just("tell"), cities, st.none() | years)
closed = st.tuples(st.just("close"), cities, years)
restored = st.tuples(st.just("restore"), cities, st.none())
reworded = st.tuples(st.just("reword"), cities, st.integers(0, 3))


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(stated | closed | restored | reworded, min_size=1, max_size=10), st.data())
def test_every_time_of_validity_reads_as_it_did_when_it_was_known(
    changes: list[tuple[str, str, int | None]], data: st.DataObject
) -> None:
    """After each change, what is valid in each year is noted; later the same is read as of the time of that change."""
    instants = [START + year * YEAR + YEAR // 2 for year in range(-7, 4)]

    async def play() -> None:
        with closing(Substrate()) as substrate:
            ids: dict[str, str] = {}
            noted: list[tuple[int, dict[int, list[str]]]] = []
            for number, (kind, city, year) in enumerate(changes):
                memory = substrate.memory()
                at_ms = None if year is None else START + year * YEAR
                if kind == "tell" and city not in ids:
                    ids[city] = await substrate.store(f"Ann is in {city}.", source=PERSON, valid_from_ms=at_ms, **HOME)
                elif kind == "close" and city in ids:
                    await memory.invalidate(ids[city], at_ms or 0, PERSON)
                elif kind == "restore" and city in ids:
                    await memory.restore(ids[city], PERSON)
                elif kind == "reword" and city in ids:
                    await memory.edit(ids[city], {"content": f"Ann stays in {city}, change {number}."}, PERSON)
                noted.append((substrate.clock(), {at: await listed_at(substrate, at) for at in instants}))
                substrate.clock.advance(1000)
            for known_ms, valid in noted:
                at = data.draw(st.sampled_from(instants))
                found = await valid_at(substrate, at, as_of_ms=known_ms + 500)
                assert found == valid[at], f"valid at {at - START}, known at {known_ms - START}"
            for at in instants:
                assert await valid_at(substrate, at) == noted[-1][1][at]

    asyncio.run(play())
