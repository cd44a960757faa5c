"""The checks before a tier is called: key, placement, time to live, user, size, PII."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from retain.errors import InvalidInput, LimitExceeded, Misconfigured
from retain.items.entry import Tier
from retain.items.placement import MAX_TTL_S, MIN_TTL_S, ItemPlacement, Matrix, placement_of
from retain.items.rules import ResolvedRules
from retain.items.tiers.hot_copies import MAX_HOT_BYTES
from retain.limits.storage import utf8_bytes
from retain.namespace import ItemKey, Namespace
from retain.ports import Clock
from retain.sealing.pii import FIELDS, Sealer, declared_in

MAX_USER_BYTES = 256


@dataclass(frozen=True, slots=True)
class PlacedItem:
    """Where an item belongs. decides: the authoritative tier; others may have copies."""

    key: str
    placement: ItemPlacement
    decides: Tier


@dataclass(frozen=True, slots=True)
class NewValue:
    """A value that may be written. sealer: seals a value with PII; None for a value without."""

    place: PlacedItem
    text: str
    size_bytes: int
    expires_at_ms: int | None
    user_id: str | None
    sealer: Sealer | None


class ItemChecks:
    """Checks what a client is given. tiers: those of the client."""

    def __init__(
        self,
        namespace: Namespace,
        tiers: Collection[Tier],
        rules: ResolvedRules,
        matrix: Matrix,
        clock: Clock,
        sealer: Sealer | None,
    ) -> None:
        self.namespace = namespace
        self._tiers = tiers
        self._rules = rules
        self._matrix = matrix
        self._clock = clock
        self._sealer = sealer

    def place(self, data_type: str, entity_id: str) -> PlacedItem:
        """Return where the item belongs.

        Raises: InvalidInput (codes `invalid_namespace`, `unknown_data_type`, `tier_missing`).
        """
        key = str(ItemKey(self.namespace, data_type, entity_id))
        placement = placement_of(self._matrix, data_type)
        if placement.tier not in self._tiers:
            raise InvalidInput(
                f"{data_type} belongs in the {placement.tier} tier, which is missing", code="tier_missing"
            )
        through = placement.tier == "hot" and self._rules.write_through
        return PlacedItem(key, placement, "warm" if through else placement.tier)

    def new_value(self, data_type: str, entity_id: str, value: str, user_id: str | None, ttl_s: int | None) -> NewValue:
        """Return the value, ready to be written. Raises: as `MemoryClient.put`."""
        place = self.place(data_type, entity_id)
        sealer = self._sealer_of(value, place.placement.tier)
        seconds = place.placement.ttl_s if ttl_s is None else ttl_s
        if seconds is not None and seconds < MIN_TTL_S:
            raise InvalidInput(f"an item lives at least {MIN_TTL_S} seconds", code="invalid_ttl", minimum_s=MIN_TTL_S)
        if ttl_s is not None and ttl_s > MAX_TTL_S:
            raise InvalidInput(f"an item lives at most {MAX_TTL_S} seconds", code="invalid_ttl", maximum_s=MAX_TTL_S)
        expires_at_ms = None if seconds is None else self._clock() + seconds * 1000
        if user_id is not None and not 1 <= utf8_bytes(user_id) <= MAX_USER_BYTES:
            raise InvalidInput(f"a user id has 1 to {MAX_USER_BYTES} bytes", code="invalid_user")
        size = utf8_bytes(value)
        if place.decides == "hot" and size > MAX_HOT_BYTES:
            raise LimitExceeded("too large for the hot tier", code="value_too_large", limit_bytes=MAX_HOT_BYTES)
        return NewValue(place, value, size, expires_at_ms, user_id, sealer)

    def may_be_promoted(self, value: str) -> bool:
        """Return whether an unsealed value may be copied to another tier: it has no PII, as a legacy value may have."""
        try:
            return not self._declared(value)
        except InvalidInput:  # too deep to be searched
            return False

    async def opened(self, key: str, sealed: str) -> str:
        """Return the plain text of an item's sealed value. Raises: Misconfigured (code `item_unreadable`)."""
        if self._sealer is None:
            raise Misconfigured("the item is sealed, and this memory has no key", code="item_unreadable")
        return await self._sealer.open(key, sealed)

    def _declared(self, value: str) -> list[str]:
        return declared_in(value, FIELDS) if self._sealer is None else self._sealer.declared(value)

    def _sealer_of(self, value: str, tier: Tier) -> Sealer | None:
        declared = self._declared(value)
        if not declared:
            return None
        if tier != "warm":
            raise InvalidInput(
                f"PII stays in the warm tier, and this data type belongs in the {tier} one",
                code="pii_outside_warm",
                fields=declared,
            )
        if self._sealer is None:
            raise Misconfigured("the value holds PII, and this memory has no key to seal it", code="memory_key_missing")
        return self._sealer
