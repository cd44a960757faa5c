"""Backups of earlier versions: the columns that they lack have a value, and one that is refused does not block a tenant."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import closing
from pathlib import Path
from shutil import copy

import pytest

from retain.errors import Conflict, InvalidInput
from retain.host.sql import SqliteSql
from retain.ledgers.errors import list_errors
from retain.lifecycle.backups.jobs import BackupJobs
from retain.lifecycle.transfer.kinds import ROW_KINDS
from retain.tenants.register import Tenants
from tests.lifecycle.test_backups import backed_up, contents, lines_of, planted_shop, restored
from tests.lifecycle.world import World
from tests.ports import raises
from tools.paths import ROOT

FIRST = "0035_backups.sql"
"""The schema of the first version whose exports had rows."""


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with planted_shop() as world:
        yield world


async def without(world: World, backup_id: str, columns: Mapping[str, frozenset[str]]) -> int:
    """Remove columns from the lines of each kind in a backup; return how many cells that were."""
    changed = 0
    for key in (await world.objects_store.list(f"backups/acme/pages/{backup_id}/")).keys:
        content = await world.objects_store.get(key)
        assert content is not None
        lines = [json.loads(line) for line in content.decode().split("\n") if line]
        for line in lines:
            for name in columns.get(line["kind"], ()):
                del line["row"][name]
                changed += 1
        await world.objects_store.put(key, "".join(json.dumps(line) + "\n" for line in lines).encode())
    return changed


async def test_a_backup_without_the_columns_that_later_versions_added_is_restored_whole(world: World) -> None:
    before = await lines_of(world, "acme")
    manifest = await backed_up(world)
    added = {kind.name: frozenset(kind.added) for kind in ROW_KINDS.values() if kind.added}
    assert await without(world, manifest.backup_id, added) > 0
    await restored(world, "copy")
    for line in before:
        if line["kind"] in ROW_KINDS:
            line["row"].update(ROW_KINDS[line["kind"]].added or {})
    assert contents(await lines_of(world, "copy"), "copy") == contents(before, "acme")


async def test_each_exported_column_that_a_migration_added_to_its_table_has_a_value_for_exports_from_before_it(
    tmp_path: Path,
) -> None:
    began: dict[str, set[str]] = {}
    lacking: dict[str, set[str]] = {}
    with closing(SqliteSql.open()) as sql:
        for path in sorted((ROOT / "migrations").glob("*.sql")):
            copy(path, tmp_path)
            if path.name < FIRST:
                continue
            sql.migrate(tmp_path)
            for kind in ROW_KINDS.values():
                columns = {row["name"] for row in (await sql.run(f"PRAGMA table_info({kind.table})")).rows}
                if columns:
                    lacking[kind.name] = set(kind.columns) - began.setdefault(kind.name, columns)
    assert "attachments" in lacking["message"]
    assert lacking == {kind.name: set(kind.added or ()) for kind in ROW_KINDS.values()}


async def test_a_restore_that_stopped_at_an_error_is_replaced_by_another_request(world: World) -> None:
    good = await backed_up(world)
    bad = await backed_up(world)
    await without(world, bad.backup_id, {"outcome": frozenset({"score"})})
    with raises(InvalidInput, code="invalid_line"):
        await restored(world, "copy")
    assert (await restored(world, "copy", good.backup_id)).state == "completed"
    assert await BackupJobs(world.stores()).all_open(10) == []
    assert [one.state for one in (await list_errors(world.sql, stage="backup")).entries] == ["replayed"]


async def test_a_restore_that_a_worker_has_in_hand_is_not_replaced(world: World) -> None:
    good = await backed_up(world)
    await Tenants(world.sql, world.clock).register("copy")
    jobs = BackupJobs(world.stores())
    job = await jobs.opened("copy", "restore", {"from": "acme", "backup": None, "at_ms": None, "parts": []})
    with raises(Conflict, code="restore_running"):
        await restored(world, "copy", good.backup_id)
    await jobs.fail(job, "d1_unavailable")
    taken = await jobs.take(job)
    assert taken is not None
    with raises(Conflict, code="restore_running"):
        await restored(world, "copy", good.backup_id)
    await jobs.release(taken)
    assert (await restored(world, "copy", good.backup_id)).state == "completed"
