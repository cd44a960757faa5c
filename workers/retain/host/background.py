"""Background work on the host: asyncio tasks that can be awaited together and whose failures are logged."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

_log = logging.getLogger(__name__)


class TaskBackground:
    """Implements `retain.ports.Background` with tasks of the running event loop."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def __call__(self, work: Coroutine[Any, Any, None]) -> None:
        """Start the coroutine. Its failure is logged, not raised."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)  # the event loop itself keeps only a weak reference
        task.add_done_callback(self._done)

    async def settled(self) -> None:
        """Return when all work is done, including work that it started."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            _log.error("background work failed", exc_info=error)
