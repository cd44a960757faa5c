"""The three tiers as protocols: what a store must offer to be hot, warm or cold memory.

Keys and values are text. Every method may raise Unavailable, and then its effect is unknown; every one is idempotent, so
it can be repeated. A store that implements one of the first three protocols is a tier; a warm one that is also an
`ItemCatalogue` gives the client versions (docs/tiers.md).
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from retain.items.entry import Buried, Draft, ItemEntry

HOT_TTL_S = 900
"""Seconds that a hot value lives if nothing else is said."""


class HotMemory(Protocol):
    """Values that are read on every request; each expires. Reads may be stale (Workers KV)."""

    async def get(self, key: str) -> str | None:
        """Return the value, or None when there is none or it has expired."""
        ...

    async def set(self, key: str, value: str, ttl: int | None = None) -> None:
        """Write the value, replacing any. ttl: seconds until it expires, at least 60; None: `HOT_TTL_S`.

        Raises: InvalidInput (code `invalid_ttl`); LimitExceeded.
        """
        ...

    async def delete(self, key: str) -> None:
        """Remove the value. Removing an absent one is not an error."""
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
        """Remove the value. Removing an absent one is not an error."""
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
        """Remove the value. Removing an absent one is not an error."""
        ...


@runtime_checkable
class ItemCatalogue(WarmMemory, Protocol):
    """A warm tier that also knows which tier stores each item's value, and assigns versions.

    A key's version grows with every write, even after a delete, and is assigned atomically: two writers never get the
    same one. `SqlWarm` implements it on D1; `PlainCatalogue` turns a plain `WarmMemory` into one.
    """

    async def find(self, key: str) -> ItemEntry | None:
        """Return the item's entry, or None when nothing is known of it."""
        ...

    async def version(self, key: str) -> int | None:
        """Return the item's current version, or None when it does not exist or was deleted."""
        ...

    async def write(self, key: str, draft: Draft) -> int:
        """Make the draft the item's state; return its version. Durable when it returns.

        Raises: Conflict (code `item_erased` when the draft's object was erased meanwhile, `tenant_erased`).
        """
        ...

    async def bury(self, key: str) -> Buried:
        """Delete the item, leaving a tombstone; return its version and what was found. Repeating it changes nothing."""
        ...

    async def copy_in(self, key: str, version: int, value: str) -> bool:
        """Keep a copy of a cold item's value; return whether the item still had that version, which stays."""
        ...

    async def new_object(self, key: str, prefix: str) -> str:
        """Return the key of a new object for the item's value, noted so that it is never orphaned."""
        ...

    async def forget_object(self, object_key: str) -> None:
        """Note that an object is gone."""
        ...

    async def note_read(self, key: str, version: int) -> None:
        """Count a read, for demotion."""
        ...
