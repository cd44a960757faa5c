"""Imports into a tenant that stores memories meanwhile: they end, and decide again only what is no longer so."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from retain.lifecycle import importing
from retain.lifecycle.export import export_page
from retain.lifecycle.importing import Imported, import_lines
from retain.lifecycle.stores import Stores
from retain.lifecycle.transfer.plan import ImportPlan, plan_import
from retain.ports import Sql, SqlResult, SqlValue, Statement
from tests.lifecycle.world import PERSON, World, living

BERLIN: dict[str, Any] = {"content": "Ann lives in Berlin.", "subject": "ann", "predicate": "lives_in"}
LYON: dict[str, Any] = {**BERLIN, "content": "Ann lives in Lyon."}
Meanwhile = Callable[[], Awaitable[object]]


@pytest.fixture
def world() -> Iterator[World]:
    with living() as made:
        yield made


class Overtaken:
    """D1 where somebody else changes the tenant just before each of the first commits."""

    def __init__(self, sql: Sql, changes: list[Meanwhile]) -> None:
        self._sql = sql
        self._changes = changes

    async def run(self, sql: str, *values: SqlValue) -> SqlResult:
        return await self._sql.run(sql, *values)

    async def batch(self, statements: Sequence[Statement]) -> list[SqlResult]:
        if self._changes and any("INSERT INTO world_history" in text for text, _ in statements):
            await self._changes.pop(0)()
        return await self._sql.batch(statements)


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> list[ImportPlan]:
    """The plans that imports have made."""
    made: list[ImportPlan] = []

    async def noted(*values: Any, **named: Any) -> ImportPlan:
        made.append(await plan_import(*values, **named))
        return made[-1]

    monkeypatch.setattr(importing, "plan_import", noted)
    return made


async def taken(world: World, *changes: Meanwhile) -> Imported:
    """Import what `acme` has into `other`, while it is changed."""
    page = await export_page(world.stores(), "acme", None)
    text = page.text + (await export_page(world.stores(), "acme", page.cursor)).text
    stores: Stores = replace(world.stores(), sql=Overtaken(world.sql, [*changes]))
    return await import_lines(stores, "other", text)


async def valid(world: World) -> list[str]:
    query = "SELECT content FROM memory_records WHERE tenant_id = 'other' AND valid_to_ms IS NULL ORDER BY content"
    return [row["content"] for row in (await world.sql.run(query)).rows]


async def test_an_import_into_a_tenant_that_stores_all_the_time_decides_once_and_ends(
    world: World, plans: list[ImportPlan]
) -> None:
    await world.store(**BERLIN)
    notes = [f"Note {number}." for number in range(9)]
    await world.store(notes[0], tenant="other")  # it has the scope of the others
    done = await taken(world, *(lambda note=note: world.store(note, tenant="other") for note in notes[1:]))
    assert (done.created, len(plans)) == (1, 2)
    assert await valid(world) == sorted(["Ann lives in Berlin.", *notes])
    assert (await world.stores().history().verify("other")).problem is None
    assert await world.drift("other") == set()


async def test_what_is_stored_meanwhile_and_competes_with_an_import_is_decided_with_it(world: World) -> None:
    await world.store(**BERLIN)
    world.clock.advance(1)
    done = await taken(
        world, lambda: world.store("Unrelated.", tenant="other"), lambda: world.store(**LYON, tenant="other")
    )
    assert done.created == 1
    assert await valid(world) == ["Ann lives in Lyon.", "Unrelated."]


async def test_a_content_that_is_stored_meanwhile_is_a_duplicate(world: World) -> None:
    await world.store(**BERLIN)
    done = await taken(
        world, lambda: world.store("Unrelated.", tenant="other"), lambda: world.store(**BERLIN, tenant="other")
    )
    assert (done.created, done.duplicates) == (0, 1)
    assert await valid(world) == ["Ann lives in Berlin.", "Unrelated."]


async def test_a_record_that_its_owner_deletes_during_the_import_of_an_older_export_stays_deleted(
    world: World,
) -> None:
    await world.store(**BERLIN)
    await taken(world)
    [mine] = (await world.sql.run("SELECT id FROM memory_records WHERE tenant_id = 'other'")).rows
    await world.store("A newer one.")
    await taken(
        world,
        lambda: world.store("Unrelated.", tenant="other"),
        lambda: world.memory("other").delete(mine["id"], PERSON),
    )
    assert await valid(world) == ["A newer one.", "Unrelated."]
