"""Copies in the hot tier of values that belonged to an earlier user of an item.

A trigger notes the earlier user in the transaction that gives an item to another one (migrations/0043_earlier_users.sql).
The put then replaces or removes the copy. If it ends before that, or a read that was under way leaves the earlier value
once more, the note leads to the copy. It stays until no call that was under way can leave one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from retain.items.entry import Held
from retain.items.rekeying.flags import Namespacing
from retain.items.tiers.protocols import HotMemory
from retain.ports import Clock, Row, Sql, Statement

GRACE_MS = 70_000
"""After how long no copy of a value is left that was removed: KV shows a delete everywhere within a minute.

Source: https://developers.cloudflare.com/kv/concepts/how-kv-works/
"""
LIMIT = 40
"""Notes that one call of `remove_due` settles: each takes one or two calls of KV."""

NOTES = """
SELECT n.tenant_id, n.user_id, n.key, n.noted_at_ms, i.tier, i.version, i.updated_at_ms FROM memory_item_earlier_users n
LEFT JOIN memory_items i ON i.tenant_id = n.tenant_id AND i.key = n.key AND NOT i.deleted
"""
"""Notes, with the items' present state: NULL for an item that is gone."""
OWED = f"SELECT 1 FROM memory_item_earlier_users WHERE erased_by IS NULL AND noted_at_ms <= ?1 - {GRACE_MS}"
"""Whether copies can be removed; ?1 is the time."""
_DUE = f"{NOTES} WHERE n.erased_by IS NULL AND n.noted_at_ms <= ? ORDER BY n.noted_at_ms LIMIT ?"
_FORGET = """
DELETE FROM memory_item_earlier_users WHERE noted_at_ms <= ?1 AND (tenant_id, user_id, key) IN (
  SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]') FROM json_each(?2))
"""


class EarlierCopies:
    """Removes copies of earlier users' values. A note is a row of `NOTES`.

    namespacing: returns the legacy keys that items may have; may raise Misconfigured, as whatever meets a note then does.
    """

    def __init__(self, sql: Sql, hot: HotMemory, namespacing: Callable[[], Namespacing], clock: Clock) -> None:
        self._sql = sql
        self._hot = hot
        self._namespacing = namespacing
        self._clock = clock

    async def held(self, note: Row) -> str | None:
        """Return the earlier value, if the hot tier still shows one; None for the item's present value."""
        text = await self._hot.get(self._key(note))
        if text is None:
            return None
        held = Held.parse(text)
        return None if note["version"] is not None and held.version >= int(note["version"]) else held.value

    async def remove(self, note: Row) -> bool:
        """Remove the copy; return False if it could not be told apart from the item's only value, and is to be tried again.

        A copy of the present value is removed as well, and read again from the warm tier. Where the hot tier alone has the
        value, an older one is removed that no put is about to replace. Idempotent.
        """
        if note["tier"] == "hot":
            if await self.held(note) is None:
                return True
            if int(note["updated_at_ms"]) > self._clock() - GRACE_MS:
                return False
        await self._hot.delete(self._key(note))
        return True

    def forgotten(self, notes: Sequence[Row]) -> Statement:
        """Return the statement that removes the notes, except of items that changed hands within the last 70 seconds."""
        keys = json.dumps([[note["tenant_id"], note["user_id"], note["key"]] for note in notes])
        return _FORGET, (self._clock() - GRACE_MS, keys)

    async def remove_due(self) -> int:
        """Remove up to 40 copies of all tenants, and their notes; return how many. Those of an open erasure are its own.

        Raises: Unavailable; the next call removes what is left.
        """
        notes = (await self._sql.run(_DUE, self._clock() - GRACE_MS, LIMIT)).rows
        done = [note for note in notes if await self.remove(note)]
        if done:
            sql, values = self.forgotten(done)
            await self._sql.run(sql, *values)
        return len(done)

    def _key(self, note: Row) -> str:
        """Return the key of the copy, which is canonical even if the item's row has a legacy one."""
        item = self._namespacing().item_of(note["key"])
        return note["key"] if item is None or item.namespace.tenant_id != note["tenant_id"] else str(item)
