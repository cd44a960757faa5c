"""The sources of the backfill: the warm tier's rows in D1, and the cold tier's objects."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Protocol

from retain.errors import ConstraintViolated, InvalidInput, Unavailable
from retain.items.placement import MATRIX, Matrix
from retain.items.rekeying.compatible import Keyed
from retain.items.rekeying.flags import Namespacing
from retain.limits.storage import utf8_bytes
from retain.namespace import ItemKey
from retain.ports import Clock, KeyPage, Objects, Sql, SqlValue
from retain.sealing.pii import FIELDS, Sealer, refuse_declared

TRIES = 5
"""How often a row is read again that was written while it was copied."""

_LIST = """
SELECT DISTINCT key FROM memory_items WHERE key >= ?1 AND key < ?2 AND key > ?3 AND NOT deleted ORDER BY key LIMIT ?4
"""
_EXISTS = "SELECT 1 FROM memory_items WHERE tenant_id = ? AND key = ? AND (NOT deleted OR NOT ?)"
_HINDERED = """
SELECT 1 FROM memory_items WHERE tenant_id = ?1 AND key = ?2
UNION ALL SELECT 1 FROM erased_tenants WHERE tenant_id = ?1 AND closed
"""
_ADD = """
INSERT INTO memory_items
  (tenant_id, key, namespace_key, kind, tier, value, version, size_bytes, created_at_ms, updated_at_ms, key_id)
VALUES (?1, ?2, ?3, ?4, 'warm', ?5, ?6, ?7, ?6, ?6, ?8) ON CONFLICT (tenant_id, key) DO NOTHING
"""
_OF_LEGACY = "SELECT tier, value, key_id, version FROM memory_items WHERE tenant_id = ? AND key = ? AND NOT deleted"
# The whole row is copied: owner, expiry, seal and object belong to the item, and its hot copies carry its version.
_COPY = """
INSERT INTO memory_items
  (tenant_id, key, namespace_key, kind, user_id, tier, value, object_key, version, key_id, size_bytes, expires_at_ms,
   read_at_ms, read_hours, created_at_ms, updated_at_ms)
SELECT tenant_id, ?1, ?2, ?3, user_id, tier, ?7, object_key, version, ?8, size_bytes, expires_at_ms,
  read_at_ms, read_hours, created_at_ms, updated_at_ms
FROM memory_items WHERE tenant_id = ?4 AND key = ?5 AND version = ?6 AND NOT deleted
ON CONFLICT (tenant_id, key) DO NOTHING
"""


# An object that is noted belonged to an item that was removed, and is about to be removed as well. A row under any key
# of the item, even a tombstone or an expired one, is newer than an object that no row knows.
_ADOPT = """
INSERT INTO memory_items
  (tenant_id, key, namespace_key, kind, tier, object_key, version, size_bytes, created_at_ms, updated_at_ms)
SELECT ?1, ?2, ?3, ?4, 'cold', ?5, ?6, ?7, ?6, ?6
WHERE NOT EXISTS (SELECT 1 FROM memory_item_objects WHERE object_key = ?5)
  AND NOT EXISTS (SELECT 1 FROM memory_items WHERE tenant_id = ?1 AND key IN (SELECT value FROM json_each(?8)))
ON CONFLICT (tenant_id, key) DO NOTHING
"""


class LegacySource(Protocol):
    """A tier that can be backfilled."""

    def keyed(self, tenant_id: str) -> Keyed:
        """Return the tier's operations for this tenant; the backfill only reads and copies."""
        ...

    async def list(self, prefix: str, *, cursor: str | None, limit: int) -> KeyPage:
        """Return a page of all tenants' keys with the prefix, in a stable order. Raises: Unavailable."""
        ...


