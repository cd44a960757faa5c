"""The alarm of one instance, set only when its time changes: each time that it is set is billed as a written row.

Source: https://developers.cloudflare.com/durable-objects/platform/pricing/
"""

from __future__ import annotations

from retain.ports import Alarm, Clock

LEASE_MS = 30_000
"""How long after it is set the alarm checks whether a run was interrupted."""


class InstanceAlarm:
    """Sets the alarm, and knows for when it is set. Implements `Alarm`."""

    def __init__(self, alarm: Alarm, clock: Clock) -> None:
        self._alarm = alarm
        self._clock = clock
        self._at_ms: int | None = None

    def lease_ms(self) -> int:
        """Return when to check whether a run was interrupted: when the alarm is set, if that is after half a lease."""
        now = self._clock()
        soon_enough = self._at_ms is not None and now + LEASE_MS // 2 <= self._at_ms <= now + LEASE_MS
        return self._at_ms if soon_enough and self._at_ms is not None else now + LEASE_MS

    async def set(self, at_ms: int) -> None:
        """Set the alarm, unless it is set for this time already."""
        if at_ms == self._at_ms:
            return
        self._at_ms = at_ms
        try:
            await self._alarm.set(at_ms)
        except BaseException:
            self._at_ms = None
            raise

    async def get(self) -> int | None:
        """Return when the alarm fires, None when it is not set."""
        return await self._alarm.get()

    def fired(self) -> None:
        """Record that the alarm fired: it is not set."""
        self._at_ms = None
