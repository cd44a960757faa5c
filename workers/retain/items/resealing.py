"""Rotation of the key that seals PII: each call seals some items of an older key with the current one."""

from __future__ import annotations

from dataclasses import dataclass

from retain.items.rekeying.flags import Namespacing
from retain.ports import Sql
from retain.sealing.pii import Sealer

ITEMS_PER_CALL = 100

_OLD = """
SELECT tenant_id, key, value, version FROM memory_items WHERE key_id IS NOT NULL AND key_id <> ? AND tenant_id = ?
ORDER BY key LIMIT ?
"""
_LEFT = "SELECT COUNT(*) AS n FROM memory_items WHERE key_id IS NOT NULL AND key_id <> ? AND tenant_id = ?"
_SEAL = "UPDATE memory_items SET value = ?, key_id = ? WHERE tenant_id = ? AND key = ? AND version = ?"


@dataclass(frozen=True, slots=True)
class Resealed:
    """The progress of a call. left: items that an older key still seals; at 0, that key may be removed."""

    resealed: int
    left: int


async def reseal(
    sql: Sql, sealer: Sealer, tenant_id: str, namespacing: Namespacing, limit: int = ITEMS_PER_CALL
) -> Resealed:
    """Seal up to `limit` items of a tenant with the current key, keeping versions. Idempotent; call until none is left.

    Raises: Misconfigured (codes `memory_key_missing`, `item_unreadable` for one that no key of the deployment opens).
    """
    key_id = sealer.key_id()
    rows = (await sql.run(_OLD, key_id, tenant_id, limit)).rows
    for row in rows:
        key = str(namespacing.item_of(row["key"]) or row["key"])  # sealed for its canonical key, whichever it is under
        value = await sealer.seal(key, await sealer.open(key, row["value"]))
        await sql.run(_SEAL, value, key_id, tenant_id, row["key"], int(row["version"]))
    left = (await sql.run(_LEFT, key_id, tenant_id)).rows
    return Resealed(len(rows), int(left[0]["n"]))
