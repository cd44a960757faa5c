"""Stores of one tenant that arrive together are committed together, and leave what one after the other would have left."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retain.errors import InvalidInput, QuotaExceeded, RetainError, Unavailable, UpstreamFailed
from retain.identifiers import new_id
from retain.memory.records.record import NewRecord, RecordSource, Utterance
from retain.memory.scope import Scope
from retain.memory.semantic import SemanticMemory, StoreResult
from retain.memory.writing import group
from retain.memory.writing.calls import StoreCall
from retain.memory.writing.group import GroupWriter
from retain.tenants.attribution import AttributedSql, acting
from retain.tenants.quotas import set_numbers
from retain.tenants.register import Tenants
from tests.memory.semantic.agreement import check_agreement, check_history, check_records
from tests.memory.semantic.substrate import AGENT, HOUSE, PERSON, TENANT, Substrate
from tests.memory.semantic.test_crash_points import broken, repaired
from tests.support.faults import Crash, Fault

ANN = Scope("acme", "sdr", "sales", user_id="ann")
SCOPES = [AGENT, HOUSE, ANN]
NOW = 1_700_000_000_000


@pytest.fixture
async def substrate() -> AsyncIterator[Substrate]:
    with closing(Substrate()) as substrate:
        yield substrate


@dataclass
class Writers:
    """Memories of any scope that share one writer, as those of a tenant's object do."""

    substrate: Substrate
    writer: GroupWriter

    @classmethod
    def on(cls, substrate: Substrate) -> Writers:
        """Return those of a substrate, with the ports that it has now."""
        return cls(substrate, GroupWriter(substrate.sql, substrate.clock, substrate.indexer()))

    def memory(self, scope: Scope = AGENT) -> SemanticMemory:
        """Return the memory of a scope."""
        one = self.substrate
        return SemanticMemory(scope, one.sql, one.index, one.embedder, one.clock, writer=self.writer)

    async def store(self, content: str, scope: Scope = AGENT, **fields: Any) -> StoreResult:
        """Store a content. fields: of `NewRecord`."""
        return await self.memory(scope).store(NewRecord(content, **fields), PERSON)

    async def at_once(self, contents: Sequence[str], scope: Scope = AGENT) -> list[StoreResult | BaseException]:
        """Store each content with a call of its own, all at once; return each call's result or error."""
        calls = [self.store(content, scope) for content in contents]
        return await asyncio.gather(*calls, return_exceptions=True)


@dataclass
class Counted:
    """D1, and how many calls it got."""

    sql: Any
    calls: int = 0

    async def run(self, *asked: Any) -> Any:
        """Count and run."""
        self.calls += 1
        return await self.sql.run(*asked)

    async def batch(self, statements: Any) -> Any:
        """Count and run."""
        self.calls += 1
        return await self.sql.batch(statements)


async def test_a_hundred_stores_at_once_are_all_stored_in_order_with_few_calls(substrate: Substrate) -> None:
    substrate.sql = counted = Counted(substrate.d1)
    writers = Writers.on(substrate)
    await writers.store("Ann has a bike.")
    alone, counted.calls = counted.calls, 0
    contents = [f"Ann has {number} lamps." for number in range(100)]
    results = await writers.at_once(contents)
    assert [isinstance(one, StoreResult) and one.created for one in results] == [True] * 100
    assert counted.calls <= 2 * alone  # 64, then the others
    assert await substrate.contents() == ["Ann has a bike.", *contents]
    await check_agreement(substrate)


async def test_a_store_alone_makes_two_calls_of_d1(substrate: Substrate) -> None:
    substrate.sql = counted = Counted(substrate.d1)
    await Writers.on(substrate).store("Ann likes tea.", subject="ann", predicate="likes", object="tea")
    assert counted.calls == 2  # read and owe, commit


