"""Clients of one tier alone, hot or cold: no warm tier assigns versions. For one writer per item at a time."""

from __future__ import annotations

from retain.errors import InvalidInput, Unavailable
from retain.items.client import FoundItem, Stored
from retain.items.entry import Held
from retain.items.item_checks import ItemChecks
from retain.items.rules import Seen, Session
from retain.items.tiers.protocols import ColdMemory, HotMemory
from retain.namespace import Namespace
from retain.ports import Clock


class HotClient:
    """Implements `MemoryClient` on a hot tier. Versions are timestamps."""

    def __init__(self, checks: ItemChecks, hot: HotMemory, clock: Clock, session: Session) -> None:
        self.session = session
        self._checks = checks
        self._hot = hot
        self._clock = clock

    @property
    def namespace(self) -> Namespace:
        """See the protocol."""
        return self._checks.namespace

    async def put(
        self, data_type: str, entity_id: str, value: str, *, user_id: str | None = None, ttl_s: int | None = None
    ) -> Stored:
        """See the protocol."""
        new = self._checks.new_value(data_type, entity_id, value, user_id, ttl_s)
        _refuse_user(user_id)
        key, expires_at_ms = new.place.key, new.expires_at_ms
        version = self._next(key)
        seconds = None if expires_at_ms is None else -(-(expires_at_ms - self._clock()) // 1000)
        await self._hot.set(key, str(Held(value, version, expires_at_ms)), ttl=seconds)
        self.session.saw(key, Seen(version, present=True, until_ms=expires_at_ms))
        return Stored(key, version, "hot", expires_at_ms, hot_copy=False)

    async def get(self, data_type: str, entity_id: str) -> str | None:
        """See the protocol."""
        found = await self.find(data_type, entity_id)
        return None if found is None else found.value

    async def find(self, data_type: str, entity_id: str) -> FoundItem | None:
        """See the protocol. Raises: Unavailable (code `hot_value_stale`) while the session knows a newer version."""
        key = self._checks.place(data_type, entity_id).key
        text = await self._hot.get(key)
        held = None if text is None else Held.parse(text)
        seen, now = self.session.of(key), self._clock()
        if held is None or held.version < seen.version:
            if seen.present and (seen.until_ms is None or now < seen.until_ms):
                raise Unavailable("the hot tier does not yet show what was written", code="hot_value_stale")
            return None
        if not held.shown(now):
            return None
        self.session.saw(key, Seen(held.version, present=True, until_ms=held.expires_at_ms))
        return FoundItem(key, held.value, held.version, "hot", held.expires_at_ms)

    async def delete(self, data_type: str, entity_id: str) -> bool:
        """See the protocol. Whether there was an item is judged by what the tier shows."""
        key = self._checks.place(data_type, entity_id).key
        text = await self._hot.get(key)
        await self._hot.delete(key)
        self.session.saw(key, Seen(self._next(key)))
        return text is not None and Held.parse(text).shown(self._clock())

    def _next(self, key: str) -> int:
        return max(self._clock(), self.session.of(key).version + 1)


class ColdClient:
    """Implements `MemoryClient` on a cold tier. Every version is 0: reads there are never stale."""

    def __init__(self, checks: ItemChecks, cold: ColdMemory, session: Session) -> None:
        self.session = session
        self._checks = checks
        self._cold = cold

    @property
    def namespace(self) -> Namespace:
        """See the protocol."""
        return self._checks.namespace

    async def put(
        self, data_type: str, entity_id: str, value: str, *, user_id: str | None = None, ttl_s: int | None = None
    ) -> Stored:
        """See the protocol. Raises: InvalidInput (code `invalid_ttl`) for a ttl_s."""
        new = self._checks.new_value(data_type, entity_id, value, user_id, ttl_s)
        _refuse_user(user_id)
        if ttl_s is not None:
            raise InvalidInput("with a cold tier alone, the bucket's rules determine expiry", code="invalid_ttl")
        await self._cold.upload_text(new.place.placement.prefix + new.place.key, value)
        return Stored(new.place.key, 0, "cold", new.expires_at_ms, hot_copy=False)

    async def get(self, data_type: str, entity_id: str) -> str | None:
        """See the protocol."""
        found = await self.find(data_type, entity_id)
        return None if found is None else found.value

    async def find(self, data_type: str, entity_id: str) -> FoundItem | None:
        """See the protocol."""
        place = self._checks.place(data_type, entity_id)
        value = await self._cold.download_text(place.placement.prefix + place.key)
        return None if value is None else FoundItem(place.key, value, 0, "cold")

    async def delete(self, data_type: str, entity_id: str) -> bool:
        """See the protocol."""
        place = self._checks.place(data_type, entity_id)
        object_key = place.placement.prefix + place.key
        found = await self._cold.download_text(object_key) is not None
        await self._cold.delete(object_key)
        return found


def _refuse_user(user_id: str | None) -> None:
    if user_id is not None:
        raise InvalidInput("without a warm tier a user's items cannot be found", code="user_not_findable")
