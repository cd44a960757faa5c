"""Items under canonical keys, some of them still under legacy keys: what is read, written and removed, in which order.

Every read asks the canonical key first, and a canonical value is the answer: it is never stale, since every write updates
it once it exists. Deleting leaves a tombstone (`REMOVED`) that a copied legacy value cannot overwrite. A legacy value is
copied only by an atomic operation that never replaces anything.
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
"""The tombstone: the value under the canonical key of a removed item that may still be under a legacy key."""

PROBE_EVERY = 10
"""With canonical keys alone, one in this many misses is looked up under the legacy keys, only to count what it missed."""

_log = logging.getLogger(__name__)


class ReadOutcome(Enum):
    """Where a read found its value."""

    CANONICAL = "canonical"
    """A value under the canonical key."""
    LEGACY = "legacy"
    """A value under a legacy key."""
    ABSENT = "absent"
    """No value, or a removed one."""
    UNREAD = "unread"
    """No value under the canonical key, but one under a legacy key that the flags exclude from reads."""


@dataclass(frozen=True, slots=True)
class Keyed:
    """The operations of a store by key, whatever its tier calls them.

    copy: takes a legacy key, a canonical key and the value, and copies it atomically if the canonical key has nothing;
    returns whether it did. None when the store has no conditional write.
    """

    read: Callable[[str], Awaitable[str | None]]
    write: Callable[[str, str], Awaitable[None]]
    remove: Callable[[str], Awaitable[None]]
    copy: Callable[[str, str, str], Awaitable[bool]] | None


class Watch(Protocol):
    """Counts reads and decides whether copies are allowed. Neither may cost a call to a store for each read."""

    def found(self, tier: str, where: ReadOutcome) -> None:
        """Count a read."""
        ...

    def repaired(self, tier: str, done: bool) -> None:
        """Count a copy to the canonical key: made, or failed."""
        ...

    def probes(self, tier: str) -> bool:
        """Return whether to look up this miss of the tier under the legacy keys: one in `PROBE_EVERY`."""
        ...

    async def may_repair(self) -> bool:
        """Return whether legacy keys are no longer written, so that their values may be copied."""
        ...


class Repair(Enum):
    """The outcome of an attempt to copy a legacy value to its canonical key."""

    COPIED = "copied"
    PRESENT = "present"
    GONE = "gone"


class Compatible:
    """Reads, writes and removes items by canonical key, in a store that may have them under legacy keys."""

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
        """Write the item's value under the keys that the flags select.

        While legacy keys are written, an existing canonical value is overwritten as well, afterwards, since reads prefer
        it. A failure between the two leaves the old value readable, and the write unacknowledged.
        Raises: InvalidInput (code `reserved_value`, and as `get`); Unavailable.
        """
        canonical, legacy = self.keys(key)
        if value == REMOVED:
            raise InvalidInput("this value is reserved: it marks removed items", code="reserved_value")
        if self.namespacing.write_canonical or not legacy:
            await store.write(canonical, value)
            return
        await store.write(legacy[0], value)
        if await store.read(canonical) is not None:
            await store.write(canonical, value)

    async def delete(self, store: Keyed, key: str) -> None:
        """Remove the item under all its keys. Removing an absent one is not an error.

        The canonical key gets the tombstone first: from then on the item is gone for every reader, and no copy restores
        it. Then the legacy keys are removed, in reverse of the order in which they are read. A failure in between leaves
        the item either gone or with its newest value; repeat the call. No tombstone is written where nobody copies: while
        legacy keys are written and the canonical key has nothing, and in a store without a conditional write, where the
        canonical key is removed last. Raises: as `get`.
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
        """Copy the item's legacy value to its canonical key, if that has none. Idempotent; counts no read.

        A store that cannot copy has nothing to repair. Raises: Unavailable; LimitExceeded for a value that the store does
        not accept.
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
        """Return the canonical key, which in the cold tier follows a prefix that ends in "/", and the legacy keys."""
        return key, self.namespacing.legacy_keys(ItemKey.parse(key.rpartition("/")[2]))

    def _answer(self, value: str | None) -> str | None:
        """Return the item's value, given the canonical key's. None, after a copy found the key taken, means expired."""
        if value is None or value == REMOVED:
            self.watch.found(self._tier, ReadOutcome.ABSENT)
            return None
        self.watch.found(self._tier, ReadOutcome.CANONICAL)
        return value

    async def _legacy_hit(self, store: Keyed, old_key: str, canonical: str, value: str) -> str | None:
        """Copy the value if that is allowed; return the item's value, which another call may have changed."""
        if store.copy is not None and not await self.copied(partial(store.copy, old_key, canonical, value)):
            return self._answer(await store.read(canonical))
        self.watch.found(self._tier, ReadOutcome.LEGACY)
        return value

    async def copied(self, copy: Callable[[], Awaitable[bool]]) -> bool:
        """Copy a legacy value if that is allowed and possible; return False only if the canonical key was already taken."""
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
        """Count a miss; without compatible reads, check for some misses whether a legacy key could have answered them.

        read: returns None for a key without a value.
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
                _log.warning(
                    "a miss was not looked up under legacy keys", extra={"tier": self._tier, "code": error.code}
                )
        self.watch.found(self._tier, where)
