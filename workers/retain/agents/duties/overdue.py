"""Instances that are asked by the scheduled work for what they should have done, one after another and for a bounded time.

An instance that does not answer takes as long as a call of it may (`retain.limits.deadlines.INSTANCE_MS`), and fifty of them
more than an invocation has.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence

from retain.errors import RetainError
from retain.ports import Clock, Row

ASKING_MS = 120_000
"""After this time no further instance is asked; those that are left count as failed, and are due again after an hour."""

_log = logging.getLogger(__name__)


async def ask_each(
    rows: Sequence[Row], ask: Callable[[Row], Awaitable[object]], clock: Clock, what: str, key: str
) -> dict[str, int]:
    """Ask for each row; return how many were asked for, and failed. what, key: what a row is, and its id, for the log."""
    counts = {"asked": 0, "failed": 0}
    ends_at_ms = clock() + ASKING_MS
    for number, row in enumerate(rows):
        if clock() >= ends_at_ms:
            _log.warning("%s: the others are asked for later", what, extra={"rows": len(rows) - number})
            counts["failed"] += len(rows) - number
            break
        try:
            await ask(row)
            counts["asked"] += 1
        except RetainError as error:
            _log.warning("%s: its instance did not answer", what, extra={key: row[key], "code": error.code})
            counts["failed"] += 1
    return counts
