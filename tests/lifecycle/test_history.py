"""World history: any tampering is detected."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from retain.errors import InvalidInput
from retain.lifecycle.erasure.eraser import Erasure
from retain.lifecycle.heads import Head, keep_heads, verified
from retain.memory.records.record import NewRecord
from retain.tenants.history import GENESIS, ChainVerdict
from tests.lifecycle.world import PERSON, Snapshot, World, living
from tests.ports import raises
from tests.support.databases import migrated_d1

HISTORY_COLUMNS = ("tenant_id", "seq", "kind", "subject_id", "digest", "at_ms", "previous_hash", "hash")
EVENT_COLUMNS = ("event_id", "tenant_id", "record_id", "kind", "data", "source", "nonce", "digest", "at_ms")


@pytest.fixture(scope="module")
def lived() -> Snapshot:
    """Return a tenant that stored, edited, deleted and erased; its head is stored."""

    async def made() -> Snapshot:
        with living() as world:
            tea = await world.store("Bob likes tea.", subject="bob", predicate="likes", object="tea")
            await world.store("Bob likes coffee.", subject="bob", predicate="likes", object="coffee")
            await world.memory().edit(tea, {"importance": 0.9}, PERSON)
            await world.memory().delete(await world.store("Forget this."), PERSON)
            await world.store("Ann has a lamp.", subject="ann")
            await Erasure(world.stores()).erase_subject("acme", "ann", "subject")
            await world.store("The last word.")
            assert await keep_heads(world.stores()) == []
            return world.snapshot()

    return asyncio.run(made())


@pytest.fixture
def world(lived: Snapshot) -> Iterator[World]:
    with living(lived) as world:
        yield world


def _problem(world: World) -> str | None:
    return asyncio.run(verified(world.stores(), "acme")).problem


async def test_an_honest_history_verifies_page_by_page(world: World) -> None:
    history = world.stores().history()
    whole = await history.verify("acme")
    assert (whole.problem, whole.entries) == (None, len(world.sql_now("SELECT * FROM world_history")))
    assert await history.verify("acme", page=1) == await history.verify("acme", page=3) == whole
    assert (await verified(world.stores(), "acme")).problem is None


async def test_calls_of_one_page_each_find_what_one_call_finds(world: World) -> None:
    history = world.stores().history()

    async def in_calls(pages: int) -> tuple[ChainVerdict, int]:
        verdict, calls = await history.verify("acme", page=2, pages=pages), 1
        while verdict.cursor is not None:
            verdict, calls = await history.verify("acme", verdict.cursor, page=2, pages=pages), calls + 1
        return verdict, calls

    assert (await in_calls(1))[0] == (await in_calls(3))[0] == await history.verify("acme")
    assert (await in_calls(1))[1] > (await in_calls(3))[1] > 1
    world.sql_now("DELETE FROM memory_events WHERE kind = 'edited'")
    whole, paged = await history.verify("acme"), (await in_calls(1))[0]
    assert (paged.problem, paged.broken_at) == (whole.problem, whole.broken_at) == ("event_removed", 4)


@pytest.mark.parametrize(
    "cursor",
    ["", "1", "-1." + GENESIS, "1." + "g" * 64, f"1.{GENESIS}.a", "1.x.y", "\u0663." + GENESIS, f"01.{GENESIS}"],
)
async def test_a_cursor_that_is_not_ours_is_refused(world: World, cursor: str) -> None:
    with raises(InvalidInput, code="invalid_cursor"):
        await world.stores().history().verify("acme", cursor)


async def test_the_rows_that_a_verification_reads_grow_with_the_history_and_not_with_its_square() -> None:
    """Counted in steps of SQLite's virtual machine."""

    async def steps(records: int) -> int:
        with living() as world:
            for start in range(0, records, 100):
                await world.memory().store_all([NewRecord(f"Lamp {start + one}.") for one in range(100)], PERSON)
            return await world.steps_of(lambda: world.stores().history().verify("acme"))

    few, many = await steps(300), await steps(1200)
    assert many < 5 * few


@given(
    table=st.sampled_from(["world_history", "memory_events"]),
    place=st.tuples(st.integers(0, 999), st.integers(0, 999)),
    number=st.integers(0, 2**50),
    text=st.text("abcdef0123456789{}", min_size=1),
    other=st.none() | st.integers(0, 999),
)
@settings(max_examples=150, deadline=None)
def test_a_change_to_any_column_of_any_row_is_detected(
    lived: Snapshot, table: str, place: tuple[int, int], number: int, text: str, other: int | None
) -> None:
    """place: the row and the column. number, text: what is written, unless it is what another row has there."""
    columns = HISTORY_COLUMNS if table == "world_history" else EVENT_COLUMNS
    with living(lived) as world:
        world.sql_now("PRAGMA ignore_check_constraints = ON")
        rows = world.sql_now(f"SELECT * FROM {table}")
        row, column = rows[place[0] % len(rows)], columns[place[1] % len(columns)]
        old = row[column]
        others = [one[column] for one in rows if one[column] != old]
        new: object = number if isinstance(old, int) else text
        if other is not None and others and not isinstance(old, int):
            new = others[other % len(others)]
        assume(new != old)
        key = ("tenant_id", "seq") if table == "world_history" else ("event_id",)
        where = " AND ".join(f"{name} = ?" for name in key)
        taken = [
            r for r in rows if tuple({**row, column: new}[k] for k in key) == tuple(r[k] for k in key) and r is not row
        ]
        for one in taken:  # an attacker may overwrite a row as well
            world.sql_now(f"DELETE FROM {table} WHERE {where}", *(one[name] for name in key))
        try:
            world.sql_now(f"UPDATE {table} SET {column} = ? WHERE {where}", new, *(row[name] for name in key))
        except sqlite3.OperationalError as error:
            assert "malformed JSON" in str(error)  # an index reads the column: D1 itself refuses what is not JSON
            return
        assert _problem(world) is not None


