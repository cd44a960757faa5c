"""Counting reads without a write for each: added up in the isolate, and written to D1 once a minute at most.

What an isolate counted and had not written when it ended is lost: the counts are a measure, not a ledger.
"""

from __future__ import annotations

import logging
from collections import Counter

from retain.errors import RetainError
from retain.items.rekeying.compatible import PROBE_EVERY, ReadOutcome
from retain.ports import Background, Clock, Sql, Statement

FLUSH_MS = 60_000
"""Least time between two writes of an isolate."""
SETTLE_MS = 120_000
"""How long after the beginning of phase 2 legacy values may be copied: until no isolate with older flags answers."""
PERMIT_MS = 30_000
"""How long an isolate goes by what it last read of the migration."""

_log = logging.getLogger(__name__)

_COLUMNS = ("canonical", "legacy", "absent", "unread", "repaired", "repair_failed")
_ADD = f"""
INSERT INTO namespace_reads (cycle, tier, {", ".join(_COLUMNS)})
SELECT MAX(cycle), ?, {", ".join("?" * len(_COLUMNS))} FROM namespace_cycles HAVING MAX(cycle) IS NOT NULL
ON CONFLICT (cycle, tier) DO UPDATE SET {", ".join(f"{name} = {name} + excluded.{name}" for name in _COLUMNS)}
"""
_PERMIT = "SELECT phase, since_ms FROM namespace_migration"


class Reads:
    """Implements `Watch` for one isolate. Made once an isolate; nothing is counted before a migration began."""

    def __init__(self, sql: Sql, clock: Clock, background: Background) -> None:
        self._sql = sql
        self._clock = clock
        self._background = background
        self._counts: Counter[tuple[str, str]] = Counter()
        self._flushed_at_ms: int | None = None
        self._misses: Counter[str] = Counter()
        self._permit: tuple[bool, int] | None = None

    def found(self, tier: str, where: ReadOutcome) -> None:
        """Count a read. A probed miss stands for all that were not probed."""
        self._count(tier, where.value, PROBE_EVERY if where is ReadOutcome.UNREAD else 1)

    def repaired(self, tier: str, done: bool) -> None:
        """Count a copy under the canonical key: made, or failed."""
        self._count(tier, "repaired" if done else "repair_failed", 1)

    def probes(self, tier: str) -> bool:
        """Tell whether this miss of the tier is one of those that are looked for."""
        self._misses[tier] += 1
        return self._misses[tier] % PROBE_EVERY == 0

    async def may_repair(self) -> bool:
        """Tell whether phase 2 is on and two minutes old. Asks D1 twice a minute at most. Raises: Unavailable."""
        now = self._clock()
        if self._permit is None or now - self._permit[1] >= PERMIT_MS:
            rows = (await self._sql.run(_PERMIT)).rows
            self._permit = (bool(rows) and settled(int(rows[0]["phase"]), int(rows[0]["since_ms"]), now), now)
        return self._permit[0]

    async def flush(self) -> None:
        """Write what was counted. What could not be written is kept for the next time."""
        counts, self._counts = self._counts, Counter()
        tiers = sorted({tier for tier, _ in counts})
        statements: list[Statement] = [(_ADD, (tier, *(counts[tier, column] for column in _COLUMNS))) for tier in tiers]
        try:
            await self._sql.batch(statements)
        except RetainError as error:
            self._counts.update(counts)
            _log.warning("reads were not counted", extra={"code": error.code})

    def _count(self, tier: str, column: str, number: int) -> None:
        self._counts[tier, column] += number
        now = self._clock()
        if self._flushed_at_ms is None:
            self._flushed_at_ms = now
        elif now - self._flushed_at_ms >= FLUSH_MS:
            self._flushed_at_ms = now
            self._background(self.flush())


def settled(phase: int, since_ms: int, now_ms: int) -> bool:
    """Tell whether legacy values may be copied: no isolate writes to legacy keys any more.

    In phase 3 the last settlement holds: it is entered from phase 2 alone.
    """
    return phase == 3 or (phase == 2 and now_ms - since_ms >= SETTLE_MS)
