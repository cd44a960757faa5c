"""Interleave tasks at each call of a port, in an order that the test gives."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar, cast

from tests.support.faults import Crash

Port = TypeVar("Port")
Outcome = object


class Turns:
    """Lets one of several tasks run at a time, from one call of a port to the next.

    dies: the number of the call, from 1, at which a task raises Crash instead, by task.
    """

    def __init__(self, dies: Mapping[int, int] | None = None) -> None:
        self.calls = [0, 0, 0]
        """The number of calls that each task made."""
        self._dies = dies or {}
        self._waiting: dict[int, asyncio.Future[None]] = {}
        self._done: set[int] = set()
        self._stopped = asyncio.Event()

    def wrap(self, task: int, port: Port) -> Port:
        """Return the port as this task sees it: each of its coroutines waits for the task's turn first."""
        return cast("Port", _Waiting(self, task, port))

    async def turn_of(self, task: int) -> None:
        """Wait for the task's turn."""
        self.calls[task] += 1
        self._waiting[task] = asyncio.get_running_loop().create_future()
        self._stopped.set()
        await self._waiting[task]
        if self.calls[task] == self._dies.get(task):
            raise Crash

    async def run(self, order: Iterable[int], operations: Sequence[Callable[[], Awaitable[object]]]) -> list[Outcome]:
        """Run the operations to completion; return what each returned or raised.

        order: which task runs next, one entry per call. An entry of a task that has ended is skipped; after the last
        entry the tasks continue one after another.
        """
        tasks = [asyncio.ensure_future(self._run(number, make)) for number, make in enumerate(operations)]
        turns = iter(order)
        while len(self._done) < len(tasks):
            running = len(tasks) - len(self._done) - len(self._waiting)
            if running:
                self._stopped.clear()
                await self._stopped.wait()
                continue
            wanted = next((turn for turn in turns if turn in self._waiting), min(self._waiting))
            self._waiting.pop(wanted).set_result(None)
        return await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self, task: int, operation: Callable[[], Awaitable[object]]) -> object:
        try:
            return await operation()
        finally:
            self._done.add(task)
            self._stopped.set()


class _Waiting:
    def __init__(self, turns: Turns, task: int, port: object) -> None:
        self._turns = turns
        self._task = task
        self._port = port

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._port, name)
        if not inspect.iscoroutinefunction(method):
            return method

        async def called(*arguments: Any, **named: Any) -> Any:
            await self._turns.turn_of(self._task)
            return await method(*arguments, **named)

        return called
