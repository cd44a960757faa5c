"""What the model writes right now, for those who follow a run. It is kept nowhere: the log holds the whole answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of an answer that is being written. offset: how many characters of the answer stand before it."""

    turn: int
    offset: int
    text: str


class LiveText:
    """The newest answer of an instance, as far as it is written, and a bell that rings when there is news of a run."""

    def __init__(self) -> None:
        self._run_id = ""
        self._turn = 0
        self._text = ""
        self._bells: set[asyncio.Event] = set()

    def begin(self, run_id: str, turn: int) -> None:
        """Begin the answer of a turn, anew when it had begun. The one before is forgotten."""
        self._run_id, self._turn, self._text = run_id, turn, ""

    def add(self, text: str) -> None:
        """Append to the answer."""
        self._text += text
        self.ring()

    def after(self, run_id: str, turn: int, offset: int) -> Piece | None:
        """Return what stands behind `offset` of this turn's answer; all of it when it is the answer of a later turn.

        An answer that was begun anew may be shorter than what was read of it: then it is read from its beginning.
        """
        if run_id != self._run_id or turn > self._turn:
            return None
        start = offset if self._turn == turn and offset <= len(self._text) else 0
        return Piece(self._turn, start, self._text[start:]) if self._text[start:] else None

    def ring(self) -> None:
        """Wake up everybody who waits for news."""
        for bell in self._bells:
            bell.set()

    async def news(self, there_is: Callable[[], bool], wait_s: float) -> None:
        """Return when there is news, or after `wait_s` seconds."""
        bell = asyncio.Event()
        self._bells.add(bell)
        try:
            async with asyncio.timeout(wait_s):
                while not there_is():
                    await bell.wait()
                    bell.clear()
        except TimeoutError:
            return
        finally:
            self._bells.discard(bell)
