"""The items of a tenant as they are listed: what the catalogue has of each, in the order of their keys, without values."""

from __future__ import annotations

import re
from dataclasses import dataclass

from retain.errors import InvalidInput
from retain.items.entry import Tier
from retain.json_text import Json
from retain.limits.storage import MAX_KV_KEY_BYTES
from retain.namespace import ItemKey
from retain.ports import Row, Sql, SqlValue

_COLUMNS = """
key, tier, version, user_id, size_bytes, key_id, expires_at_ms, created_at_ms, updated_at_ms, deleted, kind
"""
_CURSOR = re.compile(rf"item\.([A-Za-z0-9._@+:/|#,;=~-]{{1,{MAX_KV_KEY_BYTES}}})")
"""With the key of the last item, which may be a legacy one."""


@dataclass(frozen=True, slots=True)
class WantedItems:
    """Which items to list. None: any.

    A session needs its service, and a kind its session: keys begin with them, in this order.
    """

    service: str | None = None
    session: str | None = None
    kind: str | None = None
    user_id: str | None = None

    def __post_init__(self) -> None:
        """Raises: InvalidInput (code `invalid_query`)."""
        if (self.session is not None and self.service is None) or (self.kind is not None and self.session is None):
            raise InvalidInput("session needs a service, and kind a session", code="invalid_query")

    def beginning(self, tenant_id: str) -> str:
        """Return with what the keys of these items begin."""
        if self.service is None:
            return ""
        parts = [self.service, tenant_id, self.session, self.kind]
        return "".join(f"{part}:" for part in parts if part is not None)


@dataclass(frozen=True, slots=True)
class ListedItem:
    """What the catalogue has of an item. sealed: whether it has PII, which is sealed. tier: which one decides."""

    service: str
    session: str
    kind: str
    id: str
    key: str
    tier: Tier
    version: int
    user_id: str | None
    size_bytes: int
    sealed: bool
    expires_at_ms: int | None
    created_at_ms: int
    updated_at_ms: int

    def to_json(self) -> dict[str, Json]:
        """Return the item as shown."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class ItemPage:
    """Items by their keys. cursor: of the next page, None on the last."""

    items: list[ListedItem]
    cursor: str | None


async def list_items(
    sql: Sql, tenant_id: str, wanted: WantedItems, *, now_ms: int, limit: int, cursor: str | None
) -> ItemPage:
    """Return a page of items. It reads as many rows as it has entries, and one.

    Deleted and expired ones that the daily work has not removed yet are left out, so a page may have fewer items than were
    asked for. So are values under legacy keys, until the backfill has written them under canonical ones.
    Raises: InvalidInput (code `invalid_cursor`); Unavailable.
    """
    position = None if cursor is None else _CURSOR.fullmatch(cursor)
    if cursor is not None and position is None:
        raise InvalidInput("the cursor is not valid", code="invalid_cursor")
    beginning = wanted.beginning(tenant_id)
    conditions, values = ["tenant_id = ?"], list[SqlValue]([tenant_id])
    if wanted.user_id is not None:
        conditions.append("user_id = ?")
        values.append(wanted.user_id)
    if position is not None:
        conditions.append("key > ?")
        values.append(position[1])
    if beginning:
        conditions.append("key >= ? AND key < ?")
        values += [beginning, f"{beginning[:-1]};"]  # the character after the delimiter
    rows = (
        await sql.run(
            f"SELECT {_COLUMNS} FROM memory_items WHERE {' AND '.join(conditions)} ORDER BY key LIMIT ?",
            *values,
            limit + 1,
        )
    ).rows
    items = [item for row in rows[:limit] if (item := _listed(row, tenant_id, now_ms)) is not None]
    return ItemPage(items, f"item.{rows[limit - 1]['key']}" if len(rows) > limit else None)


def _listed(row: Row, tenant_id: str, now_ms: int) -> ListedItem | None:
    """Return an item, None for a row that is not shown."""
    expires_at_ms = row["expires_at_ms"]
    if row["deleted"] or (expires_at_ms is not None and expires_at_ms <= now_ms):
        return None
    try:
        key = ItemKey.parse(row["key"])
    except InvalidInput:  # a legacy key
        return None
    if key.namespace.tenant_id != tenant_id or key.data_type != row["kind"]:
        return None
    return ListedItem(
        key.namespace.service,
        key.namespace.session_id,
        key.data_type,
        key.entity_id,
        row["key"],
        row["tier"],
        row["version"],
        row["user_id"],
        row["size_bytes"],
        row["key_id"] is not None,
        expires_at_ms,
        row["created_at_ms"],
        row["updated_at_ms"],
    )
