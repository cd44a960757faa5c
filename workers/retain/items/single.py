"""A memory of one tier, hot or cold, without a warm one that numbers versions. For one writer of each item at a time."""

from __future__ import annotations

from retain.errors import InvalidInput, Unavailable
from retain.items.entry import Held
from retain.items.placement import ItemPlacement
from retain.items.rules import Seen, Session
from retain.items.tiers.tiers import Tiers
from retain.ports import Clock


class SingleTier:
    """Items of a hot tier carry versions by the clock; those of a cold one have none: reads there are never stale."""

    def __init__(self, tiers: Tiers, clock: Clock, session: Session) -> None:
        self._hot = tiers.hot
        self._cold = tiers.cold
        self._clock = clock
        self._session = session

    async def put(
        self, key: str, placement: ItemPlacement, value: str, ttl_s: int | None, expires_at_ms: int | None
    ) -> int:
        """Write a value; return its version. Raises: InvalidInput (code `invalid_ttl`) for a ttl in the cold tier."""
        if self._hot is not None:
            version = self._next(key)
            seconds = None if expires_at_ms is None else -(-(expires_at_ms - self._clock()) // 1000)
            await self._hot.set(key, str(Held(value, version, expires_at_ms)), ttl=seconds)
            self._session.saw(key, Seen(version, present=True, until_ms=expires_at_ms))
            return version
        assert self._cold is not None
        if ttl_s is not None:
            raise InvalidInput("in a cold tier alone, data lives as the bucket's rules say", code="invalid_ttl")
        await self._cold.upload_text(placement.prefix + key, value)
        return 0

    async def find(self, key: str, placement: ItemPlacement) -> Held | None:
        """Return the value. Raises: Unavailable (code `hot_value_stale`) while a newer one is known of."""
        if self._hot is None:
            assert self._cold is not None
            value = await self._cold.download_text(placement.prefix + key)
            return None if value is None else Held(value, 0)
        text = await self._hot.get(key)
        held = None if text is None else Held.parse(text)
        seen, now = self._session.of(key), self._clock()
        if held is None or held.version < seen.version:
            if seen.present and (seen.until_ms is None or now < seen.until_ms):
                raise Unavailable("the hot tier does not show yet what was written", code="hot_value_stale")
            return None
        if not held.shown(now):
            return None
        self._session.saw(key, Seen(held.version, present=True, until_ms=held.expires_at_ms))
        return held

    async def delete(self, key: str, placement: ItemPlacement) -> bool:
        """Remove the value; tell whether the tier showed one."""
        if self._hot is None:
            assert self._cold is not None
            found = await self._cold.download_text(placement.prefix + key) is not None
            await self._cold.delete(placement.prefix + key)
            return found
        text = await self._hot.get(key)
        await self._hot.delete(key)
        self._session.saw(key, Seen(self._next(key)))
        return text is not None and Held.parse(text).shown(self._clock())

    def _next(self, key: str) -> int:
        return max(self._clock(), self._session.of(key).version + 1)
