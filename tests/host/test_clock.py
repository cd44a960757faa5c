"""The clocks and time zones of the host."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from retain.host.clock import ManualClock, system_clock, system_time_zones
from tests.ports import Case, cases, time_zones


@pytest.mark.parametrize("case", cases(time_zones).values(), ids=cases(time_zones).keys())
async def test_the_time_zones_keep_their_contract(case: Case) -> None:
    await case(system_time_zones)


def test_the_system_clock_counts_milliseconds_since_1970() -> None:
    before = datetime.now(UTC).timestamp() * 1000
    now_ms = system_clock()
    after = datetime.now(UTC).timestamp() * 1000
    assert isinstance(now_ms, int)
    assert before - 1 <= now_ms <= after


def test_a_manual_clock_stands_still_until_it_is_moved() -> None:
    clock = ManualClock(1_000)
    assert (clock(), clock()) == (1_000, 1_000)
    clock.advance(500)
    assert clock() == 1_500
    clock.set(42)
    assert clock() == 42
