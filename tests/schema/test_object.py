"""The schema of an object's SQLite: migrated when newer code first calls the object."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from retain.agents.runs import tables
from retain.errors import Misconfigured, RetainError
from retain.host.object_sql import SqliteObjectSql
from retain.schema.object import migrate
from tests.ports import raises

FIRST = ("CREATE TABLE IF NOT EXISTS notes (note TEXT)",)
SECOND = ("ALTER TABLE notes ADD COLUMN author TEXT", "UPDATE notes SET author = 'ann'")


@pytest.fixture
def local() -> Iterator[SqliteObjectSql]:
    with_notes = SqliteObjectSql.open()
    yield with_notes
    with_notes.close()


def _version(local: SqliteObjectSql) -> int:
    return int(local.run("SELECT version FROM schema_version").rows[0]["version"])


def test_an_object_from_before_versions_gets_every_step_and_keeps_its_rows(local: SqliteObjectSql) -> None:
    local.run(FIRST[0])
    local.run("INSERT INTO notes VALUES ('kept')")
    migrate(local, (FIRST, SECOND))
    assert local.run("SELECT * FROM notes").rows == [{"note": "kept", "author": "ann"}]
    assert _version(local) == 2


def test_a_step_is_applied_once(local: SqliteObjectSql) -> None:
    migrate(local, (FIRST,))
    for _ in range(2):
        migrate(local, (FIRST, SECOND))
    assert _version(local) == 2


def test_a_step_that_fails_leaves_the_object_as_it_was(local: SqliteObjectSql) -> None:
    migrate(local, (FIRST,))
    with pytest.raises(RetainError):
        migrate(local, (FIRST, (*SECOND, "INSERT INTO nowhere VALUES (1)")))
    assert _version(local) == 1
    migrate(local, (FIRST, SECOND))


def test_an_object_that_newer_code_has_migrated_is_refused_unchanged(local: SqliteObjectSql) -> None:
    migrate(local, (FIRST, SECOND))
    with raises(Misconfigured, code="newer_object"):
        migrate(local, (FIRST,))
    assert _version(local) == 2


OF_0_1_0 = """
CREATE TABLE turn_state (
  run_id TEXT PRIMARY KEY, idempotency_key TEXT UNIQUE, request_hash TEXT NOT NULL, status TEXT NOT NULL,
  turn INTEGER NOT NULL, request TEXT NOT NULL, context TEXT NOT NULL, result TEXT, resumed INTEGER NOT NULL DEFAULT 0,
  due_at_ms INTEGER, created_at_ms INTEGER NOT NULL, updated_at_ms INTEGER NOT NULL
)
"""


def test_an_instance_of_version_0_1_0_gets_the_tables_that_it_lacks(local: SqliteObjectSql) -> None:
    local.run(OF_0_1_0)
    local.run("INSERT INTO turn_state VALUES ('r', NULL, 'h', 'completed', 1, '{}', '{}', '{}', 0, NULL, 1, 1)")
    migrate(local, tables.STEPS)
    assert local.run("SELECT run_id, status FROM turn_state").rows == [{"run_id": "r", "status": "completed"}]
    fresh = SqliteObjectSql.open()
    migrate(fresh, tables.STEPS)
    assert _columns(local) == _columns(fresh)
    fresh.close()


def _columns(local: SqliteObjectSql) -> dict[str, list[str]]:
    names = [row["name"] for row in local.run("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").rows]
    return {
        name: [row["name"] for row in local.run("SELECT name FROM pragma_table_info(?)", name).rows] for name in names
    }
