"""The timer of a Durable Object, on the host."""

from __future__ import annotations


class MemoryAlarm:
    """Implements `retain.ports.Alarm` by remembering the time. Nothing fires automatically: its owner asks `take_due`."""

    def __init__(self) -> None:
        self._at_ms: int | None = None

    async def set(self, at_ms: int) -> None:
        """Fire at `at_ms`, replacing the time set before."""
        self._at_ms = at_ms

    async def get(self) -> int | None:
        """Return the time it is set to, or None."""
        return self._at_ms

    def take_due(self, now_ms: int) -> bool:
        """Return whether it is due, and if so clear it, as the platform does before it calls the handler."""
        if self._at_ms is None or now_ms < self._at_ms:
            return False
        self._at_ms = None
        return True
