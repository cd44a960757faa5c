"""The outbox: an instance's pending writes reach D1 once and in order, whatever fails on the way."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retain.errors import Unavailable
from retain.host.clock import ManualClock
from retain.host.sql import SqliteSql
from retain.outbox import BATCH, MAX_REFUSALS, MOST_CHARACTERS, SCHEMA, Outbox, OwedStatement, grouped_of, statements_of
from retain.ports import Row, SqlResult, SqlValue, Statement
from tests.support.databases import migrated_d1
from tests.support.faults import Crash, Fault, Faults
from tests.support.object_storage import ObjectStorage


@dataclass(frozen=True, slots=True)
class Put(OwedStatement):
    NAME: ClassVar[str] = "put"
    SQL: ClassVar[str] = "INSERT OR IGNORE INTO delivered (n) VALUES (?)"

    n: int


@dataclass(frozen=True, slots=True)
class Strict(OwedStatement):
    NAME: ClassVar[str] = "strict"
    SQL: ClassVar[str] = "INSERT INTO delivered (n) VALUES (?)"

    n: int


@dataclass(frozen=True, slots=True)
class OfTheFuture(OwedStatement):
    NAME: ClassVar[str] = "of_the_future"
    SQL: ClassVar[str] = Put.SQL

    n: int


@dataclass(frozen=True, slots=True)
class Several(OwedStatement):
    """Of which one statement writes several. text: with its number in a place that is not the first."""

    NAME: ClassVar[str] = "several"
    ALONE: ClassVar[bool] = False
    SQL: ClassVar[str] = "INSERT OR IGNORE INTO delivered (text, n) VALUES (?2, ?1)"

    n: int | None
    text: str | None = None


STATEMENTS = statements_of(Put, Strict, Several)
GROUPED = grouped_of(Put, Several)
DELIVERED = "CREATE TABLE delivered (place INTEGER PRIMARY KEY AUTOINCREMENT, n INTEGER UNIQUE CHECK (n >= 0), text)"
REFUSED = -1
"""A number that the table's constraint refuses."""


