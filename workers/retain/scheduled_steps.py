"""A step of the daily brief: a failure is parked, and a step that its bound stopped is continued, both within minutes.

Each step has a part of the calls of D1, so that none takes those of the steps after it. What is noted about a step has a
call of its own: a step that has used up its calls is noted as well. Steps are noted before they begin: of one that does not
end, because the platform ends the invocation, nothing can be noted afterwards, neither of those that would have come next.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass

from retain.errors import RetainError
from retain.ledgers.errors import Trouble, park, settle
from retain.limits.d1_calls import budget, used_up
from retain.ports import Clock, Sql, Statement
from retain.shards.place import without_waiting

USED_UP = "d1_calls_used_up"
CALLS: Mapping[str, int] = {"consolidation": 150, "mutations": 80}
"""Calls of D1 that a step of one brief may make …"""
CALLS_OF_OTHERS = 100
"""… and each of the others: more than one slice of any work takes."""

INTERRUPTED = "step_interrupted"
"""The code of a step that began twice and did not end."""
LONGEST_MS = 16 * 60_000
"""How long a step may be under way before it counts as interrupted: longer than the platform lets an invocation live.

Source: https://developers.cloudflare.com/workers/platform/limits/ (15 minutes for a schedule)
"""

# A step that ended and left more begins for the first time again: `since_ms` is then when it did.
_BEGUN = """
INSERT INTO steps_left (step, since_ms, begun_at_ms) SELECT value, ?2, ?2 FROM json_each(?1) WHERE true
ON CONFLICT DO UPDATE SET since_ms = CASE WHEN begun_at_ms IS NULL THEN excluded.since_ms ELSE since_ms END,
  begun_at_ms = excluded.begun_at_ms
"""
_LEFT = """
INSERT INTO steps_left (step, since_ms) VALUES (?, ?) ON CONFLICT DO UPDATE SET begun_at_ms = NULL
"""
_DONE = "DELETE FROM steps_left WHERE step = ?"

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Partly:
    """What a step did, when its own bound stopped it and more is left."""

    done: object


async def begin(sql: Sql, now_ms: int, *steps: str, interrupted: bool = False) -> None:
    """Note that the steps begin, before they do: whatever happens to this invocation, a later one does them.

    interrupted: whether they began before and did not end; then they are parked in the error ledger. Raises nothing.
    """
    troubles = [Trouble("cron", step, INTERRUPTED, now_ms) for step in steps] if interrupted else []
    if interrupted:
        _log.error("%s did not end", ", ".join(steps), extra={"code": INTERRUPTED})
    with without_waiting(), budget(2):  # the first call of an isolate reads the schema's version as well
        await park(sql, *troubles, also=[(_BEGUN, (json.dumps(steps), now_ms))])


async def done(step: str, work: Awaitable[object], sql: Sql, clock: Clock) -> object:
    """Return what a step did. One that fails is logged, parked in the error ledger, and reported.

    One that was stopped by a bound, its own or that of the calls of D1, is noted in `steps_left`.
    """
    failed: Exception | None = None
    result: object = None
    try:
        result = await work
    except Exception as error:  # noqa: BLE001 -- whatever fails, the other steps are not its fault
        failed = error
    code = failed.code if isinstance(failed, RetainError) else "internal"
    stopped = isinstance(result, Partly) or used_up() or (failed is not None and code == USED_UP)
    note: Statement = (_LEFT, (step, clock())) if stopped else (_DONE, (step,))
    with without_waiting(), budget(1):
        if failed is None or code == USED_UP:
            await settle(sql, clock(), ("", "cron", step), also=[note])
        else:
            unexpected = None if isinstance(failed, RetainError) else failed
            _log.error("%s failed", step, extra={"code": code}, exc_info=unexpected)
            await park(sql, Trouble("cron", step, code, clock()), also=[note])
    if failed is not None:
        return {"error": code}
    return result.done if isinstance(result, Partly) else result
