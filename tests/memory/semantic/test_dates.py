"""Dates in a query become time intervals relative to a clock, without a model."""

from __future__ import annotations

from calendar import monthrange
from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retain.memory.recall.times.dates import DAY_MS, HOUR_MS, MAX_DATES, Interval, dates


def at(text: str) -> int:
    """Return an ISO time in UTC as epoch milliseconds."""
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


def days(first: str, after: str) -> tuple[str, str]:
    return f"{first}T00:00", f"{after}T00:00"


WEDNESDAY = at("2026-03-18T15:30")
CASES: dict[str, list[tuple[str, str]]] = {
    "yesterday": [days("2026-03-17", "2026-03-18")],
    "today": [days("2026-03-18", "2026-03-19")],
    "tomorrow": [days("2026-03-19", "2026-03-20")],
    "this morning": [days("2026-03-18", "2026-03-19")],
    "the day before yesterday": [days("2026-03-16", "2026-03-17")],
    "the day after tomorrow": [days("2026-03-20", "2026-03-21")],
    "last night": [("2026-03-17T12:00", "2026-03-18T12:00")],
    "two days ago": [days("2026-03-16", "2026-03-17")],
    "a couple of days ago": [days("2026-03-16", "2026-03-17")],
    "a few days ago": [days("2026-03-14", "2026-03-17")],
    "3 weeks ago": [days("2026-02-22", "2026-03-01")],
    "two months ago": [days("2026-01-01", "2026-02-01")],
    "a year ago": [days("2025-01-01", "2026-01-01")],
    "an hour ago": [("2026-03-18T13:30", "2026-03-18T15:30")],
    "last week": [days("2026-03-09", "2026-03-16")],
    "this week": [days("2026-03-16", "2026-03-23")],
    "next week": [days("2026-03-23", "2026-03-30")],
    "last month's": [days("2026-02-01", "2026-03-01")],
    "next year": [days("2027-01-01", "2028-01-01")],
    "last weekend": [days("2026-03-14", "2026-03-16")],
    "over the weekend": [days("2026-03-14", "2026-03-16")],
    "this weekend": [days("2026-03-21", "2026-03-23")],
    "on Monday": [days("2026-03-16", "2026-03-17")],
    "on Wednesday": [days("2026-03-18", "2026-03-19")],
    "last Wednesday": [days("2026-03-11", "2026-03-12")],
    "next Wednesday": [days("2026-03-25", "2026-03-26")],
    "this Friday": [days("2026-03-20", "2026-03-21")],
    "Friday": [days("2026-03-13", "2026-03-14")],
    "on Friday morning": [days("2026-03-13", "2026-03-14")],
    "on Friday mornings": [],
    "on a Friday": [],
    "every Friday and each Monday": [],
    "in March": [days("2026-03-01", "2026-04-01")],
    "last March": [days("2025-03-01", "2025-04-01")],
    "next March": [days("2027-03-01", "2027-04-01")],
    "in early May": [days("2025-05-01", "2025-05-14")],
    "in mid-March": [days("2026-03-09", "2026-03-23")],
    "in mid-June": [days("2025-06-09", "2025-06-23")],
    "at the end of May 2024": [days("2024-05-18", "2024-06-01")],
    "late February": [days("2026-02-18", "2026-03-01")],
    "from the beginning of May": [days("2025-05-01", "2025-05-14")],
    "mid to late July": [days("2025-07-09", "2025-08-01")],
    "last summer": [days("2025-06-01", "2025-09-01")],
    "in the winter": [days("2025-12-01", "2026-03-01")],
    "fall of 2022": [days("2022-09-01", "2022-12-01")],
    "in 2023": [days("2023-01-01", "2024-01-01")],
    "May 2024": [days("2024-05-01", "2024-06-01")],
    "May 3rd, 2024": [days("2024-05-03", "2024-05-04")],
    "3rd of May 2024": [days("2024-05-03", "2024-05-04")],
    "7 Sept. 2024": [days("2024-09-07", "2024-09-08")],
    "on May 3": [days("2025-05-03", "2025-05-04")],
    "2024-05-01": [days("2024-05-01", "2024-05-02")],
    "2024-05": [days("2024-05-01", "2024-06-01")],
    "2024/5/1": [days("2024-05-01", "2024-05-02")],
    "3.5.2024": [days("2024-05-03", "2024-05-04")],
    "5/13/2024": [days("2024-05-13", "2024-05-14")],
    "3/5/2024": [days("2024-05-03", "2024-05-04"), days("2024-03-05", "2024-03-06")],
    "29 February": [days("2024-02-29", "2024-03-01")],
    "May eighth": [days("2025-05-08", "2025-05-09")],
    "on May the 3rd": [days("2025-05-03", "2025-05-04")],
    "the twenty-first of July 2024": [days("2024-07-21", "2024-07-22")],
    "May first": [days("2025-05-01", "2025-05-02")],
    "what you may first say": [],
    "over this last week": [("2026-03-11T00:00", "2026-03-18T15:30")],
    "between May 8th and June 9th": [days("2025-05-08", "2025-06-10")],
    "between December 17th and January 1st": [days("2025-12-17", "2026-01-02")],
    "from 3 May until 5 June": [days("2025-05-03", "2025-06-06")],
    "May 8th through June 9th": [days("2025-05-08", "2025-06-10")],
    "from May 3rd 2024 to last week": [days("2024-05-03", "2026-03-16")],
    "between 2024-05-01 and 2024-04-01": [days("2024-05-01", "2024-05-02"), days("2024-04-01", "2024-04-02")],
    "between March and May": [days("2025-03-01", "2025-06-01")],
    "between May and March": [days("2025-05-01", "2026-04-01")],
    "from October 2024 to January": [days("2024-10-01", "2025-02-01")],
    "from October to January 2024": [days("2023-10-01", "2024-02-01")],
    "from May 2024 to March 2024": [],
    "in May and on June 3rd": [days("2025-05-01", "2025-06-01"), days("2025-06-03", "2025-06-04")],
    "since March": [("2026-03-01T00:00", "2026-03-18T15:30")],
    "since 2024": [("2024-01-01T00:00", "2026-03-18T15:30")],
    "after last week": [("2026-03-16T00:00", "2026-03-18T15:30")],
    "the last 24 hours": [("2026-03-17T15:30", "2026-03-18T15:30")],
    "over the past two weeks": [("2026-03-04T00:00", "2026-03-18T15:30")],
    "before last week": [],
    "until 2024-05-01": [],
    "after tomorrow's call": [],
    "30 February 2024": [],
    "2024-13-01": [],
    "2024-02-30": [],
    "May I march on?": [],
    "the fall of Rome": [],
    "version 3.5.2024.1": [],
    "order 2024": [],
    "Sundays": [],
}


