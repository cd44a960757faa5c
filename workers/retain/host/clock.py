"""Clocks of the host: the system's, and one that is set by hand; and the time zones that the host knows."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from retain.errors import InvalidInput


def system_clock() -> int:
    """Return the current time in epoch milliseconds."""
    return time.time_ns() // 1_000_000


def system_time_zones(zone: str, at_ms: int) -> int:
    """Return how many seconds the zone is ahead of UTC at a time: the port `TimeZones` on the host's database.

    Raises: InvalidInput (code `unknown_time_zone`), also when the host has no database of time zones.
    """
    try:
        offset = datetime.fromtimestamp(at_ms // 1000, UTC).astimezone(ZoneInfo(zone)).utcoffset()
    except (LookupError, ValueError, OSError) as error:  # the name is unknown, no name, or that of a folder
        raise InvalidInput(f"there is no time zone {zone}", code="unknown_time_zone") from error
    return 0 if offset is None else int(offset.total_seconds())


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
