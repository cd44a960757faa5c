"""Workers of backups and restores that are slower than their lease: what was erased meanwhile does not return."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from retain.jobs import LEASE_MS
from retain.lifecycle.backups.backing_up import Backups
from retain.lifecycle.backups.objects import BackupObjects
from retain.lifecycle.backups.restoring import RestoreRequest, Restoring
from retain.lifecycle.export import Page, export_page
from tests.lifecycle.of_users import ANN, BOB, canary, erased, forgotten, two_users
from tests.lifecycle.tiered import items_of
from tests.lifecycle.world import World

EXPORTING = "retain.lifecycle.backups.backing_up.export_page"


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with two_users() as world:
        yield world


def kept(world: World) -> str:
    """Return everything that is kept of backups."""
    objects = [row for name, rows in world.everything().items() if name.startswith("r2/") for row in rows]
    return "".join(row[1].decode() for row in objects if row[0].startswith(b"backups/"))


@pytest.mark.parametrize("nth", range(1, 8))
async def test_a_page_that_was_read_before_an_erasure_does_not_enter_the_backup_after_it(
    world: World, monkeypatch: pytest.MonkeyPatch, nth: int
) -> None:
    pages = 0

    async def slow(*args: Any) -> Page:
        nonlocal pages
        pages += 1
        page = await export_page(*args)
        if pages == nth:
            world.clock.advance(LEASE_MS)
            await erased(world, ANN)
        return page

    monkeypatch.setattr(EXPORTING, slow)
    backups = Backups(world.stores(), 14)
    for _ in range(3):
        await backups.advance("acme")
        assert "annsecret" not in kept(world)
    assert len(await backups.manifests("acme")) >= 1
    assert "bobsecret" in kept(world)


async def test_a_page_of_a_worker_that_was_overtaken_replaces_none_of_a_backup_that_was_cleaned(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    backups = Backups(world.stores(), 14)

    async def slow(*args: Any) -> Page:
        page = await export_page(*args)
        if "annsecret" in page.text:
            monkeypatch.setattr(EXPORTING, export_page)
            world.clock.advance(LEASE_MS)
            while (await backups.advance("acme")).state == "running":
                pass
            await erased(world, ANN)
        return page

    monkeypatch.setattr(EXPORTING, slow)
    await backups.advance("acme")
    assert "bobsecret" in kept(world)
    assert "annsecret" not in kept(world)


@pytest.mark.parametrize("line", ['"kind":"message"', '"kind":"user"'], ids=["message", "profile"])
async def test_a_page_that_was_read_before_an_erasure_is_not_restored_after_it(
    world: World, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    backups = Backups(world.stores(), 14)
    while (await backups.advance("acme")).state == "running":
        pass
    page_of: Callable[..., Awaitable[str]] = BackupObjects.page
    overtaken: list[int] = []

    async def slow(self: BackupObjects, backup_id: str, number: int) -> str:
        text = await page_of(self, backup_id, number)
        if line in text and "annsecret" in text:
            overtaken.append(number)
            monkeypatch.setattr(BackupObjects, "page", page_of)
            world.clock.advance(LEASE_MS)
            await forgotten(world, canary(ANN, "said"))
        return text

    monkeypatch.setattr(BackupObjects, "page", slow)
    stores = world.stores()
    restoring = Restoring(stores, backups, items_of(stores))
    while (await restoring.advance("acme", RestoreRequest("acme"))).state == "running":
        pass
    assert overtaken
    assert not world.mentions(canary(ANN, "said"))
    assert world.mentions(canary(BOB, "said"))
