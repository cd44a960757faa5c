"""A call of a move makes no more calls of D1 than an invocation has, however much changes meanwhile, and gets further."""

from __future__ import annotations

from retain.lifecycle.moving.mover import KEPT_MS, PAGES_PER_CALL
from retain.limits.d1_calls import budget, fewer_than, spend
from retain.limits.storage import MAX_QUERIES
from retain.shards.place import HOME
from tests.lifecycle.erasable import filled
from tests.lifecycle.moving.deployment import MOVED, ShardedDeployment, living
from tests.lifecycle.moving.test_moving import same
from tests.support.databases import connection_of


def _change_all(deployment: ShardedDeployment) -> None:
    """Change each row that the tenant has, in one table after the other."""
    database = connection_of(deployment.databases[HOME])
    for table in MOVED:
        database.execute(f"UPDATE {table} SET tenant_id = tenant_id WHERE tenant_id = 'acme'")
    database.commit()


async def test_changes_in_every_table_are_caught_up_in_calls_that_an_invocation_has() -> None:
    with living(2, begun=filled()) as deployment:
        deployment.plant_missing("acme")
        move = await deployment.mover.start("acme", "DB_1", "person:ada")
        while move.step in ("prepare", "copy"):
            move = await deployment.mover.advance(move)
        for _ in range(PAGES_PER_CALL):
            _change_all(deployment)
        before, steps = deployment.rows(HOME, "acme"), set()
        while move.state == "running":
            steps.add(move.step)
            trace = deployment.faults.trace
            begun = len(trace)
            move = await deployment.mover.advance(move)
            assert sum(point.startswith("sql ") and "done" not in point for _, point in trace[begun:]) < MAX_QUERIES
            deployment.clock.advance(KEPT_MS if move.step == "remove" else 100)
        assert {"catch_up", "switch", "remove"} <= steps
        same(deployment.rows("DB_1", "acme"), before)


async def test_a_move_gets_a_page_further_with_the_few_calls_that_other_work_leaves() -> None:
    with living(2, begun=filled()) as deployment:
        move = await deployment.mover.start("acme", "DB_1", "person:ada")
        places = []
        while move.step in ("prepare", "copy"):
            with budget(100):
                move = await deployment.mover.advance(move)
            assert move.error is None
            places.append((move.step, move.cursor))
        assert len(places) > PAGES_PER_CALL
        assert places[-1][0] == "catch_up"


def test_an_invocation_counts_the_calls_of_each_part_of_its_work() -> None:
    with budget(10):
        for _ in range(2):
            with budget(3):
                spend()
                spend()
        assert not fewer_than(6)
        assert fewer_than(7)


async def test_the_scopes_of_many_users_are_made_equal_in_few_calls() -> None:
    """Four calls of D1 for each thousand of them were more than an invocation has, for a tenant of 215,000 users."""
    with living(2) as deployment:
        await deployment.register("acme")
        move = await deployment.mover.start("acme", "DB_1", "person:ada")
        move = await deployment.mover.advance(move)
        for name, users in ((HOME, range(9000)), ("DB_1", range(3000, 9003))):
            scopes = [(1000 + user, f"agent.{user:08}", name == HOME) for user in users]
            connection_of(deployment.databases[name]).executemany(
                "INSERT INTO scopes (number, tenant_id, scope_id, parent_id, kind, words)"
                " VALUES (?, 'acme', ?, 'tenant', 'agent', ?)",
                scopes,
            )
            connection_of(deployment.databases[name]).commit()
        copy = deployment.mover._copy_of(move)
        with budget(15):
            [relation] = [one for one in deployment.mover.relations if one.name == "scopes"]
            await copy.equalise(relation)
        there = deployment.rows("DB_1", "acme")["scopes"]
        assert len(there) == 9000
        assert there == deployment.rows(HOME, "acme")["scopes"]
