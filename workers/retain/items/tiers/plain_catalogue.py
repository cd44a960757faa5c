"""A catalogue over a plain `WarmMemory`: an item's entry and its value are stored as one text."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import Any

from retain.errors import InvalidInput
from retain.items.entry import Buried, Draft, ItemEntry
from retain.items.tiers.protocols import WarmMemory
from retain.json_text import read_json
from retain.ports import Clock

_MARK = "retain1 "


class PlainCatalogue:
    """Implements `ItemCatalogue`. Versions are read and then written: an item must not have two writers at a time.

    It cannot list, so it cannot find items by user (items with a user are refused), and it notes no objects: each item has
    one object, which is overwritten.
    """

    def __init__(self, warm: WarmMemory, clock: Clock) -> None:
        self._warm = warm
        self._clock = clock

    async def read(self, key: str) -> str | None:
        """See the protocol."""
        entry = await self.find(key)
        return entry.value if entry is not None and entry.shown(self._clock()) else None

    async def upsert(self, key: str, value: str) -> None:
        """See the protocol."""
        await self.write(key, Draft("warm", value, len(value.encode())))

    async def delete(self, key: str) -> None:
        """See the protocol."""
        await self.bury(key)

    async def find(self, key: str) -> ItemEntry | None:
        """See the protocol. A value that another program wrote has version 0."""
        text = await self._warm.read(key)
        if text is None:
            return None
        if not text.startswith(_MARK):
            return ItemEntry(0, "warm", text)
        head, _, value = text.removeprefix(_MARK).partition("\n")
        fields: Any = read_json(head)
        return ItemEntry(**{**fields, "value": value if fields["value"] else None})

    async def version(self, key: str) -> int | None:
        """See the protocol."""
        entry = await self.find(key)
        return None if entry is None or entry.deleted else entry.version

    async def write(self, key: str, draft: Draft) -> int:
        """See the protocol. Raises also: InvalidInput (code `user_not_findable`) for an item with a user."""
        if draft.user_id is not None:
            raise InvalidInput(
                "this warm tier cannot find a user's items to erase them: use an ItemCatalogue",
                code="user_not_findable",
            )
        before, now = await self.find(key), self._clock()
        version = now if before is None else max(now, before.version + 1)
        await self._put(key, ItemEntry(version=version, updated_at_ms=now, **asdict(draft)))
        return version

    async def bury(self, key: str) -> Buried:
        """See the protocol. The tombstone stays, so that later versions are higher."""
        before, now = await self.find(key), self._clock()
        if before is None or before.deleted:
            return Buried(now if before is None else before.version, found=False)
        version = max(now, before.version + 1)
        await self._put(key, ItemEntry(version, before.tier, None, deleted=True, updated_at_ms=now))
        return Buried(version, found=True, object_key=before.object_key)

    async def copy_in(self, key: str, version: int, value: str) -> bool:
        """See the protocol."""
        entry = await self.find(key)
        if entry is None or entry.version != version or entry.deleted:
            return False
        await self._put(key, replace(entry, value=value))
        return True

    async def new_object(self, key: str, prefix: str) -> str:
        """See the protocol."""
        return f"{prefix}{key}"

    async def forget_object(self, object_key: str) -> None:
        """Do nothing: nothing was noted."""

    async def note_read(self, key: str, version: int) -> None:
        """Do nothing: demotion needs a catalogue that can be listed."""

    async def _put(self, key: str, entry: ItemEntry) -> None:
        head = json.dumps({**asdict(entry), "value": entry.value is not None}, separators=(",", ":"))
        await self._warm.upsert(key, f"{_MARK}{head}\n{entry.value or ''}")
