"""New databases with the schema of D1, migrated once in each process: migrating takes longer than most tests."""

from __future__ import annotations

import sqlite3
from functools import cache
from pathlib import Path
from typing import cast

from retain.host.sql import SqliteSql

_MIGRATIONS = Path(__file__).parents[2] / "migrations"


@cache
def _migrated() -> bytes:
    sql = SqliteSql.open()
    sql.migrate(_MIGRATIONS)
    content = connection_of(sql).serialize()
    sql.close()
    return content


def migrated_d1() -> SqliteSql:
    """Return a new database with every migration applied."""
    sql = SqliteSql.open()
    connection_of(sql).deserialize(_migrated())
    return sql


def connection_of(adapter: object) -> sqlite3.Connection:
    """Return the database of an adapter on SQLite."""
    return cast("sqlite3.Connection", vars(adapter)["_connection"])
