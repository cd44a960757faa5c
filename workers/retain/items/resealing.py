"""Rotation of the key that seals PII: each call seals some items of an older key with the current one."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from retain.errors import Misconfigured
from retain.items.rekeying.flags import Namespacing
from retain.limits.pages import sized
from retain.ports import Sql
from retain.sealing.pii import Sealer

ITEMS_PER_CALL = 100
LOOKS = 2000
"""Items that one call tries at most, if no key of the deployment opens them."""

_OLD = sized(
    "SELECT tenant_id, key, value, version FROM memory_items WHERE key_id IS NOT NULL AND key_id <> ? AND tenant_id = ?"
    " AND key > ? ORDER BY key LIMIT ?",
    "key",
    "value",
)
_LEFT = "SELECT COUNT(*) AS n FROM memory_items WHERE key_id IS NOT NULL AND key_id <> ? AND tenant_id = ?"
_SEAL = "UPDATE memory_items SET value = ?, key_id = ? WHERE tenant_id = ? AND key = ? AND version = ?"

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Resealed:
    """The progress of a call.

    left: items that an older key still seals; at 0, that key may be removed. unreadable: those among them that this call
    tried, and that no key of the deployment opens.
    """

    resealed: int
    left: int
    unreadable: int


async def reseal(
    sql: Sql, sealer: Sealer, tenant_id: str, namespacing: Namespacing, limit: int = ITEMS_PER_CALL
) -> Resealed:
    """Seal up to `limit` items of a tenant with the current key, keeping versions. Idempotent; call until none is left.

    An item that no key of the deployment opens stays as it is, and does not keep the others.
    Raises: Misconfigured (codes `memory_key_missing`, `invalid_memory_key`).
    """
    key_id = sealer.key_id()
    after, resealed, unreadable = "", 0, 0
    while resealed < limit and unreadable < LOOKS:
        rows = (await sql.run(_OLD, key_id, tenant_id, after, limit - resealed)).rows
        if not rows:
            break
        for row in rows:
            # sealed for its canonical key, whichever it is under
            key = str(namespacing.item_of(row["key"]) or row["key"])
            try:
                value = await sealer.seal(key, await sealer.open(key, row["value"]))
            except Misconfigured as error:
                if error.code != "item_unreadable":
                    raise
                unreadable += 1
                continue
            await sql.run(_SEAL, value, key_id, tenant_id, row["key"], int(row["version"]))
            resealed += 1
        after = str(rows[-1]["key"])
    if unreadable:
        _log.error("items cannot be sealed again", extra={"tenant_id": tenant_id, "items": unreadable})
    left = (await sql.run(_LEFT, key_id, tenant_id)).rows
    return Resealed(resealed, int(left[0]["n"]), unreadable)
