"""The migration's state in D1: its phase, the release cycles, and what was measured in them.

It follows the flags, and decides what no flag can: when legacy values may first be copied, and whether the next phase may
begin. Nothing here writes or removes an item.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from retain.errors import Conflict, InvalidInput
from retain.items.rekeying.flags import Namespacing
from retain.items.rekeying.obstacles import Obstacle, in_words, obstacles
from retain.items.rekeying.phases import (
    DEFAULT_BASELINE,
    Backfilled,
    Counts,
    Cycle,
    below,
    flags_fit,
    verdict,
)
from retain.items.rekeying.reads import SETTLE_MS
from retain.json_text import JsonObject
from retain.ports import Clock, Row, Sql, Statement

TIERS = ("warm", "cold")
"""The tiers that are backfilled. Hot values expire instead."""

_RELEASE = re.compile(r"[A-Za-z0-9._+-]{1,64}")
_STATE = "SELECT phase, baseline, since_ms, revision FROM namespace_migration"
_CYCLES = "SELECT * FROM namespace_cycles ORDER BY cycle DESC LIMIT 20"
_READS = "SELECT * FROM namespace_reads WHERE cycle > (SELECT COALESCE(MAX(cycle), 0) - 20 FROM namespace_cycles)"
_BACKFILL = """
SELECT tier, template, copied, present, skipped, refused, completed_at_ms FROM namespace_backfill ORDER BY tier, template
"""
_BEGIN = "INSERT OR IGNORE INTO namespace_migration (id, phase, baseline, since_ms, revision) VALUES (1, 0, ?, ?, 0)"
_CLOSE = """
UPDATE namespace_cycles SET closed_at_ms = ?, verdict = ?
WHERE closed_at_ms IS NULL AND (SELECT revision FROM namespace_migration) = ?
"""
_OPEN = """
INSERT INTO namespace_cycles (phase, opened_by, opened_at_ms)
SELECT ?, ?, ? WHERE (SELECT revision FROM namespace_migration) = ?
"""
_CLEAR = "DELETE FROM namespace_backfill WHERE (SELECT revision FROM namespace_migration) = ?"
_MOVE = """
UPDATE namespace_migration SET phase = ?, baseline = ?, since_ms = ?, revision = revision + 1 WHERE revision = ?
"""
_RECORD = "UPDATE namespace_migration SET revision = revision + 1 WHERE revision = ?"
_KNOWN = "SELECT 1 FROM namespace_cycles WHERE opened_by = ?"


@dataclass(frozen=True, slots=True)
class MigrationStatus:
    """The state of the migration. cycles: the last twenty, oldest first; the open one is the last."""

    phase: int
    baseline: float
    since_ms: int
    revision: int
    cycles: Sequence[Cycle]
    backfill: Sequence[Backfilled]

    @property
    def stay(self) -> list[Cycle]:
        """The cycles since the current phase began."""
        found: list[Cycle] = []
        for cycle in reversed(self.cycles):
            found.insert(0, cycle)
            if cycle.opened_by.startswith("phase "):
                break
        return found

    @property
    def low(self) -> list[str]:
        """The tiers whose canonical hit rate in the open cycle is below the baseline."""
        return below(self.cycles[-1].tiers, self.baseline) if self.cycles else []


class Migration:
    """Moves a deployment to the next phase, or back, and records its releases."""

    def __init__(self, sql: Sql, clock: Clock, namespacing: Namespacing) -> None:
        self._sql = sql
        self._clock = clock
        self._namespacing = namespacing

    async def standing(self) -> MigrationStatus:
        """Return the state; phase 0 when it never began. Raises: Unavailable."""
        state, cycles, reads, backfill = await self._sql.batch(
            [(_STATE, ()), (_CYCLES, ()), (_READS, ()), (_BACKFILL, ())]
        )
        found = (
            state.rows[0] if state.rows else {"phase": 0, "baseline": DEFAULT_BASELINE, "since_ms": 0, "revision": 0}
        )
        return MigrationStatus(
            int(found["phase"]),
            float(found["baseline"]),
            int(found["since_ms"]),
            int(found["revision"]),
            [_cycle(row, reads.rows) for row in reversed(cycles.rows)],
            [Backfilled(**row) for row in backfill.rows],
        )

    async def advance(self, to: int, baseline: float | None = None) -> MigrationStatus:
        """Begin the next phase, if nothing prevents it. Idempotent: if that phase has begun, nothing changes.

        baseline: the lowest acceptable canonical hit rate, set with phase 1 and kept from then on.
        Raises: Conflict (code `wrong_phase` for another phase than the next; `not_ready` with what prevents it;
            `migration_moved` when somebody else changed it meanwhile); InvalidInput (code `invalid_baseline`).
        """
        await self._sql.run(_BEGIN, DEFAULT_BASELINE, self._clock())
        standing = await self.standing()
        if to == standing.phase:
            return standing
        if to != standing.phase + 1:
            raise Conflict(
                f"only the phase after phase {standing.phase} can begin", code="wrong_phase", phase=standing.phase
            )
        if baseline is not None and (to != 1 or not 0 < baseline <= 1):
            raise InvalidInput("a baseline is above 0 and at most 1, and is set with phase 1", code="invalid_baseline")
        blocked = [in_words(obstacle) for obstacle in self.blocked(standing)]
        if blocked:
            raise Conflict(f"phase {to} cannot begin: {'; '.join(blocked)}", code="not_ready", obstacles=blocked)
        clear: list[Statement] = [(_CLEAR, (standing.revision,))] if to == 2 else []
        await self._move(standing, to, standing.baseline if baseline is None else baseline, clear)
        return await self.standing()

    async def roll_back(self, to: int) -> MigrationStatus:
        """Go back one phase. Always allowed; removes no item and no key. Idempotent.

        From 3 to 2 the backfill stays complete; from 2 to 1 legacy keys are written again, so the next phase 2 begins
        with a new backfill. Raises: Conflict (codes `wrong_phase`, `migration_moved`); Unavailable.
        """
        standing = await self.standing()
        if to == standing.phase:
            return standing
        if to != standing.phase - 1 or to < 0:
            raise Conflict(
                f"from phase {standing.phase} a rollback goes back one phase", code="wrong_phase", phase=standing.phase
            )
        await self._move(standing, to, standing.baseline, [])
        return await self.standing()

    async def release(self, name: str) -> MigrationStatus:
        """Record a release: it closes the open cycle, with its verdict, and opens the next. Idempotent by name.

        Raises: InvalidInput (code `invalid_release`); Conflict (code `wrong_phase` before phase 1; `migration_moved`).
        """
        if _RELEASE.fullmatch(name) is None:
            raise InvalidInput(f"a release matches {_RELEASE.pattern}", code="invalid_release")
        standing = await self.standing()
        if (await self._sql.run(_KNOWN, name)).rows:
            return standing
        if not standing.phase:
            raise Conflict("releases are recorded from phase 1 on", code="wrong_phase", phase=0)
        result = verdict(standing.cycles[-1].tiers, standing.baseline)
        now, revision = self._clock(), standing.revision
        done = await self._sql.batch(
            [
                (_CLOSE, (now, result, revision)),
                (_OPEN, (standing.phase, name, now, revision)),
                (_RECORD, (revision,)),
            ]
        )
        _require_change(done[-1].changes)
        return await self.standing()

    def blocked(self, standing: MigrationStatus) -> list[Obstacle]:
        """Return what prevents the next phase from beginning."""
        if standing.phase == 3:
            return []
        to = standing.phase + 1
        return obstacles(to, self._namespacing, standing.baseline, standing.stay, standing.backfill, TIERS)

    def shown(self, standing: MigrationStatus) -> JsonObject:
        """Return the state as shown to administrators, with what to do about it."""
        return {
            "phase": standing.phase,
            "since_ms": standing.since_ms,
            "baseline": standing.baseline,
            "flags": {
                "write_canonical": self._namespacing.write_canonical,
                "compat_read": self._namespacing.compat_read,
                "fit": flags_fit(standing.phase, self._namespacing),
            },
            "patterns": [{"template": one.template, **one.fixed} for one in self._namespacing.patterns],
            "copies_from_ms": standing.since_ms + SETTLE_MS if standing.phase == 2 else None,
            "below_baseline": standing.low,
            "roll_back": standing.phase == 3 and bool(standing.low),
            "obstacles": [in_words(obstacle) for obstacle in self.blocked(standing)],
            "cycles": [_shown_cycle(cycle) for cycle in standing.cycles],
            "backfill": [asdict(row) for row in standing.backfill],
        }

    async def _move(self, standing: MigrationStatus, to: int, baseline: float, more: Sequence[Statement]) -> None:
        now, revision = self._clock(), standing.revision
        done = await self._sql.batch(
            [
                (_CLOSE, (now, "phase_changed", revision)),
                (_OPEN, (to, f"phase {to}", now, revision)),
                *more,
                (_MOVE, (to, baseline, now, revision)),
            ]
        )
        _require_change(done[-1].changes)


def _require_change(changes: int) -> None:
    if not changes:
        raise Conflict("the migration was changed meanwhile: read its state again", code="migration_moved")


def _cycle(row: Row, reads: Sequence[Row]) -> Cycle:
    tiers = {
        str(one["tier"]): Counts(**{name: int(one[name]) for name in Counts.__slots__})
        for one in reads
        if one["cycle"] == row["cycle"]
    }
    return Cycle(
        int(row["cycle"]),
        int(row["phase"]),
        row["opened_by"],
        int(row["opened_at_ms"]),
        row["closed_at_ms"],
        row["verdict"],
        tiers,
    )


def _shown_cycle(cycle: Cycle) -> JsonObject:
    tiers = {tier: {**asdict(counts), "hit_rate": counts.hit_rate} for tier, counts in cycle.tiers.items()}
    return {**asdict(cycle), "tiers": tiers}
