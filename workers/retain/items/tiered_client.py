"""The client of a memory with a warm tier, which knows every item's version and where its value is stored.

What happens when a tier fails between two steps, and what readers may see, is in docs/tiers.md. In short: a write is
acknowledged once its authoritative tier has it; copies in faster tiers follow and carry its version.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable

from retain.errors import InvalidInput, RetainError, Unavailable, UpstreamFailed
from retain.items.client import FoundItem, Stored
from retain.items.entry import Draft, Held, ItemEntry, Tier
from retain.items.item_checks import ItemChecks, NewValue, PlacedItem
from retain.items.placement import ItemPlacement
from retain.items.rules import ResolvedRules, Seen, Session
from retain.items.tiers.hot_copies import HotCopies
from retain.items.tiers.protocols import ColdMemory
from retain.items.tiers.sql_warm import READ_STEP_MS
from retain.items.tiers.tiers import Tiers
from retain.namespace import Namespace
from retain.ports import Clock

MAX_PROMOTED_BYTES = 1_000_000
"""Largest value that a read copies from the cold tier to the warm one, whose rows have at most 2,000,000 bytes."""

_log = logging.getLogger(__name__)


class TieredClient:
    """Implements `MemoryClient` on a warm tier, and a hot and a cold one if there are any."""

    def __init__(self, checks: ItemChecks, tiers: Tiers, rules: ResolvedRules, clock: Clock, session: Session) -> None:
        self.session = session
        self._checks = checks
        self._tiers = tiers
        self._warm = tiers.warm
        self._rules = rules
        self._clock = clock
        self._copies = HotCopies(tiers, clock)

    @property
    def namespace(self) -> Namespace:
        """See the protocol."""
        return self._checks.namespace

    async def put(
        self, data_type: str, entity_id: str, value: str, *, user_id: str | None = None, ttl_s: int | None = None
    ) -> Stored:
        """See the protocol."""
        new = self._checks.new_value(data_type, entity_id, value, user_id, ttl_s)
        tier = new.place.decides
        match tier:
            case "hot":
                version, hot_copy = await self._put_hot(new), True
            case "warm":
                version, hot_copy = await self._put_warm(new)
            case "cold":
                version, hot_copy = await self._put_cold(new), False
        self.session.saw(new.place.key, Seen(version, present=True, until_ms=new.expires_at_ms))
        return Stored(new.place.key, version, tier, new.expires_at_ms, hot_copy)

    async def get(self, data_type: str, entity_id: str) -> str | None:
        """See the protocol."""
        found = await self.find(data_type, entity_id)
        return None if found is None else found.value

    async def find(self, data_type: str, entity_id: str) -> FoundItem | None:
        """See the protocol."""
        place = self._checks.place(data_type, entity_id)
        decides = place.decides == "hot"
        if decides or (self._rules.read_fallback and self._tiers.hot is not None):
            held = await self._copies.read(place.key, required=decides)
            if held is not None and await self._is_current(place.key, held):
                self.session.saw(place.key, Seen(held.version, present=True, until_ms=held.expires_at_ms))
                return FoundItem(place.key, held.value, held.version, "hot", held.expires_at_ms)
        return await self._find_in_catalogue(place)

    async def delete(self, data_type: str, entity_id: str) -> bool:
        """See the protocol."""
        place = self._checks.place(data_type, entity_id)
        buried = await self._warm.bury(place.key)
        if place.decides == "hot":
            await self._copies.remove(place.key)
        else:
            await self._copies.drop(place.key)
        if buried.object_key is not None:
            await _attempt("removing an object", self._remove_object(buried.object_key))
        self.session.saw(place.key, Seen(buried.version))
        return buried.found

    async def _put_hot(self, new: NewValue) -> int:
        """Take a version from the warm tier, then write the value to the hot one, which is authoritative."""
        key = new.place.key
        draft = Draft("hot", None, new.size_bytes, user_id=new.user_id, expires_at_ms=new.expires_at_ms)
        version = await self._warm.write(key, draft)
        await self._copies.write(key, Held(new.text, version, new.expires_at_ms))
        return version

    async def _put_warm(self, new: NewValue) -> tuple[int, bool]:
        """Write the value to the warm tier, sealed if it contains PII; leave a hot copy, or remove an older one."""
        key, text, key_id = new.place.key, new.text, None
        if new.sealer is not None:
            key_id, text = new.sealer.key_id(), await new.sealer.seal(key, new.text)
        draft = Draft("warm", text, new.size_bytes, None, new.user_id, key_id, new.expires_at_ms)
        version = await self._warm.write(key, draft)
        if self._rules.write_through and key_id is None:
            held = Held(new.text, version, new.expires_at_ms)
            return version, await self._copies.leave(key, held, self._hot_ttl(new.place.placement))
        await self._copies.drop(key)
        return version, False

    async def _put_cold(self, new: NewValue) -> int:
        """Write the value to a new object, then make that the item's state in the warm tier."""
        key = new.place.key
        object_key = await self._warm.new_object(key, new.place.placement.prefix)
        await self._cold().upload_text(object_key, new.text)
        draft = Draft("cold", None, new.size_bytes, object_key, new.user_id, expires_at_ms=new.expires_at_ms)
        version = await self._warm.write(key, draft)
        await self._copies.drop(key)
        return version

    def _cold(self) -> ColdMemory:
        if self._tiers.cold is None:
            raise InvalidInput("the value is in the cold tier, which is missing", code="tier_missing")
        return self._tiers.cold

    def _hot_ttl(self, placement: ItemPlacement) -> int | None:
        """Return the longest lifetime of a hot copy: its placement's for an item of the hot tier, else the rule's."""
        return placement.ttl_s if placement.tier == "hot" else self._rules.hot_ttl

    async def _is_current(self, key: str, held: Held) -> bool:
        """Return whether a hot value may be shown: not expired, nothing newer seen, and checked if the rules say so."""
        if not held.shown(self._clock()) or held.version < self.session.of(key).version:
            return False
        return self._rules.hot_reads == "session" or await self._warm.version(key) == held.version

    async def _find_in_catalogue(self, place: PlacedItem) -> FoundItem | None:
        key = place.key
        entry = await self._warm.find(key)
        if entry is not None and entry.tier == "hot" and entry.shown(self._clock()):
            return self._not_shown_by_hot(key, entry)
        value = None if entry is None else await self._value(key, place.placement, entry)
        if entry is None or value is None:
            version = self.session.of(key).version if entry is None else entry.version
            self.session.saw(key, Seen(version))
            return None
        text, tier, entry = value
        self.session.saw(key, Seen(entry.version, present=True, until_ms=entry.expires_at_ms))
        await self._after_read(key, place.placement, entry, text)
        return FoundItem(key, text, entry.version, tier, entry.expires_at_ms, entry.user_id)

    def _not_shown_by_hot(self, key: str, entry: ItemEntry) -> FoundItem | None:
        seen = self.session.of(key)
        if seen.present and seen.version <= entry.version:
            raise Unavailable("the hot tier does not yet show what was written", code="hot_value_stale")
        return None

    async def _value(self, key: str, placement: ItemPlacement, entry: ItemEntry) -> tuple[str, Tier, ItemEntry] | None:
        """Return the value, the tier that had it, and its entry, which is newer than the given one after a concurrent write.

        The bucket's life cycle may have removed an object that is older than its retention.
        """
        for last in (False, True):
            if not entry.shown(self._clock()):
                return None
            if entry.value is not None:
                text = entry.value if entry.key_id is None else await self._checks.opened(key, entry.value)
                return text, "warm", entry
            cold = self._cold()
            if entry.object_key is not None:
                found = await cold.download_text(entry.object_key)
                if found is not None:
                    return found, "cold", entry
            newer = None if last else await self._warm.find(key)
            if newer is None:
                break
            entry = newer
        if placement.retention_s is not None and self._clock() >= entry.updated_at_ms + placement.retention_s * 1000:
            return None
        raise UpstreamFailed("the cold tier lost the item's object", code="cold_value_missing")

    async def _after_read(self, key: str, placement: ItemPlacement, entry: ItemEntry, value: str) -> None:
        """Count the read and promote the value. A failure is only logged: the read has succeeded."""
        if entry.read_at_ms <= self._clock() - READ_STEP_MS:
            await _attempt("counting a read", self._warm.note_read(key, entry.version))
        if not self._rules.promote_on_read or entry.key_id is not None or not self._checks.may_be_promoted(value):
            return  # PII is never promoted
        if entry.tier == "cold" and entry.value is None and entry.size_bytes <= MAX_PROMOTED_BYTES:
            await _attempt("promoting to the warm tier", self._warm.copy_in(key, entry.version, value))
        await self._copies.leave(key, Held(value, entry.version, entry.expires_at_ms), self._hot_ttl(placement))

    async def _remove_object(self, object_key: str) -> None:
        await self._cold().delete(object_key)
        await self._warm.forget_object(object_key)


async def _attempt(what: str, work: Awaitable[object]) -> None:
    """Do work that may fail: nothing that was acknowledged depends on it. A failure is logged."""
    try:
        await work
    except RetainError as error:
        _log.warning("%s failed", what, extra={"code": error.code})
