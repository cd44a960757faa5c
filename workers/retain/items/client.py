"""The memory of one namespace over its tiers: put, get and delete by data type and id.

What happens when a tier fails between two steps, and what readers may see, stands in docs/tiers.md. In short: a write is
acknowledged when the tier holds it that decides on it; copies in faster tiers come after that and carry its version.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable
from dataclasses import dataclass

from retain.errors import InvalidInput, LimitExceeded, Misconfigured, RetainError, Unavailable, UpstreamFailed
from retain.items.entry import Draft, Held, ItemEntry, Tier
from retain.items.pii import FIELDS, Sealer, declared_in
from retain.items.placement import MIN_TTL_S, ItemPlacement, Matrix, placement_of
from retain.items.rules import MemoryRules, Seen, Session
from retain.items.single import SingleTier
from retain.items.tiers.hot_copies import MAX_HOT_BYTES, HotCopies
from retain.items.tiers.sql_warm import READ_STEP_MS
from retain.items.tiers.tiers import Tiers
from retain.limits.storage import utf8_bytes
from retain.namespace import ItemKey, Namespace
from retain.ports import Clock

MAX_PROMOTED_BYTES = 1_000_000
"""Largest value that a read copies from the cold tier into the warm one, whose rows hold 2,000,000 bytes."""
MAX_USER_BYTES = 256

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Stored:
    """What a put did. tier: where the value lies, durably. hot_copy: whether a copy was left in the hot tier as well."""

    key: str
    version: int
    tier: Tier
    expires_at_ms: int | None
    hot_copy: bool


@dataclass(frozen=True, slots=True)
class FoundItem:
    """What a read found. tier: which one answered. user_id: known unless the hot tier did."""

    key: str
    value: str
    version: int
    tier: Tier
    expires_at_ms: int | None = None
    user_id: str | None = None


class MemoryClient:
    """The items of one namespace. Built by `MemoryBuilder`; a key outside the namespace cannot be expressed.

    Safe to use from several tasks at once. Reads are monotonic, and see the client's own writes.
    """

    def __init__(
        self,
        namespace: Namespace,
        tiers: Tiers,
        rules: MemoryRules,
        matrix: Matrix,
        clock: Clock,
        sealer: Sealer | None,
        session: Session,
    ) -> None:
        self.namespace = namespace
        self.session = session
        self._tiers = tiers
        self._rules = rules
        self._matrix = matrix
        self._clock = clock
        self._sealer = sealer
        self._single = None if tiers.warm is not None else SingleTier(tiers, clock, session)
        self._copies = HotCopies(tiers, rules, clock)

    async def put(
        self, kind: str, entity_id: str, value: str, *, user_id: str | None = None, ttl_s: int | None = None
    ) -> Stored:
        """Write a value where its data type belongs, replacing any. Idempotent but for the version.

        user_id: whose data it is, for erasure. ttl_s: instead of the data type's, at least 60.
        Raises: InvalidInput (codes `invalid_namespace`, `unknown_data_type`, `tier_missing`, `pii_outside_warm`,
            `invalid_ttl`, `invalid_user`, `user_not_findable`, `unsupported_value`, `value_too_deep`); LimitExceeded;
            Conflict (codes `item_erased`, `tenant_erased`); Misconfigured (codes `memory_key_missing`,
            `invalid_memory_key`); Unavailable, and then a later read may or may not see the value.
        """
        key, placement = self._place(kind, entity_id)
        declared = self._declared(value, placement.tier)
        seconds = _checked_ttl(placement.ttl_s if ttl_s is None else ttl_s)
        expires_at_ms = None if seconds is None else self._clock() + seconds * 1000
        _check_user(user_id)
        size = utf8_bytes(value)
        tier = self._deciding(placement)
        if tier == "hot" and size > MAX_HOT_BYTES:
            raise LimitExceeded("too large for the hot tier", code="value_too_large", limit_bytes=MAX_HOT_BYTES)
        if self._single is not None:
            if user_id is not None:
                raise InvalidInput("without a warm tier a user's items are not findable", code="user_not_findable")
            version = await self._single.put(key, placement, value, ttl_s, expires_at_ms)
            return Stored(key, version, tier, expires_at_ms, hot_copy=False)
        warm = self._tiers.warm
        assert warm is not None
        key_id, object_key, kept = None, None, value
        if declared:
            assert self._sealer is not None
            key_id, kept = self._sealer.key_id(), await self._sealer.seal(key, value)
        if tier == "cold":
            assert self._tiers.cold is not None
            object_key = await warm.new_object(key, placement.prefix)
            await self._tiers.cold.upload_text(object_key, value)
        in_row = kept if tier == "warm" else None
        version = await warm.write(key, Draft(tier, in_row, size, object_key, user_id, key_id, expires_at_ms))
        held = Held(value, version, expires_at_ms)
        if tier == "hot":
            await self._copies.write(key, held)
            hot_copy = True
        elif self._rules.write_through and not declared and tier == "warm":
            hot_copy = await self._copies.leave(key, held, self._hot_ttl(placement))
        else:
            hot_copy = False
            await self._copies.drop(key)
        self.session.saw(key, Seen(version, present=True, until_ms=expires_at_ms))
        return Stored(key, version, tier, expires_at_ms, hot_copy)

    async def get(self, kind: str, entity_id: str) -> str | None:
        """Return the value, or None when there is none or it has expired. Raises: as `find`."""
        found = await self.find(kind, entity_id)
        return None if found is None else found.value

    async def find(self, kind: str, entity_id: str) -> FoundItem | None:
        """Return the value with what is known of it: from the fastest tier that has it, if the rules say so.

        Raises: InvalidInput as `put`; Unavailable (code `hot_value_stale` while the hot tier alone holds the item and
            does not yet show what this session has seen); UpstreamFailed (code `cold_value_missing`); Misconfigured
            (code `item_unreadable`).
        """
        key, placement = self._place(kind, entity_id)
        if self._single is not None:
            held = await self._single.find(key, placement)
            tier: Tier = "hot" if self._tiers.hot is not None else "cold"
            return None if held is None else FoundItem(key, held.value, held.version, tier, held.expires_at_ms)
        decides = self._deciding(placement) == "hot"
        if decides or (self._rules.read_fallback and self._tiers.hot is not None):
            held = await self._copies.read(key, required=decides)
            if held is not None and await self._is_current(key, held):
                self.session.saw(key, Seen(held.version, present=True, until_ms=held.expires_at_ms))
                return FoundItem(key, held.value, held.version, "hot", held.expires_at_ms)
        return await self._find_in_catalogue(key, placement)

    async def delete(self, kind: str, entity_id: str) -> bool:
        """Remove the item from every tier; tell whether there was one. Idempotent.

        It is acknowledged when the deciding tier has forgotten the value. Raises: InvalidInput; Unavailable.
        """
        key, placement = self._place(kind, entity_id)
        if self._single is not None:
            return await self._single.delete(key, placement)
        assert self._tiers.warm is not None
        buried = await self._tiers.warm.bury(key)
        if self._deciding(placement) == "hot":
            await self._copies.remove(key)
        else:
            await self._copies.drop(key)
        if buried.object_key is not None:
            await _attempt("removing an object", self._remove_object(buried.object_key))
        self.session.saw(key, Seen(buried.version))
        return buried.found

    def _place(self, kind: str, entity_id: str) -> tuple[str, ItemPlacement]:
        """Return the item's key and placement. Raises: InvalidInput."""
        key = str(ItemKey(self.namespace, kind, entity_id))
        placement = placement_of(self._matrix, kind)
        if getattr(self._tiers, placement.tier) is None:
            raise InvalidInput(f"{kind} belongs in the {placement.tier} tier, which is missing", code="tier_missing")
        return key, placement

    def _declared(self, value: str, tier: Tier) -> list[str]:
        """Return the PII fields of a value. Raises: InvalidInput where there may be none; Misconfigured without a key."""
        declared = declared_in(value, FIELDS) if self._sealer is None else self._sealer.declared(value)
        if declared and tier != "warm":
            raise InvalidInput(
                f"PII stays in the warm tier, and this data type belongs in the {tier} one",
                code="pii_outside_warm",
                fields=declared,
            )
        if declared and self._sealer is None:
            raise Misconfigured("the value holds PII, and this memory has no key to seal it", code="memory_key_missing")
        return declared

    def _deciding(self, placement: ItemPlacement) -> Tier:
        return "warm" if placement.tier == "hot" and self._rules.write_through else placement.tier

    def _hot_ttl(self, placement: ItemPlacement) -> int | None:
        """Return how long a hot copy lives at most: its own time for what belongs there, else the rule's."""
        return placement.ttl_s if placement.tier == "hot" else self._rules.hot_ttl

    async def _is_current(self, key: str, held: Held) -> bool:
        """Tell whether a hot value may be shown: not expired, nothing newer seen, and checked if the rules say so."""
        if not held.shown(self._clock()) or held.version < self.session.of(key).version:
            return False
        if self._rules.hot_reads == "session":
            return True
        assert self._tiers.warm is not None
        return await self._tiers.warm.version(key) == held.version

    async def _find_in_catalogue(self, key: str, placement: ItemPlacement) -> FoundItem | None:
        assert self._tiers.warm is not None
        entry = await self._tiers.warm.find(key)
        if entry is not None and entry.tier == "hot" and entry.shown(self._clock()):
            return self._not_shown_by_hot(key, entry)
        value = None if entry is None else await self._value(key, placement, entry)
        if entry is None or value is None:
            version = self.session.of(key).version if entry is None else entry.version
            self.session.saw(key, Seen(version))
            return None
        text, tier, entry = value
        self.session.saw(key, Seen(entry.version, present=True, until_ms=entry.expires_at_ms))
        await self._after_read(key, placement, entry, text)
        return FoundItem(key, text, entry.version, tier, entry.expires_at_ms, entry.user_id)

    def _not_shown_by_hot(self, key: str, entry: ItemEntry) -> FoundItem | None:
        seen = self.session.of(key)
        if seen.present and seen.version <= entry.version:
            raise Unavailable("the hot tier does not show yet what was written", code="hot_value_stale")
        return None

    async def _value(self, key: str, placement: ItemPlacement, entry: ItemEntry) -> tuple[str, Tier, ItemEntry] | None:
        """Return the entry's value, from which tier, and the entry that it is of: a newer one may have come.

        An object that is older than its retention may have been removed by the bucket's life cycle.
        """
        assert self._tiers.warm is not None
        for last in (False, True):
            if not entry.shown(self._clock()):
                return None
            if entry.value is not None:
                return (entry.value if entry.key_id is None else await self._opened(key, entry.value)), "warm", entry
            if self._tiers.cold is None:
                raise InvalidInput("the value lies in the cold tier, which is missing", code="tier_missing")
            if entry.object_key is not None:
                text = await self._tiers.cold.download_text(entry.object_key)
                if text is not None:
                    return text, "cold", entry
            newer = None if last else await self._tiers.warm.find(key)
            if newer is None:
                break
            entry = newer
        if placement.retention_s is not None and self._clock() >= entry.updated_at_ms + placement.retention_s * 1000:
            return None
        raise UpstreamFailed("the cold tier lost the item's object", code="cold_value_missing")

    async def _opened(self, key: str, sealed: str) -> str:
        if self._sealer is None:
            raise Misconfigured("the item is sealed, and this memory has no key", code="item_unreadable")
        return await self._sealer.open(key, sealed)

    async def _after_read(self, key: str, placement: ItemPlacement, entry: ItemEntry, value: str) -> None:
        """Count the read and promote the value. What fails is logged: the read has succeeded."""
        warm = self._tiers.warm
        assert warm is not None
        if entry.read_at_ms <= self._clock() - READ_STEP_MS:
            await _attempt("counting a read", warm.note_read(key, entry.version))
        if not self._rules.promote_on_read or entry.key_id is not None:
            return  # PII is promoted nowhere
        if entry.tier == "cold" and entry.value is None and entry.size_bytes <= MAX_PROMOTED_BYTES:
            await _attempt("promoting to the warm tier", warm.copy_in(key, entry.version, value))
        await self._copies.leave(key, Held(value, entry.version, entry.expires_at_ms), self._hot_ttl(placement))

    async def _remove_object(self, object_key: str) -> None:
        assert self._tiers.cold is not None
        assert self._tiers.warm is not None
        await self._tiers.cold.delete(object_key)
        await self._tiers.warm.forget_object(object_key)


def _checked_ttl(seconds: int | None) -> int | None:
    if seconds is not None and seconds < MIN_TTL_S:
        raise InvalidInput(f"an item lives at least {MIN_TTL_S} seconds", code="invalid_ttl", minimum_s=MIN_TTL_S)
    return seconds


def _check_user(user_id: str | None) -> None:
    if user_id is not None and not 1 <= utf8_bytes(user_id) <= MAX_USER_BYTES:
        raise InvalidInput(f"a user id has 1 to {MAX_USER_BYTES} bytes", code="invalid_user")


async def _attempt(what: str, work: Awaitable[object]) -> None:
    """Do what may fail without harm: nothing that was acknowledged depends on it."""
    try:
        await work
    except RetainError as error:
        _log.warning("%s failed", what, extra={"code": error.code})
