"""Make each write of semantic memory fail at each port call in turn: nothing is half-visible, nothing is lost.

A call fails before its effect, or after it (the answer is lost), or the process dies there, or all stores go down from
there on. Invariant 4 (a crash between two stores loses nothing and shows nothing half-done).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from typing import Any

import pytest

from retain.errors import Unavailable
from retain.memory.records.record import NewRecord
from tests.memory.semantic.agreement import check_agreement, check_records, check_search_rows
from tests.memory.semantic.substrate import AGENT_SOURCE, PERSON, TENANT, Substrate
from tests.support.faults import Crash, Fault, Faults
from tests.support.instances import shipped_embedder

LIKES: dict[str, Any] = {"subject": "ann", "predicate": "likes"}
SHORT = "Ann drinks green tea every morning."
LONG = " ".join(f"In chapter {number} the captain sails another sea." for number in range(40))
LONGER = " ".join(f"Page {number} of the cook book explains a soup." for number in range(80))
QUERIES = ("green tea of the captain", "soup and coffee", "xylophone")

Operation = Callable[[Substrate, str], Awaitable[object]]


@dataclass(frozen=True)
class Scenario:
    """An existing content, and an operation: with the content's record id, if it concerns that record.

    closed: the content is not valid any more when the operation runs.
    """

    before: str
    operation: Operation
    closed: bool = False


async def _store(substrate: Substrate, record_id: str) -> object:
    return await substrate.store("Ann drinks coffee now.", **LIKES)


async def _state_again(substrate: Substrate, record_id: str) -> object:
    return await substrate.store(SHORT, **LIKES)


async def _store_in_parts(substrate: Substrate, record_id: str) -> object:
    return await substrate.store(LONGER)


async def _store_several(substrate: Substrate, record_id: str) -> object:
    news = [NewRecord("Ann drinks coffee now.", **LIKES), NewRecord(LONGER), NewRecord("Bob plays the xylophone.")]
    return await substrate.memory().store_all(news, AGENT_SOURCE)


async def _edit_to_more_parts(substrate: Substrate, record_id: str) -> object:
    return await substrate.memory().edit(record_id, {"content": LONGER}, PERSON)


async def _edit_to_one_part(substrate: Substrate, record_id: str) -> object:
    return await substrate.memory().edit(record_id, {"content": "Ann drinks coffee now."}, PERSON)


async def _edit_metadata(substrate: Substrate, record_id: str) -> object:
    return await substrate.memory().edit(record_id, {"metadata": {"checked": True}}, PERSON)


async def _delete(substrate: Substrate, record_id: str) -> object:
    await substrate.memory().delete(record_id, PERSON)
    return None


async def _restore(substrate: Substrate, record_id: str) -> object:
    return await substrate.memory().restore(record_id, PERSON)


async def _invalidate(substrate: Substrate, record_id: str) -> object:
    return await substrate.memory().invalidate(record_id, substrate.clock(), PERSON)


STORES = {
    "store, superseding": Scenario(SHORT, _store),
    "store, several parts": Scenario(SHORT, _store_in_parts),
    "store several": Scenario(SHORT, _store_several),
    "state again": Scenario(SHORT, _state_again, closed=True),
}
CHANGES = {
    "edit to more parts": Scenario(SHORT, _edit_to_more_parts),
    "edit to one part": Scenario(LONG, _edit_to_one_part),
    "edit metadata": Scenario(SHORT, _edit_metadata),
    "delete": Scenario(SHORT, _delete),
    "delete several parts": Scenario(LONG, _delete),
    "invalidate": Scenario(SHORT, _invalidate),
}
SCENARIOS = STORES | CHANGES
FAILURES: dict[str, Callable[[], BaseException]] = {
    "fails": lambda: Unavailable("the test fails this call"),
    "dies": Crash,
}

State = tuple[list[object], dict[str, list[str]]]


@asynccontextmanager
async def begun(scenario: Scenario) -> AsyncIterator[tuple[Substrate, str]]:
    """Yield a substrate that has the existing content, settled."""
    with closing(Substrate()) as substrate:
        record_id = await substrate.store(scenario.before, **LIKES)
        if scenario.closed:
            await substrate.memory().invalidate(record_id, substrate.clock(), AGENT_SOURCE)
        await substrate.reconcile()
        substrate.clock.advance(3_600_000)
        yield substrate, record_id


async def state_of(substrate: Substrate) -> State:
    """Return what can be seen: records as listed and as read with their events, and the hits of recalls."""
    memory = substrate.memory(TENANT)
    seen: list[object] = []
    for listed in await substrate.listed():
        record, events = await memory.get(listed.id)
        assert record == listed
        holds = record.valid_to_ms is None
        seen.append((record.content, dict(record.metadata), holds, [event.kind for event in events]))
    return seen, {query: sorted(await substrate.found(query)) for query in QUERIES}


async def undisturbed(scenario: Scenario) -> tuple[State, State, list[str]]:
    """Return the states before and after the operation, and the fault points that it passes."""
    async with begun(scenario) as (substrate, record_id):
        before = await state_of(substrate)
        faults = broken(substrate)
        await scenario.operation(substrate, record_id)
        repaired(substrate)
        return before, await state_of(substrate), [point for _, point in faults.trace]


def broken(substrate: Substrate) -> Faults:
    """Wrap the substrate's ports in fault injection, and return its control."""
    faults = Faults(lambda owner: None)
    life = faults.life("writer")
    substrate.sql = faults.wrap("sql", substrate.d1, life)
    substrate.index = faults.wrap("index", substrate.vectors, life)
    substrate.embedder = faults.wrap("embedder", substrate.embedder, life)
    return faults


