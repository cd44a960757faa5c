"""The warm tier's catalogue over canonical and legacy keys: what `MemoryClient` works with on D1."""

from __future__ import annotations

from functools import partial

from retain.items.entry import Buried, Draft, ItemEntry
from retain.items.rekeying.compatible import Compatible, ReadOutcome, Watch
from retain.items.rekeying.flags import Namespacing
from retain.items.rekeying.sources import SqlItems
from retain.items.tiers.protocols import ItemCatalogue
from retain.ports import Clock


class LayeredCatalogue:
    """Implements `ItemCatalogue` over canonical and legacy keys. Takes canonical keys.

    The first entry in the order of reads decides, even if it says that the item was deleted or has expired.
    """

    def __init__(
        self, inner: ItemCatalogue, copies: SqlItems, namespacing: Namespacing, watch: Watch, clock: Clock
    ) -> None:
        self._inner = inner
        self._copies = copies
        self._compatible = Compatible("warm", namespacing, watch)
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
        """Return the item's entry; see `Compatible.get` for the order, and for what is copied."""
        watch, (canonical, legacy) = self._compatible.watch, self._compatible.keys(key)
        entry = await self._inner.find(canonical)
        if entry is not None:
            return self._counted(entry)
        for old_key in self._compatible.namespacing.read_keys(legacy):
            entry = await self._inner.find(old_key)
            if entry is None:
                continue
            if not entry.shown(self._clock()):
                break  # it hides what is older, as under the canonical key
            if not await self._compatible.copied(partial(self._copies.copy, old_key, canonical)):
                newer = await self._inner.find(canonical)
                if newer is None:  # the legacy item was removed before it could be copied
                    break
                return self._counted(newer)
            watch.found("warm", ReadOutcome.LEGACY)
            return entry
        await self._compatible.missed(self._shown, legacy)
        return None

    async def version(self, key: str) -> int | None:
        """See the protocol. Counts no read."""
        canonical, legacy = self._compatible.keys(key)
        entry = await self._inner.find(canonical)
        for old_key in self._compatible.namespacing.read_keys(legacy) if entry is None else ():
            entry = await self._inner.find(old_key)
            if entry is not None:
                break
        return None if entry is None or entry.deleted else entry.version

    async def write(self, key: str, draft: Draft) -> int:
        """See the protocol, and `Compatible.put` for which keys are written."""
        canonical, legacy = self._compatible.keys(key)
        if self._compatible.namespacing.write_canonical or not legacy:
            return await self._inner.write(canonical, draft)
        version = await self._inner.write(legacy[0], draft)
        if await self._inner.find(canonical) is None:
            return version
        return await self._inner.write(canonical, draft)

    async def bury(self, key: str) -> Buried:
        """Delete the item under all its keys.

        A legacy item is first copied, so that its tombstone is under the canonical key: from then on it is gone, and no
        copy restores it. Then the legacy keys are removed, in reverse of the order in which they are read. While legacy
        keys are still written, and the canonical key has no entry, nothing is copied: nobody else copies then either.
        """
        canonical, legacy = self._compatible.keys(key)
        if self._compatible.namespacing.write_canonical:
            for old_key in legacy:
                if await self._copies.copy(old_key, canonical):
                    break
        buried = await self._inner.bury(canonical)
        for old_key in reversed(legacy):
            older = await self._inner.bury(old_key)
            if not buried.found:
                buried = older
        return buried

    async def copy_in(self, key: str, version: int, value: str) -> bool:
        """See the protocol."""
        return await self._inner.copy_in(key, version, value)

    async def new_object(self, key: str, prefix: str) -> str:
        """See the protocol."""
        return await self._inner.new_object(key, prefix)

    async def forget_object(self, object_key: str) -> None:
        """See the protocol."""
        await self._inner.forget_object(object_key)

    async def note_read(self, key: str, version: int) -> None:
        """See the protocol."""
        await self._inner.note_read(key, version)

    async def _shown(self, key: str) -> ItemEntry | None:
        entry = await self._inner.find(key)
        return entry if entry is not None and entry.shown(self._clock()) else None

    def _counted(self, entry: ItemEntry) -> ItemEntry:
        shown = entry.shown(self._clock())
        self._compatible.watch.found("warm", ReadOutcome.CANONICAL if shown else ReadOutcome.ABSENT)
        return entry
