"""Concurrent settlements of a record: the last one leaves the index correct, whatever happened in between."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

import pytest

from retain.lifecycle.verification import verify_page
from retain.memory.indexer import Indexer
from retain.ports import VectorEntry
from tests.lifecycle.world import AGENT, World, living

Change = Callable[[World, str], Awaitable[None]]


@pytest.fixture
def world() -> Iterator[World]:
    with living() as world:
        yield world


class Interrupted:
    """The vector index, with a coroutine that runs before or after its next upsert."""

    def __init__(self, world: World, happens: Callable[[], Awaitable[object]], *, before: bool) -> None:
        self._index = world.index
        self._happens: Callable[[], Awaitable[object]] | None = happens
        self._before = before

    async def upsert(self, entries: Sequence[VectorEntry]) -> str:
        """Write the vectors, and run the coroutine once."""
        happens, self._happens = self._happens, None
        if happens is not None and self._before:
            await happens()
        mutation = await self._index.upsert(entries)
        if happens is not None and not self._before:
            await happens()
        return mutation

    def __getattr__(self, name: str) -> Any:
        return getattr(self._index, name)


async def _edit(world: World, record_id: str) -> None:
    await world.memory().edit(record_id, {"content": "A chair, " + "and a table. " * 200}, AGENT)


async def _shorten(world: World, record_id: str) -> None:
    await world.memory().edit(record_id, {"content": "Nothing."}, AGENT)


async def _delete(world: World, record_id: str) -> None:
    await world.memory().delete(record_id, AGENT)


async def _close(world: World, record_id: str) -> None:
    await world.memory().invalidate(record_id, world.clock(), AGENT)


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("change", [_edit, _shorten, _delete, _close])
@pytest.mark.parametrize("step_ms", [0, 1])
async def test_a_record_that_changes_while_it_is_settled_is_settled_again(
    world: World, change: Change, before: bool, step_ms: int
) -> None:
    record_id = await world.store("A lamp, " + "and a shelf. " * 150)
    record, _ = await world.memory().get(record_id)

    async def happens() -> None:
        world.clock.advance(step_ms)
        await change(world, record_id)

    index: Any = Interrupted(world, happens, before=before)
    indexer = Indexer(world.sql, index, world.embedder, world.clock)
    await world.sql.batch([indexer.owe(record, 3)])
    await indexer.settle(record_id)
    await world.rest()
    report = await verify_page(world.stores(), "acme", None, repair=False)
    assert (report.drift, report.pending) == ({}, 0)
    kept = {row["id"] for row in world.sql_now("SELECT id FROM memory_records")}
    assert {vector.partition("#")[0] for vector in world.vectors()} == kept