def repaired(substrate: Substrate) -> None:
    """Restore the substrate's original ports."""
    substrate.sql, substrate.index, substrate.embedder = substrate.d1, substrate.vectors, shipped_embedder()


async def check_in_d1(substrate: Substrate) -> None:
    await check_search_rows(substrate, await check_records(substrate))


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("name", SCENARIOS)
async def test_a_write_interrupted_at_any_call_is_visible_completely_or_not_at_all_and_repaired(
    name: str, failure: str
) -> None:
    scenario = SCENARIOS[name]
    before, after, points = await undisturbed(scenario)
    assert len(points) >= 6
    assert before != after
    for number, point in enumerate(points, start=1):
        async with begun(scenario) as (substrate, record_id):
            faults = broken(substrate)
            faults.plan(Fault(FAILURES[failure](), number))
            raised = await _outcome(scenario.operation(substrate, record_id))
            assert faults.trace[number - 1][1] == point, "the points are not the same each time"
            repaired(substrate)
            where = f"{failure} at {number}: {point}"
            seen = await state_of(substrate)
            assert seen in (before, after), where
            if raised is None:
                assert seen == after, f"{where}: an answered write is missing"
            await check_in_d1(substrate)
            await substrate.reconcile()
            assert await state_of(substrate) == seen, f"{where}: the repair changed what is seen"
            await check_agreement(substrate)
            if seen == before:
                await scenario.operation(substrate, record_id)
                assert await state_of(substrate) == after, f"{where}: it cannot be repeated"
                await substrate.reconcile()
                await check_agreement(substrate)
            elif name in STORES:
                await scenario.operation(substrate, record_id)
                assert await state_of(substrate) == after, f"{where}: repeating it changed something"


@pytest.mark.parametrize("name", SCENARIOS)
async def test_a_write_during_which_every_store_goes_down_is_visible_completely_or_not_at_all_and_repaired(
    name: str,
) -> None:
    scenario = SCENARIOS[name]
    before, after, points = await undisturbed(scenario)
    for number, point in enumerate(points, start=1):
        async with begun(scenario) as (substrate, record_id):
            faults = broken(substrate)
            for _ in range(100):  # each call from this one on
                faults.plan(Fault(Unavailable("every store is down"), number))
            await _outcome(scenario.operation(substrate, record_id))
            repaired(substrate)
            seen = await state_of(substrate)
            assert seen in (before, after), f"down from {number}: {point}"
            await substrate.reconcile()
            assert await state_of(substrate) == seen
            await check_agreement(substrate)


@pytest.mark.parametrize("name", STORES)
async def test_a_failed_store_leaves_everything_as_it_was(name: str) -> None:
    scenario = STORES[name]
    before, after, points = await undisturbed(scenario)
    tried, committed = 0, False
    for number, point in enumerate(points, start=1):
        if point.endswith(" done"):
            continue  # not a failure: the step was done, and its answer lost
        async with begun(scenario) as (substrate, record_id):
            broken(substrate).plan(Fault(Unavailable("the test fails this call"), number))
            raised = await _outcome(scenario.operation(substrate, record_id))
            repaired(substrate)
            if raised is None:  # the index failed, or the commit was before this step: only the index lags
                committed = committed or not point.startswith("index.")
                assert await state_of(substrate) == after, f"{number}: {point}"
                assert await substrate.rows("SELECT * FROM memory_outbox WHERE state = 'owed'")
                await substrate.reconcile()
                await check_agreement(substrate)
                continue
            assert not committed, f"{number}: {point} failed a store that was committed"
            assert await state_of(substrate) == before, f"{number}: {point}"
            await check_agreement(substrate, settled=point != "sql.batch")
            assert (await substrate.vectors.entries()).keys() <= {f"{record_id}#{part}" for part in range(9)}, (
                f"{number}: {point} left an orphaned vector"
            )
            tried += 1
    assert tried >= 3  # reading with owing, embedding, committing


async def test_a_store_whose_process_died_after_writing_vectors_shows_nothing_and_leaves_no_vector() -> None:
    with closing(Substrate()) as substrate:
        faults = broken(substrate)
        faults.plan(Fault(Crash(), point="index.upsert done"))
        with pytest.raises(Crash):
            await substrate.store(SHORT)
        repaired(substrate)
        assert len(substrate.vectors.held()) == 1
        assert await substrate.found("green tea") == []
        await substrate.reconcile()
        assert substrate.vectors.held() == {}
        await check_agreement(substrate)


async def test_an_index_debt_is_left_alone_while_its_write_may_still_be_under_way() -> None:
    with closing(Substrate()) as substrate:
        broken(substrate).plan(Fault(Crash(), point="index.upsert done"))
        with pytest.raises(Crash):
            await substrate.store(SHORT)
        repaired(substrate)
        assert (await substrate.indexer().reconcile()).settled == 0
        assert len(substrate.vectors.held()) == 1


async def test_a_debt_that_cannot_be_settled_is_kept_with_its_error_and_settled_later() -> None:
    with closing(Substrate()) as substrate:
        record_id = await substrate.store(SHORT)
        faults = broken(substrate)
        faults.down.add("index")
        await substrate.memory().delete(record_id, PERSON)
        [owed] = await substrate.rows("SELECT state, attempts, last_error FROM memory_outbox")
        assert (owed["state"], owed["last_error"]) == ("owed", "index_unavailable")
        assert owed["attempts"] >= 1
        repaired(substrate)
        assert await substrate.found("green tea") == []
        await substrate.reconcile()
        await check_agreement(substrate)


async def _outcome(operation: Awaitable[object]) -> BaseException | None:
    try:
        await operation
    except (Unavailable, Crash) as error:
        return error
    return None
