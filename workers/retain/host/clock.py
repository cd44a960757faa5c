"""Clocks of the host: the system's, and one that is set by hand."""

from __future__ import annotations

import time


def system_clock() -> int:
    """Return the current time in epoch milliseconds."""
    return time.time_ns() // 1_000_000


class ManualClock:
    """Implements `retain.ports.Clock`: shows the time that was set until it is changed. For tests."""

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self._now_ms = now_ms

    def __call__(self) -> int:
        """Return the time it was set to, in epoch milliseconds."""
        return self._now_ms

    def advance(self, duration_ms: int) -> None:
        """Move the time by `duration_ms`."""
        self._now_ms += duration_ms

    def set(self, now_ms: int) -> None:
        """Move the time to `now_ms`."""
        self._now_ms = now_ms
