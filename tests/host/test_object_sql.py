"""SqliteObjectSql: the contract."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from retain.host.object_sql import SqliteObjectSql
from tests.ports import Case, cases
from tests.ports import object_sql as suite


@pytest.fixture
def object_sql() -> Iterator[SqliteObjectSql]:
    database = SqliteObjectSql.open()
    yield database
    database.close()


@pytest.mark.parametrize("case", cases(suite).values(), ids=cases(suite).keys())
async def test_contract(case: Case, object_sql: SqliteObjectSql) -> None:
    await case(object_sql)
    await case(object_sql)  # a case may be repeated on the same object


def test_a_file_keeps_what_was_written(tmp_path: Path) -> None:
    first = SqliteObjectSql.open(tmp_path / "object.sqlite")
    first.run("CREATE TABLE t (v)")
    first.run("INSERT INTO t VALUES ('kept')")
    first.close()
    second = SqliteObjectSql.open(tmp_path / "object.sqlite")
    assert second.run("SELECT v FROM t").rows == [{"v": "kept"}]
    second.close()
