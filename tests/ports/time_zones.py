"""The contract of every `TimeZones`."""

from __future__ import annotations

from datetime import UTC, datetime

from retain.errors import InvalidInput
from retain.ports import TimeZones
from tests.ports import raises


def _ms(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


_OFFSETS = (
    ("UTC", "2026-11-22T12:00", 0),
    ("Europe/London", "2026-11-22T12:00", 0),
    ("Europe/Zurich", "2026-11-22T12:00", 3600),
    ("Europe/Zurich", "2026-07-22T12:00", 7200),
    ("America/St_Johns", "2026-11-22T12:00", -12_600),
    ("America/Argentina/Buenos_Aires", "2026-11-22T12:00", -10_800),
    ("Asia/Kolkata", "2026-11-22T12:00", 19_800),
    ("Pacific/Kiritimati", "2026-11-22T12:00", 50_400),
    ("Etc/GMT+12", "2026-11-22T12:00", -43_200),
)


async def check_a_zone_is_ahead_of_utc_by_its_offset(zones: TimeZones) -> None:
    for zone, at, ahead in _OFFSETS:
        assert zones(zone, _ms(at)) == ahead, (zone, at)


async def check_the_offset_changes_in_the_second_in_which_the_clocks_do(zones: TimeZones) -> None:
    change = _ms("2026-03-29T01:00")
    assert [zones("Europe/Zurich", change - 1), zones("Europe/Zurich", change)] == [3600, 7200]


async def check_an_unknown_zone_is_refused(zones: TimeZones) -> None:
    for zone in ("Europe/Atlantis", "Europe", "Nowhere"):
        with raises(InvalidInput, code="unknown_time_zone"):
            zones(zone, 0)
