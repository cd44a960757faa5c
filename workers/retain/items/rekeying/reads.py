"""Counting reads without a write for each: summed in the isolate, and written to D1 at most once per minute.

Counts that an isolate has not written when it ends are lost: they are a measurement, not a ledger. The state of the
migration belongs to the deployment: where there are several databases, it is on the first one, whichever tenant is read.
"""

from __future__ import annotations

import logging
from collections import Counter

from retain.errors import RetainError
from retain.items.rekeying.compatible import PROBE_EVERY, ReadOutcome
from retain.ports import Background, Clock, Sql, Statement
from retain.shards.place import at_home

FLUSH_MS = 60_000
"""Shortest time between two writes of an isolate."""
SETTLE_MS = 120_000
"""How long after the start of phase 2 copies wait: until no isolate with older flags answers."""
PERMIT_MS = 30_000
"""How long an isolate relies on the migration's state that it last read."""

_log = logging.getLogger(__name__)

_COLUMNS = ("canonical", "legacy", "absent", "unread", "repaired", "repair_failed")
_ADD = f"""
INSERT INTO namespace_reads (cycle, tier, {", ".join(_COLUMNS)})
SELECT MAX(cycle), ?, {", ".join("?" * len(_COLUMNS))} FROM namespace_cycles HAVING MAX(cycle) IS NOT NULL
ON CONFLICT (cycle, tier) DO UPDATE SET {", ".join(f"{name} = {name} + excluded.{name}" for name in _COLUMNS)}
"""
_PERMIT = "SELECT phase, since_ms FROM namespace_migration"


class Reads:
    """Implements `Watch` for one isolate, with one instance per isolate. Nothing is counted before a migration begins."""

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
        """Count a copy to the canonical key: made, or failed."""
        self._count(tier, "repaired" if done else "repair_failed", 1)

    def probes(self, tier: str) -> bool:
        """Return whether to look up this miss of the tier under the legacy keys."""
        self._misses[tier] += 1
        return self._misses[tier] % PROBE_EVERY == 0

    async def may_repair(self) -> bool:
        """Return whether copies are allowed: see `settled`. Asks D1 at most twice per minute. Raises: Unavailable."""
        now = self._clock()
        if self._permit is None or now - self._permit[1] >= PERMIT_MS:
            with at_home():
                rows = (await self._sql.run(_PERMIT)).rows
            self._permit = (bool(rows) and settled(int(rows[0]["phase"]), int(rows[0]["since_ms"]), now), now)
        return self._permit[0]

    async def flush(self) -> None:
        """Write the counts. Those that could not be written are kept for the next time."""
        counts, self._counts = self._counts, Counter()
        tiers = sorted({tier for tier, _ in counts})
        statements: list[Statement] = [(_ADD, (tier, *(counts[tier, column] for column in _COLUMNS))) for tier in tiers]
        try:
            with at_home():
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
    """Return whether legacy values may be copied: no isolate writes to legacy keys any more.

    That is also true throughout phase 3, which only follows phase 2.
    """
    return phase == 3 or (phase == 2 and now_ms - since_ms >= SETTLE_MS)
