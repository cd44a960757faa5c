"""The warm tier on D1, with one row per item. It is also the catalogue of the hot and the cold tier."""

from __future__ import annotations

from retain.errors import Conflict, ConstraintViolated, InvalidInput
from retain.identifiers import check_tenant, new_id
from retain.items.entry import Buried, Draft, ItemEntry
from retain.limits.storage import check_kv_key, utf8_bytes
from retain.namespace import ItemKey
from retain.ports import Clock, Row, Sql, SqlValue

READ_STEP_MS = 3_600_000
"""Reads within an hour count as one: a write for each would cost more than the read."""

_FIND = "SELECT * FROM memory_items WHERE tenant_id = ? AND key = ?"
_VERSION = "SELECT version FROM memory_items WHERE tenant_id = ? AND key = ? AND NOT deleted"
# One statement assigns the version and writes, so two writers never get the same version. If an erasure removed the note
# of the object meanwhile, the object is gone as well, and nothing is written.
_WRITE = """
INSERT INTO memory_items (tenant_id, key, namespace_key, kind, user_id, tier, value, object_key, version, key_id,
  size_bytes, expires_at_ms, created_at_ms, updated_at_ms)
SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?9, ?9
WHERE ?8 IS NULL OR EXISTS (SELECT 1 FROM memory_item_objects WHERE object_key = ?8)
ON CONFLICT (tenant_id, key) DO UPDATE SET
  namespace_key = CASE WHEN excluded.namespace_key = '' THEN namespace_key ELSE excluded.namespace_key END,
  kind = excluded.kind, user_id = excluded.user_id, tier = excluded.tier, value = excluded.value,
  object_key = excluded.object_key, version = MAX(excluded.version, version + 1), deleted = 0, erased_by = NULL,
  key_id = excluded.key_id,
  size_bytes = excluded.size_bytes, expires_at_ms = excluded.expires_at_ms, updated_at_ms = excluded.updated_at_ms
RETURNING version
"""
_BURY = """
UPDATE memory_items SET deleted = 1, value = NULL, key_id = NULL, size_bytes = 0, version = MAX(?, version + 1),
  updated_at_ms = ? WHERE tenant_id = ? AND key = ? AND NOT deleted RETURNING version, object_key
"""
_COPY_IN = """
UPDATE memory_items SET value = ? WHERE tenant_id = ? AND key = ? AND version = ? AND tier = 'cold' AND NOT deleted
"""
_NOTE_OBJECT = "INSERT INTO memory_item_objects (object_key, tenant_id, key, noted_at_ms) VALUES (?, ?, ?, ?)"
_FORGET_OBJECT = "DELETE FROM memory_item_objects WHERE tenant_id = ? AND object_key = ?"
_NOTE_READ = """
UPDATE memory_items SET read_at_ms = ?1, read_hours = read_hours + 1
WHERE tenant_id = ?2 AND key = ?3 AND version = ?4 AND read_at_ms <= ?1 - ?5
"""


