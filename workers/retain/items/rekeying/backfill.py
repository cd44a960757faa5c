"""The backfill: copies every legacy value to its canonical key, if that has none, while reads and writes continue.

It lists the legacy keys, one page per call, and keeps its progress in D1. It only adds; repeating a page adds nothing
twice. Legacy keys stay: a rollback reads them. Where there are several databases it lists the keys of all of them, and
copies each value where its tenant lives; the progress is on the first one.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping

from retain.errors import Conflict, InvalidInput, LimitExceeded
from retain.items.rekeying.compatible import Compatible, ReadOutcome, Repair
from retain.items.rekeying.flags import Namespacing
from retain.items.rekeying.patterns import LegacyPattern
from retain.items.rekeying.reads import settled
from retain.items.rekeying.sources import LegacySource
from retain.ports import Clock, Row, Sql
from retain.shards.place import at_home, everywhere, in_tenant

PAGE_KEYS = 50
"""Keys that one step examines, each with at most five calls to a store."""

_log = logging.getLogger(__name__)

_START = "INSERT OR IGNORE INTO namespace_backfill (tier, template, updated_at_ms) VALUES (?, ?, ?)"
_ROW = "SELECT * FROM namespace_backfill WHERE tier = ? AND template = ?"
_STATE = "SELECT phase, since_ms, revision FROM namespace_migration"
_ADVANCE = """
UPDATE namespace_backfill SET cursor = ?, copied = copied + ?, present = present + ?, skipped = skipped + ?,
  refused = refused + ?, updated_at_ms = ?, completed_at_ms = ?
WHERE tier = ? AND template = ? AND cursor IS ? AND completed_at_ms IS NULL
"""
_AGAIN = "DELETE FROM namespace_backfill WHERE (SELECT phase FROM namespace_migration) = 2"


class Backfill:
    """Copies a deployment's legacy values, tier by tier and pattern by pattern."""

    def __init__(self, sql: Sql, clock: Clock, namespacing: Namespacing, sources: Mapping[str, LegacySource]) -> None:
        self._sql = sql
        self._clock = clock
        self._namespacing = namespacing
        self._sources = sources

    async def again(self) -> None:
        """Reset the progress, so that it starts again; what was copied is found and stays. Phase 2 only."""
        with at_home():
            await self._sql.run(_AGAIN)

    async def step(self) -> bool:
        """Examine up to fifty keys; return whether all are done. One caller or several repeat it until then.

        A value that its store does not accept is counted as refused, and the rest continues.
        Raises: Conflict (code `backfill_not_allowed`) outside phase 2, in its first two minutes, or with other flags;
            Unavailable or TenantMoving, and then the progress is still that before the page.
        """
        with at_home():
            await self._check()
            for tier, source in self._sources.items():
                for pattern in self._namespacing.patterns:
                    await self._sql.run(_START, tier, pattern.template, self._clock())
                    row = (await self._sql.run(_ROW, tier, pattern.template)).rows[0]
                    if row["completed_at_ms"] is None:
                        await self._page(tier, source, pattern, row)
                        return False
            return True

    async def _check(self) -> None:
        rows = (await self._sql.run(_STATE)).rows
        phase, since_ms = (int(rows[0]["phase"]), int(rows[0]["since_ms"])) if rows else (0, 0)
        if phase != 2 or not settled(phase, since_ms, self._clock()) or not self._namespacing.repairs:
            raise Conflict(
                "values are copied in phase 2, from two minutes after its start, with both flags true",
                code="backfill_not_allowed",
                phase=phase,
            )

    async def _page(self, tier: str, source: LegacySource, pattern: LegacyPattern, row: Row) -> None:
        # With the rows of tenants that come or go: one that is left out on both sides would never be copied.
        with everywhere():
            page = await source.list(pattern.prefix, cursor=row["cursor"], limit=PAGE_KEYS)
        done: Counter[str] = Counter()
        for key in page.keys:
            done[await self._copied(tier, source, pattern, key)] += 1
        now = self._clock()
        counted = (done["copied"], done["present"], done["skipped"], done["refused"])
        ended = now if page.cursor is None else None
        where = (tier, pattern.template, row["cursor"])
        await self._sql.run(_ADVANCE, page.cursor, *counted, now, ended, *where)

    async def _copied(self, tier: str, source: LegacySource, pattern: LegacyPattern, key: str) -> str:
        """Copy one item; return the name of the count that it adds to."""
        item = pattern.item_of(key)
        if item is None:
            return "skipped"
        store = source.keyed(item.namespace.tenant_id)
        try:
            with in_tenant(item.namespace.tenant_id):
                repair = await Compatible(tier, self._namespacing, _Unwatched()).repair(store, item)
        except (InvalidInput, LimitExceeded) as error:
            _log.warning("a legacy value cannot be copied", extra={"tier": tier, "code": error.code})
            return "refused"
        return {Repair.COPIED: "copied", Repair.PRESENT: "present", Repair.GONE: "skipped"}[repair]


class _Unwatched:
    """Counts nothing: the backfill is not traffic."""

    def found(self, tier: str, where: ReadOutcome) -> None:
        """Do nothing."""

    def repaired(self, tier: str, done: bool) -> None:
        """Do nothing."""

    def probes(self, tier: str) -> bool:  # noqa: ARG002
        """Return False: no miss is probed."""
        return False

    async def may_repair(self) -> bool:
        """Return True: the backfill has checked that copies are allowed."""
        return True