@pytest.mark.parametrize("text", CASES)
def test_a_date_is_the_time_that_a_person_means(text: str) -> None:
    found = [(interval.from_ms, interval.to_ms) for interval in dates(f"What was {text}?", WEDNESDAY)]
    until_now = {WEDNESDAY + 1: WEDNESDAY}  # an interval that extends to now contains now
    assert [(start, until_now.get(end, end)) for start, end in found] == [(at(a), at(b)) for a, b in CASES[text]]


def test_case_and_white_space_do_not_matter() -> None:
    assert dates("TWO  days\nAGO", WEDNESDAY) == dates("two days ago", WEDNESDAY) != ()


def test_several_dates_are_returned_in_order_each_once_up_to_a_limit() -> None:
    found = dates("today, yesterday, today, 2024-05-01, 2024-05-02, 2024-05-03", WEDNESDAY)
    assert len(found) == MAX_DATES
    assert found[:2] == (*dates("today", WEDNESDAY), *dates("yesterday", WEDNESDAY))


_nows = st.integers(min_value=at("1971-01-01T00:00"), max_value=at("2400-01-01T00:00"))
_dates = st.dates(min_value=date(1900, 1, 1), max_value=date(2099, 12, 30))


def midnight(day: date) -> int:
    return at(f"{day.isoformat()}T00:00")


@given(day=_dates, now_ms=_nows)
def test_a_full_date_is_its_day_in_any_notation_and_at_any_time(day: date, now_ms: int) -> None:
    expected = (Interval(midnight(day), midnight(day + timedelta(days=1))),)
    for text in (day.isoformat(), f"{day.day} {day:%B} {day.year}", f"{day:%b} {day.day}, {day.year}"):
        assert dates(text, now_ms) == expected


@given(day=_dates, now_ms=_nows)
def test_a_month_has_its_days_in_leap_years_too(day: date, now_ms: int) -> None:
    [interval] = dates(f"in {day:%B} {day.year}", now_ms)
    assert interval.to_ms - interval.from_ms == monthrange(day.year, day.month)[1] * DAY_MS
    assert midnight(day) in interval


@given(now_ms=_nows, count=st.integers(min_value=1, max_value=400))
def test_n_units_ago_contains_that_time_and_moves_back_with_n(now_ms: int, count: int) -> None:
    for unit, size in (("minute", HOUR_MS // 60), ("hour", HOUR_MS), ("day", DAY_MS), ("week", 7 * DAY_MS)):
        [interval] = dates(f"{count} {unit}s ago", now_ms)
        [earlier] = dates(f"{count + 1} {unit}s ago", now_ms)
        assert now_ms - count * size in interval
        assert earlier.from_ms < interval.from_ms
        assert earlier.to_ms < interval.to_ms


@given(now_ms=_nows, later_ms=st.integers(min_value=0, max_value=800 * DAY_MS), text=st.sampled_from(sorted(CASES)))
def test_a_later_query_never_means_an_earlier_time(now_ms: int, later_ms: int, text: str) -> None:
    if "this " in text:  # "this winter" in autumn means the coming one
        return
    for before, after in zip(dates(text, now_ms), dates(text, now_ms + later_ms), strict=False):
        assert before.from_ms <= after.from_ms


@given(now_ms=_nows, text=st.sampled_from(sorted(CASES)))
def test_an_interval_is_never_empty_and_those_named_last_are_over(now_ms: int, text: str) -> None:
    for interval in dates(text, now_ms):
        assert interval.from_ms < interval.to_ms
        if text.startswith(("last w", "last m", "last M", "last s", "last W", "yesterday")):
            assert interval.to_ms <= now_ms


@given(now_ms=_nows)
def test_last_this_and_next_follow_each_other(now_ms: int) -> None:
    for unit in ("week", "month", "year"):
        [last], [this], [following] = (dates(f"{which} {unit}", now_ms) for which in ("last", "this", "next"))
        assert last.to_ms == this.from_ms <= now_ms < this.to_ms == following.from_ms


@given(text=st.text(max_size=60), now_ms=st.integers(min_value=-(2**60), max_value=2**60))
def test_any_text_at_any_time_has_dates_or_none(text: str, now_ms: int) -> None:
    for query in (text, f"{text} last winter, 999 years ago, next December, 31 June, since 29 February"):
        assert len(dates(query, now_ms)) <= MAX_DATES


@pytest.mark.timeout(30)
@pytest.mark.parametrize("unit", ["a ", "in ", "1 ", "may ", "last ", "since ", "the ", "12.", "1/", "a few ", "2024-"])
def test_dates_are_found_in_one_pass(unit: str) -> None:
    assert len(dates(unit * (300_000 // len(unit)), WEDNESDAY)) <= MAX_DATES
