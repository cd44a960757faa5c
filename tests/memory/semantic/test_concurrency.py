"""Two and three writers of one tenant, interleaved at each port call, are serialised and leave all consistent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retain.errors import Conflict, NotFound
from retain.memory.records.record import NewRecord
from retain.memory.semantic import SemanticMemory, StoreResult
from tests.memory.semantic.agreement import check_agreement, check_history, check_records
from tests.memory.semantic.interleaving import Outcome, Turns
from tests.memory.semantic.substrate import AGENT, AGENT_SOURCE, PERSON, Substrate
from tests.support.faults import Crash

COFFEE = "Ann drinks coffee."
TEA = "Ann drinks tea."
MILK = "Ann drinks milk."
LONG = " ".join(f"In chapter {number} the captain sails another sea." for number in range(40))
LIKES: dict[str, Any] = {"subject": "ann", "predicate": "likes"}

Operation = Callable[[SemanticMemory, str], Awaitable[object]]


def store(content: str, **fields: Any) -> Operation:
    return lambda memory, record_id: memory.store(NewRecord(content, **fields), AGENT_SOURCE)


def edit(**changes: object) -> Operation:
    return lambda memory, record_id: memory.edit(record_id, changes, PERSON)


def invalidate(memory: SemanticMemory, record_id: str) -> Awaitable[object]:
    return memory.invalidate(record_id, 1_600_000_000_000, AGENT_SOURCE)


def restore(memory: SemanticMemory, record_id: str) -> Awaitable[object]:
    return memory.restore(record_id, PERSON)


def delete(memory: SemanticMemory, record_id: str) -> Awaitable[object]:
    return memory.delete(record_id, PERSON)


OPERATIONS: dict[str, Operation] = {
    "store": store(COFFEE, **LIKES),
    "store milk": store(MILK, **LIKES),
    "store again": store(TEA, **LIKES),
    "edit": edit(content=COFFEE),
    "edit to parts": edit(content=LONG),
    "edit metadata": edit(metadata={"checked": True}),
    "invalidate": invalidate,
    "restore": restore,
    "delete": delete,
}
PAIRS = [
    ("store", "store"),
    ("store", "edit"),
    ("edit", "edit to parts"),
    ("edit to parts", "edit"),
    ("edit metadata", "edit to parts"),
    ("edit to parts", "edit metadata"),
    ("delete", "edit to parts"),
    ("edit to parts", "delete"),
    ("delete", "delete"),
    ("invalidate", "edit"),
    ("restore", "delete"),
    ("store again", "invalidate"),
    ("store again", "delete"),
]
EVENT_KIND = {
    "store": "stored",
    "store milk": "stored",
    "store again": "stored",
    "edit": "edited",
    "edit to parts": "edited",
    "edit metadata": "edited",
    "invalidate": "invalidated",
    "restore": "restored",
    "delete": "deleted",
}
"""The kind of event that records each operation."""
MOST_CALLS = 24
"""More calls than any of the operations makes undisturbed."""


@dataclass
class Race:
    """Writers on one substrate that already has a record with `TEA`. record_id: its id. closed: it was not valid."""

    substrate: Substrate
    closed: bool = False
    record_id: str = ""
    turns: Turns = field(default_factory=Turns)

    async def run(self, order: Sequence[int], names: Sequence[str]) -> list[Outcome]:
        """Run the operations in this order of calls, each with its own ports."""
        self.record_id = await self.substrate.store(TEA, **LIKES)
        if self.closed:
            await self.substrate.memory().invalidate(self.record_id, self.substrate.clock(), AGENT_SOURCE)
        await self.substrate.reconcile()
        return await self.turns.run(
            order, [self._writer(number, OPERATIONS[name]) for number, name in enumerate(names)]
        )

    def _writer(self, number: int, operation: Operation) -> Callable[[], Awaitable[object]]:
        substrate = self.substrate
        sql, index = self.turns.wrap(number, substrate.d1), self.turns.wrap(number, substrate.vectors)
        memory = SemanticMemory(AGENT, sql, index, substrate.embedder, substrate.clock)
        return lambda: operation(memory, self.record_id)


async def check_after(race: Race, names: Sequence[str], outcomes: Sequence[Outcome]) -> None:
    """Check what must be true in any interleaving of the writers."""
    substrate, events = race.substrate, await race.substrate.rows("SELECT * FROM memory_events ORDER BY rowid")
    # Storing closed content again restores it, with the agent as the source: only a person's restorations count here.
    recorded = Counter(
        event["kind"]
        for event in events
        if event["record_id"] == race.record_id and (event["kind"] != "restored" or '"person"' in event["source"])
    )
    answered: Counter[str] = Counter()
    died: Counter[str] = Counter()
    for name, outcome in zip(names, outcomes, strict=True):
        if isinstance(outcome, Crash):
            died[EVENT_KIND[name]] += 1
        elif isinstance(outcome, NotFound):
            assert "delete" in names
        elif isinstance(outcome, Conflict):
            assert outcome.code == "duplicate_content"
            assert {"store", "store milk", "store again"} & set(names)
        elif isinstance(outcome, BaseException):
            raise outcome
        else:
            answered[EVENT_KIND[name]] += 1
    for kind in ("edited", "invalidated", "restored", "deleted"):
        assert answered[kind] <= recorded[kind] <= answered[kind] + died[kind], (
            "each answered operation is recorded once"
        )
    assert recorded["stored"] == 1
    assert recorded["superseded"] <= 2
    await check_records(substrate)
    await check_history(substrate)
    await substrate.reconcile()
    await check_agreement(substrate)


@pytest.mark.parametrize(("first", "second"), PAIRS)
async def test_two_writers_are_serialised_at_whichever_call_one_waits_for_the_other(first: str, second: str) -> None:
    ends = [MOST_CALLS, MOST_CALLS]
    pauses = [(one, other) for one in range(MOST_CALLS) for other in range(MOST_CALLS)]
    for one, other in pauses:
        if one > ends[0] or other > ends[1]:
            continue  # no operation is left to wait
        with closing(Substrate()) as substrate:
            race = Race(substrate)
            outcomes = await race.run([0] * one + [1] * other + [0] * 99, (first, second))
            if not other:
                ends[0] = min(ends[0], race.turns.calls[0])
            if not one:
                ends[1] = min(ends[1], race.turns.calls[1])
            try:
                await check_after(race, (first, second), outcomes)
            except Exception as error:
                error.add_note(f"{first} waits after {one} calls, {second} after {other}")
                raise


async def test_what_is_deleted_while_it_is_stored_again_becomes_a_new_memory() -> None:
    created: set[bool] = set()
    for one in range(MOST_CALLS):
        with closing(Substrate()) as substrate:
            race = Race(substrate, closed=True)
            again, deleted = await race.run([0] * one + [1] * 99, ("store again", "delete"))
            assert isinstance(again, StoreResult)
            assert deleted is None
            assert again.created == (again.id != race.record_id)
            assert [record.id for record in await substrate.listed()] == ([again.id] if again.created else [])
            assert await substrate.found("tea") == ([TEA] if again.created else [])
            await substrate.reconcile()
            await check_agreement(substrate)
            created.add(again.created)
    assert created == {True, False}


@pytest.mark.parametrize(("first", "second"), [pair for pair in PAIRS if pair[0] not in ("invalidate", "restore")])
async def test_a_writer_that_dies_while_another_one_finishes_leaves_everything_consistent(
    first: str, second: str
) -> None:
    for one in range(MOST_CALLS):
        with closing(Substrate()) as substrate:
            race = Race(substrate, turns=Turns(dies={0: one + 1}))
            outcomes = await race.run([0] * one + [1] * 99, (first, second))
            if not isinstance(outcomes[0], Crash):
                assert one > 0
                return  # it makes no more calls
            try:
                await check_after(race, (first, second), outcomes)
            except Exception as error:
                error.add_note(f"{first} dies after {one} calls")
                raise


@settings(max_examples=60, deadline=None)
@given(
    names=st.lists(st.sampled_from(sorted(OPERATIONS)), min_size=3, max_size=3),
    order=st.lists(st.integers(0, 2), max_size=50),
)
async def test_three_writers_are_serialised_in_any_interleaving(names: list[str], order: list[int]) -> None:
    with closing(Substrate()) as substrate:
        race = Race(substrate)
        await check_after(race, names, await race.run(order, names))


async def test_equal_content_stored_concurrently_is_one_record_with_one_id() -> None:
    for one in range(MOST_CALLS):
        with closing(Substrate()) as substrate:
            race = Race(substrate)
            first, second = await race.run([0] * one + [1] * 99, ("store", "store"))
            assert isinstance(first, StoreResult)
            assert isinstance(second, StoreResult)
            assert first.id == second.id
            assert sorted([first.created, second.created]) == [False, True]
            assert await substrate.contents() == [TEA, COFFEE]


async def test_no_edit_is_lost_when_two_writers_change_different_fields() -> None:
    for one in range(MOST_CALLS):
        with closing(Substrate()) as substrate:
            race = Race(substrate)
            await race.run([0] * one + [1] * 99, ("edit metadata", "edit"))
            record = await substrate.record(race.record_id)
            assert (record.content, dict(record.metadata)) == (COFFEE, {"checked": True})
            assert await substrate.found("coffee") == [COFFEE]


async def test_of_two_facts_stored_concurrently_one_closes_the_other() -> None:
    for one in range(MOST_CALLS):
        with closing(Substrate()) as substrate:
            race = Race(substrate)
            await race.run([0] * one + [1] * 99, ("store", "store milk"))
            open_now = [record.content for record in await substrate.listed() if record.valid_to_ms is None]
            assert open_now in ([COFFEE], [MILK])
            await substrate.reconcile()
            await check_agreement(substrate)
