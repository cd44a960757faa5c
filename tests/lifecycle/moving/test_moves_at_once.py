"""Moves at the same time: of another tenant of the same database, and of the same one by another worker."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from retain.host.vectors import SqliteVectorIndex
from retain.lifecycle.moving.mover import KEPT_MS, Mover
from retain.lifecycle.moving.moves import LEASES, Move
from retain.lifecycle.moving.vectors import vectors_of
from retain.ports import Sql, SqlResult, SqlValue, Statement, VectorEntry
from retain.shards.place import HOME, in_tenant
from retain.shards.shards import Shards
from retain.tenant_tables import TENANT_TABLES
from tests.lifecycle.moving.deployment import ShardedDeployment, living
from tests.support.databases import connection_of


class _Met:
    """A database on which something else happens once, before the first statement with a text."""

    def __init__(self, sql: Sql, text: str, meeting: Callable[[], Awaitable[None]]) -> None:
        self._sql = sql
        self._text = text
        self._meeting = meeting
        self.met = False

    async def run(self, sql: str, *values: SqlValue) -> SqlResult:
        return (await self.batch([(sql, values)]))[0]

    async def batch(self, statements: Sequence[Statement]) -> list[SqlResult]:
        if not self.met and any(self._text in text for text, _ in statements):
            self.met = True
            await self._meeting()
        return await self._sql.batch(statements)


def mover_of(deployment: ShardedDeployment, **met: Sql) -> Mover:
    """Return the mover of an isolate of its own. met: databases that it reaches in another way."""
    shards = {name: (met.get(name, sql), deployment.indexes[name]) for name, sql in deployment.databases.items()}
    return Mover(Shards.of(shards, deployment.kv, deployment.clock), TENANT_TABLES, deployment.clock)


async def advanced(deployment: ShardedDeployment, mover: Mover, move: Move, step: str | None = None) -> Move:
    """Continue a move until it is at a step, or has ended."""
    while move.state == "running" and move.step != step:
        move = await mover.advance(move)
        deployment.clock.advance(KEPT_MS if move.step == "remove" else 100)
    return move


async def moving(deployment: ShardedDeployment, step: str) -> Move:
    """Return a move of a tenant with one memory, "Kept.", that is at a step."""
    await deployment.register("acme")
    await deployment.store("acme", "Kept.")
    return await advanced(
        deployment, deployment.mover, await deployment.mover.start("acme", "DB_1", "person:ada"), step
    )


async def set_limit(deployment: ShardedDeployment, tenant: str) -> None:
    """Write for a tenant, wherever it lives."""
    with in_tenant(tenant):
        sql = "UPDATE tenants SET max_memories_per_user = 7 WHERE tenant_id = ?"
        await mover_of(deployment)._shards.sql.run(sql, tenant)


def limits(deployment: ShardedDeployment, shard: str, tenant: str) -> list[tuple[Any, ...]]:
    """Return what a database has of what `set_limit` writes."""
    query = "SELECT max_memories_per_user FROM tenants WHERE tenant_id = ?"
    return connection_of(deployment.databases[shard]).execute(query, (tenant,)).fetchall()


@pytest.mark.parametrize("before", ["CREATE TRIGGER", "SELECT state", "'arriving'", "'leaving'"])
async def test_a_move_that_ends_while_another_begins_leaves_the_other_its_record_of_changes(before: str) -> None:
    with living() as deployment:
        await deployment.register("acme")
        ending = await deployment.mover.start("default", "DB_1", "person:ada")
        ending = await advanced(deployment, deployment.mover, ending, "remove")

        async def end() -> None:
            assert (await advanced(deployment, deployment.mover, ending)).state == "completed"

        databases = [_Met(deployment.databases[name], before, end) for name in (HOME, "DB_2")]
        mover = mover_of(deployment, DB=databases[0], DB_2=databases[1])
        move = await advanced(deployment, mover, await mover.start("acme", "DB_2", "person:bob"), "catch_up")
        assert any(database.met for database in databases)
        await set_limit(deployment, "acme")
        assert (await advanced(deployment, mover, move)).state == "completed"
        assert limits(deployment, "DB_2", "acme") == [(7,)]


async def test_a_move_that_begins_while_another_ends_keeps_its_record_of_changes() -> None:
    with living() as deployment:
        await deployment.register("acme")
        first = await deployment.mover.start("default", "DB_1", "person:ada")
        first = await advanced(deployment, deployment.mover, first, "remove")
        second: list[Move] = []

        async def begin() -> None:
            move = await deployment.mover.start("acme", "DB_2", "person:bob")
            second.append(await advanced(deployment, deployment.mover, move, "catch_up"))

        mover = mover_of(deployment, DB=_Met(deployment.databases[HOME], "DROP TRIGGER", begin))
        assert (await advanced(deployment, mover, first)).state == "completed"
        await set_limit(deployment, "acme")
        assert (await advanced(deployment, deployment.mover, second[0])).state == "completed"
        assert limits(deployment, "DB_2", "acme") == [(7,)]


async def test_a_tenant_that_leaves_takes_its_own_changes_alone_and_waits_for_nobody_else_s(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("retain.lifecycle.moving.mover.CHANGES", 1)
    with living() as deployment:
        other = await moving(deployment, "catch_up")
        move = await deployment.mover.start("default", "DB_2", "person:bob")
        move = await advanced(deployment, deployment.mover, move, "catch_up")
        for tenant in ("default", "acme", "default", "default"):
            await set_limit(deployment, tenant)
        await deployment.store("acme", "Stored meanwhile.")
        home = deployment.databases[HOME]
        await home.run("INSERT INTO eval_scratches VALUES ('scratch', 'acme', 'run', 0, '[]', NULL, 0)")
        assert (await deployment.moved("default", "DB_2", most=20)).state == "completed"
        await home.run("DELETE FROM eval_scratches")
        assert (await advanced(deployment, deployment.mover, other)).state == "completed"
        assert (limits(deployment, "DB_2", "default"), limits(deployment, "DB_1", "acme")) == ([(7,)], [(7,)])


async def test_a_tenant_moves_while_another_one_is_erased() -> None:
    with living() as deployment:
        await deployment.databases[HOME].run(
            "INSERT INTO erasure_receipts (receipt_id, tenant_id, kind, state, request_digest, request, salt, step, counts,"
            " started_at_ms, updated_at_ms) VALUES ('r', 'acme', 'user', 'running', '', '{}', '', 'rows', '{}', 0, 0)"
        )
        assert (await deployment.moved("default", "DB_1")).state == "completed"


async def test_a_worker_that_is_late_overwrites_nothing_that_was_written_after_the_switch() -> None:
    with living() as deployment:
        await deployment.register("acme")
        move = await deployment.mover.start("acme", "DB_1", "person:ada")
        move = await advanced(deployment, deployment.mover, move, "copy")

        async def overtake() -> None:
            deployment.clock.advance(LEASES.ms)
            await advanced(deployment, deployment.mover, move, "remove")
            await set_limit(deployment, "acme")

        late = mover_of(deployment, DB_1=_Met(deployment.databases["DB_1"], "INSERT INTO tenants ", overtake))
        move = await late.advance(move)
        assert limits(deployment, "DB_1", "acme") == [(7,)]
        assert (move.step, move.error) == ("remove", None)
        assert (await advanced(deployment, late, move)).state == "completed"


async def test_a_worker_that_is_late_does_not_take_the_move_back_to_an_earlier_step() -> None:
    with living() as deployment:
        await deployment.register("acme")
        move = await deployment.mover.start("acme", "DB_1", "person:ada")
        move = await advanced(deployment, deployment.mover, move, "catch_up")

        async def overtake() -> None:
            deployment.clock.advance(LEASES.ms)
            await advanced(deployment, deployment.mover, move, "remove")

        late = mover_of(deployment, DB=_Met(deployment.databases[HOME], "UPDATE tenant_moves SET state = ", overtake))
        assert (await late.advance(move)).step == "remove"
        await set_limit(deployment, "acme")
        assert (await advanced(deployment, late, move)).state == "completed"
        assert limits(deployment, "DB_1", "acme") == [(7,)]


async def test_a_worker_that_is_late_replaces_nothing_of_a_later_move() -> None:
    with living() as deployment:
        await deployment.register("acme")
        cancelled = await deployment.mover.start("acme", "DB_1", "person:ada")
        later: list[Move] = []

        async def overtake() -> None:
            deployment.clock.advance(LEASES.ms)
            assert (await deployment.mover.cancel(cancelled)).state == "cancelled"
            move = await deployment.mover.start("acme", "DB_1", "person:ada")
            later.append(await advanced(deployment, deployment.mover, move, "copy"))

        late = mover_of(deployment, DB_1=_Met(deployment.databases["DB_1"], "'arriving'", overtake))
        assert (await late.advance(cancelled)).state == "cancelled"
        assert (await advanced(deployment, deployment.mover, later[0])).state == "completed"


async def test_a_worker_that_is_late_removes_nothing_of_a_tenant_that_has_moved_back() -> None:
    with living() as deployment:
        move = await moving(deployment, "remove")

        async def overtake() -> None:
            deployment.clock.advance(LEASES.ms)
            assert (await advanced(deployment, deployment.mover, move)).state == "completed"
            assert (await deployment.moved("acme", HOME)).state == "completed"

        deployment.clock.advance(KEPT_MS)
        late = mover_of(deployment, DB=_Met(deployment.databases[HOME], "FROM memory_records", overtake))
        assert (await late.advance(move)).state == "completed"
        assert await deployment.recalled("acme", "kept") == ["Kept."]
        assert len(deployment.vectors(HOME, "acme")) == 1


async def test_a_worker_that_is_late_leaves_no_vectors_at_the_target_of_a_move_that_was_cancelled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with living() as deployment:
        move = await moving(deployment, "copy")
        read = SqliteVectorIndex.get_by_ids

        async def slow(self: SqliteVectorIndex, ids: Sequence[str]) -> list[VectorEntry]:
            monkeypatch.setattr(SqliteVectorIndex, "get_by_ids", read)
            found = await read(self, ids)
            deployment.clock.advance(LEASES.ms)
            cancelled = await deployment.mover.cancel(await deployment.mover.moves.get("acme", move.move_id))
            assert (await advanced(deployment, deployment.mover, cancelled)).state == "cancelled"
            return found

        monkeypatch.setattr(SqliteVectorIndex, "get_by_ids", slow)
        assert (await advanced(deployment, mover_of(deployment), move)).state == "cancelled"
        assert (deployment.vectors("DB_1", "acme"), deployment.rows("DB_1", "acme")) == ({}, {})
        assert len(deployment.vectors(HOME, "acme")) == 1


async def test_a_worker_that_is_late_removes_no_vectors_of_a_tenant_that_has_moved_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with living() as deployment:
        move = await moving(deployment, "remove")

        async def slow(*args: Any) -> list[str]:
            found = await vectors_of(*args)
            if found:
                monkeypatch.setattr("retain.lifecycle.moving.mover.vectors_of", vectors_of)
                deployment.clock.advance(LEASES.ms)
                assert (await advanced(deployment, deployment.mover, move)).state == "completed"
                assert (await deployment.moved("acme", HOME)).state == "completed"
            return found

        deployment.clock.advance(KEPT_MS)
        monkeypatch.setattr("retain.lifecycle.moving.mover.vectors_of", slow)
        assert (await mover_of(deployment).advance(move)).state == "completed"
        assert len(deployment.vectors(HOME, "acme")) == 1