class SqlItems:
    """Copies one tenant's items to canonical keys in D1. An existing row prevents a copy, even a deleted item's.

    A value that contains PII is sealed on its way. sealer: None refuses such values.
    """

    def __init__(self, sql: Sql, tenant_id: str, clock: Clock, sealer: Sealer | None = None) -> None:
        self._sql = sql
        self._tenant_id = tenant_id
        self._clock = clock
        self._sealer = sealer

    async def add(self, key: str, value: str) -> bool:
        """Write the value to a canonical key that has no row; return whether it was written. Raises: as `copy`."""
        where = (self._tenant_id, key, *self._place(key))
        text, key_id = await self._sealed(key, "warm", value)
        return await self._inserted(_ADD, *where, text, self._clock(), utf8_bytes(value), key_id)

    async def copy(self, old_key: str, canonical: str) -> bool:
        """Copy a legacy row to its canonical key, if that has no row; return whether it was copied.

        Raises: InvalidInput (codes `pii_outside_warm`, `value_too_deep`); Misconfigured (code `memory_key_missing`);
            Unavailable.
        """
        where = (canonical, *self._place(canonical), self._tenant_id, old_key)
        for _ in range(TRIES):
            rows = (await self._sql.run(_OF_LEGACY, self._tenant_id, old_key)).rows
            if not rows:
                return False
            row = rows[0]
            value, key_id = row["value"], row["key_id"]
            if value is not None and key_id is None:
                value, key_id = await self._sealed(canonical, row["tier"], value)
            if await self._inserted(_COPY, *where, int(row["version"]), value, key_id):
                return True
            if (await self._sql.run(_HINDERED, self._tenant_id, canonical)).rows:
                return False
        raise Unavailable("the item is written all the time", code="contended")

    async def _sealed(self, key: str, tier: str, value: str) -> tuple[str, str | None]:
        """Return the value as it may be stored, with the id of the key that seals it, None for one without PII."""
        if self._sealer is None or tier != "warm":
            refuse_declared(value, FIELDS if self._sealer is None else self._sealer.fields)
            return value, None
        if not self._sealer.declared(value):
            return value, None
        return await self._sealer.seal(key, value), self._sealer.key_id()

    async def adopt(self, object_key: str, canonical: str, size_bytes: int, keys: Sequence[str]) -> bool:
        """Write a row for a canonical key, pointing to an object in the cold tier; return whether it did.

        keys: all keys of the item; if one of them has a row, nothing is written.
        """
        where = (self._tenant_id, canonical, *self._place(canonical))
        values = (object_key, self._clock(), size_bytes, json.dumps(list(keys)))
        return await self._inserted(_ADOPT, *where, *values)

    async def read(self, key: str) -> str | None:
        """Return "" when a legacy key has a row to copy, or a canonical key has any row; None otherwise."""
        try:
            ItemKey.parse(key)
        except InvalidInput:
            legacy = True
        else:
            legacy = False
        return "" if (await self._sql.run(_EXISTS, self._tenant_id, key, legacy)).rows else None

    async def _inserted(self, sql: str, *values: SqlValue) -> bool:
        try:
            return (await self._sql.run(sql, *values)).changes > 0
        except ConstraintViolated:  # the tenant was erased: its values are about to be removed, and not copied
            return False

    def _place(self, key: str) -> tuple[str, str]:
        item = ItemKey.parse(key)
        if item.namespace.tenant_id != self._tenant_id:
            raise InvalidInput("the key belongs to another tenant", code="invalid_namespace")
        return str(item.namespace), item.data_type