class Office:
    """An outbox between the storage of one object and a D1, with faults on demand."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.storage = ObjectStorage()
        self.sql = migrated_d1()
        self.faults = Faults(lambda owner: self.storage.lose_turn())
        self.outbox = self.opened()

    def opened(self) -> Outbox:
        """Return an outbox on the same storage, created as by an object that wakes up."""
        life = self.faults.life("office")
        local = self.faults.wrap("local", self.storage, life)
        remote = self.faults.wrap("sql", self.sql, life, before=self.storage.commit)
        local.run(SCHEMA)
        return Outbox(local, remote, STATEMENTS, self.clock, "sdr:acme:main", grouped=GROUPED)

    def add(self, *numbers: int, kind: type[Put | Strict | OfTheFuture | Several] = Put) -> None:
        for number in numbers:
            self.outbox.add("acme", kind(number))

    async def delivered(self) -> list[int]:
        return [row["n"] for row in (await self.sql.run("SELECT n FROM delivered ORDER BY place")).rows]

    def owed(self) -> list[Row]:
        return self.storage.run("SELECT * FROM outbox ORDER BY entry_id").rows

    async def failures(self) -> list[Row]:
        return (await self.sql.run("SELECT * FROM outbox_failures ORDER BY entry_id")).rows

    def close(self) -> None:
        self.storage.close()
        self.sql.close()


@pytest.fixture
async def office() -> AsyncIterator[Office]:
    with closing(Office()) as made:
        await made.sql.run(DELIVERED)
        yield made


async def test_entries_arrive_in_the_order_in_which_they_were_added(office: Office) -> None:
    numbers = [(7 * n) % (2 * BATCH + 11) for n in range(2 * BATCH + 11)]
    office.add(*numbers)
    assert await office.outbox.flush() is True
    assert await office.delivered() == numbers
    assert office.owed() == []
    batches = [point for _, point in office.faults.trace if point == "sql.batch"]
    assert len(batches) == 3


async def test_an_empty_outbox_does_not_call_d1(office: Office) -> None:
    assert await office.outbox.flush() is True
    assert office.outbox.next_due_ms() is None
    assert [point for _, point in office.faults.trace if point.startswith("sql.")] == []


async def test_an_entry_that_d1_already_has_is_written_again_without_effect(office: Office) -> None:
    office.add(1, 2, 3)
    office.faults.plan(Fault(Unavailable("the answer was lost"), point="sql.batch done"))
    assert await office.outbox.flush() is False
    assert await office.delivered() == [1, 2, 3]
    assert [json.loads(row["parameters"]) for row in office.owed()] == [[1], [2], [3]]
    assert await office.outbox.flush() is True
    assert await office.delivered() == [1, 2, 3]


async def test_entries_outlive_the_object(office: Office) -> None:
    office.add(1, 2)
    office.faults.plan(Fault(Crash(), point="sql.batch done"))
    with pytest.raises(Crash):
        await office.outbox.flush()
    office.outbox = office.opened()
    assert await office.outbox.flush() is True
    assert await office.delivered() == [1, 2]


async def test_while_d1_is_down_the_pauses_between_attempts_grow(office: Office) -> None:
    office.add(1, 2)
    office.faults.down.add("sql")
    waits: list[int] = []
    for _ in range(12):
        assert await office.outbox.flush() is False
        due = office.outbox.next_due_ms()
        assert due is not None
        waits.append(due - office.clock())
    assert waits == [1000 * 2**n for n in range(9)] + [300_000] * 3
    assert await office.failures() == []
    assert [json.loads(row["parameters"]) for row in office.owed()] == [[1], [2]]
    office.faults.down.clear()
    assert await office.outbox.flush() is True
    assert await office.delivered() == [1, 2]


async def test_an_entry_that_d1_refuses_is_set_aside_and_the_others_are_delivered(office: Office) -> None:
    office.add(1, 2)
    office.add(REFUSED, kind=Strict)
    office.add(3, 4)
    for attempt in range(1, MAX_REFUSALS):
        assert await office.outbox.flush() is False, attempt
        assert await office.delivered() == [1, 2], "earlier entries arrive, later ones keep their order"
        assert await office.failures() == []
    assert await office.outbox.flush() is True
    assert await office.delivered() == [1, 2, 3, 4]
    [failure] = await office.failures()
    assert dict(failure) == {
        "instance_key": "sdr:acme:main",
        "entry_id": 3,
        "tenant_id": "acme",
        "statement": "strict",
        "parameters": "[-1]",
        "error": "constraint: a constraint of the database forbids it",
        "failed_at_ms": office.clock(),
    }


async def test_several_refused_entries_are_each_set_aside(office: Office) -> None:
    for number in (1, 2, 3):
        office.add(REFUSED, kind=Strict)
        office.add(number)
    for _ in range(3 * MAX_REFUSALS - 1):
        await office.outbox.flush()
    assert await office.outbox.flush() is True
    assert await office.delivered() == [1, 2, 3]
    assert [row["entry_id"] for row in await office.failures()] == [1, 3, 5]


@pytest.mark.parametrize("point", ["sql.run", "sql.run done"])
async def test_an_entry_is_set_aside_once_even_if_d1_fails_meanwhile(office: Office, point: str) -> None:
    office.add(REFUSED, kind=Strict)
    office.add(1)
    for _ in range(MAX_REFUSALS - 1):
        await office.outbox.flush()
    # The entry's own statement is the first call of the next attempt; setting it aside is the second, or the first that
    # completes.
    office.faults.plan(Fault(Unavailable("it failed"), 2 if point == "sql.run" else 1, point))
    assert await office.outbox.flush() is False
    assert len(office.owed()) == 2
    assert await office.outbox.flush() is True
    assert await office.delivered() == [1]
    assert len(await office.failures()) == 1


async def test_a_statement_that_this_version_does_not_know_waits_for_a_version_that_does(office: Office) -> None:
    office.add(1)
    office.add(2, kind=OfTheFuture)
    office.add(3)
    assert await office.outbox.flush() is False
    assert await office.delivered() == [1]
    assert [row["statement"] for row in office.owed()] == ["of_the_future", "put"]
    assert office.outbox.next_due_ms() == office.clock() + 1000
    future = statements_of(Put, Strict, OfTheFuture)
    assert await Outbox(office.storage, office.sql, future, office.clock, "sdr:acme:main").flush() is True
    assert await office.delivered() == [1, 2, 3]


async def test_a_second_flush_waits_for_the_first_and_nothing_is_sent_twice(office: Office) -> None:
    office.add(1, 2, kind=Strict)
    assert await asyncio.gather(*[office.outbox.flush() for _ in range(4)]) == [True] * 4
    assert await office.delivered() == [1, 2]
    assert await office.failures() == []


async def test_an_entry_added_during_a_flush_is_delivered_by_it(office: Office) -> None:
    office.add(1)
    flush = asyncio.create_task(office.outbox.flush())
    while not office.faults.trace[-1][1].startswith("sql."):
        await asyncio.sleep(0)
    office.add(2)
    assert await flush is True
    assert await office.delivered() == [1, 2]


async def test_fifty_entries_go_to_d1_at_once(office: Office) -> None:
    office.add(*range(51))
    office.faults.plan(Fault(Unavailable("it failed"), 2, "sql.batch"))
    assert await office.outbox.flush() is False
    assert await office.delivered() == list(range(50))


async def test_the_fifth_refusal_sets_an_entry_aside_with_one_call_for_each_write(office: Office) -> None:
    office.add(REFUSED, kind=Strict)
    office.add(1)
    for _ in range(4):
        assert await office.outbox.flush() is False
    assert await office.failures() == []
    before = len(office.faults.trace)
    assert await office.outbox.flush() is True
    assert len(await office.failures()) == 1
    called = [point for _, point in office.faults.trace[before:] if point in ("sql.batch", "sql.run")]
    assert called == [
        "sql.batch",
        "sql.run",  # the refused entry alone
        "sql.run",  # it is set aside
        "sql.batch",  # and the ledger of errors has it
        "sql.run",  # the other entry
    ]


class Statements:
    """Implements `Sql.batch`: keeps what it is given, and passes it on."""

    def __init__(self, sql: SqliteSql) -> None:
        self.batches: list[Sequence[Statement]] = []
        self._sql = sql

    async def run(self, sql: str, *values: SqlValue) -> SqlResult:
        return await self._sql.run(sql, *values)

    async def batch(self, statements: Sequence[Statement]) -> list[SqlResult]:
        self.batches.append(statements)
        return await self._sql.batch(statements)


async def test_entries_of_one_kind_that_may_be_grouped_are_one_statement_with_the_same_values(office: Office) -> None:
    remote = Statements(office.sql)
    texts = ["plain", None, 'é 🦀 " \\ ?1', "[1]"]
    outbox = Outbox(office.storage, remote, STATEMENTS, office.clock, "sdr:acme:main", grouped=GROUPED)
    outbox.add("acme", *(Several(number, text) for number, text in enumerate(texts)))
    outbox.add("acme", Put(10), Several(11, "alone"), Several(12, "a\0b"), Several(13))
    assert await outbox.flush() is True
    assert [len(statements) for statements in remote.batches] == [5]
    rows = (await office.sql.run("SELECT n, text, typeof(n) AS kind FROM delivered ORDER BY place")).rows
    assert [(row["n"], row["text"]) for row in rows] == [
        *enumerate(texts),
        (10, None),
        (11, "alone"),
        (12, "a\0b"),
        (13, None),
    ]
    assert {row["kind"] for row in rows} == {"integer"}


async def test_a_group_is_no_longer_than_a_value_may_be(office: Office) -> None:
    remote = Statements(office.sql)
    outbox = Outbox(office.storage, remote, STATEMENTS, office.clock, "sdr:acme:main", grouped=GROUPED)
    outbox.add("acme", *(Several(number, "x" * (MOST_CHARACTERS // 3)) for number in range(5)))
    outbox.add("acme", Several(5, "y" * 1_900_000))
    assert await outbox.flush() is True
    assert [len(statements) for statements in remote.batches] == [4], "two, two, one, and the longest"
    assert await office.delivered() == [0, 1, 2, 3, 4, 5]


async def test_an_entry_of_a_group_that_d1_refuses_is_set_aside_alone(office: Office) -> None:
    await office.sql.run(
        "CREATE TRIGGER refuses BEFORE INSERT ON delivered WHEN new.n = 2 BEGIN SELECT RAISE(ABORT, 'no'); END"
    )
    office.add(1, 2, 3, kind=Several)
    for _ in range(MAX_REFUSALS):
        await office.outbox.flush()
    assert await office.outbox.flush() is True
    assert await office.delivered() == [1, 3]
    assert [row["entry_id"] for row in await office.failures()] == [2]


async def test_a_row_of_a_group_that_a_trigger_leaves_out_leaves_out_no_other(office: Office) -> None:
    await office.sql.run(
        "CREATE TRIGGER leaves BEFORE INSERT ON delivered WHEN new.n = 2 BEGIN SELECT RAISE(IGNORE); END"
    )
    office.add(1, 2, 3, kind=Several)
    assert await office.outbox.flush() is True
    assert await office.delivered() == [1, 3]


async def test_what_is_discarded_is_not_delivered_and_a_write_under_way_ends_first(office: Office) -> None:
    office.add(1)
    flush = asyncio.create_task(office.outbox.flush())
    while not office.faults.trace[-1][1].startswith("sql."):
        await asyncio.sleep(0)
    await office.outbox.discard()
    assert flush.done()
    assert await office.delivered() == [1]
    office.add(2)
    await office.outbox.discard()
    assert office.owed() == []
    assert await office.outbox.flush() is True
    assert await office.delivered() == [1]


async def test_the_log_says_that_a_statement_is_not_known(office: Office, caplog: pytest.LogCaptureFixture) -> None:
    office.add(2, kind=OfTheFuture)
    assert await office.outbox.flush() is False
    assert [vars(record)["code"] for record in caplog.records] == ["unknown_statement"]


steps = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(1, 70)),
        st.tuples(st.just("refused"), st.just(0)),
        st.tuples(st.just("flush"), st.just(0)),
        st.tuples(st.just("lost before"), st.integers(1, 3)),
        st.tuples(st.just("lost after"), st.integers(1, 3)),
        st.tuples(st.just("crash"), st.integers(1, 12)),
    ),
    max_size=15,
)


@settings(max_examples=50, deadline=None)
@given(steps=steps)
async def test_invariant_4_whatever_fails_everything_arrives_once_and_in_order(steps: list[tuple[str, int]]) -> None:
    with closing(Office()) as office:
        await office.sql.run(DELIVERED)
        added = refused = 0
        for step, amount in steps:
            match step:
                case "add":
                    office.add(*range(added, added + amount), kind=Several if amount % 2 else Put)
                    added += amount
                case "refused":
                    office.add(REFUSED, kind=Strict)
                    refused += 1
                case "lost before":
                    office.faults.plan(Fault(Unavailable("lost"), amount, "sql.batch"))
                case "lost after":
                    office.faults.plan(Fault(Unavailable("lost"), amount, "sql.batch done"))
                case "crash":
                    office.storage.commit()
                    office.faults.plan(Fault(Crash(), amount))
            try:
                await office.outbox.flush()
            except Crash:
                office.outbox = office.opened()
            if step == "crash":
                office.faults.cancel()
        office.faults.cancel()
        while not await office.outbox.flush():
            pass
        assert await office.delivered() == list(range(added))
        assert len(await office.failures()) == refused
