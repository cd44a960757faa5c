"""Exports and backups of a tenant that is in use: they can be imported, and bring all that was there."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from retain.lifecycle.backups import backing_up
from retain.lifecycle.backups.backing_up import Backups
from retain.lifecycle.backups.restoring import RestoreRequest, Restoring
from retain.lifecycle.export import Page, export_page
from retain.lifecycle.importing import import_lines
from retain.lifecycle.stores import Stores
from retain.lifecycle.user_export import export_user_page
from retain.memory.records.record import NewRecord
from retain.tenants.register import Tenants
from tests.lifecycle.tiered import items_of
from tests.lifecycle.world import AGENT, PERSON, World, living

OPENS, TEA = "The shop opens at nine.", "Prefers tea."


@pytest.fixture
def world() -> Iterator[World]:
    with living() as made:
        yield made


async def contents(world: World, tenant: str) -> list[str]:
    sql = "SELECT content FROM memory_records WHERE tenant_id = ? ORDER BY content"
    return [row["content"] for row in (await world.sql.run(sql, tenant)).rows]


async def exporting(world: World, cursor: str | None = None) -> AsyncIterator[Page]:
    while True:
        page = await export_page(world.stores(), "acme", cursor)
        yield page
        cursor = page.cursor
        if cursor is None:
            return


async def taken(world: World, pages: list[Page]) -> None:
    """Import the pages one by one into a copy, which is then as the tenant is."""
    for page in pages:
        await import_lines(world.stores(), "copy", page.text)
    assert await contents(world, "copy") == await contents(world, "acme")
    await world.rest()
    assert not await world.drift("copy")


@pytest.mark.parametrize("after", [0, 1])
@pytest.mark.parametrize("agent_type", [None, "order_triage"])
async def test_a_user_whose_first_memory_comes_between_two_pages_is_exported(
    world: World, agent_type: str | None, after: int
) -> None:
    await world.store(OPENS)
    pages: list[Page] = []
    async for page in exporting(world):
        pages.append(page)
        if len(pages) == after + 1:
            await world.memory(agent_type=agent_type, user_id="newcomer").store(NewRecord(TEA), AGENT)
    await taken(world, pages)


async def test_a_long_record_of_a_new_scope_is_exported_with_it(world: World) -> None:
    pages = [await export_page(world.stores(), "acme", None)]
    memory = world.memory(user_id="newcomer")
    long = (await memory.store(NewRecord("0 " + "word " * 6000), AGENT)).id
    for number in range(1, 20):
        await memory.edit(long, {"content": f"{number} " + "word " * 6000}, PERSON)
    pages += [page async for page in exporting(world, pages[0].cursor)]
    assert sum('"kind":"scope"' in page.text for page in pages) > 2
    assert all(len(page.lines) <= 500 for page in pages)
    await taken(world, pages)


async def test_scopes_count_as_lines_of_a_page(world: World) -> None:
    pages = [await export_page(world.stores(), "acme", None)]
    for number in range(300):
        await world.memory(user_id=f"user-{number}").store(NewRecord(TEA), AGENT)
    pages += [page async for page in exporting(world, pages[0].cursor)]
    assert [len(page.lines) for page in pages[:3]] == [1, 500, 104]
    await taken(world, pages)


async def test_a_user_s_own_export_has_a_scope_that_is_newer(world: World) -> None:
    await world.memory(user_id="newcomer").store(NewRecord(TEA), AGENT)
    await world.memory(agent_type="order_triage").store(NewRecord(OPENS), AGENT)
    first = await export_user_page(world.stores(), "acme", "newcomer", None)
    memory = world.memory(agent_type="order_triage", user_id="newcomer")
    await memory.store(NewRecord("Prefers mail."), AGENT)
    second = await export_user_page(world.stores(), "acme", "newcomer", first.cursor)
    for page in (first, second):
        await import_lines(world.stores(), "copy", page.text)
    assert await contents(world, "copy") == ["Prefers mail.", TEA]


async def test_a_memory_deleted_and_stored_again_between_two_pages_is_exported(world: World) -> None:
    first = await world.store(TEA)
    pages: list[Page] = []
    async for page in exporting(world):
        pages.append(page)
        if len(pages) == 2:
            assert first in page.text
            await world.memory().delete(first, AGENT)
            await world.store(TEA)
    await taken(world, pages)


async def test_a_record_deleted_before_its_page_is_exported_with_its_events(world: World) -> None:
    record_id, gone = await world.store(TEA), await world.store(OPENS)
    await world.memory().delete(gone, AGENT)
    pages: list[Page] = []
    async for page in exporting(world):
        pages.append(page)
        if len(pages) == 2:
            assert gone in page.text
            await world.memory().delete(record_id, AGENT)
    assert sum(record_id in page.text for page in pages) == 1
    await taken(world, pages)


async def test_an_export_that_an_earlier_version_began_ends_with_the_deletions(world: World) -> None:
    gone, kept = await world.store(TEA), await world.store(OPENS)
    await world.memory().delete(gone, AGENT)
    lines = [line async for page in exporting(world, "records.0") for line in page.lines if '"kind":"record"' in line]
    assert [kept in lines[0], gone in lines[1], len(lines)] == [True, True, 2]


async def test_a_backup_taken_meanwhile_is_restored(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    tenants = Tenants(world.sql, world.clock)
    await tenants.register("acme")
    await tenants.register("copy")
    await world.store(OPENS)
    written = 0

    async def interrupted(stores: Stores, tenant_id: str, cursor: str | None) -> Page:
        nonlocal written
        page = await export_page(stores, tenant_id, cursor)
        written += 1
        if written == 1:
            await world.memory(user_id="newcomer").store(NewRecord(TEA), AGENT)
        return page

    monkeypatch.setattr(backing_up, "export_page", interrupted)
    stores = world.stores()
    backups = Backups(stores, 14)
    assert (await backups.advance("acme")).state == "completed"
    restoring = Restoring(stores, backups, items_of(stores))
    while (await restoring.advance("copy", RestoreRequest("acme"))).state != "completed":
        pass
    assert await contents(world, "copy") == [TEA, OPENS]


async def test_a_page_of_an_export_reads_its_own_records_however_many_there_are(world: World) -> None:
    """Each page read all events of the tenant: an export of 100,000 memories read 35 million rows."""
    await world.store(OPENS)
    world.sql_now(
        "WITH RECURSIVE n (value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM n WHERE value < 2000),"
        " one AS (SELECT * FROM memory_events WHERE tenant_id = 'acme' LIMIT 1) INSERT INTO memory_events"
        " SELECT 'X' || n.value, tenant_id, 'X' || n.value, kind, data, source, nonce, digest, at_ms FROM one, n"
    )
    assert await world.steps_of(lambda: export_page(world.stores(), "acme", "records.0.h1-1")) < 20
