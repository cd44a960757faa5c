"""The three tiers as protocols: what a store has to offer to be hot, warm or cold memory.

Keys and values are text. Every method may raise Unavailable, and then nothing is known of its effect; every one is
idempotent, so that it can be called again.
"""

from __future__ import annotations

from typing import Protocol


class HotMemory(Protocol):
    """Values that are read on every request; each expires. Reads may be stale (Workers KV)."""

    async def get(self, key: str) -> str | None:
        """Return the value, or None when there is none or it has expired."""
        ...

    async def set(self, key: str, value: str, ttl: int | None = None) -> None:
        """Write the value, replacing any. ttl: seconds until it expires; None takes the store's default."""
        ...

    async def delete(self, key: str) -> None:
        """Remove the value. Removing an absent one is no error."""
        ...


class WarmMemory(Protocol):
    """Values that are kept for weeks and queried by namespace (D1). Reads see every acknowledged write."""

    async def read(self, key: str) -> str | None:
        """Return the value, or None when there is none."""
        ...

    async def upsert(self, key: str, value: str) -> None:
        """Write the value, replacing any. Durable when it returns."""
        ...

    async def delete(self, key: str) -> None:
        """Remove the value. Removing an absent one is no error."""
        ...


class ColdMemory(Protocol):
    """Values that are kept for years and seldom read (R2). Reads see every acknowledged write."""

    async def download_text(self, key: str) -> str | None:
        """Return the value, or None when there is none."""
        ...

    async def upload_text(self, key: str, value: str) -> None:
        """Write the value, replacing any. Durable when it returns."""
        ...

    async def delete(self, key: str) -> None:
        """Remove the value. Removing an absent one is no error."""
        ...
