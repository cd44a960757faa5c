"""Ranges of numbers: rows keep their numbers when a tenant moves, so no two databases may give the same one.

SQLite numbers a row one above the highest there is. So each database but the first has, in each table whose rows it numbers,
one row of nobody at the beginning of a range of its own, and the first one has the range from zero. A database gets a new
range, above all that were given before, before a row with a number of a later range than its own is written to it
(`Numbering`); and it does not give the numbers of rows that leave it again (`keep_numbers`). So a number names one row of
the deployment, whatever moves at the same time.
"""

from __future__ import annotations

from collections.abc import Iterable

from retain.ports import Row, Sql, Statement
from retain.roles.role import EVERY_TENANT

RANGE_BITS = 34
"""A range has 2^34 numbers, and D1 returns numbers up to 2^53 exactly: 524,288 ranges."""
NOBODY = ""
"""The tenant of the rows at the beginning of a range. No tenant can have this id."""
NUMBERED = frozenset({"memory_records", "scopes", "memory_earlier", "vector_documents", "mutation_subjects"})
"""The tables whose rows a database numbers."""

_OF_HOME = ("default", EVERY_TENANT)
_NOT_HERE = "INSERT INTO tenant_places (tenant_id, state, shard) VALUES (?, 'gone', 'DB') ON CONFLICT DO NOTHING"
_FIRST = "SELECT number FROM memory_records WHERE id = 'range'"
# The tables that never reuse a number keep the highest one themselves.
_HIGHEST = """
SELECT MAX(COALESCE((SELECT MAX(number) FROM memory_records), 0), COALESCE((SELECT MAX(number) FROM scopes), 0),
  COALESCE((SELECT MAX(number) FROM memory_earlier), 0)) AS number
"""
_NEXT = "INSERT INTO number_ranges (shard) VALUES (?) RETURNING number"


async def give_range(home: Sql, sql: Sql, shard: str) -> None:
    """Give a database other than the first its first range, if it has none. Idempotent. Raises: Unavailable.

    What the migrations put into every database is on the first one only: the tenant `default`, and the deployment's history.
    """
    if await is_prepared(sql):
        return
    await sql.batch([(_NOT_HERE, (name,)) for name in _OF_HOME])
    await sql.run("DELETE FROM tenants WHERE tenant_id = 'default'")
    await _give(home, sql, shard)


async def is_prepared(sql: Sql) -> bool:
    """Return whether a database has a range. One without it has no tenants. Raises: Unavailable."""
    return bool((await sql.run(_FIRST)).rows)


async def keep_numbers(home: Sql, sql: Sql, shard: str) -> None:
    """Let a database never give the numbers again that it has given: rows leave it that keep them. Raises: Unavailable."""
    highest = int((await sql.run(_HIGHEST)).rows[0]["number"])
    if _range_of(highest) > await _own_range(sql):
        await _give(home, sql, shard)
    else:
        await sql.batch(_reserved(highest + 1))


class Numbering:
    """The numbers of rows that are copied to a database. One for each call of a move."""

    def __init__(self, home: Sql, sql: Sql, shard: str) -> None:
        self._home = home
        self._sql = sql
        self._shard = shard
        self._range: int | None = None

    async def admit(self, rows: Iterable[Row]) -> None:
        """Give the database a range above the numbers of these rows, if they are of a later one. Raises: Unavailable."""
        if self._range is None:
            self._range = await _own_range(self._sql)
        if any(_range_of(int(row["number"])) > self._range for row in rows):
            self._range = await _give(self._home, self._sql, self._shard)


def _range_of(number: int) -> int:
    return number >> RANGE_BITS


async def _own_range(sql: Sql) -> int:
    rows = (await sql.run(_FIRST)).rows
    return _range_of(int(rows[0]["number"])) if rows else 0


async def _give(home: Sql, sql: Sql, shard: str) -> int:
    number = int((await home.run(_NEXT, shard)).rows[0]["number"])
    first = number << RANGE_BITS
    await sql.batch([*_reserved(first), *_continued(first)])
    return number


def _reserved(first: int) -> list[Statement]:
    """Return the statements that let a database give numbers above this one alone, as one transaction. Idempotent.

    One that gives numbers above a higher one already keeps it: two moves may ask at once. Nothing of it is in the mutation
    log: `NOBODY` is away while it happens.
    """
    return [
        (_NOT_HERE, (NOBODY,)),
        ("DELETE FROM memory_records WHERE id = 'range' AND number < ?", (first,)),
        (
            "INSERT INTO memory_records (number, id, tenant_id, scope_id, kind, content, metadata, confidence, importance,"
            " valid_from_ms, recorded_at_ms, updated_at_ms, edited, conversation, position, speaker, said_at_ms, source,"
            " content_hash) SELECT ?, 'range', ?, '', 'fact', '', '{}', 0, 0, 0, 0, 0, 0, '', 0, '', 0, '{}', ''"
            " WHERE NOT EXISTS (SELECT 1 FROM memory_records WHERE id = 'range')",
            (first, NOBODY),
        ),
        ("DELETE FROM tenant_use WHERE tenant_id = ?", (NOBODY,)),
        ("DELETE FROM scopes WHERE tenant_id = ? AND number < ?", (NOBODY, first)),
        (
            "INSERT INTO scopes (number, tenant_id, scope_id, kind) SELECT ?1, ?2, 'tenant', 'tenant'"
            " WHERE NOT EXISTS (SELECT 1 FROM scopes WHERE tenant_id = ?2)",
            (first, NOBODY),
        ),
        ("DELETE FROM memory_earlier WHERE event_id = 'range' AND number < ?", (first,)),
        (
            "INSERT INTO memory_earlier (number, event_id, record_id, tenant_id, scope_id, from_ms, until_ms, length, words,"
            " terms, names_time, asking, signature, embedding_model)"
            " SELECT ?, 'range', 'range', ?, '', 0, 0, 0, 0, '', 0, 0, '', ''"
            " WHERE NOT EXISTS (SELECT 1 FROM memory_earlier WHERE event_id = 'range')",
            (first, NOBODY),
        ),
    ]


def _continued(first: int) -> list[Statement]:
    """Return the statements that do the same for tables which keep the highest number themselves, for a new range."""
    return [
        (
            "INSERT INTO vector_documents (number, namespace_key, document_id, tenant_id, document, embedding, model,"
            " indexed) VALUES (?, '', 'range', ?, '{}', '', '', 0)",
            (first, NOBODY),
        ),
        ("DELETE FROM vector_documents WHERE number = ?", (first,)),
        ("INSERT INTO mutation_subjects (number, tenant_id, thing, key) VALUES (?, ?, 'range', '')", (first, NOBODY)),
        ("DELETE FROM mutation_subjects WHERE tenant_id = ?", (NOBODY,)),
    ]
