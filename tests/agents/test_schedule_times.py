"""When schedules are due: laws of cron expressions in time zones, and what is refused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import count
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim
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


CHANGES = {
    "Europe/Zurich": ("2026-03-29T01:00", "2026-10-25T01:00"),
    "Africa/Cairo": ("2026-04-23T22:00", "2026-10-29T21:00"),
    "Australia/Lord_Howe": ("2026-04-04T15:00", "2026-10-03T15:30"),
    "Pacific/Chatham": ("2026-04-04T14:00", "2026-09-26T14:00"),
    "Asia/Pyongyang": ("2015-08-14T15:00", "2018-05-04T15:00"),
}
"""When clocks change, in UTC: by an hour at midnight, by half an hour, at a quarter to, and by a law."""


@pytest.mark.parametrize("expression", ["* 3 * * *", "*/20 2 * * *", "0 */3 * * *", "15 * * * *", "*/25 0,1,23 * * *"])
@pytest.mark.parametrize(("zone", "change"), [(zone, at) for zone, times in CHANGES.items() for at in times])
def test_where_clocks_change_an_expression_with_a_star_is_due_whenever_they_show_one_of_its_times(
    zone: str, change: str, expression: str
) -> None:
    lookups = count()

    def zones(zone: str, at_ms: int) -> int:
        assert next(lookups) < 100_000, "it loops for ever"
        return system_time_zones(zone, at_ms)

    around = datetime.fromisoformat(f"{change}+00:00")
    minutes = [around + timedelta(minutes=number) for number in range(-240, 1500)]
    expected = [at for at in minutes if shows(expression, at.astimezone(ZoneInfo(zone)))]
    found, last_ms = [], int(minutes[0].timestamp() * 1000) - 1
    while (last_ms := cron_after(expression, zone, last_ms, zones)) <= minutes[-1].timestamp() * 1000:
        found.append(datetime.fromtimestamp(last_ms / 1000, UTC))
    assert found == expected


def shows(expression: str, local: datetime) -> bool:
    """Return whether an expression names a local time."""
    wall = local.replace(tzinfo=None, fold=0)
    return bool(next(CronSim(expression, wall - timedelta(seconds=1))) == wall)


def test_an_expression_that_names_only_times_that_clocks_skip_names_none() -> None:
    with pytest.raises(InvalidInput) as refused:
        cron_after("* 2 * 3 0L", "Europe/Zurich", NOW_MS, system_time_zones)
    assert refused.value.code == "invalid_cron"
    year = datetime.fromtimestamp(NOW_MS / 1000, UTC).year
    assert following("0 */2 30,31 12 *", "Pacific/Apia", "2011-12-29T23:00:00-10:00", 1) == [
        "2011-12-31T00:00:00+14:00"
    ]
    assert following("* * 30,31 12 *", "Pacific/Apia", "2011-12-29T23:59:00-10:00", 1) == ["2011-12-31T00:00:00+14:00"]
    assert following("0 2 * 3 0L", "Europe/Zurich", f"{year + 1}-01-01T00:00:00+01:00", 1)[0].endswith(
        "T03:00:00+02:00"
    )


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
