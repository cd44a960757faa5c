"""Copies in the hot tier.

A copy may vanish at any time and must not be served long after its version was superseded.
"""

from __future__ import annotations

import logging

from retain.errors import InvalidInput, RetainError
from retain.items.entry import Held
from retain.items.placement import MIN_TTL_S
from retain.items.tiers.protocols import HotMemory
from retain.items.tiers.tiers import Tiers
from retain.ports import Clock

MAX_HOT_BYTES = 1_000_000
"""Largest value of the hot tier. A larger one is not copied there."""

_log = logging.getLogger(__name__)


class HotCopies:
    """Reads and writes hot values. Without a hot tier it leaves no copies."""

    def __init__(self, tiers: Tiers, clock: Clock) -> None:
        self._hot = tiers.hot
        self._warm = tiers.warm
        self._clock = clock

    async def read(self, key: str, *, required: bool) -> Held | None:
        """Return the hot value. required: no other tier can answer, so a failure is raised; else it is a miss."""
        try:
            text = await self._deciding().get(key)
        except RetainError as error:
            if required:
                raise
            _log.warning("the hot tier failed; asking the next tier", extra={"code": error.code})
            return None
        return None if text is None else Held.parse(text)

    async def write(self, key: str, held: Held) -> None:
        """Write a value for which the hot tier is authoritative. Raises: as the tier."""
        ttl = self._ttl(held, None)
        await self._deciding().set(key, str(held), ttl=None if ttl is None else max(ttl, MIN_TTL_S))

    async def remove(self, key: str) -> None:
        """Remove a value for which the hot tier is authoritative. Raises: as the tier."""
        await self._deciding().delete(key)

    async def leave(self, key: str, held: Held, ttl_s: int | None) -> bool:
        """Leave a copy, and remove it again if a newer version was written meanwhile; return whether it stayed.

        Never fails: without the copy, reads ask the warm tier.
        """
        if self._hot is None:
            return False
        ttl = self._ttl(held, ttl_s)
        if (ttl is not None and ttl < MIN_TTL_S) or len(held.value.encode()) > MAX_HOT_BYTES:
            await self.drop(key)
            return False
        try:
            await self._hot.set(key, str(held), ttl=ttl)
            if await self._warm.version(key) == held.version:
                return True
        except RetainError as error:
            _log.warning("leaving a hot copy failed", extra={"code": error.code})
        await self.drop(key)
        return False

    async def drop(self, key: str) -> None:
        """Remove a copy. Never fails: readers recognise a copy that stays by its version, and it expires."""
        if self._hot is None:
            return
        try:
            await self._hot.delete(key)
        except RetainError as error:
            _log.warning("removing a hot copy failed", extra={"code": error.code})

    def _deciding(self) -> HotMemory:
        if self._hot is None:
            raise InvalidInput("the hot tier is missing", code="tier_missing")
        return self._hot

    def _ttl(self, held: Held, most_s: int | None) -> int | None:
        """Return the seconds until the value expires, `most_s` at most."""
        if held.expires_at_ms is None:
            return most_s
        left = -(-(held.expires_at_ms - self._clock()) // 1000)
        return left if most_s is None else min(left, most_s)
