"""Calls of the platform that end in time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import cache
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

    __slots__ = ("_code", "_limit_ms", "_ring", "_timeout", "_timer", "_what")

    def __init__(self, limit_ms: int, what: str, code: UnavailableCode) -> None:
        self._limit_ms = limit_ms
        self._what = what
        self._code = code

    async def __aenter__(self) -> None:
        self._timeout = timeout = asyncio.timeout(None)
        loop = asyncio.get_running_loop()
        self._ring = create_proxy(lambda: timeout.reschedule(loop.time()))
        await timeout.__aenter__()
        self._timer = _timers()[0](self._ring, self._limit_ms)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _timers()[1](self._timer)
        self._ring.destroy()
        try:
            await self._timeout.__aexit__(kind, error, trace)
        except TimeoutError as late:
            extra = {"limit_ms": self._limit_ms, "code": self._code}
            _log.warning("%s did not answer in time", self._what, extra=extra)
            message = f"{self._what} did not answer in time; try again"
            raise errors.Unavailable(message, code=self._code) from late


@cache
def _timers() -> tuple[Callable[[object, int], object], Callable[[object], None]]:
    """Return the platform's functions. Looking them up takes longer than the rest of a deadline."""
    return js.setTimeout, js.clearTimeout
