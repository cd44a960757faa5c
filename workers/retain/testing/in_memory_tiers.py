"""The three tiers of items in dictionaries, for tests of the code that uses them."""

from __future__ import annotations

from retain.errors import InvalidInput
from retain.items.placement import MIN_TTL_S
from retain.items.tiers.protocols import HOT_TTL_S
from retain.ports import Clock


class InMemoryHot:
    """Implements `HotMemory` in a dictionary. Reads are never stale."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.values: dict[str, tuple[str, int]] = {}
        """Key to value and the time in epoch milliseconds at which it expires."""

    async def get(self, key: str) -> str | None:
        """See the protocol."""
        value, expires_at_ms = self.values.get(key, (None, 0))
        return value if self._clock() < expires_at_ms else None

    async def set(self, key: str, value: str, ttl: int | None = None) -> None:
        """See the protocol."""
        if ttl is not None and ttl < MIN_TTL_S:
            raise InvalidInput(f"a key lives at least {MIN_TTL_S} seconds", code="invalid_ttl", minimum_s=MIN_TTL_S)
        self.values[key] = value, self._clock() + (HOT_TTL_S if ttl is None else ttl) * 1000

    async def delete(self, key: str) -> None:
        """See the protocol."""
        self.values.pop(key, None)


class InMemoryWarm:
    """Implements `WarmMemory` in a dictionary."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}

    async def read(self, key: str) -> str | None:
        """See the protocol."""
        return self.values.get(key)

    async def upsert(self, key: str, value: str) -> None:
        """See the protocol."""
        self.values[key] = value

    async def delete(self, key: str) -> None:
        """See the protocol."""
        self.values.pop(key, None)


class InMemoryCold:
    """Implements `ColdMemory` in a dictionary."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}

    async def download_text(self, key: str) -> str | None:
        """See the protocol."""
        return self.values.get(key)

    async def upload_text(self, key: str, value: str) -> None:
        """See the protocol."""
        self.values[key] = value

    async def delete(self, key: str) -> None:
        """See the protocol."""
        self.values.pop(key, None)
