"""D1's schema: a Worker uses one that it knows, and no other."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from retain.errors import ConstraintViolated, Unavailable
from retain.host.sql import SqliteSql
from retain.schema.database import VERSION, KnownSchemaSql
from tests.ports import raises
from tests.support.faults import Fault, Faults
from tools.paths import ROOT

MIGRATIONS = sorted((ROOT / "migrations").glob("*.sql"))
FIRST = 34
"""The migration that keeps the version."""


@pytest.fixture
def d1() -> Iterator[SqliteSql]:
    sql = SqliteSql.open()
    sql.migrate(ROOT / "migrations")
    yield sql
    sql.close()


async def _state(d1: SqliteSql, version: int, usable_from: int) -> None:
    await d1.run("INSERT INTO schema_versions (version, usable_from) VALUES (?, ?)", version, usable_from)


def test_the_code_knows_the_last_migration_and_each_since_then_says_its_version() -> None:
    assert int(MIGRATIONS[-1].name[:4]) == VERSION
    for path in MIGRATIONS[FIRST - 1 :]:
        stated = re.findall(
            r"INSERT INTO schema_versions \(version, usable_from\) VALUES \((\d+), \d+\);", path.read_text()
        )
        assert stated == [str(int(path.name[:4]))], f"{path.name} states its version once"


async def test_a_known_schema_is_read_once(d1: SqliteSql) -> None:
    faults = Faults(lambda _: None)
    sql = KnownSchemaSql(faults.wrap("d1", d1, faults.life("worker")))
    for _ in range(3):
        assert (await sql.run("SELECT 7 AS n")).rows == [{"n": 7}]
    assert [len(result.rows) for result in await sql.batch([("SELECT 1", ()), ("SELECT 2", ())])] == [1, 1]
    assert len([point for _, point in faults.trace if point.endswith(" done")]) == 5


async def test_an_older_schema_is_refused_until_it_is_migrated(d1: SqliteSql) -> None:
    sql = KnownSchemaSql(d1)
    await d1.run("DELETE FROM schema_versions")
    await _state(d1, FIRST - 1, 1)
    with pytest.raises(Unavailable, match=f"schema {FIRST - 1} and this Worker needs {VERSION}") as raised:
        await sql.run("DELETE FROM tenants")
    assert raised.value.code == "schema_outdated"
    with raises(Unavailable, code="schema_outdated"):
        await sql.batch([("DELETE FROM tenants", ())])
    await _state(d1, VERSION, VERSION)
    assert (await sql.run("SELECT 7 AS n")).rows == [{"n": 7}]


async def test_a_database_from_before_versions_were_kept_is_refused() -> None:
    d1 = SqliteSql.open()
    with raises(Unavailable, code="schema_outdated"):
        await KnownSchemaSql(d1).run("SELECT 1")
    d1.close()


@pytest.mark.parametrize(("usable_from", "code"), [(VERSION, None), (VERSION + 1, "schema_unknown")])
async def test_a_newer_schema_is_used_if_its_migrations_say_so(
    d1: SqliteSql, usable_from: int, code: str | None
) -> None:
    await _state(d1, VERSION + 1, usable_from)
    await _state(d1, VERSION + 2, VERSION)  # what a later migration says does not take back an earlier one
    sql = KnownSchemaSql(d1)
    if code is None:
        assert (await sql.run("SELECT 7 AS n")).rows == [{"n": 7}]
        return
    with raises(Unavailable, code="schema_unknown"):
        await sql.run("SELECT 7 AS n")


async def test_a_database_that_does_not_answer_is_not_taken_for_an_old_one(d1: SqliteSql) -> None:
    faults = Faults(lambda _: None)
    sql = KnownSchemaSql(faults.wrap("d1", d1, faults.life("worker")))
    faults.plan(Fault(Unavailable("away", code="d1_unavailable")))
    with raises(Unavailable, code="d1_unavailable"):
        await sql.run("SELECT 7")
    assert (await sql.run("SELECT 7 AS n")).rows == [{"n": 7}]


async def test_a_migration_cannot_be_usable_from_a_later_version(d1: SqliteSql) -> None:
    with pytest.raises(ConstraintViolated):
        await _state(d1, VERSION + 1, VERSION + 2)
