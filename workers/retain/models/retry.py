"""Retries of calls to a model's server: capped exponential backoff with full jitter.

Source: https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol, TypeVar

from retain.errors import Unavailable

Result = TypeVar("Result")

_HTTP_DATES = ("%a, %d %b %Y %H:%M:%S GMT", "%A, %d-%b-%y %H:%M:%S GMT", "%a %b %d %H:%M:%S %Y")
"""The forms of a date in HTTP, the newest first. Source: https://www.rfc-editor.org/rfc/rfc9110#name-date-time-formats"""

OnRetry = Callable[[Unavailable, int], None]
"""Takes a failure after which a call is repeated, and the wait before it in milliseconds."""

_observer: ContextVar[OnRetry | None] = ContextVar("retain_retry_observer", default=None)


@contextmanager
def retries_observed(on_retry: OnRetry) -> Iterator[None]:
    """Let `on_retry` know of every retry inside the block, before the wait."""
    token = _observer.set(on_retry)
    try:
        yield
    finally:
        _observer.reset(token)


def report_retry(error: Unavailable, delay_ms: int) -> None:
    """Let the observer, if there is one, know that a call is repeated after this failure and this wait."""
    observer = _observer.get()
    if observer is not None:
        observer(error, delay_ms)


class Sleep(Protocol):
    """Waits. `asyncio.sleep` is one."""

    async def __call__(self, delay_s: float, /) -> None:
        """Return after `delay_s` seconds."""
        ...


@dataclass(frozen=True, slots=True)
class Retries:
    """How often to try, and how long to wait in between.

    sleep: waits. random: a number in [0, 1); `random.random` is one.
    attempts: most calls, including the first. base_ms, cap_ms: the longest wait before the second attempt, and
    before any attempt. window_ms: how long after the first attempt the last one may begin: the failure of a server that
    does not answer in time is the caller's to know, and not to be waited for four times. now_s: a clock of seconds.
    """

    sleep: Sleep
    random: Callable[[], float]
    attempts: int = 4
    base_ms: int = 500
    cap_ms: int = 8_000
    window_ms: int = 20_000
    now_s: Callable[[], float] = time.monotonic


def delay_ms(attempt: int, retries: Retries, retry_after_ms: int | None = None) -> int | None:
    """Return how long to wait after the failed attempt (the first is 0), or None to give up.

    Full jitter: uniform between 0 and min(cap, base * 2**attempt). If the server asks for a longer wait, it is
    honoured up to the cap; beyond that, waiting is the caller's decision.
    """
    if attempt + 1 >= retries.attempts or (retry_after_ms or 0) > retries.cap_ms:
        return None
    jittered = int(retries.random() * min(retries.cap_ms, retries.base_ms * 2**attempt))
    return max(jittered, retry_after_ms or 0)


def retry_after_ms(headers: Mapping[str, str], now: datetime | None = None) -> int | None:
    """Return how long the server asks to wait, or None when the header is absent or invalid.

    `retry-after-ms` is OpenAI's, and more precise. A date in `retry-after` is compared with the answer's own `date`, or
    with `now` (the system's time by default) when it has none.
    Source: https://www.rfc-editor.org/rfc/rfc9110#name-retry-after
    """
    for name, unit_ms in (("retry-after-ms", 1.0), ("retry-after", 1000.0)):
        try:
            return max(0, int(float(headers[name]) * unit_ms))
        except (KeyError, ValueError, OverflowError):
            continue
    until = _http_date(headers.get("retry-after", ""))
    if until is None:
        return None
    answered = _http_date(headers.get("date", "")) or now or datetime.now(UTC)
    return max(0, int((until - answered).total_seconds() * 1000))


def _http_date(text: str) -> datetime | None:
    for form in _HTTP_DATES:
        try:
            return datetime.strptime(text.strip(), form).replace(tzinfo=UTC)
        except ValueError:
            continue
    return None


async def with_retries(call: Callable[[], Awaitable[Result]], retries: Retries) -> Result:
    """Return what `call` returns, retrying after each Unavailable.

    `call` must have no side effect. The wait is at least the failure's detail `retry_after_ms`. Each retry is reported
    to `retries_observed`.

    Raises: the last Unavailable when attempts or time are used up or the server asks for too long a wait; any other
        error at once.
    """
    attempt, began_s = 0, retries.now_s()
    while True:
        try:
            return await call()
        except Unavailable as error:
            asked = error.details.get("retry_after_ms")
            delay = delay_ms(attempt, retries, asked if isinstance(asked, int) else None)
            if delay is None or (retries.now_s() - began_s) * 1000 + delay > retries.window_ms:
                raise
            report_retry(error, delay)
        await retries.sleep(delay / 1000)
        attempt += 1
