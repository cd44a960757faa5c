"""Ranges of numbers: rows keep their numbers when a tenant moves, so no two databases may give the same one.

SQLite numbers a row one above the highest there is. So each database but the first has, in each table whose rows it numbers,
one row of nobody at the beginning of a range of its own. A database that gets rows with higher numbers than its range gets
a new range, above all that were given before.
"""

from __future__ import annotations

from retain.ports import Sql, Statement
from retain.roles.role import EVERY_TENANT

RANGE_BITS = 34
"""A range has 2^34 numbers, and D1 returns numbers up to 2^53 exactly: 524,288 ranges."""
NOBODY = ""
"""The tenant of the rows at the beginning of a range. No tenant can have this id."""

_OF_HOME = ("default", EVERY_TENANT)
_NOT_HERE = "INSERT INTO tenant_places (tenant_id, state, shard) VALUES (?, 'gone', 'DB') ON CONFLICT DO NOTHING"
_FIRST = "SELECT number FROM memory_records WHERE id = 'range'"
_OF_TENANT = """
SELECT MAX(COALESCE((SELECT MAX(number) FROM memory_records WHERE tenant_id = ?1), 0),
  COALESCE((SELECT MAX(number) FROM scopes WHERE tenant_id = ?1), 0),
  COALESCE((SELECT MAX(number) FROM memory_earlier WHERE tenant_id = ?1), 0),
  COALESCE((SELECT MAX(number) FROM vector_documents WHERE tenant_id = ?1), 0),
  COALESCE((SELECT MAX(number) FROM mutation_subjects WHERE tenant_id = ?1), 0)) AS number
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
    return await _first_number(sql) is not None


async def give_range_above(home: Sql, sql: Sql, shard: str, source: Sql, tenant_id: str) -> None:
    """Give a database a range above the numbers that a tenant brings with it, if they would end up above its own.

    source: where the tenant comes from. Idempotent. Raises: Unavailable.
    """
    brought = int((await source.run(_OF_TENANT, tenant_id)).rows[0]["number"])
    first = await _first_number(sql)
    if brought >= (1 << RANGE_BITS if first is None else first):
        await _give(home, sql, shard)


async def _first_number(sql: Sql) -> int | None:
    rows = (await sql.run(_FIRST)).rows
    return int(rows[0]["number"]) if rows else None


async def _give(home: Sql, sql: Sql, shard: str) -> None:
    number = int((await home.run(_NEXT, shard)).rows[0]["number"])
    await sql.batch(_beginning(number << RANGE_BITS))


def _beginning(first: int) -> list[Statement]:
    """Return the statements that let a database number its rows from here on, as one transaction.

    The tables that never reuse a number keep the highest one themselves. Nothing of it is in the mutation log: `NOBODY`
    is away while it happens.
    """
    return [
        (_NOT_HERE, (NOBODY,)),
        ("DELETE FROM memory_records WHERE id = 'range'", ()),
        (
            "INSERT INTO memory_records (number, id, tenant_id, scope_id, kind, content, metadata, confidence, importance,"
            " valid_from_ms, recorded_at_ms, updated_at_ms, edited, conversation, position, speaker, said_at_ms, source,"
            " content_hash) VALUES (?, 'range', ?, '', 'fact', '', '{}', 0, 0, 0, 0, 0, 0, '', 0, '', 0, '{}', '')",
            (first, NOBODY),
        ),
        ("DELETE FROM tenant_use WHERE tenant_id = ?", (NOBODY,)),
        ("DELETE FROM scopes WHERE tenant_id = ?", (NOBODY,)),
        ("INSERT INTO scopes (number, tenant_id, scope_id, kind) VALUES (?, ?, 'tenant', 'tenant')", (first, NOBODY)),
        ("DELETE FROM memory_earlier WHERE event_id = 'range'", ()),
        (
            "INSERT INTO memory_earlier (number, event_id, record_id, tenant_id, scope_id, from_ms, until_ms, length, words,"
            " terms, names_time, asking, signature, embedding_model)"
            " VALUES (?, 'range', 'range', ?, '', 0, 0, 0, 0, '', 0, 0, '', '')",
            (first, NOBODY),
        ),
        (
            "INSERT INTO vector_documents (number, namespace_key, document_id, tenant_id, document, embedding, model,"
            " indexed) VALUES (?, '', 'range', ?, '{}', '', '', 0)",
            (first, NOBODY),
        ),
        ("DELETE FROM vector_documents WHERE number = ?", (first,)),
        ("INSERT INTO mutation_subjects (number, tenant_id, thing, key) VALUES (?, ?, 'range', '')", (first, NOBODY)),
        ("DELETE FROM mutation_subjects WHERE tenant_id = ?", (NOBODY,)),
    ]
