"""When schedules are due: laws of cron expressions in time zones, and what is refused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retain.agents.calls.timing import MAX_AHEAD_MS, MAX_CRON_CHARACTERS, IanaZone, Timing, cron_after
from retain.errors import InvalidInput
from retain.host.clock import system_time_zones

ZONES = ("UTC", "Europe/Zurich", "America/St_Johns", "Australia/Lord_Howe", "Asia/Kathmandu", "Africa/Casablanca")
NOW_MS = 1_790_000_000_000
TIMES = st.integers(min_value=1_500_000_000_000, max_value=2_000_000_000_000)
EXPRESSIONS = st.builds(
    "{} {} {} {} {}".format,
    st.sampled_from(("*", "0", "30", "*/7", "5,50", "10-20")),
    st.sampled_from(("*", "0", "2", "1-3", "*/5")),
    st.sampled_from(("*", "1", "29", "L")),
    st.sampled_from(("*", "3", "10", "MAR-NOV", "2")).filter(lambda month: "-" not in month),
    st.sampled_from(("*", "SUN", "MON#1", "1-5")),
)


def local(zone: str, *times_ms: int) -> list[str]:
    return [datetime.fromtimestamp(at_ms / 1000, ZoneInfo(zone)).isoformat() for at_ms in times_ms]


def following(expression: str, zone: str, after: str, count: int) -> list[str]:
    """Return the next times of an expression, in the zone."""
    at_ms = int(datetime.fromisoformat(after).timestamp() * 1000)
    found = []
    for _ in range(count):
        at_ms = cron_after(expression, zone, at_ms, system_time_zones)
        found.append(at_ms)
    return local(zone, *found)


@given(expression=EXPRESSIONS, zone=st.sampled_from(ZONES), after_ms=TIMES)
def test_the_next_time_is_later_a_whole_minute_and_the_same_from_any_moment_before_it(
    expression: str, zone: str, after_ms: int
) -> None:
    due_ms = cron_after(expression, zone, after_ms, system_time_zones)
    assert after_ms < due_ms
    assert due_ms % 60_000 == 0
    between = after_ms + (due_ms - after_ms) // 2
    assert cron_after(expression, zone, max(between, due_ms - 60_000), system_time_zones) == due_ms
    assert cron_after(expression, zone, due_ms - 1, system_time_zones) == due_ms


@given(zone=st.sampled_from(ZONES), at_s=st.integers(min_value=1_500_000_000, max_value=2_000_000_000))
def test_a_zone_made_of_offsets_is_that_of_the_database(zone: str, at_s: int) -> None:
    at = datetime.fromtimestamp(at_s, UTC)
    ours, known = at.astimezone(IanaZone(zone, system_time_zones)), at.astimezone(ZoneInfo(zone))
    assert (ours.replace(tzinfo=None), ours.fold, ours.utcoffset()) == (
        known.replace(tzinfo=None),
        known.fold,
        known.utcoffset(),
    )
    skipped_or_not = known.replace(tzinfo=None) + timedelta(minutes=30)
    for fold in (0, 1):
        wall = skipped_or_not.replace(fold=fold)
        assert wall.replace(tzinfo=ours.tzinfo).utcoffset() == wall.replace(tzinfo=ZoneInfo(zone)).utcoffset()


def test_where_clocks_go_forward_a_skipped_time_is_due_when_the_gap_is_over() -> None:
    assert following("30 2 * * *", "Europe/Zurich", "2026-03-28T00:00:00+01:00", 3) == [
        "2026-03-28T02:30:00+01:00",
        "2026-03-29T03:00:00+02:00",
        "2026-03-30T02:30:00+02:00",
    ]


def test_where_clocks_go_back_a_fixed_time_is_due_once_and_each_half_hour_twice() -> None:
    assert following("30 2 * * *", "Europe/Zurich", "2026-10-24T12:00:00+02:00", 2) == [
        "2026-10-25T02:30:00+02:00",
        "2026-10-26T02:30:00+01:00",
    ]
    assert following("30 2 * * *", "Europe/Zurich", "2026-10-25T02:10:00+01:00", 1) == ["2026-10-26T02:30:00+01:00"]
    assert following("*/30 * * * *", "Europe/Zurich", "2026-10-25T01:45:00+02:00", 5) == [
        "2026-10-25T02:00:00+02:00",
        "2026-10-25T02:30:00+02:00",
        "2026-10-25T02:00:00+01:00",
        "2026-10-25T02:30:00+01:00",
        "2026-10-25T03:00:00+01:00",
    ]


def test_a_rare_day_is_found_years_ahead() -> None:
    assert following("0 0 29 2 *", "Asia/Tokyo", "2026-03-01T00:00:00+09:00", 2) == [
        "2028-02-29T00:00:00+09:00",
        "2032-02-29T00:00:00+09:00",
    ]


@pytest.mark.parametrize(
    "expression",
    [
        "",
        "* * * *",
        "* * * * * *",
        "@daily",
        "61 * * * *",
        "0 24 * * *",
        "0 0 30 2 *",
        "0 0 * * MON#6",
        "0 0 * * 8",
        "a b c d e",
        "*/0 * * * *",
        "5-1 * * * *",
        "\u00b2 * * * *",
        f"0 0 {','.join(['1'] * MAX_CRON_CHARACTERS)} * *",
    ],
)
def test_an_expression_that_is_not_valid_or_names_no_time_is_refused(expression: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        cron_after(expression, "UTC", NOW_MS, system_time_zones)
    assert refused.value.code == "invalid_cron"


@given(st.text(alphabet="0123456789*/,-#LWMONSUJAN ²\n\t", max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        assert cron_after(text, "Europe/Zurich", NOW_MS, system_time_zones) > NOW_MS
    except InvalidInput as error:
        assert error.code == "invalid_cron"


def test_the_longest_expression_is_read_and_one_character_more_is_refused() -> None:
    longest = "0 0 1 1 " + "1," * ((MAX_CRON_CHARACTERS - 9) // 2) + "1"
    longest = longest.replace("0 0", "0 00", 1) if len(longest) < MAX_CRON_CHARACTERS else longest
    assert len(longest) == MAX_CRON_CHARACTERS
    assert cron_after(longest, "UTC", NOW_MS, system_time_zones) > NOW_MS
    with pytest.raises(InvalidInput):
        cron_after(longest.replace("1 1 ", "01 1 ", 1), "UTC", NOW_MS, system_time_zones)


def test_an_unknown_zone_is_refused() -> None:
    with pytest.raises(InvalidInput) as refused:
        cron_after("0 9 * * *", "Europe/Atlantis", NOW_MS, system_time_zones)
    assert refused.value.code == "unknown_time_zone"


def test_one_time_is_in_the_next_five_years_and_has_no_second() -> None:
    for late_ms in (NOW_MS - 1, NOW_MS, NOW_MS + MAX_AHEAD_MS + 1):
        with pytest.raises(InvalidInput) as refused:
            Timing(None, None, late_ms).first_ms(NOW_MS, system_time_zones)
        assert refused.value.code == "invalid_at_ms"
    for good_ms in (NOW_MS + 1, NOW_MS + MAX_AHEAD_MS):
        once = Timing(None, None, good_ms)
        assert once.first_ms(NOW_MS, system_time_zones) == good_ms
        assert once.following_ms(good_ms, system_time_zones) is None


def test_a_schedule_whose_zone_the_platform_has_forgotten_is_never_due_again() -> None:
    assert Timing("0 9 * * *", "Europe/Atlantis", None).following_ms(NOW_MS, system_time_zones) is None
