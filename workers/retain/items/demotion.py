"""Demotion: a policy decides what moves to the cold tier or is removed; the daily brief executes a part each day.

Hot copies need no demotion: they expire. Items are examined least recently examined first, so the next run picks up one
that was interrupted or reached its bounds.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from dataclasses import dataclass
from typing import Literal, Protocol

from retain.errors import RetainError
from retain.identifiers import new_id
from retain.items.entry import Tier
from retain.items.placement import DAY_S, ItemPlacement, Matrix
from retain.items.rekeying.flags import Namespacing
from retain.items.removal import Removal
from retain.items.tiers.protocols import ColdMemory
from retain.items.unsealed import UnsealedValues
from retain.ledgers.errors import Trouble, park
from retain.limits.d1_calls import budget, used_up
from retain.ports import Clock, Row, Sql
from retain.sealing.pii import FIELDS, Sealer, refuse_declared

Decision = Literal["keep", "demote", "drop_copy", "remove"]
"""Keep it where it is; move it from warm to cold; forget the warm copy of a cold item; remove it altogether."""

LOOKS = 2000
"""Items that one run examines."""
MOVES = 100
"""Items that one run moves, drops or removes. A move takes four calls, and a request has 1,000.

Source: https://developers.cloudflare.com/workers/platform/limits/#subrequests
"""
LOOK_EVERY_MS = 20 * 3_600_000
GRACE_MS = 3_600_000
"""Age at which an object that no item points to cannot belong to a write under way."""

_LOOK = """
SELECT tenant_id, key, kind, tier, version, deleted, size_bytes, key_id IS NOT NULL AS sealed, object_key,
  tier = 'cold' AND value IS NOT NULL AS copied, read_at_ms, read_hours, created_at_ms, updated_at_ms,
  CASE WHEN tier = 'warm' AND key_id IS NULL AND NOT deleted THEN length(value) END AS plain, user_id
FROM memory_items WHERE looked_at_ms <= ? ORDER BY looked_at_ms, tenant_id, key LIMIT ?
"""
_ONE = _LOOK.replace("looked_at_ms <= ? ORDER BY looked_at_ms, tenant_id, key LIMIT ?", "tenant_id = ? AND key = ?")
_LOOKED = """
UPDATE memory_items SET looked_at_ms = ? WHERE (tenant_id, key) IN (
  SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]') FROM json_each(?))
"""
_SETTLED = """
UPDATE error_ledger SET state = 'replayed', settled_at_ms = ?, settled_by = NULL
WHERE stage = 'demotion' AND state = 'parked' AND (tenant_id, concerns) IN (
  SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]') FROM json_each(?))
"""
_VALUE = "SELECT value FROM memory_items WHERE tenant_id = ? AND key = ? AND version = ? AND key_id IS NULL"
_NOTE = "INSERT INTO memory_item_objects (object_key, tenant_id, key, noted_at_ms) VALUES (?, ?, ?, ?)"
_MOVE = """
UPDATE memory_items SET tier = 'cold', value = NULL, object_key = ? WHERE tenant_id = ? AND key = ? AND version = ?
  AND tier = 'warm' AND NOT deleted AND key_id IS NULL
"""
_DROP_COPY = "UPDATE memory_items SET value = NULL WHERE tenant_id = ? AND key = ? AND version = ? AND tier = 'cold'"
_LOOSE = """
SELECT o.object_key FROM memory_item_objects o WHERE o.noted_at_ms <= ? AND NOT EXISTS (
  SELECT 1 FROM memory_items i WHERE i.object_key = o.object_key AND i.tenant_id = o.tenant_id AND NOT i.deleted)
