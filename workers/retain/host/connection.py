"""SQLite on the host, made to behave like the platform's: the same limits, types, counts and errors."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from retain.errors import ConstraintViolated, LimitExceeded, RetainError, Unavailable
from retain.limits.storage import (
    MAX_INTEGER,
    MAX_PARAMETERS,
    MAX_STATEMENT_BYTES,
    MAX_VALUE_BYTES,
    MEMORY_QUOTA,
    check_statement,
    database_full,
    memory_quota,
    refused_place,
)
from retain.ports import Row, SqlResult, SqlValue

_LIMITS = (
    (sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, MAX_PARAMETERS),
    (sqlite3.SQLITE_LIMIT_SQL_LENGTH, MAX_STATEMENT_BYTES),
    (sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES),
    (sqlite3.SQLITE_LIMIT_COLUMN, 100),
    (sqlite3.SQLITE_LIMIT_FUNCTION_ARG, 32),
    (sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 50),
    (sqlite3.SQLITE_LIMIT_COMPOUND_SELECT, 5),
    (sqlite3.SQLITE_LIMIT_EXPR_DEPTH, 100),
)
"""Source: https://developers.cloudflare.com/d1/platform/limits/ and, for the last two, workerd's own SQLite."""


def open_connection(path: str | Path = ":memory:") -> sqlite3.Connection:
    """Open a database file, or a new one in memory, without implicit transactions.

    Raises: Unavailable.
    """
    try:
        return sqlite3.connect(path, isolation_level=None)
    except sqlite3.Error as error:
        raise Unavailable("the database could not be opened", code="database_failed") from error


def open_database(path: str | Path = ":memory:") -> sqlite3.Connection:
    """Open a database with the platform's limits, and with foreign keys enforced, as on the platform.

    Raises: Unavailable.
    """
    connection = open_connection(path)
    for category, limit in _LIMITS:
        connection.setlimit(category, limit)
    connection.execute("PRAGMA foreign_keys = ON")
    return connection


def execute(connection: sqlite3.Connection, sql: str, values: Sequence[SqlValue]) -> SqlResult:
    """Run one statement and return all its rows.

    `changes` also counts what triggers and foreign keys changed and what a full-text index wrote, as D1 does. Numbers
    without a fraction are returned as integers, whatever the column's type, as JavaScript returns them.

    Raises: Conflict (code `constraint`); LimitExceeded; InvalidInput; Unavailable (code `database_failed`) otherwise.
    """
    bound = check_statement(sql, values)
    before = connection.total_changes
    try:
        cursor = connection.execute(sql, bound)
        columns = [column[0] for column in cursor.description or ()]
        rows: list[Row] = [dict(zip(columns, map(_received, row), strict=True)) for row in cursor]
    except (sqlite3.Error, sqlite3.Warning) as error:
        raise refusal(error) from error
    return SqlResult(rows, connection.total_changes - before)


def database_bytes(connection: sqlite3.Connection) -> int:
    """Return the size of the database."""
    pages, page_bytes = connection.execute("SELECT * FROM pragma_page_count, pragma_page_size").fetchone()
    return int(pages) * int(page_bytes)


def query(connection: sqlite3.Connection, sql: str, *values: SqlValue) -> Sequence[tuple[Any, ...]]:
    """Run a statement for the adapter itself, without the platform's limits; return its rows.

    Raises: as `refusal` says.
    """
    try:
        return connection.execute(sql, values).fetchall()
    except sqlite3.Error as error:
        raise refusal(error) from error


def refusal(error: Exception) -> RetainError:
    """Return SQLite's error as the port's. The database's own message stays in the cause: it may quote the input."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the low byte is the primary code
    if MEMORY_QUOTA in str(error):
        return memory_quota()
    moved = refused_place(str(error))
    if moved is not None:
        return moved
    if code == sqlite3.SQLITE_CONSTRAINT:
        return ConstraintViolated("a constraint of the database forbids it")
    if code == sqlite3.SQLITE_TOOBIG:
        return LimitExceeded("a value or row is too large", code="value_too_large", limit_bytes=MAX_VALUE_BYTES)
    if code == sqlite3.SQLITE_FULL:
        return database_full("the database")
    return Unavailable("the database refused the statement", code="database_failed")


def _received(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer() and abs(value) <= MAX_INTEGER:
        return int(value)
    return value
