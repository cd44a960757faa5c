"""Backups that outlived their database: they are restored, and removed when they are too old."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from retain.identifiers import time_of
from retain.retention import DAY_MS
from retain.tenants.register import Tenants
from tests.lifecycle.of_users import ANN, fill, shop
from tests.lifecycle.test_backups import backed_up, backups, restored
from tests.lifecycle.world import World
from tests.support.databases import migrated_d1


@pytest.fixture
async def world() -> AsyncIterator[World]:
    world = shop()
    try:
        await fill(world, ANN)
        yield world
    finally:
        world.close()


async def keys(world: World) -> list[str]:
    return (await world.objects_store.list("backups/")).keys


async def test_a_backup_that_the_database_does_not_know_is_removed_when_it_is_too_old(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = await backed_up(world)
    assert manifest.pages > 1
    world.sql = migrated_d1()
    await restored(world, "acme")
    world.clock.set(time_of(manifest.backup_id) + 14 * DAY_MS)  # an id has the machine's time, not the world's
    assert await backups(world).prune(10) == 1, "the row of the restore"
    assert len(await keys(world)) == manifest.pages + 1
    world.clock.advance(1)
    monkeypatch.setattr("retain.lifecycle.backups.backing_up.REMOVED_PAGES", 1)
    for left in range(manifest.pages - 1, 0, -1):
        assert await backups(world).prune(10) == 1
        assert len(await keys(world)) == left + 1, "its manifest goes last"
    assert await backups(world).prune(10) == 1
    assert (await keys(world), await backups(world).prune(10)) == ([], 0)


async def test_every_tenant_has_its_turn(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("retain.lifecycle.backups.backing_up.LISTED_TENANTS", 2)
    manifest = await backed_up(world)
    world.sql = migrated_d1()
    for tenant in ("aaa", "aab", "aac", "aad", "acme"):
        await Tenants(world.sql, world.clock).register(tenant)
    world.clock.set(time_of(manifest.backup_id) + 20 * DAY_MS)
    pruned = 0
    for _ in range(3):
        pruned += await backups(world).prune(10)
        world.clock.advance(DAY_MS)
    assert (pruned, await keys(world)) == (1, [])
