"""KV as seen from several places: each shows what it last fetched, also a miss, until it fetches again.

Every call pauses once, so that a test decides what happens between any two calls.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from retain.items.tiers.protocols import HOT_TTL_S
from retain.ports import Clock


class Pause:
    """Suspends the coroutine once, so that its driver can do something else first."""

    def __await__(self) -> Generator[None, Any, None]:
        yield


class Central:
    """The state on which all places eventually agree."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.values: dict[str, tuple[str, int | None]] = {}


class Place:
    """Implements `HotMemory` as one location of Workers KV: it sees its own writes immediately, others' later."""

    def __init__(self, central: Central) -> None:
        self._central = central
        self._fetched: dict[str, tuple[str, int | None] | None] = {}
        self.down = False

    def catch_up(self) -> None:
        """Forget what was fetched: the next read sees what the other places wrote."""
        self._fetched.clear()

    async def get(self, key: str) -> str | None:
        """See the protocol."""
        await self._call()
        if key not in self._fetched:
            self._fetched[key] = self._central.values.get(key)
        found = self._fetched[key]
        if found is None or (found[1] is not None and self._central.clock() >= found[1]):
            return None
        return found[0]

    async def set(self, key: str, value: str, ttl: int | None = None) -> None:
        """See the protocol."""
        await self._call()
        self._central.values[key] = value, self._central.clock() + (HOT_TTL_S if ttl is None else ttl) * 1000
        self._fetched[key] = self._central.values[key]

    async def delete(self, key: str) -> None:
        """See the protocol."""
        await self._call()
        self._central.values.pop(key, None)
        self._fetched[key] = None

    async def _call(self) -> None:
        from retain.errors import Unavailable

        await Pause()
        if self.down:
            raise Unavailable("KV is down", code="kv_unavailable")
