"""Lines of items: the value of an item, from whichever tier has it. A sealed value stays sealed.

An import puts an item through tiered memory, so that it is placed, and sealed with the present key for its own name. An item
that the tenant has stays as it is.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from retain.errors import InvalidInput, Misconfigured
from retain.identifiers import check_user_id
from retain.items.client import MemoryClient
from retain.items.entry import Held
from retain.items.placement import MAX_TTL_S, MIN_TTL_S
from retain.items.tiers.stores import ObjectsCold
from retain.lifecycle.stores import Stores
from retain.lifecycle.transfer.shapes import DatedLineShape, NothingShape
from retain.limits.pages import cut, sized
from retain.namespace import ItemKey, Namespace
from retain.ports import Row
from retain.sealing.pii import Sealer

ITEMS = 25
"""Most items on a page: each value may take a call of KV or R2."""

Items = Callable[[Namespace], MemoryClient]
"""Returns the tiered memory of a namespace."""

_PAGE = sized(
    "SELECT * FROM memory_items WHERE tenant_id = ? AND key > ? AND NOT deleted AND namespace_key <> ''"
    " ORDER BY key LIMIT ?",
    "key",
    "value",
)
_PRESENT = """
SELECT key FROM memory_items WHERE tenant_id = ? AND NOT deleted AND key IN (SELECT value FROM json_each(?))
"""


class ItemShape(NothingShape):
    """An item. sealed: whether its value is sealed for its key."""

    key: str
    value: str
    sealed: bool
    user_id: str | None
    expires_at_ms: int | None


class ItemLineShape(DatedLineShape):
    """A line of kind `item`."""

    kind: Literal["item"]
    item: ItemShape


@dataclass(frozen=True, slots=True)
class ItemLine:
    """An item. number: the line's, from 1. sealed_for: the key for which the value is sealed; None for plain text."""

    number: int
    owner: str | None
    at_ms: int
    key: ItemKey
    value: str
    sealed_for: str | None
    expires_at_ms: int | None

    @property
    def sealed_tenant(self) -> str | None:
        """The tenant for which the value is sealed; None for plain text."""
        return None if self.sealed_for is None else ItemKey.parse(self.sealed_for).namespace.tenant_id


async def item_page(
    stores: Stores, tenant_id: str, after: str, limit_bytes: int
) -> tuple[list[Mapping[str, object]], str | None]:
    """Return the content of a page of lines, and the key after which the next page begins, None at the end.

    An item whose value no tier has any more is left out, as are values under keys that are not canonical.
    """
    rows, more = cut((await stores.sql.run(_PAGE, tenant_id, after, ITEMS + 1)).rows, ITEMS)
    lines: list[Mapping[str, object]] = []
    size = 0
    for number, row in enumerate(rows):
        value = await _value(stores, row)
        size += len(value or "")
        if size > limit_bytes and number:
            return lines, str(rows[number - 1]["key"])
        if value is not None:
            lines.append(_content(row, value))
    return lines, str(rows[-1]["key"]) if more else None


async def _value(stores: Stores, row: Row) -> str | None:
    """Return the value as it is stored: sealed, if it is."""
    if row["value"] is not None:
        return str(row["value"])
    if row["tier"] == "cold" and row["object_key"] is not None:
        return await ObjectsCold(stores.objects).download_text(row["object_key"])
    held = await stores.kv.get(row["key"])
    return None if held is None else Held.parse(held).value


def _content(row: Row, value: str) -> Mapping[str, object]:
    item = {
        "key": row["key"],
        "value": value,
        "sealed": row["key_id"] is not None,
        "user_id": row["user_id"],
        "expires_at_ms": row["expires_at_ms"],
    }
    return {"owner": row["user_id"], "at_ms": row["updated_at_ms"], "item": item}


def read_item_line(number: int, value: Mapping[str, object], tenant_id: str) -> ItemLine:
    """Return a line of kind `item`, checked. Raises: InvalidInput; ValidationError."""
    read = ItemLineShape.model_validate(value)
    item, key = read.item, ItemKey.parse(read.item.key)
    if key.namespace.tenant_id != read.tenant:
        raise InvalidInput("the item belongs to another tenant", code="invalid_line")
    if item.user_id != read.owner:
        raise InvalidInput("the item's owner is its user", code="invalid_line")
    owner = None if item.user_id is None else check_user_id(item.user_id)
    here = Namespace(key.namespace.service, tenant_id, key.namespace.session_id)
    own = ItemKey(here, key.data_type, key.entity_id)
    return ItemLine(number, owner, read.at_ms, own, item.value, item.key if item.sealed else None, item.expires_at_ms)


async def put_items(stores: Stores, items: Items, tenant_id: str, lines: Sequence[ItemLine]) -> int:
    """Put the items that the tenant does not have; return how many. Idempotent.

    One that has expired, or does within a minute, is left out. Raises: as `MemoryClient.put`, and Misconfigured (code
    `item_unreadable`) for a value that no key of this deployment opens.
    """
    keys = json.dumps([str(line.key) for line in lines])
    present = {row["key"] for row in (await stores.sql.run(_PRESENT, tenant_id, keys)).rows}
    put = 0
    for line in lines:
        ttl_s = None if line.expires_at_ms is None else (line.expires_at_ms - stores.clock()) // 1000
        if str(line.key) in present or (ttl_s is not None and ttl_s < MIN_TTL_S):
            continue
        value = line.value if line.sealed_for is None else await opened(stores.sealer, line.sealed_for, line.value)
        client = items(line.key.namespace)
        lasting = None if ttl_s is None else min(ttl_s, MAX_TTL_S)
        await client.put(line.key.data_type, line.key.entity_id, value, user_id=line.owner, ttl_s=lasting)
        put += 1
    return put


async def opened(sealer: Sealer | None, sealed_for: str, value: str) -> str:
    """Return a sealed value's text. sealed_for: the key that it was sealed for. Raises: Misconfigured."""
    if sealer is None:
        raise Misconfigured("an item is sealed, and there is no key to open it", code="item_unreadable")
    return await sealer.open(sealed_for, value)
