"""Calls of the platform that end in time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import cache
from itertools import count
from types import TracebackType

import js
from pyodide.ffi import create_proxy

from retain import errors
from retain.errors.codes import UnavailableCode

_log = logging.getLogger("retain.bindings")


class within:  # noqa: N801 -- used as a function: `async with within(…)`
    """Bound the calls that are awaited inside the block.

    A promise of the platform cannot be cancelled: after the deadline nobody waits for it any more, and whether the call
    takes effect is not known. The timer is removed with the block: one that is left keeps a Durable Object awake, and those
    of asyncio stay in Pyodide until they fire.
    Raises: Unavailable after `limit_ms`.
    """

    __slots__ = ("_code", "_limit_ms", "_number", "_timeout", "_timer", "_what")

    def __init__(self, limit_ms: int, what: str, code: UnavailableCode) -> None:
        self._limit_ms = limit_ms
        self._what = what
        self._code = code

    async def __aenter__(self) -> None:
        self._timeout = asyncio.timeout(None)
        await self._timeout.__aenter__()
        self._number = next(_numbers)
        _waiting[self._number] = self._timeout
        set_timer, _, ring = _timers()
        self._timer = set_timer(ring, self._limit_ms, self._number)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _timers()[1](self._timer)
        del _waiting[self._number]
        try:
            await self._timeout.__aexit__(kind, error, trace)
        except TimeoutError as late:
            extra = {"limit_ms": self._limit_ms, "code": self._code}
            _log.warning("%s did not answer in time", self._what, extra=extra)
            message = f"{self._what} did not answer in time; try again"
            raise errors.Unavailable(message, code=self._code) from late


_numbers = count()
_waiting: dict[int, asyncio.Timeout] = {}
"""The deadlines that have not passed, by their number."""


def _ring(number: int) -> None:
    """End the block whose deadline has passed, if it has not ended."""
    if number in _waiting:
        _waiting[number].reschedule(asyncio.get_running_loop().time())


@cache
def _timers() -> tuple[Callable[[object, int, int], object], Callable[[object], None], object]:
    """Return the platform's functions, and what a timer calls. To make them takes longer than the rest of a deadline."""
    return js.setTimeout, js.clearTimeout, create_proxy(_ring)
