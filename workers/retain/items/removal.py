"""Removing items whose time has passed, for all tenants, so that nothing older is read instead of them.

A row hides older values of its item under legacy keys. They are removed with it: rows in the same transaction, and objects
of other programs by the sweep, for which they are noted (an object that is noted is not adopted by the backfill).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from retain.items.placement import Matrix
from retain.items.rekeying.flags import Namespacing
from retain.ports import Clock, Row, Sql, SqlValue, Statement

ROWS = 200
"""Rows that one transaction removes: their keys stay far below the largest parameter of D1, 2,000,000 bytes."""

_EXPIRED = """
DELETE FROM memory_items WHERE (tenant_id, key) IN (
  SELECT tenant_id, key FROM memory_items WHERE expires_at_ms <= ? ORDER BY expires_at_ms LIMIT ?)
RETURNING 1
"""
_LOOK_EXPIRED = """
SELECT tenant_id, key, kind, version, object_key FROM memory_items WHERE expires_at_ms <= ?
ORDER BY expires_at_ms, tenant_id, key LIMIT ?
"""
_ENTRIES = """
SELECT json_extract(value, '$[0]') AS tenant_id, json_extract(value, '$[1]') AS key, json_extract(value, '$[2]') AS version,
  json_extract(value, '$[3]') AS hidden, json_extract(value, '$[4]') AS asked_later, json_extract(value, '$[5]') AS cold
FROM json_each(?1)
"""
_REMOVE = (
    "DELETE FROM memory_items WHERE (tenant_id, key, version) IN"
    f" (SELECT tenant_id, key, version FROM ({_ENTRIES})) RETURNING 1"
)
# A value under a legacy key that is newer than the row was not hidden by it: a write to both keys is under way.
_REMOVE_HIDDEN = f"""
DELETE FROM memory_items WHERE (tenant_id, key) IN (
  SELECT h.tenant_id, h.key FROM ({_ENTRIES}) e
  JOIN memory_items i ON i.tenant_id = e.tenant_id AND i.key = e.key AND i.version = e.version
  JOIN memory_items h ON h.tenant_id = e.tenant_id AND h.key = e.hidden AND h.version <= i.version WHERE e.asked_later)
"""
_NOTE_HIDDEN = f"""
INSERT OR IGNORE INTO memory_item_objects (object_key, tenant_id, key, noted_at_ms)
SELECT e.hidden, e.tenant_id, e.key, ?2 FROM ({_ENTRIES}) e
JOIN memory_items i ON i.tenant_id = e.tenant_id AND i.key = e.key AND i.version = e.version WHERE e.cold
"""


class Removal:
    """Removes rows together with what they hide."""

    def __init__(self, sql: Sql, clock: Clock, matrix: Matrix, namespacing: Namespacing) -> None:
        self._sql = sql
        self._clock = clock
        self._matrix = matrix
        self._namespacing = namespacing

    async def remove_expired(self, limit: int) -> int:
        """Remove up to `limit` items that have expired, those first that expired first; return how many."""
        if not self._namespacing.patterns:
            return len((await self._sql.run(_EXPIRED, self._clock(), limit)).rows)
        rows = (await self._sql.run(_LOOK_EXPIRED, self._clock(), limit)).rows
        return sum([await self.remove(rows[start : start + ROWS]) for start in range(0, len(rows), ROWS)])

    async def remove(self, rows: Sequence[Row]) -> int:
        """Remove at most `ROWS` rows, each unless it has changed since; return how many.

        rows: with tenant_id, key, kind, version and object_key.
        """
        removed = json.dumps([[row["tenant_id"], row["key"], int(row["version"])] for row in rows])
        hidden = json.dumps([entry for row in rows for entry in self._hidden(row)])
        statements: list[Statement] = [(_NOTE_HIDDEN, (hidden, self._clock())), (_REMOVE_HIDDEN, (hidden,))]
        removing: Statement = (_REMOVE, (removed,))
        results = await self._sql.batch([*(statements if hidden != "[]" else []), removing])
        return len(results[-1].rows)

    def _hidden(self, row: Row) -> Iterable[list[SqlValue]]:
        """Return the legacy keys of the row's item: whether reads ask them later, and whether an object may be under them.

        An object that no row knows is older than the row, whichever legacy key it is under.
        """
        tenant_id, key = row["tenant_id"], row["key"]
        later, item = self._namespacing.hidden_by(tenant_id, key), self._namespacing.item_of(key)
        placement = self._matrix.get(row["kind"] if item is None else item.data_type)
        cold = row["object_key"] is not None or placement is None or bool(placement.prefix)
        for other in self._namespacing.keys_of(tenant_id, key):
            if other in later or (cold and self._namespacing.is_legacy(other)):
                yield [tenant_id, key, int(row["version"]), other, int(other in later), int(cold)]