ORDER BY o.noted_at_ms, o.object_key LIMIT ?
"""
_FORGET = "DELETE FROM memory_item_objects WHERE object_key = ?"
_POSTPONE = "UPDATE memory_item_objects SET noted_at_ms = ? WHERE object_key = ?"

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class DemotionCandidate:
    """What a policy knows of an item. copied: a cold item has a copy in the warm tier. sealed: the item contains PII.

    read_hours: number of hours since its first write in which it was read from the warm or cold tier. read_at_ms: the
    last such read, 0 for none. placement: of its data type; None if the matrix does not have it, as for a legacy key.
    """

    tier: Tier
    copied: bool
    sealed: bool
    size_bytes: int
    read_hours: int
    read_at_ms: int
    created_at_ms: int
    updated_at_ms: int
    placement: ItemPlacement | None


class DemotionPolicy(Protocol):
    """Decides on one item. The extension point.

    A demotion that the rules forbid (PII, no prefix, a latency that the cold tier misses) is only counted.
    """

    def __call__(self, item: DemotionCandidate, now_ms: int) -> Decision:
        """Return what to do with the item. Pure."""
        ...


@dataclass(frozen=True, slots=True)
class AgedDemotion:
    """The built-in policy: by age since the last use, how often an item was read, its size, and its type's placement.

    An item whose type demands a shorter latency than the cold tier's stays. idle_days: without a read or write, after
    which a small item moves to the cold tier. large_idle_days: the same for an item of large_bytes or more.
    rare_idle_days: the same for a type that is expected to be read rarely. frequent: an item read in at least this many
    hours per week, on average, stays. keep_bytes: a smaller item stays, too: an object would cost more than its row.
    copy_days: how long an unread warm copy is kept.
    """

    idle_days: int = 30
    large_idle_days: int = 7
    large_bytes: int = 100_000
    rare_idle_days: int = 7
    frequent: float = 7.0
    keep_bytes: int = 1024
    copy_days: int = 7

    def __call__(self, item: DemotionCandidate, now_ms: int) -> Decision:
        """Return what to do with the item."""
        used_at_ms = max(item.read_at_ms, item.updated_at_ms)
        idle_days = (now_ms - used_at_ms) / (DAY_S * 1000)
        if item.placement is not None and item.placement.retention_s is not None:
            since_ms = item.updated_at_ms if item.placement.tier == "cold" else used_at_ms
            if now_ms >= since_ms + item.placement.retention_s * 1000:
                return "remove"
        if item.tier == "cold":
            return "drop_copy" if item.copied and idle_days >= self.copy_days else "keep"
        if item.tier != "warm" or item.sealed or item.placement is None or not item.placement.may_be_cold:
            return "keep"
        weeks = max((now_ms - item.created_at_ms) / (7 * DAY_S * 1000), 1.0)
        if item.size_bytes < self.keep_bytes or item.read_hours / weeks >= self.frequent:
            return "keep"
        large = self.large_idle_days if item.size_bytes >= self.large_bytes else self.idle_days
        rare = self.rare_idle_days if item.placement.access == "rare" else self.idle_days
        return "demote" if idle_days >= min(large, rare) else "keep"


class Demotion:
    """Executes what a policy decides, for all tenants."""

    def __init__(
        self,
        sql: Sql,
        cold: ColdMemory,
        matrix: Matrix,
        clock: Clock,
        policy: DemotionPolicy,
        namespacing: Namespacing,
        sealer: Sealer | None = None,
    ) -> None:
        self._sql = sql
        self._cold = cold
        self._matrix = matrix
        self._clock = clock
        self._policy = policy
        self._pii_fields = FIELDS if sealer is None else sealer.fields
        self._unsealed = UnsealedValues(sql, namespacing, sealer)
        self._removal = Removal(sql, clock, matrix, namespacing)

    async def run(self, *, looks: int = LOOKS, moves: int = MOVES) -> dict[str, int]:
        """Remove expired items, seal PII that was stored unsealed, do what the policy decides, and remove objects that
        nothing points to; return the counts.

        Bounded and resumable. An item that fails is counted, does not stop the rest, and is retried after all others. left:
        how many of those that were examined are to be moved or removed by the next run.
        """
        expired = await self._removal.remove_expired(looks)
        done: Counter[str] = Counter(expired=expired)
        rows = (await self._sql.run(_LOOK, self._clock() - LOOK_EVERY_MS, looks)).rows
        searched = await self._unsealed.seal(rows)
        done.update(searched.counts)
        looked: list[list[str]] = []
        failed: list[list[str]] = []
        for row in rows:
            if (row["tenant_id"], row["key"]) in searched.postponed:
                continue
            decision = self._decided(row)
            acted = done["moved"] + done["removed"] + done["dropped"] + done["failed"]
            if decision != "keep" and (acted >= moves or used_up()):
                done["left"] += 1  # for the next run
                continue
            try:
                done[await self._executed(decision, row)] += 1
            except RetainError as error:
                if used_up():
                    done["left"] += 1
                    continue
                _log.warning("an item was not demoted", extra={"code": error.code, "decision": decision})
                await park(self._sql, _trouble(row, error, self._clock()))
                done["failed"] += 1
                failed.append([row["tenant_id"], row["key"]])
            looked.append([row["tenant_id"], row["key"]])
        if looked:
            now, well = self._clock(), [one for one in looked if one not in failed]
            with budget(1):
                await self._sql.batch([(_LOOKED, (now, json.dumps(looked))), (_SETTLED, (now, json.dumps(well)))])
        done["objects"] = 0 if used_up() else await self._sweep(moves)
        return {name: count for name, count in done.items() if name != "kept"}

    async def look_again(self, tenant_id: str, key: str) -> str:
        """Do what the policy decides for one item; return what was done, `kept` for an item that is gone. Idempotent.

        Raises: what kept it from being done.
        """
        rows = (await self._sql.run(_ONE, tenant_id, key)).rows
        return await self._executed(self._decided(rows[0]), rows[0]) if rows else "kept"

    def _decided(self, row: Row) -> Decision:
        if row["deleted"]:  # versions go by the clock, and by then no hot copy of an older one is left
            return "remove" if int(row["updated_at_ms"]) <= self._clock() - self._tombstone_ms() else "keep"
        item = DemotionCandidate(
            tier=row["tier"],
            copied=bool(row["copied"]),
            sealed=bool(row["sealed"]),
            size_bytes=int(row["size_bytes"]),
            read_hours=int(row["read_hours"]),
            read_at_ms=int(row["read_at_ms"]),
            created_at_ms=int(row["created_at_ms"]),
            updated_at_ms=int(row["updated_at_ms"]),
            placement=self._matrix.get(row["kind"]),
        )
        return self._policy(item, self._clock())

    def _tombstone_ms(self) -> int:
        return 1000 * max([DAY_S, *(p.ttl_s or 0 for p in self._matrix.values() if p.tier == "hot")]) + GRACE_MS

    async def _executed(self, decision: Decision, row: Row) -> str:
        """Do what was decided, unless the item has changed since; return what was done."""
        where = row["tenant_id"], row["key"], int(row["version"])
        if decision == "demote":
            return await self._demoted(row)
        if decision == "drop_copy":
            await self._sql.run(_DROP_COPY, *where)
            return "dropped"
        if decision == "remove":
            await self._removal.remove([row])  # no item points to its object now: the sweep removes it
            return "removed"
        return "kept"

    async def _demoted(self, row: Row) -> str:
        """Move a value: note the object, write it, and point the row to it if it still has that version."""
        tenant_id, key, version = row["tenant_id"], row["key"], int(row["version"])
        placement = self._matrix.get(row["kind"])
        if row["sealed"] or row["tier"] != "warm" or placement is None or not placement.may_be_cold:
            _log.error(
                "the policy demotes an item that must not be cold", extra={"tenant_id": tenant_id, "kind": row["kind"]}
            )
            return "refused"
        found = (await self._sql.run(_VALUE, tenant_id, key, version)).rows
        if not found or found[0]["value"] is None:
            return "kept"
        refuse_declared(str(found[0]["value"]), self._pii_fields)  # PII that another program stored unsealed
        object_key = f"{placement.prefix}{key}@{new_id()}"
        await self._sql.run(_NOTE, object_key, tenant_id, key, self._clock())
        await self._cold.upload_text(object_key, str(found[0]["value"]))
        moved = (await self._sql.run(_MOVE, object_key, tenant_id, key, version)).changes
        return "moved" if moved else "kept"

    async def _sweep(self, limit: int) -> int:
        """Remove objects that no item points to; return their number.

        Raises: what kept one from being removed, which then comes after all others.
        """
        rows = (await self._sql.run(_LOOSE, self._clock() - GRACE_MS, limit)).rows
        for row in rows:
            try:
                await self._cold.delete(row["object_key"])
            except RetainError:
                await self._sql.run(_POSTPONE, self._clock(), row["object_key"])
                raise
            await self._sql.run(_FORGET, row["object_key"])
        return len(rows)


def _trouble(row: Row, error: RetainError, now_ms: int) -> Trouble:
    return Trouble("demotion", row["key"], error.code, now_ms, row["tenant_id"], user_id=row["user_id"])
