"""Work that is deferred, because what follows soon is best done with it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any


class Deferral:
    """Defers work until it is asked for, at most for a time. One at a time: the next one ends the one before."""

    def __init__(self, most_s: float) -> None:
        self._most_s = most_s
        self._deferred: asyncio.Future[None] | None = None
        self._timer: asyncio.Handle | None = None

    def begin(self) -> asyncio.Future[None]:
        """Return what is done as soon as the work is to be done."""
        self.end()
        loop = asyncio.get_running_loop()
        self._deferred = loop.create_future()
        self._timer = loop.call_later(self._most_s, self.end)
        return self._deferred

    def before(self, work: Callable[[], Awaitable[None]]) -> Coroutine[Any, Any, None]:
        """Defer work from now on; return what waits for its time and does it."""
        return _after(self.begin(), work)

    def end(self) -> bool:
        """Let the work be done now; return False if none is put off."""
        deferred, timer = self._deferred, self._timer
        self._deferred = self._timer = None
        if timer is not None:
            timer.cancel()
        if deferred is None or deferred.done():
            return False
        deferred.set_result(None)
        return True


async def _after(deferred: asyncio.Future[None], work: Callable[[], Awaitable[None]]) -> None:
    await deferred
    await work()