async def test_memories_that_share_no_writer_are_still_serialised(substrate: Substrate) -> None:
    """Two processes: each groups its own, and they contend for the history of the tenant."""
    first, second = Writers.on(substrate), Writers.on(substrate)
    results = await asyncio.gather(
        first.at_once([f"Ann has {number} lamps." for number in range(40)]),
        second.at_once([f"Bob has {number} lamps." for number in range(40)]),
        *[substrate.store(f"Eve has {number} lamps.") for number in range(3)],
    )
    assert not [one for some in results[:2] for one in some if isinstance(one, BaseException)]
    assert len(await substrate.contents()) == 83
    await check_agreement(substrate)


async def test_changes_among_many_stores_are_not_lost(substrate: Substrate) -> None:
    writers = Writers.on(substrate)
    first, second = [await writers.store(content) for content in ("Ann likes tea.", "Ann likes rain.")]
    memory = substrate.memory()
    results = await asyncio.gather(
        writers.at_once([f"Ann has {number} lamps." for number in range(40)]),
        memory.edit(first.id, {"content": "Ann likes green tea."}, PERSON),
        memory.delete(second.id, PERSON),
    )
    assert not [one for one in results[0] if isinstance(one, BaseException)]
    assert "Ann likes green tea." in await substrate.contents()
    assert len(await substrate.contents()) == 41
    await check_agreement(substrate)


async def test_equal_contents_at_once_are_one_record(substrate: Substrate) -> None:
    results = await Writers.on(substrate).at_once(["Ann likes tea."] * 12)
    stored = [one for one in results if isinstance(one, StoreResult)]
    assert len({one.id for one in stored}) == 1
    assert sorted(one.created for one in stored) == [False] * 11 + [True]
    await check_agreement(substrate)


async def test_of_facts_stated_at_once_exactly_one_is_valid(substrate: Substrate) -> None:
    writers = Writers.on(substrate)
    facts = [NewRecord(f"Ann likes {name}.", subject="ann", predicate="likes", object=name) for name in "abcdefghij"]
    await asyncio.gather(*[writers.memory().store(fact, PERSON) for fact in facts])
    records = await substrate.listed()
    assert len(records) == 10
    assert len([one for one in records if one.is_valid_at(substrate.clock())]) == 1
    await check_agreement(substrate)


async def test_a_call_over_its_users_limit_is_refused_alone(substrate: Substrate) -> None:
    await Tenants(substrate.d1, substrate.clock).register("acme")
    await Tenants(substrate.d1, substrate.clock).limit("acme", max_memories_per_user=3)
    writers = Writers.on(substrate)
    results = await asyncio.gather(
        writers.at_once([f"Ann has {number} lamps." for number in range(8)], ANN),
        writers.at_once([f"Number {number} of another." for number in range(8)]),
    )
    assert [type(one) for one in results[0]] == [StoreResult] * 3 + [QuotaExceeded] * 5
    assert [type(one) for one in results[1]] == [StoreResult] * 8
    assert await substrate.rows("SELECT * FROM memory_outbox WHERE state = 'owed'") == []
    await check_agreement(substrate)


async def test_a_call_over_the_tenants_quota_is_refused_alone(substrate: Substrate) -> None:
    await set_numbers(substrate.d1, "acme", {"memories": 5})
    results = await Writers.on(substrate).at_once([f"Ann has {number} lamps." for number in range(8)])
    assert [type(one) for one in results] == [StoreResult] * 5 + [QuotaExceeded] * 3
    assert {one.code for one in results if isinstance(one, QuotaExceeded)} == {"memory_quota"}
    assert len(await substrate.contents()) == 5
    await substrate.reconcile()
    await check_agreement(substrate)


async def test_each_scope_is_opened_in_the_name_of_its_own_caller(substrate: Substrate) -> None:
    substrate.sql = AttributedSql(substrate.d1)
    writers = Writers.on(substrate)

    async def store(name: str | None, scope: Scope) -> None:
        with acting(name):
            await writers.store("The shop opens at nine.", scope)

    await asyncio.gather(store("person:ada", AGENT), store(None, HOUSE), store("person:eve", ANN), store(None, TENANT))
    opened = await substrate.rows(
        "SELECT s.key, m.changed_by FROM mutation_log m JOIN mutation_subjects s ON s.number = m.subject"
        " WHERE m.kind = 'scope_opened'"
    )
    names = {row["key"]: row["changed_by"] for row in opened}
    assert names[AGENT.scope_id] == "person:ada"
    assert names[ANN.scope_id] == "person:eve"
    assert await substrate.rows("SELECT * FROM acting") == []
    assert len(await substrate.listed()) == 4
    await check_agreement(substrate)


