"""Calls of the platform that end in time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import js
from pyodide.ffi import create_proxy

from retain import errors
from retain.errors.codes import UnavailableCode

_log = logging.getLogger("retain.bindings")


@asynccontextmanager
async def within(limit_ms: int, what: str, code: UnavailableCode) -> AsyncIterator[None]:
    """Bound the calls that are awaited inside the block.

    A promise of the platform cannot be cancelled: after the deadline nobody waits for it any more, and whether the call
    takes effect is not known. The timer is removed with the block: one that is left keeps a Durable Object awake.
    Raises: Unavailable after `limit_ms`.
    """
    timeout = asyncio.timeout(None)
    loop = asyncio.get_running_loop()
    ring = create_proxy(lambda: timeout.reschedule(loop.time()))
    timer = js.setTimeout(ring, limit_ms)
    try:
        async with timeout:
            yield
    except TimeoutError as error:
        if not timeout.expired():
            raise
        _log.warning("%s did not answer in time", what, extra={"limit_ms": limit_ms, "code": code})
        raise errors.Unavailable(f"{what} did not answer in time; try again", code=code) from error
    finally:
        js.clearTimeout(timer)
        ring.destroy()
