"""Calls of functions that somebody else wrote: whatever they raise ends their call, and nothing around it.

`sys.exit` and `KeyboardInterrupt` end an event loop, and with it the isolate and every run in it. `CancelledError` and
`GeneratorExit` end the coroutine that awaits the function as if its caller had given it up: the run would stay open.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from typing import Any

DEADLINE_S = 300
"""How long a function that waits may take. One that computes without end is ended by the platform's limit of CPU time.

Source: https://developers.cloudflare.com/workers/platform/limits/#cpu-time
"""


async def guarded(function: Callable[[], Coroutine[Any, Any, object]]) -> object:
    """Return what the function returns.

    Raises: the Exception that it raises; RuntimeError for anything else that it raises; TimeoutError after DEADLINE_S. Only
        a cancellation that comes from outside is raised as it is.
    """
    async with asyncio.timeout(DEADLINE_S):
        return await _Steps(function())


class _Steps:
    """An awaitable that takes each step of a coroutine itself: only so is it known who closes whom."""

    def __init__(self, coroutine: Coroutine[Any, Any, object]) -> None:
        self._coroutine = coroutine

    def __await__(self) -> Generator[Any, Any, object]:
        coroutine = self._coroutine
        given: object = None
        thrown: BaseException | None = None
        while True:
            try:
                waits = coroutine.send(given) if thrown is None else coroutine.throw(thrown)
            except StopIteration as ended:
                return ended.value
            except BaseException as error:
                if isinstance(error, Exception) or (isinstance(error, asyncio.CancelledError) and _is_cancelled()):
                    raise
                raise RuntimeError(f"the tool raised {type(error).__name__}") from error
            given, thrown = None, None
            try:
                given = yield waits
            except GeneratorExit:
                coroutine.close()
                raise
            except BaseException as error:  # noqa: BLE001 -- thrown into the coroutine
                thrown = error


def _is_cancelled() -> bool:
    """Return whether somebody cancelled this task, and not merely something that the function awaited."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
