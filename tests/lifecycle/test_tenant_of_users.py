"""A tenant with more users than one recall could name: recall over all of it, verification and reindexing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import closing

import pytest

from retain.errors import LimitExceeded
from retain.lifecycle.reindexing import Reindexing
from retain.lifecycle.verification import verify_page
from retain.memory.recall.sources.statistics import MAX_SCOPES
from retain.memory.records.record import NewRecord, RecordSource
from retain.memory.scope import Scope, View
from retain.memory.semantic import RecallQuery, SemanticMemory
from tests.lifecycle.world import World
from tests.ports import raises

USERS = 3 * MAX_SCOPES
PERSON = RecordSource("person")


@pytest.fixture
async def world() -> AsyncIterator[World]:
    with closing(World()) as world:
        await world.store("Orders are shipped on Mondays.")
        await world.store("Refunds need a person.", agent_type="clerk")
        for number in range(USERS):
            agent = None if number % 2 else "clerk"
            memory = world.memory("acme", agent, user_id=f"user-{number}")
            await memory.store(NewRecord(f"Waits for parcel PX-{1000 + number}."), PERSON)
        await world.memory("acme", "clerk", user_id="user-7").store(NewRecord("Plays the theremin."), PERSON)
        yield world


async def test_a_recall_over_the_whole_tenant_finds_what_only_one_of_many_users_has(world: World) -> None:
    assert (await world.recall("theremin"))[0].record.content == "Plays the theremin."
    for number in (0, 1, USERS - 1):
        [first, *_] = await world.recall(f"PX-{1000 + number}")
        assert first.record.content == f"Waits for parcel PX-{1000 + number}."
    assert {hit.record.scope_id for hit in await world.recall("Who ships on Mondays?")} >= {"tenant"}
    await world.rest()
    assert (await world.recall("theremin"))[0].record.content == "Plays the theremin."
    assert await world.recall("theremin", tenant="rival") == []


async def test_a_user_s_own_recall_finds_nothing_under_the_words_that_all_users_share(world: World) -> None:
    found = await world.memory("acme", "clerk", user_id="user-8").search(RecallQuery("theremin PX-1007 parcel", 50))
    assert {hit.record.content for hit in found} <= {
        "Waits for parcel PX-1008.",
        "Refunds need a person.",
        "Orders are shipped on Mondays.",
    }


async def test_a_tenant_of_users_verifies_and_is_reindexed(world: World) -> None:
    await world.rest()
    assert await world.drift() == set()
    world.sql_now("UPDATE memory_text SET content = 'gone' WHERE rowid = 5")
    report = await verify_page(world.stores(), "acme", None, repair=True)
    assert list(report.drift) == ["text_differs"]
    await Reindexing(world.stores()).advance("acme")
    assert (await world.recall("theremin"))[0].record.content == "Plays the theremin."


async def test_the_words_of_a_tenant_s_users_are_found_as_surplus_too(world: World) -> None:
    [row] = world.sql_now("SELECT number FROM memory_records WHERE content = 'Plays the theremin.'")
    world.sql_now("DELETE FROM memory_records WHERE number = ?", row["number"])
    kinds = set()
    cursor: str | None = None
    while True:
        report = await verify_page(world.stores(), "acme", cursor, repair=True)
        kinds |= set(report.drift)
        cursor = report.cursor
        if cursor is None:
            break
    assert "text_surplus" in kinds
    assert world.sql_now("SELECT 1 FROM memory_text WHERE rowid = ?", row["number"]) == []


async def test_a_view_of_more_scopes_than_one_recall_searches_is_refused(world: World) -> None:
    views = [Scope("acme", f"agent_{number}", user_id="ann") for number in range(MAX_SCOPES)]
    view = View(Scope("acme", user_id="ann"), tuple(views))
    memory = SemanticMemory(view.scope, world.sql, world.index, world.embedder, world.clock, view=view)
    with raises(LimitExceeded, code="too_many_scopes"):
        await memory.search(RecallQuery("tea"))