class SqlWarm:
    """Implements `ItemCatalogue` for one tenant. A key of another tenant is refused.

    A key that is not canonical (a legacy key) is written with an empty namespace, which a backfill fills in.
    """

    def __init__(self, sql: Sql, tenant_id: str, clock: Clock) -> None:
        self._sql = sql
        self._tenant_id = check_tenant(tenant_id)
        self._clock = clock

    async def read(self, key: str) -> str | None:
        """Return the value as it is stored: sealed if the item has PII. See the protocol."""
        entry = await self.find(key)
        return entry.value if entry is not None and entry.shown(self._clock()) else None

    async def upsert(self, key: str, value: str) -> None:
        """Write the value as an item of the warm tier without an owner and an expiry. See the protocol."""
        await self.write(key, Draft("warm", value, utf8_bytes(value)))

    async def delete(self, key: str) -> None:
        """Remove the value. See the protocol."""
        await self.bury(key)

    async def find(self, key: str) -> ItemEntry | None:
        """See the protocol."""
        rows = (await self._sql.run(_FIND, self._tenant_id, self._checked(key)[0])).rows
        return entry_of(rows[0]) if rows else None

    async def version(self, key: str) -> int | None:
        """See the protocol."""
        rows = (await self._sql.run(_VERSION, self._tenant_id, self._checked(key)[0])).rows
        return int(rows[0]["version"]) if rows else None

    async def write(self, key: str, draft: Draft) -> int:
        """See the protocol. Raises also: LimitExceeded (code `value_too_large`) over 2,000,000 bytes."""
        text, namespace_key, data_type = self._checked(key)
        where: tuple[SqlValue, ...] = (self._tenant_id, text, namespace_key, data_type, draft.user_id)
        what: tuple[SqlValue, ...] = (draft.tier, draft.value, draft.object_key, self._clock(), draft.key_id)
        try:
            rows = (await self._sql.run(_WRITE, *where, *what, draft.size_bytes, draft.expires_at_ms)).rows
        except ConstraintViolated as error:
            raise Conflict("the tenant was erased: nothing can be stored for it", code="tenant_erased") from error
        if not rows:
            raise Conflict("the item was erased while it was written", code="item_erased")
        return int(rows[0]["version"])

    async def bury(self, key: str) -> Buried:
        """See the protocol."""
        text, now = self._checked(key)[0], self._clock()
        rows = (await self._sql.run(_BURY, now, now, self._tenant_id, text)).rows
        if rows:
            return Buried(int(rows[0]["version"]), found=True, object_key=rows[0]["object_key"])
        entry = await self.find(key)
        return Buried(now if entry is None else entry.version, found=False)

    async def copy_in(self, key: str, version: int, value: str) -> bool:
        """See the protocol."""
        return (await self._sql.run(_COPY_IN, value, self._tenant_id, self._checked(key)[0], version)).changes > 0

    async def new_object(self, key: str, prefix: str) -> str:
        """See the protocol. Every write gets a new object, so that the row decides which one is read."""
        text = self._checked(key)[0]
        object_key = f"{prefix}{text}@{new_id()}"
        await self._sql.run(_NOTE_OBJECT, object_key, self._tenant_id, text, self._clock())
        return object_key

    async def forget_object(self, object_key: str) -> None:
        """See the protocol."""
        await self._sql.run(_FORGET_OBJECT, self._tenant_id, object_key)

    async def note_read(self, key: str, version: int) -> None:
        """See the protocol. Reads within an hour count as one."""
        text = self._checked(key)[0]
        await self._sql.run(_NOTE_READ, self._clock(), self._tenant_id, text, version, READ_STEP_MS)

    def _checked(self, key: str) -> tuple[str, str, str]:
        """Return key, namespace and data type. Namespace and data type are empty for a legacy key. Raises: InvalidInput."""
        check_kv_key(key)  # every item may have a hot copy under the same key
        try:
            item = ItemKey.parse(key)
        except InvalidInput:
            return key, "", ""
        if item.namespace.tenant_id != self._tenant_id:
            raise InvalidInput("the key belongs to another tenant", code="invalid_namespace")
        return key, str(item.namespace), item.data_type


def entry_of(row: Row) -> ItemEntry:
    """Return a row of `memory_items` as an entry."""
    return ItemEntry(
        version=int(row["version"]),
        tier=row["tier"],
        value=row["value"],
        object_key=row["object_key"],
        user_id=row["user_id"],
        key_id=row["key_id"],
        size_bytes=int(row["size_bytes"]),
        expires_at_ms=None if row["expires_at_ms"] is None else int(row["expires_at_ms"]),
        read_at_ms=int(row["read_at_ms"]),
        updated_at_ms=int(row["updated_at_ms"]),
        deleted=bool(row["deleted"]),
    )