@given(table=st.sampled_from(["world_history", "memory_events"]), place=st.integers(0, 999))
@settings(max_examples=60, deadline=None)
def test_a_removed_row_is_detected(lived: Snapshot, table: str, place: int) -> None:
    with living(lived) as world:
        rows = world.sql_now(f"SELECT * FROM {table}")
        row = rows[place % len(rows)]
        if table == "memory_events":
            world.sql_now("DELETE FROM memory_events WHERE event_id = ?", row["event_id"])
        else:
            world.sql_now("DELETE FROM world_history WHERE seq = ?", row["seq"])
        assert _problem(world) is not None


@given(count=st.integers(1, 9))
@settings(max_examples=9, deadline=None)
def test_a_history_truncated_with_its_events_is_detected_against_the_stored_head(lived: Snapshot, count: int) -> None:
    with living(lived) as world:
        cut = world.sql_now("SELECT * FROM world_history ORDER BY seq DESC LIMIT ?", count)
        for entry in cut:
            world.sql_now("DELETE FROM world_history WHERE seq = ?", entry["seq"])
            world.sql_now("DELETE FROM memory_events WHERE digest = ?", entry["digest"])
        assert _problem(world) is not None


async def test_a_rewritten_history_is_detected_and_stays_broken_after_the_next_head_is_stored(world: World) -> None:
    last = world.sql_now("SELECT * FROM world_history ORDER BY seq DESC LIMIT 1")[0]
    world.sql_now("DELETE FROM world_history WHERE seq = ?", last["seq"])
    world.sql_now("DELETE FROM memory_events WHERE digest = ?", last["digest"])
    world.sql_now("DELETE FROM memory_records WHERE content = 'The last word.'")
    assert (await world.stores().history().verify("acme")).problem is None  # on its own it looks intact
    await world.store("Another last word.")
    await world.store("And one more.")
    for _ in range(2):
        assert (await verified(world.stores(), "acme")).problem == "head_differs"
        assert await keep_heads(world.stores()) == ["acme"]
        world.clock.advance(86_400_000)


async def test_heads_are_stored_per_day_and_histories_continue(world: World) -> None:
    await world.store("Elsewhere.", tenant="other")
    world.clock.advance(86_400_000)
    assert await keep_heads(world.stores()) == []
    page = await world.objects_store.list("history_heads/")
    assert page.keys == [
        f"history_heads/{world.clock() // 86_400_000 - 1}.json",
        f"history_heads/{world.clock() // 86_400_000}.json",
        "history_heads/latest.json",
    ]
    await world.store("More.", tenant="other")
    assert (await verified(world.stores(), "other")).problem is None


async def test_a_new_database_has_a_history_of_its_own_when_the_kept_heads_were_moved_aside(world: World) -> None:
    world.sql = migrated_d1()
    for _ in range(3):
        await world.store("Bob likes tea.")
    assert await keep_heads(world.stores()) == ["acme"]
    assert (await verified(world.stores(), "acme")).problem == "head_differs"
    kept = await world.objects_store.get("history_heads/latest.json")
    assert kept is not None
    await world.objects_store.put("history_heads/before-the-loss.json", kept)
    await world.objects_store.delete("history_heads/latest.json")
    for _ in range(2):
        assert await keep_heads(world.stores()) == []
        assert (await verified(world.stores(), "acme")).problem is None
        await world.store("Ann likes coffee.")
    assert await world.objects_store.get("history_heads/before-the-loss.json") == kept


async def test_a_head_that_the_caller_stored_is_compared(world: World) -> None:
    rows = world.sql_now("SELECT * FROM world_history ORDER BY seq")
    third = Head(3, rows[2]["hash"])
    assert (await verified(world.stores(), "acme", third)).problem is None
    assert (await verified(world.stores(), "acme", Head(4, third.hash))).problem == "head_differs"
    assert (await verified(world.stores(), "acme", Head(999, third.hash))).broken_at == 999


async def test_an_event_that_reappears_after_its_erasure_is_detected(world: World) -> None:
    await world.store("Cora has a cat.", subject="cora")
    [event] = world.sql_now("SELECT * FROM memory_events WHERE data LIKE '%Cora%'")
    await Erasure(world.stores()).erase_subject("acme", "cora", "subject")
    assert (await verified(world.stores(), "acme")).problem is None
    world.sql_now(f"INSERT INTO memory_events VALUES ({', '.join('?' * len(event))})", *event.values())
    assert (await verified(world.stores(), "acme")).problem == "event_not_erased"


async def test_an_event_without_an_entry_is_detected(world: World) -> None:
    await world.store("Elsewhere.", tenant="other")
    world.sql_now("DELETE FROM world_history WHERE tenant_id = 'other'")
    assert (await verified(world.stores(), "other")).problem == "event_added"
