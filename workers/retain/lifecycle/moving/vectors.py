"""Which vectors belong to rows: an index does not know, and what is deleted on one side of a move leaves both indexes."""

from __future__ import annotations

import json
from collections.abc import Sequence

from retain.json_text import Json
from retain.lifecycle.moving.relations import Relation
from retain.memory.records.vector_names import vector_id
from retain.ports import Row, Sql

DELETED = 500
"""Vectors that one call deletes from an index."""

_OF_ROWS = """
SELECT r.id, MAX(COALESCE(s.parts, 0), COALESCE(o.parts, 0)) AS parts FROM json_each(?) one
CROSS JOIN memory_records r ON {meet}
LEFT JOIN memory_search s ON s.number = r.number LEFT JOIN memory_outbox o ON o.record_id = r.id
WHERE r.tenant_id = ?
"""
_OWED = """
SELECT o.record_id AS id, o.parts FROM json_each(?) one CROSS JOIN memory_outbox o ON o.record_id = one.value
WHERE o.tenant_id = ?
"""
_RECORDS = {
    "memory_records": _OF_ROWS.format(meet="r.id = one.value"),
    "memory_search": _OF_ROWS.format(meet="r.number = one.value"),
    "memory_outbox": _OWED,
}
"""By table, the statement for the records of its rows and how many vectors each may have, by the keys of the rows."""
_DOCUMENTS = (
    "SELECT number, version FROM vector_documents WHERE number IN (SELECT value FROM json_each(?)) AND indexed = 1"
)
_PARTS = (
    "SELECT r.id, s.number, s.parts FROM json_each(?) one CROSS JOIN memory_search s ON s.number = one.value"
    " CROSS JOIN memory_records r ON r.number = s.number"
)


async def vectors_of(sql: Sql, relation: Relation, tenant_id: str, keys: Sequence[Sequence[Json]]) -> list[str]:
    """Return the ids of the vectors that the index may have of a tenant's rows with these keys, before they are deleted."""
    if relation.name == "vector_removals":
        return [str(vector) for (vector,) in keys]
    first = json.dumps([key[0] for key in keys])
    if relation.name == "vector_documents":
        return [f"document.{row['number']}.{row['version']}" for row in (await sql.run(_DOCUMENTS, first)).rows]
    if relation.name not in _RECORDS:
        return []
    found = (await sql.run(_RECORDS[relation.name], first, tenant_id)).rows
    return [vector_id(row["id"], part) for row in found for part in range(row["parts"])]


async def stale_vectors(sql: Sql, relation: Relation, rows: Sequence[Row]) -> list[str]:
    """Return the ids of the vectors that records no longer have whose search rows are about to be written over."""
    if relation.name != "memory_search":
        return []
    parts = {row["number"]: int(row["parts"]) for row in rows}
    found = (await sql.run(_PARTS, json.dumps(list(parts)))).rows
    return [vector_id(row["id"], part) for row in found for part in range(parts[row["number"]], row["parts"])]
