"""Objects of attachments that have no row any more: a debt in D1 for each, until R2 has removed it."""

from __future__ import annotations

import json

from retain.attachments.attachment import object_key
from retain.errors import RetainError
from retain.ports import Objects, Sql

ARRIVING_MS = 600_000
"""How long an object may still arrive after its row was deleted: its debt is due after that (migrations/0052)."""
REMOVED_AT_ONCE = 40
"""Most objects that one call removes: each is a call of R2."""
OWED = "SELECT 1 FROM attachment_objects WHERE due_at_ms <= ?1"
"""Whether an object is to be removed by a time."""
OWED_OF_TENANT = """
SELECT tenant_id, attachment_id FROM attachment_objects WHERE tenant_id = ?1 AND due_at_ms <= ?2
ORDER BY attachment_id LIMIT ?3
"""
_ANY = """
SELECT tenant_id, attachment_id FROM attachment_objects WHERE due_at_ms <= ?2 AND ?1 = '' ORDER BY due_at_ms LIMIT ?3
"""
_POSTPONED = "UPDATE attachment_objects SET due_at_ms = ? WHERE tenant_id = ? AND attachment_id = ?"
REMOVED = """
DELETE FROM attachment_objects WHERE (tenant_id, attachment_id) IN
  (SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]') FROM json_each(?))
"""


async def remove_owed(
    sql: Sql, objects: Objects, now_ms: int, *, tenant_id: str = "", limit: int = REMOVED_AT_ONCE
) -> int:
    """Remove objects without a row, `limit` at most; return how many. Idempotent. tenant_id: "" for every tenant.

    Raises: Unavailable; then those before are removed, and the next call continues: with the others, if it is for every
        tenant.
    """
    rows = (await sql.run(OWED_OF_TENANT if tenant_id else _ANY, tenant_id, now_ms, limit)).rows
    removed: list[tuple[str, str]] = []
    try:
        for row in rows:
            place = (row["tenant_id"], row["attachment_id"])
            try:
                await objects.delete(object_key(*place))
            except RetainError:
                await sql.run(_POSTPONED, now_ms, *place)
                raise
            removed.append(place)
    finally:
        if removed:
            await sql.run(REMOVED, json.dumps(removed))
    return len(removed)
