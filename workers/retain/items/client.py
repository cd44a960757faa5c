"""Access to the items of one namespace: put, get, find and delete by data type and id.

`MemoryBuilder` makes a client. Which one depends on the tiers: `TieredClient` works with a warm tier, which assigns all
versions; `HotClient` and `ColdClient` work with one tier alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from retain.items.entry import Tier
from retain.items.rules import Session
from retain.namespace import Namespace


@dataclass(frozen=True, slots=True)
class Stored:
    """The result of a put. tier: where the value is stored durably. hot_copy: whether the hot tier has a copy as well."""

    key: str
    version: int
    tier: Tier
    expires_at_ms: int | None
    hot_copy: bool


@dataclass(frozen=True, slots=True)
class FoundItem:
    """The result of a read. tier: which one answered. user_id: known unless the hot tier answered."""

    key: str
    value: str
    version: int
    tier: Tier
    expires_at_ms: int | None = None
    user_id: str | None = None


class MemoryClient(Protocol):
    """The items of one namespace. Built by `MemoryBuilder`; a key outside the namespace cannot be expressed.

    It is a client of tiered memory, whose values are called items everywhere else. Several tasks may use it at once.
    Reads are monotonic, and see the client's own writes.
    """

    @property
    def namespace(self) -> Namespace:
        """The namespace of every item that the client reads and writes."""
        ...

    @property
    def session(self) -> Session:
        """What this client has seen."""
        ...

    async def put(
        self, data_type: str, entity_id: str, value: str, *, user_id: str | None = None, ttl_s: int | None = None
    ) -> Stored:
        """Write a value to the tier of its data type, replacing any. Idempotent except for the version.

        user_id: whose data it is, for erasure. ttl_s: replaces the data type's, at least 60.
        Raises: InvalidInput (codes `invalid_namespace`, `unknown_data_type`, `tier_missing`, `pii_outside_warm`,
            `invalid_ttl`, `invalid_user`, `user_not_findable`, `unsupported_value`, `value_too_deep`); LimitExceeded;
            Conflict (codes `item_erased`, `tenant_erased`); Misconfigured (codes `memory_key_missing`,
            `invalid_memory_key`); Unavailable, after which a later read may or may not see the value.
        """
        ...

    async def get(self, data_type: str, entity_id: str) -> str | None:
        """Return the value, or None when there is none or it has expired. Raises: as `find`."""
        ...

    async def find(self, data_type: str, entity_id: str) -> FoundItem | None:
        """Return the value with its metadata, from the fastest tier that has it, if the rules allow.

        Raises: InvalidInput as `put`; Unavailable (code `hot_value_stale` while the hot tier alone holds the item and
            does not yet show what this session has seen); UpstreamFailed (code `cold_value_missing`); Misconfigured
            (code `item_unreadable`).
        """
        ...

    async def delete(self, data_type: str, entity_id: str) -> bool:
        """Remove the item from every tier; return whether there was one. Idempotent.

        Acknowledged once the authoritative tier no longer has the value. Raises: InvalidInput; Unavailable.
        """
        ...
