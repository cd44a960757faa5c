"""When a run asks a model's server again that is down: after longer and longer waits, up to a limit. Pure.

The waits are equal for every repetition of the decision, and differ between runs, so that those that met the same outage
do not ask again together.
"""

from __future__ import annotations

import zlib

from retain.agents.calls.report import ServerReport
from retain.agents.runs.events import ModelUnavailable
from retain.errors import Unavailable

FIRST_WAIT_MS = 5_000
MAX_WAIT_MS = 300_000
"""The longest wait before the second attempt, doubling up to five minutes."""


def wait_ms(run_id: str, times: int, asked_ms: int | None) -> int:
    """Return how long to wait after `times` earlier waits: the upper half of the interval, and at least what was asked."""
    longest = min(FIRST_WAIT_MS << min(times, 10), MAX_WAIT_MS)
    spread = zlib.crc32(f"{run_id}.{times}".encode()) / 2**32
    return max(int(longest * (0.5 + spread / 2)), asked_ms or 0)


def outage_of(
    run_id: str, turn: int, error: Unavailable, before: ModelUnavailable | None, now_ms: int, limit_ms: int
) -> ModelUnavailable | None:
    """Return the wait that this failure begins, or None when the run gives up.

    before: the last failure of the same outage. limit_ms: how long an outage may last. The last attempt is at
    `gives_up_at_ms`; a server that asks to wait longer is not asked again.
    """
    server = ServerReport.of(error)
    gives_up_at_ms = now_ms + limit_ms if before is None else before.gives_up_at_ms
    earliest_ms = now_ms + (server.retry_after_ms or 0)
    if now_ms >= gives_up_at_ms or earliest_ms > gives_up_at_ms:
        return None
    times = 0 if before is None else before.times + 1
    retry_at_ms = min(now_ms + wait_ms(run_id, times, server.retry_after_ms), gives_up_at_ms)
    return ModelUnavailable(turn, error.code, error.message, retry_at_ms, gives_up_at_ms, times, server)