class WarmSource:
    """Implements `LegacySource` on the warm tier's rows. sealer: as in `SqlItems`."""

    def __init__(self, sql: Sql, clock: Clock, sealer: Sealer | None = None) -> None:
        self._sql = sql
        self._clock = clock
        self._sealer = sealer

    def keyed(self, tenant_id: str) -> Keyed:
        """See the protocol."""
        items = SqlItems(self._sql, tenant_id, self._clock, self._sealer)

        async def copy(old_key: str, canonical: str, value: str) -> bool:  # noqa: ARG001 -- the row is copied
            return await items.copy(old_key, canonical)

        return Keyed(items.read, _not_here, _nor_this, copy)

    async def list(self, prefix: str, *, cursor: str | None, limit: int) -> KeyPage:
        """See the protocol. The order is that of the keys' bytes, and the cursor is the last key."""
        rows = (await self._sql.run(_LIST, prefix, prefix + "\U0010ffff", cursor or "", limit)).rows
        # Of several databases, each gives its first ones; a tenant that moves may have a key on two.
        keys = sorted({str(row["key"]) for row in rows})[:limit]
        return KeyPage(keys, keys[-1] if len(keys) == limit else None)


class ColdSource:
    """Implements `LegacySource` on an object store, and adds values. Equal keys of different tenants would collide there."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    def keyed(self, tenant_id: str) -> Keyed:  # noqa: ARG002 -- the key names the tenant
        """See the protocol."""

        async def copy(old_key: str, canonical: str, value: str) -> bool:  # noqa: ARG001
            refuse_declared(value, FIELDS)
            return await self.add(canonical, value)

        return Keyed(self.read, _not_here, _nor_this, copy)

    async def read(self, key: str) -> str | None:
        """Return the object's text. Raises: InvalidInput (code `unsupported_value`) if it is not text; Unavailable."""
        content = await self._objects.get(key)
        try:
            return None if content is None else content.decode()
        except UnicodeDecodeError as error:
            raise InvalidInput("the object is not text", code="unsupported_value") from error

    async def add(self, key: str, value: str) -> bool:
        """Write the object if the key has none; return whether it was written."""
        return await self._objects.add(key, value.encode(), content_type="text/plain; charset=utf-8")

    async def list(self, prefix: str, *, cursor: str | None, limit: int) -> KeyPage:
        """See the protocol."""
        return await self._objects.list(prefix, cursor=cursor, limit=limit)


class AdoptingSource:
    """Implements `LegacySource` on objects under legacy keys, for a warm tier that is the cold one's catalogue.

    An object is not copied: the canonical key gets a row that points to it. Until then no read finds the object. One that
    contains PII is refused: it cannot be sealed in the cold tier. One whose data type is never in the cold tier is skipped:
    such an item expires, and the object cannot tell when it should have.
    """

    def __init__(
        self,
        sql: Sql,
        objects: Objects,
        clock: Clock,
        namespacing: Namespacing,
        matrix: Matrix = MATRIX,
        pii_fields: Sequence[str] = FIELDS,
    ) -> None:
        self._sql = sql
        self._namespacing = namespacing
        self._matrix = matrix
        self._pii_fields = pii_fields
        self._objects = ColdSource(objects)
        self._clock = clock

    def keyed(self, tenant_id: str) -> Keyed:
        """See the protocol."""
        items = SqlItems(self._sql, tenant_id, self._clock)

        async def read(key: str) -> str | None:
            if await items.read(key) is not None:
                return ""
            return await self._objects.read(key) if self._may_be_cold(key) else None

        async def copy(old_key: str, canonical: str, value: str) -> bool:
            refuse_declared(value, self._pii_fields)
            keys = self._namespacing.keys_of(tenant_id, canonical)
            return await items.adopt(old_key, canonical, utf8_bytes(value), keys)

        return Keyed(read, _not_here, _nor_this, copy)

    async def list(self, prefix: str, *, cursor: str | None, limit: int) -> KeyPage:
        """See the protocol."""
        return await self._objects.list(prefix, cursor=cursor, limit=limit)

    def _may_be_cold(self, key: str) -> bool:
        item = self._namespacing.item_of(key)
        placement = None if item is None else self._matrix.get(item.data_type)
        return placement is None or bool(placement.prefix)


async def _not_here(key: str, value: str) -> None:
    raise NotImplementedError("a backfill does not overwrite")


async def _nor_this(key: str) -> None:
    raise NotImplementedError("a backfill does not remove")
