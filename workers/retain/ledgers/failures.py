"""Unexpected failures of requests, as entries of the error ledger: where in the code, and on which route, never with what.

A fault that each request meets must not cost a write each: an isolate notes one thing once a minute, and a bounded number
of things. The failures between are in the log, with their tracebacks.
"""

from __future__ import annotations

from traceback import walk_tb

from retain.ledgers.errors import Trouble
from retain.ports import Clock

NOTED_MS = 60_000
"""How long an isolate leaves out what it has noted."""
MAX_NOTED = 100
"""Most things that an isolate notes in that time."""
_OURS = ("retain", "assembly", "adapters", "bindings", "entry")


class Failures:
    """The failures that one isolate has noted."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._noted: dict[str, int] = {}

    def noted(self, route: str, failure: Exception) -> Trouble | None:
        """Return the ledger's entry for a failure, None for one that was noted just before.

        route: the method and the path of the route, with the names of its parameters.
        """
        now_ms = self._clock()
        concerns = f"{route} {type(failure).__name__} {place_of(failure)}"
        self._noted = {one: at_ms for one, at_ms in self._noted.items() if now_ms < at_ms + NOTED_MS}
        if concerns in self._noted or len(self._noted) >= MAX_NOTED:
            return None
        self._noted[concerns] = now_ms
        return Trouble("request", concerns, "internal", now_ms)


def place_of(failure: BaseException) -> str:
    """Return the module and the line of Retain's own code in which a failure came up last; "-" for none."""
    place = "-"
    for frame, line in walk_tb(failure.__traceback__):
        module = str(frame.f_globals.get("__name__", ""))
        if module.partition(".")[0] in _OURS:
            place = f"{module}:{line}"
    return place