class Fastidious:
    """An embedder that refuses texts with a word, as a provider refuses a content."""

    def __init__(self, substrate: Substrate, error: RetainError) -> None:
        self.model = substrate.embedder.model
        self.dimensions = substrate.embedder.dimensions
        self._embedder = substrate.embedder
        self._error = error

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Embed the texts."""
        if any("poison" in text for text in texts):
            raise self._error
        return await self._embedder.embed(texts)


@pytest.mark.parametrize(
    "error", [UpstreamFailed("the model refused it"), InvalidInput("not a text")], ids=lambda one: type(one).__name__
)
async def test_a_content_that_fails_each_time_fails_its_own_call_alone(
    substrate: Substrate, error: RetainError
) -> None:
    substrate.embedder = Fastidious(substrate, error)
    results = await Writers.on(substrate).at_once(["Ann likes tea.", "Ann likes rain.", "poison", "Ann likes fog."])
    assert [type(one) for one in results] == [StoreResult, StoreResult, type(error), StoreResult]
    assert len(await substrate.contents()) == 3
    await check_agreement(substrate)


async def test_when_the_database_is_down_every_waiting_call_gets_the_error(substrate: Substrate) -> None:
    broken(substrate).plan(Fault(Unavailable("down"), outage=True))
    writers = Writers.on(substrate)
    results = await writers.at_once([f"Ann has {number} lamps." for number in range(30)])
    assert [type(one) for one in results] == [Unavailable] * 30
    assert await substrate.contents() == []


@pytest.mark.parametrize(("point", "created"), [(1, True), (2, False)], ids=["owed", "committed"])
async def test_a_group_whose_writer_died_may_be_asked_again(substrate: Substrate, point: int, created: bool) -> None:
    await substrate.store("Ann has a bike.")
    broken(substrate).plan(Fault(Crash(), nth=point, point="sql.batch done"))
    contents = [f"Ann has {number} lamps." for number in range(8)]
    results = await Writers.on(substrate).at_once(contents)
    assert [type(one) for one in results] == [Crash] * 8
    assert len(await substrate.contents()) == (1 if created else 9)  # all of the group, or nothing
    repaired(substrate)
    again = await Writers.on(substrate).at_once(contents)
    assert [isinstance(one, StoreResult) and one.created for one in again] == [created] * 8
    assert await substrate.contents() == ["Ann has a bike.", *contents]
    await substrate.reconcile()
    await check_agreement(substrate)


async def test_a_caller_that_gives_up_does_not_stop_the_others(substrate: Substrate) -> None:
    writers = Writers.on(substrate)
    calls = [asyncio.ensure_future(writers.store(f"Ann has {number} lamps.")) for number in range(6)]
    await asyncio.sleep(0)
    calls[0].cancel()
    results = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(one) for one in results] == [asyncio.CancelledError] + [StoreResult] * 5
    await check_agreement(substrate)


async def test_a_writer_that_is_idle_keeps_nothing(substrate: Substrate) -> None:
    writers = Writers.on(substrate)
    await writers.at_once([f"Ann has {number} lamps." for number in range(6)])
    await asyncio.sleep(0)
    assert (writers.writer._queues, writers.writer._tasks) == ({}, set())


async def test_a_group_is_bounded_by_its_characters(substrate: Substrate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group, "MAX_GROUP_CHARACTERS", 40)
    substrate.sql = counted = Counted(substrate.d1)
    results = await Writers.on(substrate).at_once([f"Ann has {number} lamps." for number in range(7)])
    assert not [one for one in results if isinstance(one, BaseException)]
    assert counted.calls == 2 * 4  # two by two


contents = st.sampled_from(["tea", "rain", "fog", "a lamp"])
news = st.builds(
    lambda name, fact, since, confidence: NewRecord(
        f"Ann likes {name}.",
        subject="ann" if fact else None,
        predicate="likes" if fact else None,
        object=name if fact else None,
        valid_from_ms=since,
        confidence=confidence,
        utterance=None,
    ),
    contents,
    st.booleans(),
    st.sampled_from([None, NOW - 2000, NOW - 1000, NOW + 1000]),
    st.sampled_from([1.0, 0.5]),
)
calls = st.lists(st.tuples(st.sampled_from(SCOPES), st.lists(news, min_size=1, max_size=3)), min_size=1, max_size=6)
Call = tuple[Scope, list[NewRecord]]


async def _later(call: Awaitable[object]) -> Any:
    """Await the call in another millisecond than the one before: ids of one millisecond have no order."""
    now = new_id()[:10]
    while new_id()[:10] == now:
        await asyncio.sleep(0)
    return await call


async def state_after(sequence: Sequence[Call], *, together: bool) -> object:
    """Return everything that calls leave, without ids, and what each answered."""
    with closing(Substrate()) as substrate:
        await Tenants(substrate.d1, substrate.clock).register("acme")
        await Tenants(substrate.d1, substrate.clock).limit("acme", max_memories_per_user=4)
        writers = Writers.on(substrate)
        await writers.store("Ann likes tea.", subject="ann", predicate="likes", object="tea", valid_from_ms=NOW - 1500)
        asked = [writers.memory(scope).store_all(some, PERSON) for scope, some in sequence]
        if together:
            results = await asyncio.gather(*asked, return_exceptions=True)
        else:
            results = [(await asyncio.gather(_later(one), return_exceptions=True))[0] for one in asked]
        await check_records(substrate)
        await check_history(substrate)
        records = await substrate.listed(TENANT)
        names = {one.id: f"{one.scope_id} {one.content}" for one in records}
        shown = [{**one.to_json(), "id": None, "superseded_by": names.get(one.superseded_by or "")} for one in records]
        rows = await substrate.rows("SELECT record_id, kind FROM memory_events ORDER BY event_id")
        events = {one.id: [row["kind"] for row in rows if row["record_id"] == one.id] for one in records}
        answers = [
            str(some)
            if isinstance(some, BaseException)
            else [(names[one.id], one.created, one.merged, one.kept) for one in some]
            for some in results
        ]
        return shown, {names[one]: kinds for one, kinds in events.items()}, answers


@settings(max_examples=40, deadline=None)
@given(calls)
async def test_a_group_leaves_what_its_calls_would_leave_one_after_the_other(sequence: list[Call]) -> None:
    assert await state_after(sequence, together=True) == await state_after(sequence, together=False)


@given(
    st.sampled_from([*SCOPES, TENANT, Scope("acme", "sdr", "sales", "desk-1")]),
    st.lists(news, min_size=1, max_size=3),
    st.sampled_from([None, Utterance("c-1", 3, "ann"), Utterance("c-1", -1, "ann", NOW)]),
    st.integers(0, 2**50),
    st.sampled_from([None, "person:ada"]),
)
def test_a_call_arrives_at_another_object_as_it_was_sent(
    scope: Scope, some: list[NewRecord], place: Utterance | None, at_ms: int, acting_name: str | None
) -> None:
    uttered = NewRecord("Ann said so.", metadata={"a": [1, {"b": None}]}, utterance=place)
    sources = [RecordSource("ingest", message=f"m-{number}") for number in range(len(some) + 1)]
    call = StoreCall(scope, (*some, uttered), tuple(sources), at_ms, acting_name)
    assert StoreCall.from_json(json.loads(json.dumps(call.to_json()))) == call


@given(st.text(max_size=3), st.booleans(), st.lists(st.text(max_size=3), max_size=2))
def test_a_result_arrives_as_it_was_sent(name: str, created: bool, fields: list[str]) -> None:
    result = StoreResult(name, created, tuple(fields), tuple(reversed(fields)), ("vectors",) if created else ())
    assert StoreResult.from_json(json.loads(json.dumps(result.to_json()))) == result
