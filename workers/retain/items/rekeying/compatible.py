"""Items under canonical keys, where some still lie under legacy ones: what is read, written and removed, in which order.

Every read looks at the canonical key first, and a canonical value is the answer. So the canonical value is never stale.
Deleting leaves a tombstone (`REMOVED`) that a copied legacy value cannot overwrite. A legacy value is copied only by
`add`, which is atomic: it never replaces anything.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Protocol

from retain.errors import InvalidInput, RetainError
from retain.items.rekeying.flags import Namespacing
from retain.namespace import ItemKey

REMOVED = "\x1bretain:removed"
"""Stands under the canonical key of an item that was removed and may still lie under a legacy one."""

PROBE_EVERY = 10
"""With canonical keys alone, one in so many misses is looked for under the legacy keys: not to answer it, to count it."""

_log = logging.getLogger(__name__)


class ReadOutcome(Enum):
    """Where a read ended."""

    CANONICAL = "canonical"
    """A value under the canonical key."""
    LEGACY = "legacy"
    """A value under a legacy key."""
    ABSENT = "absent"
    """No value, or one that was removed."""
    UNREAD = "unread"
    """No value under the canonical key, and one under a legacy key that the flags do not let it read."""


@dataclass(frozen=True, slots=True)
class Keyed:
    """The keys of a store, whatever its tier calls them.

    copy: takes a legacy key, a canonical one and the value, and copies it if nothing stands under the canonical one, in
    one atomic step; returns whether it did. None when the store cannot write only what is absent.
    """

    read: Callable[[str], Awaitable[str | None]]
    write: Callable[[str, str], Awaitable[None]]
    remove: Callable[[str], Awaitable[None]]
    copy: Callable[[str, str, str], Awaitable[bool]] | None


class Watch(Protocol):
    """What hears of reads and says whether copies are allowed. Neither may cost a call to a store for each read."""

    def found(self, tier: str, where: ReadOutcome) -> None:
        """Count a read."""
        ...

    def repaired(self, tier: str, done: bool) -> None:
        """Count a copy under the canonical key: made, or failed."""
        ...

    def probes(self, tier: str) -> bool:
        """Tell whether this miss of the tier is one of those that are looked for: one in `PROBE_EVERY`."""
        ...

    async def may_repair(self) -> bool:
        """Tell whether nothing writes to legacy keys any more, so that their values may be copied."""
        ...


class Repair(Enum):
    """What became of the wish to copy a legacy value under its canonical key."""

    COPIED = "copied"
    PRESENT = "present"
    GONE = "gone"


class Compatible:
    """Reads, writes and removes items by their canonical keys, in a store that may hold them under legacy ones."""

    def __init__(self, tier: str, namespacing: Namespacing, watch: Watch) -> None:
        self._tier = tier
        self.namespacing = namespacing
        self.watch = watch

    async def get(self, store: Keyed, key: str) -> str | None:
        """Return the item's value, or None.

        A copy that fails is logged and does not fail the read. Raises: InvalidInput (codes `invalid_namespace`,
            `invalid_tenant`) for a key that is not canonical; Unavailable.
        """
        canonical, legacy = self.keys(key)
        value = await store.read(canonical)
        if value is not None:
            return self._answer(value)
        for old_key in self.namespacing.read_keys(legacy):
            value = await store.read(old_key)
            if value is not None:
                return await self._legacy_hit(store, old_key, canonical, value)
        await self.missed(store.read, legacy)
        return None

    async def put(self, store: Keyed, key: str, value: str) -> None:
        """Write the item's value where the flags say.

        While legacy keys are written, a canonical value that is there already is written as well, after it: reads go by
        the canonical one. A failure between the two leaves the old value readable, and the write unacknowledged.
        Raises: InvalidInput (code `reserved_value`, and as `get`); Unavailable.
        """
        canonical, legacy = self.keys(key)
        if value == REMOVED:
            raise InvalidInput("this value marks removed items", code="reserved_value")
        if self.namespacing.write_canonical or not legacy:
            await store.write(canonical, value)
            return
        await store.write(legacy[0], value)
        if await store.read(canonical) is not None:
            await store.write(canonical, value)

    async def delete(self, store: Keyed, key: str) -> None:
        """Remove the item under all its keys. Removing an absent one is no error.

        First the canonical key is marked: from there on the item is gone for every reader, and cannot come back by a copy.
        Then the legacy keys go, the one that is read first last. A failure in between leaves the item gone, or whole
        with its newest value; repeat the call. There is no mark where nobody copies: while legacy keys are written and
        nothing stands under the canonical key, and in a store that cannot add; there the canonical key goes last.
        Raises: as `get`.
        """
        canonical, legacy = self.keys(key)
        if not legacy:
            await store.remove(canonical)
            return
        adds = store.copy is not None
        if adds and (self.namespacing.write_canonical or await store.read(canonical) is not None):
            await store.write(canonical, REMOVED)
        for old_key in reversed(legacy):
            await store.remove(old_key)
        if not adds:
            await store.remove(canonical)

    async def repair(self, store: Keyed, item: ItemKey) -> Repair:
        """Copy the item's legacy value under its canonical key, if it has none there. Idempotent; counts no read.

        A store that cannot copy has nothing to repair. Raises: Unavailable; LimitExceeded for a value that the store does
        not take.
        """
        canonical, copy = str(item), store.copy
        if copy is None:
            return Repair.GONE
        if await store.read(canonical) is not None:
            return Repair.PRESENT
        for old_key in self.namespacing.legacy_keys(item):
            value = await store.read(old_key)
            if value is not None:
                return Repair.COPIED if await copy(old_key, canonical, value) else Repair.PRESENT
        return Repair.GONE

    def keys(self, key: str) -> tuple[str, Sequence[str]]:
        """Return the canonical key, which in the cold tier stands behind a prefix that ends in "/", and the legacy ones."""
        return key, self.namespacing.legacy_keys(ItemKey.parse(key.rpartition("/")[2]))

    def _answer(self, value: str | None) -> str | None:
        """Return what the canonical key says. Where nothing can be added and nothing is shown, the item has expired."""
        if value is None or value == REMOVED:
            self.watch.found(self._tier, ReadOutcome.ABSENT)
            return None
        self.watch.found(self._tier, ReadOutcome.CANONICAL)
        return value

    async def _legacy_hit(self, store: Keyed, old_key: str, canonical: str, value: str) -> str | None:
        """Copy the value if that is allowed; return the item's value, which may have been written or removed meanwhile."""
        if store.copy is not None and not await self.copied(partial(store.copy, old_key, canonical, value)):
            return self._answer(await store.read(canonical))
        self.watch.found(self._tier, ReadOutcome.LEGACY)
        return value

    async def copied(self, copy: Callable[[], Awaitable[bool]]) -> bool:
        """Copy a legacy value if that is allowed and possible; return False only if something stood there already."""
        try:
            if not (self.namespacing.repairs and await self.watch.may_repair()):
                return True
            done = await copy()
        except RetainError as error:
            _log.warning("a legacy value was not copied", extra={"tier": self._tier, "code": error.code})
            self.watch.repaired(self._tier, False)
            return True
        if done:
            self.watch.repaired(self._tier, True)
        return done

    async def missed(self, read: Callable[[str], Awaitable[object]], legacy: Sequence[str]) -> None:
        """Count a miss; without compatible reads, look at some whether a legacy key could have answered it.

        read: gives None for a key without a value.
        """
        where = ReadOutcome.ABSENT
        if (
            legacy
            and self.namespacing.write_canonical
            and not self.namespacing.compat_read
            and self.watch.probes(self._tier)
        ):
            try:
                for old_key in legacy:
                    if await read(old_key) is not None:
                        where = ReadOutcome.UNREAD
                        break
            except RetainError as error:
                _log.warning("a miss was not looked for", extra={"tier": self._tier, "code": error.code})
        self.watch.found(self._tier, where)
