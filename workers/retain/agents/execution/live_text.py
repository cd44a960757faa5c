"""What the model is writing now, for the followers of a run. It is stored nowhere: the log holds complete answers.

And the wait for a task that some news may end. A turn of the event loop is dear in a Worker, where each is a message to
JavaScript: a task begins at once, and one future wakes whoever waits for it.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from retain.agents.calls.requests import ReadPosition

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of an answer that is being written. offset: how many characters of the answer are before it."""

    turn: int
    offset: int
    text: str

    @property
    def end(self) -> int:
        """How many characters of the answer come before the end of the piece."""
        return self.offset + len(self.text)


class LiveText:
    """The newest answer of an instance, as far as it is written, and a bell that rings for each news of a run."""

    def __init__(self) -> None:
        self._run_id = ""
        self._turn = 0
        self._text = ""
        self._logged_as: int | None = None
        self._bells: set[asyncio.Event] = set()
        self._watches: set[Callable[[], None]] = set()

    def begin(self, run_id: str, turn: int) -> None:
        """Begin the answer of a turn, from its start even if it had begun before. The earlier answer is forgotten."""
        self._run_id, self._turn, self._text, self._logged_as = run_id, turn, "", None

    def add(self, text: str) -> None:
        """Append to the answer."""
        self._text += text
        self.ring()

    def written(self, run_id: str, turn: int) -> str:
        """Return what is written so far of the answer of a turn, "" when it is not the newest answer."""
        return self._text if (run_id, turn) == (self._run_id, self._turn) else ""

    def logged(self, run_id: str, turn: int, seq: int) -> None:
        """Record that the complete answer of this turn is event number `seq` of the run's log."""
        if (run_id, turn) == (self._run_id, self._turn):
            self._logged_as = seq

    def after(self, run_id: str, position: ReadPosition) -> Piece | None:
        """Return what a reader has not read of the newest answer; None when there is nothing, or it was read from the log.

        A reader of an earlier turn gets all of it. An answer that was begun again may be shorter than what was read of
        it; then all of it is returned.
        """
        if run_id != self._run_id or position.turn > self._turn:
            return None
        if self._logged_as is not None and position.after >= self._logged_as:
            return None
        start = position.offset if self._turn == position.turn and position.offset <= len(self._text) else 0
        return Piece(self._turn, start, self._text[start:]) if self._text[start:] else None

    def ring(self) -> None:
        """Wake up everyone who waits for news."""
        for bell in self._bells:
            bell.set()
        for wake in self._watches:
            wake()

    async def ended(self, task: asyncio.Task[_T], is_over: Callable[[], bool]) -> bool:
        """Return True when the task has ended, False as soon as `is_over` returns True at some news before that."""
        while not task.done():
            if is_over():
                return False
            woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            wake = partial(_set, woken)
            self._watches.add(wake)
            task.add_done_callback(wake)
            try:
                await woken
            finally:
                self._watches.discard(wake)
                task.remove_done_callback(wake)
        return True

    async def news(self, has_news: Callable[[], bool], wait_s: float | None) -> None:
        """Return when there is news, or after `wait_s` seconds; None for any time."""
        bell = asyncio.Event()
        self._bells.add(bell)
        try:
            async with asyncio.timeout(wait_s):
                while not has_news():
                    await bell.wait()
                    bell.clear()
        except TimeoutError:
            return
        finally:
            self._bells.discard(bell)


def _set(woken: asyncio.Future[None], *_: object) -> None:
    if not woken.done():
        woken.set_result(None)


if sys.version_info >= (3, 12):

    def begun(work: Coroutine[Any, Any, _T]) -> asyncio.Task[_T]:
        """Execute a coroutine up to its first wait, and the rest as a task; one that never waits has then ended."""
        return asyncio.Task(work, loop=asyncio.get_running_loop(), eager_start=True)

else:

    def begun(work: Coroutine[Any, Any, _T]) -> asyncio.Task[_T]:
        """Execute a coroutine as a task. It begins with the next turn of the event loop."""
        return asyncio.ensure_future(work)
