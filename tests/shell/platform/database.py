"""The module `adapters/database.mjs`, as Python imports it."""

from __future__ import annotations

from typing import Any

from tests.shell.platform.bindings import D1, D1Statement
from tests.shell.platform.ffi import Array, PlainObject
from tests.shell.platform.objects import Cursor, Storage


async def run(database: D1, statement: Array) -> Array:
    """Run one statement of D1."""
    return _result(await _prepared(database, statement).all())


async def batch(database: D1, statements: Array) -> Array:
    """Run statements of D1 in one transaction."""
    results = await database.batch(Array([_prepared(database, statement) for statement in statements.values]))
    return Array([_result(result) for result in results.values])


def rows(sql: Storage, statement: str, *values: Any) -> Cursor | None:
    """Run one statement of an object's SQLite, and return its rows; nothing when there are none."""
    found = sql.exec(statement, *values).toArray()
    return found if found.to_py() else None


def _prepared(database: D1, statement: Array) -> D1Statement:
    sql, *values = statement.values
    return database.prepare(sql).bind(*values)


def _result(result: PlainObject) -> Array:
    meta = result.properties["meta"].properties
    return Array([result.properties["results"], meta["changes"], meta["size_after"]])
