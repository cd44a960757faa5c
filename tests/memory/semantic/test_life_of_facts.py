"""Of the facts about one thing at most one is valid at each instant, and it is the right one, whatever happened to them.

A state machine compares the records with a plain model: a list of what was said, asked instant by instant.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Coroutine
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from retain.memory.records.record import NewRecord, Record
from tests.memory.semantic.agreement import check_agreement
from tests.memory.semantic.stated import Model, Statements
from tests.memory.semantic.substrate import AGENT_SOURCE, PERSON, Substrate

START = 1_700_000_000_000
"""The time of the substrate's clock. Times below are milliseconds after it."""
CITIES = ("Berlin", "Lyon", "Paris", "Rome")
HOME, WORK = "lives_in", "works_in"
HORIZON = range(-12, 90)


times = st.integers(-10, 60)
cities = st.sampled_from(CITIES)


class LifeOfFacts(RuleBasedStateMachine):
    """What is said of where Ann lives and works, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.substrate = Substrate()
        self.model = Model()
        self.ids: dict[str, str] = {}

    def teardown(self) -> None:
        """Check that records, events and indexes agree."""
        try:
            self.run(check_agreement(self.substrate))
        finally:
            self.substrate.close()
            self.runner.close()

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return self.runner.run(coroutine)

    @property
    def now(self) -> int:
        return self.substrate.clock() - START

    @rule(city=cities, since=st.none() | times, lives=st.none() | st.integers(1, 40), person=st.booleans())
    def tell(self, city: str, since: int | None, lives: int | None, person: bool) -> None:
        begins = self.now if since is None else since
        expires = None if lives is None else max(begins, self.now) + lives
        new = NewRecord(
            f"Ann is in {city}.",
            subject="ann",
            predicate=HOME,
            valid_from_ms=None if since is None else START + since,
            expires_at_ms=None if expires is None else START + expires,
        )
        known = self.model.stated.get(city)
        persons = known is not None and self.record(city).edited and not person
        result = self.run(self.substrate.memory().store(new, PERSON if person else AGENT_SOURCE))
        if known is None:
            self.ids[city] = result.id
            self.model.stated[city] = Statements(result.id, HOME, {begins: None}, expires)
        elif not (persons and begins < min(known.since)):  # no rule lets begin earlier what a person wrote
            lasts = expires if not persons or known.is_gone(self.now) else known.expires
            self.model.tell(city, begins, lasts, self.now, timed=since is not None, person=person)
        again = self.run(self.substrate.memory().store(new, PERSON if person else AGENT_SOURCE))
        assert (again.id, again.created, again.merged) == (result.id, False, ())

    def record(self, city: str) -> Record:
        record: Record = self.run(self.substrate.record(self.ids[city]))
        return record

    @precondition(lambda self: self.model.stated)
    @rule(number=st.integers(0, 3), at=times, person=st.booleans())
    def close(self, number: int, at: int, person: bool) -> None:
        city = self.one(number)
        self.run(self.substrate.memory().invalidate(self.ids[city], START + at, PERSON if person else AGENT_SOURCE))
        self.model.end(self.model.stated[city], at)
        self.model.stated[city].closed_by_person = person

    @precondition(lambda self: self.model.stated)
    @rule(number=st.integers(0, 3))
    def restore(self, number: int) -> None:
        city = self.one(number)
        self.run(self.substrate.memory().restore(self.ids[city], PERSON))
        self.model.restore(city, self.now)

    @precondition(lambda self: self.model.stated)
    @rule(number=st.integers(0, 3))
    def delete(self, number: int) -> None:
        city = self.one(number)
        self.run(self.substrate.memory().delete(self.ids.pop(city), PERSON))
        del self.model.stated[city]

    @precondition(lambda self: self.model.stated)
    @rule(number=st.integers(0, 3), about=st.sampled_from((HOME, WORK)))
    def edit_what_it_is_about(self, number: int, about: str) -> None:
        city = self.one(number)
        self.run(self.substrate.memory().edit(self.ids[city], {"predicate": about}, PERSON))
        self.model.stated[city].about = about

    @precondition(lambda self: self.model.stated)
    @rule(number=st.integers(0, 3), expires=st.none() | st.integers(1, 80))
    def edit_when_it_expires(self, number: int, expires: int | None) -> None:
        city = self.one(number)
        changes = {"expires_at_ms": None if expires is None else START + expires}
        self.run(self.substrate.memory().edit(self.ids[city], changes, PERSON))
        self.model.stated[city].expires = expires

    @rule(duration=st.integers(1, 20))
    def wait(self, duration: int) -> None:
        self.substrate.clock.advance(duration)

    def one(self, number: int) -> str:
        return sorted(self.model.stated)[number % len(self.model.stated)]

    @invariant()
    def at_each_instant_the_right_one_is_valid_and_no_other(self) -> None:
        records: list[Record] = self.run(self.substrate.listed())
        names = {record_id: city for city, record_id in self.ids.items()}
        for about, at in itertools.product((HOME, WORK), HORIZON):
            valid = [
                names[record.id] for record in records if record.predicate == about and is_valid(record, START + at)
            ]
            assert valid == [city for city in [self.model.valid(about, at)] if city is not None], f"{about} at {at}"

    @rule()
    def what_is_recalled_and_listed_now_is_what_is_valid(self) -> None:
        expected = sorted(
            f"Ann is in {city}."
            for about in (HOME, WORK)
            for city in [self.model.valid(about, self.now)]
            if city is not None
        )
        assert sorted(self.run(self.substrate.found("Where is Ann?"))) == expected


def is_valid(record: Record, at_ms: int) -> bool:
    """Return whether a record is valid at a time, even before it was recorded."""
    return (
        record.holds_at(max(at_ms, record.recorded_at_ms))
        if at_ms >= record.recorded_at_ms
        else (
            record.valid_from_ms <= at_ms
            and (record.valid_to_ms is None or at_ms < record.valid_to_ms)
            and (record.expires_at_ms is None or at_ms < record.expires_at_ms)
            and not any(begin <= at_ms and (end is None or at_ms < end) for begin, end in record.gaps)
        )
    )


async def test_a_later_expiry_in_a_new_statement_ends_what_was_valid_after_the_earlier_one(
    substrate: Substrate,
) -> None:
    """Rome is valid when Lyon has expired; then Lyon is stated again from a later time on, with an expiry after that."""
    city: dict[str, Any] = {"subject": "ann", "predicate": HOME}
    rome = await substrate.store("Ann is in Rome.", **city)
    lyon = await substrate.store("Ann is in Lyon.", expires_at_ms=START + 18, **city)
    await substrate.store("Ann is in Lyon.", valid_from_ms=START + 51, expires_at_ms=START + 87, **city)
    for at, expected in ((17, lyon), (18, lyon), (52, lyon), (87, rome)):
        valid = [record.id for record in await substrate.listed() if is_valid(record, START + at)]
        assert valid == [expected], f"at {at}"


TestLifeOfFacts = LifeOfFacts.TestCase
TestLifeOfFacts.settings = settings(
    max_examples=20,
    stateful_step_count=15,
    deadline=None,
    report_multiple_bugs=False,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
