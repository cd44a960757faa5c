"""`RateLimiter` on the host: counts in memory, in periods that begin at multiples of their length."""

from __future__ import annotations

from retain.ports import Clock


class CountedRates:
    """Allows each key so many requests in a period."""

    def __init__(self, limit: int, period_s: int, clock: Clock) -> None:
        self._limit = limit
        self._period_ms = period_s * 1000
        self._clock = clock
        self._period = 0
        self._counts: dict[str, int] = {}

    async def allow(self, key: str) -> bool:
        """See the port."""
        period = self._clock() // self._period_ms
        if period != self._period:
            self._period, self._counts = period, {}
        count = self._counts.get(key, 0)
        if count >= self._limit:
            return False
        self._counts[key] = count + 1
        return True
