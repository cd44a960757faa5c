"""Hot, warm and cold memory that understands legacy keys: a layer over any implementation of the tiers' protocols.

Each layer implements the protocol of the tier below, takes canonical keys, and is given to `MemoryBuilder` instead of that
tier. A tier that can `add` is repaired on read, except with values that contain PII: only `MemoryClient` can seal them. A
tier that cannot (Workers KV has no conditional write) keeps its legacy values until they expire.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

from retain.items.rekeying.compatible import Compatible, Keyed, Watch
from retain.items.rekeying.flags import Namespacing
from retain.items.tiers.protocols import ColdMemory, HotMemory, WarmMemory
from retain.sealing.pii import FIELDS, refuse_declared

Add = Callable[[str, str], Awaitable[bool]]
"""Writes a value atomically if the key has none; returns whether it was written. Idempotent, durable when it returns.
Raises: Unavailable, and then its effect is unknown."""


class LayeredHot:
    """Implements `HotMemory` over canonical and legacy keys. Copies and tombstones get the store's default TTL."""

    def __init__(self, hot: HotMemory, namespacing: Namespacing, watch: Watch, add: Add | None = None) -> None:
        self._hot = hot
        self._copy = _copy_by(add)
        self._compatible = Compatible("hot", namespacing, watch)

    async def get(self, key: str) -> str | None:
        """Return the value. See `Compatible.get`."""
        return await self._compatible.get(self._keyed(), key)

    async def set(self, key: str, value: str, ttl: int | None = None) -> None:
        """Write the value. See `Compatible.put`."""
        await self._compatible.put(self._keyed(ttl), key, value)

    async def delete(self, key: str) -> None:
        """Remove the value. See `Compatible.delete`."""
        await self._compatible.delete(self._keyed(), key)

    def _keyed(self, ttl: int | None = None) -> Keyed:
        return Keyed(self._hot.get, partial(self._hot.set, ttl=ttl), self._hot.delete, self._copy)


class LayeredWarm:
    """Implements `WarmMemory` over canonical and legacy keys. For an `ItemCatalogue`, use `LayeredCatalogue`."""

    def __init__(self, warm: WarmMemory, namespacing: Namespacing, watch: Watch, add: Add | None = None) -> None:
        self._keyed = Keyed(warm.read, warm.upsert, warm.delete, _copy_by(add))
        self._compatible = Compatible("warm", namespacing, watch)

    async def read(self, key: str) -> str | None:
        """Return the value. See `Compatible.get`."""
        return await self._compatible.get(self._keyed, key)

    async def upsert(self, key: str, value: str) -> None:
        """Write the value. See `Compatible.put`."""
        await self._compatible.put(self._keyed, key, value)

    async def delete(self, key: str) -> None:
        """Remove the value. See `Compatible.delete`."""
        await self._compatible.delete(self._keyed, key)


class LayeredCold:
    """Implements `ColdMemory` over canonical and legacy keys."""

    def __init__(self, cold: ColdMemory, namespacing: Namespacing, watch: Watch, add: Add | None = None) -> None:
        self._keyed = Keyed(cold.download_text, cold.upload_text, cold.delete, _copy_by(add))
        self._compatible = Compatible("cold", namespacing, watch)

    async def download_text(self, key: str) -> str | None:
        """Return the value. See `Compatible.get`."""
        return await self._compatible.get(self._keyed, key)

    async def upload_text(self, key: str, value: str) -> None:
        """Write the value. See `Compatible.put`."""
        await self._compatible.put(self._keyed, key, value)

    async def delete(self, key: str) -> None:
        """Remove the value. See `Compatible.delete`."""
        await self._compatible.delete(self._keyed, key)


def _copy_by(add: Add | None) -> Callable[[str, str, str], Awaitable[bool]] | None:
    if add is None:
        return None

    async def copy(old_key: str, canonical: str, value: str) -> bool:  # noqa: ARG001
        refuse_declared(value, FIELDS)
        return await add(canonical, value)

    return copy
