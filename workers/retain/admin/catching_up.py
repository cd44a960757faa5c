"""What is done every few minutes: the debts of the vector index are settled, copies of earlier users' items and objects of
deleted attachments removed, failed steps of the daily brief repeated, and those continued that a bound stopped.

A debt has a pause of its own, which doubles with each failure (`retain.memory.index_debts`); so has a step. When nothing is
due, this is three requests to D1.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping

from retain.attachments.removal import OWED as OWED_OBJECTS
from retain.items.earlier_copies import OWED
from retain.limits.d1_calls import budget, equal_part
from retain.memory.indexer import Indexer, Settled
from retain.ports import Clock, Sql
from retain.scheduled_steps import INTERRUPTED, LONGEST_MS, begin

CATCH_UP = "*/5 * * * *"
"""Every five minutes."""
FIRST_PAUSE_MS = 5 * 60_000
"""How long after its first failure a step of the brief is repeated. It doubles with each failure …"""
LONGEST_PAUSE_MS = 6 * 3_600_000
"""… up to this."""
SETTLING_CALLS = 300
"""Calls of D1 that settling may make."""
STEP_CALLS = 500
"""Calls of D1 that repeated steps may make. An invocation has 1,000."""
COPIES = "earlier_copies"
"""The step of the brief that is also done here, when it is owed …"""
FILES = "attachment_objects"
"""… and this one."""
_PARKED = (
    "SELECT concerns, code, attempts, last_at_ms FROM error_ledger"
    " WHERE tenant_id = '' AND stage = 'cron' AND state = 'parked'"
)
_KNOWN = f"SELECT concerns FROM ({_PARKED}) UNION ALL SELECT step FROM steps_left"  # noqa: S608
# A step that is under way, here or elsewhere, is left to whoever does it, until so much time has passed that it cannot be.
# One that was interrupted has no longer pause: what it did until then stays done, so it may come to an end.
_DUE = f"""
SELECT concerns AS step, last_at_ms AS at_ms, COALESCE(begun_at_ms > since_ms, 0) AS interrupted
FROM ({_PARKED}) LEFT JOIN steps_left ON step = concerns
WHERE (code = '{INTERRUPTED}'
    OR last_at_ms <= ?1 - MIN({FIRST_PAUSE_MS} << MIN(attempts - 1, 16), {LONGEST_PAUSE_MS}))
  AND COALESCE(begun_at_ms, 0) <= ?1 - {LONGEST_MS}
UNION ALL SELECT step, since_ms, COALESCE(begun_at_ms > since_ms, 0) FROM steps_left
  WHERE step NOT IN (SELECT concerns FROM ({_PARKED})) AND COALESCE(begun_at_ms, 0) <= ?1 - {LONGEST_MS}
UNION ALL SELECT '{COPIES}', ?1, 0 WHERE EXISTS ({OWED}) AND '{COPIES}' NOT IN ({_KNOWN})
UNION ALL SELECT '{FILES}', ?1, 0 WHERE EXISTS ({OWED_OBJECTS}) AND '{FILES}' NOT IN ({_KNOWN})
ORDER BY interrupted, at_ms, step
"""  # noqa: S608

_log = logging.getLogger(__name__)


async def catch_up(
    sql: Sql, clock: Clock, indexer: Indexer, steps: Mapping[str, Callable[[], Awaitable[object]]]
) -> dict[str, object]:
    """Settle the debts that are due, and do the steps that are owed, or failed and are due; return what was done.

    steps: of the daily brief, by name. Each parks its failure in the error ledger, and settles it when it succeeds.
    Raises: Unavailable when D1 does not answer; the next call tries again. What settling raised, when the steps had their
        turn.
    """
    failed: Exception | None = None
    settled = Settled(0, 0)
    try:
        with budget(SETTLING_CALLS):
            settled = await indexer.reconcile()
    except Exception as error:  # noqa: BLE001 -- whatever fails, the steps are not its fault
        failed = error
    rows = (await sql.run(_DUE, clock())).rows
    due = {str(row["step"]): bool(row["interrupted"]) for row in rows if row["step"] in steps}
    repeated: dict[str, object] = {}
    with budget(STEP_CALLS):
        for number, (name, interrupted) in enumerate(due.items()):
            await begin(sql, clock(), name, interrupted=interrupted)
            with equal_part(len(due) - number):
                repeated[name] = await steps[name]()
    report: dict[str, object] = {"settled": settled.settled, "failed": settled.failed, "repeated": repeated}
    if settled.settled or settled.failed or repeated:
        _log.info("caught up", extra={"report": report})
    if failed is not None:
        raise failed
    return report
