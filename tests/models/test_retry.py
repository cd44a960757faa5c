from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retain.errors import Unavailable, UpstreamFailed
from retain.errors.codes import ForeignCode
from retain.models.retry import Retries, delay_ms, retries_observed, retry_after_ms, with_retries
from tests.models.conftest import Waits


def policy(random: Callable[[], float], attempts: int = 10, waits: Waits | None = None) -> Retries:
    return Retries(waits or Waits(), random, attempts=attempts, base_ms=100, cap_ms=1_000)


@pytest.mark.parametrize(
    ("attempt", "random", "expected"),
    [(0, 0.5, 50), (1, 0.5, 100), (2, 0.5, 200), (3, 0.5, 400), (4, 0.5, 500), (8, 0.5, 500), (3, 0.0, 0)],
)
def test_the_longest_wait_doubles_up_to_the_cap(attempt: int, random: float, expected: int) -> None:
    assert delay_ms(attempt, policy(lambda: random)) == expected


@given(st.integers(0, 8), st.floats(0, 1, exclude_max=True), st.none() | st.integers(0, 1_000))
def test_a_wait_is_never_over_the_cap_nor_under_what_the_server_asks(
    attempt: int, random: float, asked: int | None
) -> None:
    delay = delay_ms(attempt, policy(lambda: random), asked)
    assert delay is not None
    assert (asked or 0) <= delay <= 1_000


def test_the_last_attempt_has_no_wait_after_it() -> None:
    assert delay_ms(9, policy(lambda: 0.5)) is None


def test_a_server_that_asks_for_more_than_the_cap_is_left_to_the_caller() -> None:
    assert delay_ms(0, policy(lambda: 0.5), 1_001) is None


NOW = "Wed, 21 Oct 2026 07:28:00 GMT"
HEADERS = {
    "nothing": ({}, None),
    "seconds": ({"retry-after": "3"}, 3_000),
    "fractions of a second": ({"retry-after": "0.25"}, 250),
    "zero": ({"retry-after": "0"}, 0),
    "in the past": ({"retry-after": "-5"}, 0),
    "milliseconds go first": ({"retry-after-ms": "120", "retry-after": "1"}, 120),
    "unintelligible milliseconds": ({"retry-after-ms": "soon", "retry-after": "1"}, 1_000),
    "a date": ({"retry-after": "Wed, 21 Oct 2026 07:28:02 GMT", "date": NOW}, 2_000),
    "a date in the past": ({"retry-after": "Wed, 21 Oct 2026 07:27:00 GMT", "date": NOW}, 0),
    "a date without the answer's own": ({"retry-after": "Wed, 21 Oct 2026 07:28:02 GMT"}, 2_000),
    "a date with a day's name": ({"retry-after": "Wednesday, 21-Oct-26 07:28:02 GMT", "date": NOW}, 2_000),
    "a date as C writes it": ({"retry-after": "Wed Oct 21 07:28:02 2026", "date": NOW}, 2_000),
    "nonsense": ({"retry-after": "soon", "date": NOW}, None),
    "not a number": ({"retry-after": "nan"}, None),
    "infinity": ({"retry-after": "inf"}, None),
}


@pytest.mark.parametrize(("headers", "expected"), HEADERS.values(), ids=HEADERS)
def test_the_wait_that_a_server_asks_for_is_read_from_its_headers(
    headers: dict[str, str], expected: int | None
) -> None:
    assert retry_after_ms(headers, datetime(2026, 10, 21, 7, 28, tzinfo=UTC)) == expected


def test_a_date_is_compared_with_the_system_s_time() -> None:
    asked_ms = retry_after_ms(
        {"retry-after": (datetime.now(UTC) + timedelta(hours=1)).strftime("%a, %d %b %Y %H:%M:%S GMT")}
    )
    assert asked_ms is not None
    assert 3_500_000 < asked_ms <= 3_600_000


class Flaky:
    """Raises the errors one after the other, then returns."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.calls = 0

    async def __call__(self) -> str:
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return "done"


async def test_a_call_is_repeated_while_it_is_unavailable() -> None:
    waits = Waits()
    call = Flaky(Unavailable("busy"), Unavailable("busy", retry_after_ms=700))
    assert await with_retries(call, policy(lambda: 0.5, waits=waits)) == "done"
    assert (call.calls, waits.asked_s) == (3, [0.05, 0.7])


async def test_the_last_failure_is_raised_when_attempts_are_used_up() -> None:
    waits = Waits()
    call = Flaky(*(Unavailable("busy", code=ForeignCode(f"failure_{number}")) for number in range(5)))
    with pytest.raises(Unavailable) as caught:
        await with_retries(call, policy(lambda: 0.5, attempts=3, waits=waits))
    assert (caught.value.code, call.calls, len(waits.asked_s)) == ("failure_2", 3, 2)


@pytest.mark.parametrize("error", [UpstreamFailed("no"), ValueError("a defect")])
async def test_other_failures_are_raised_at_once(error: Exception) -> None:
    call = Flaky(error)
    with pytest.raises(type(error)):
        await with_retries(call, policy(lambda: 0.5))
    assert call.calls == 1


async def test_a_wait_that_is_too_long_is_not_begun() -> None:
    call = Flaky(Unavailable("busy", retry_after_ms=60_000))
    with pytest.raises(Unavailable) as caught:
        await with_retries(call, policy(lambda: 0.5))
    assert (call.calls, caught.value.details["retry_after_ms"]) == (1, 60_000)


async def test_each_retry_is_reported_to_whoever_observes_them() -> None:
    seen: list[tuple[str, int]] = []
    flaky = Flaky(Unavailable("busy", code="model_unavailable"), Unavailable("busy", retry_after_ms=700))
    with retries_observed(lambda error, delay: seen.append((error.code, delay))):
        await with_retries(flaky, policy(lambda: 0.5))
    await with_retries(Flaky(Unavailable("busy")), policy(lambda: 0.5))
    assert seen == [("model_unavailable", 50), ("unavailable", 700)]


@pytest.mark.parametrize(("attempt_s", "calls"), [(0.0, 4), (6.0, 4), (7.0, 3), (30.0, 1)])
async def test_no_attempt_begins_long_after_the_first(attempt_s: float, calls: int) -> None:
    passed: list[float] = []

    async def failing() -> None:
        passed.append(attempt_s)
        raise Unavailable("it did not answer in time", code="upstream_timeout")

    retries = Retries(Waits(), lambda: 0.5, base_ms=1, now_s=lambda: sum(passed))
    with pytest.raises(Unavailable):
        await with_retries(failing, retries)
    assert len(passed) == calls
