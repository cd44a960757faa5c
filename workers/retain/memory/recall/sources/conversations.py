"""The conversations that a query names by their position, which only the memory knows.

Those among the newest or the oldest records of the visible scopes are put in order of time, and the records of those that
are meant count as those of a time that the query names.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from retain.memory.recall.candidates import Visible
from retain.memory.recall.query import Query
from retain.memory.recall.times.positions import Positions
from retain.ports import Row, Sql, Statement

LOOKED_AT = 500
"""The newest or oldest records of each visible scope in which conversations are looked for."""


async def with_conversations(sql: Sql, visible: Visible, query: Query) -> Query:
    """Return the query with the records of the conversations that it names. One round trip if it names any.

    Raises: Unavailable.
    """
    if query.positions is None:
        return query
    statement, parameters = _in_order(visible, query.positions)
    return replace(query, named=_named(query.positions, (await sql.run(statement, *parameters)).rows))


def _in_order(visible: Visible, positions: Positions) -> Statement:
    """Return the statement for the records of each conversation, in order, as far as the newest or oldest of them tell."""
    where, values = visible.where()
    order = "DESC" if positions.from_end else "ASC"
    numbers = (
        "SELECT json_group_array(number) FROM (SELECT number FROM memory_records WHERE tenant_id = ?1"
        f" AND scope_id = s.value ORDER BY number {order} LIMIT {LOOKED_AT})"
    )
    return (
        "SELECT MIN(COALESCE(r.said_at_ms, r.valid_from_ms)) AS at_ms, MIN(r.number) AS number, group_concat(r.id) AS ids"
        f" FROM json_each(?2) s CROSS JOIN json_each(({numbers})) n CROSS JOIN memory_records r ON r.number = n.value"
        f" WHERE r.conversation IS NOT NULL AND {where} GROUP BY r.scope_id, r.conversation ORDER BY at_ms, number",
        (visible.tenant_id, json.dumps(visible.scope_ids), *values),
    )


def _named(positions: Positions, found: Sequence[Row]) -> frozenset[str]:
    """Return the ids of the records in the conversations that are meant. found: all that were found, in order."""
    ordered = found[::-1] if positions.from_end else found
    return frozenset(
        [one for row in ordered[positions.first - 1 : positions.last] for one in str(row["ids"]).split(",")]
    )
