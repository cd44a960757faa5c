"""The SDK, `workers`: the classes that the Worker's own are made from, and waitUntil."""

from __future__ import annotations

import asyncio
from typing import Any

background: set[asyncio.Future[Any]] = set()
"""Work that was given to waitUntil and has not ended."""


class WorkerEntrypoint:
    """A Worker's entrypoint."""

    def __init__(self, ctx: Any, env: Any) -> None:
        self.ctx = ctx
        self.env = env


class DurableObject:
    """A Durable Object."""

    def __init__(self, ctx: Any, env: Any) -> None:
        self.ctx = ctx
        self.env = env


def import_from_javascript(module_name: str) -> Any:
    """Return the counterpart of a module of JavaScript."""
    from tests.shell.platform import exchange  # which imports `js`

    return {"adapters/exchange.mjs": exchange}[module_name]


def wait_until(promise: Any) -> None:
    """Let a future complete after the answer. Anything but a future is lost, as on the platform."""
    if isinstance(promise, asyncio.Future):
        background.add(promise)
        promise.add_done_callback(background.discard)


async def settled() -> None:
    """Return when nothing that was given to waitUntil is left. Raises: what it raised."""
    while background:
        await asyncio.gather(*background)
