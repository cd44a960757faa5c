"""What was erased stays erased, whatever the clock of the one who erases, and while an import is under way."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator

import pytest
from ulid import ULID

from retain.lifecycle import importing
from retain.lifecycle.importing import import_lines
from retain.lifecycle.transfer.erased import ErasedContent, erased_content
from retain.ports import Row, Sql
from tests.lifecycle.of_users import ANN, DOORS, canary, erased, fill, shop
from tests.lifecycle.test_rows_of_exports import pages
from tests.lifecycle.tiered import items_of
from tests.lifecycle.world import World

HOUR_MS = 3_600_000


@pytest.fixture
async def world(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    """Yield a shop in which all ids and times follow one clock."""
    world = shop()
    for module in list(sys.modules.values()):
        if module.__name__.startswith("retain.") and hasattr(module, "new_id"):
            monkeypatch.setattr(module, "new_id", lambda: str(ULID.from_timestamp(world.clock() / 1000)))
    try:
        await fill(world, ANN)
        for table in ("ingest_jobs", "ingest_messages", "outbox_failures"):
            world.sql_now(f"DELETE FROM {table}")
        world.sql_now("UPDATE users SET created_at_ms = ?", world.clock())
        yield world
    finally:
        world.close()


def left(world: World) -> dict[str, list[str]]:
    """Return where what was let in is found."""
    return {door: tables for door in DOORS if (tables := world.mentions(canary(ANN, door)))}


def mark(world: World) -> Row:
    [row] = world.sql_now("SELECT last_run_id, erased_at_ms FROM erased_users")
    return row


async def test_an_erasure_by_a_clock_that_is_behind_keeps_out_what_was_written_before_it(world: World) -> None:
    before = await pages(world)
    written_ms = world.clock()
    world.clock.set(written_ms - HOUR_MS)
    await erased(world, ANN)
    assert mark(world)["erased_at_ms"] == written_ms
    world.clock.set(written_ms + HOUR_MS)
    stores = world.stores()
    for page in before:
        await import_lines(stores, "acme", page, items=items_of(stores))
    assert left(world) == {}


async def test_a_second_erasure_by_a_clock_that_is_behind_takes_nothing_back_of_the_first(world: World) -> None:
    await erased(world, ANN)
    first = mark(world)
    world.clock.set(world.clock() - HOUR_MS)
    await erased(world, ANN)
    assert mark(world) == first


async def test_rows_of_an_import_are_left_out_if_their_user_was_erased_since_it_began(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that name nobody, of an instance that served the user: no run says that they were theirs."""
    [rows] = [page for page in await pages(world) if '"kind":"run"' in page.replace(": ", ":")]

    async def overtaken(sql: Sql, tenant_id: str) -> ErasedContent:
        known = await erased_content(sql, tenant_id)
        await erased(world, ANN)
        return known

    monkeypatch.setattr(importing, "erased_content", overtaken)
    assert (await import_lines(world.stores(), "acme", rows)).rows == 0
    assert left(world) == {}
