"""The phases of the migration as rules: what is measured, and when a release cycle was stable.

0 before, 1 dual read, 2 canonical write with compatible reads and backfill, 3 canonical only. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from retain.items.rekeying.flags import Namespacing

DEFAULT_BASELINE = 0.99
MIN_READS = 100
"""Reads that found an item, fewer of which say nothing about a cycle."""
STABLE_CYCLES = 2
"""Release cycles that have to be stable, one after another, before legacy keys are no longer read."""

FLAGS = {1: (False, True), 2: (True, True), 3: (True, False)}
"""Phase to `MEMORY_NAMESPACE_WRITE_CANONICAL` and `MEMORY_NAMESPACE_COMPAT_READ`."""


@dataclass(frozen=True, slots=True)
class Counts:
    """What was read in one tier. unread: misses that a legacy key could have answered, estimated."""

    canonical: int = 0
    legacy: int = 0
    absent: int = 0
    unread: int = 0
    repaired: int = 0
    repair_failed: int = 0

    @property
    def items(self) -> int:
        """How many reads asked for an item that was there."""
        return self.canonical + self.legacy + self.unread

    @property
    def hit_rate(self) -> float | None:
        """The share of them that the canonical key answered; None when there was none."""
        return self.canonical / self.items if self.items else None


@dataclass(frozen=True, slots=True)
class Cycle:
    """From one release to the next, or to a change of phase. closed_at_ms, verdict: None while it is open."""

    cycle: int
    phase: int
    opened_by: str
    opened_at_ms: int
    closed_at_ms: int | None
    verdict: str | None
    tiers: Mapping[str, Counts]


@dataclass(frozen=True, slots=True)
class Backfilled:
    """How far one pattern of one tier is backfilled."""

    tier: str
    template: str
    copied: int
    present: int
    skipped: int
    refused: int
    completed_at_ms: int | None


def below(tiers: Mapping[str, Counts], baseline: float) -> list[str]:
    """Return the tiers whose canonical hit rate is below the baseline."""
    return sorted(tier for tier, counts in tiers.items() if (rate := counts.hit_rate) is not None and rate < baseline)


def verdict(tiers: Mapping[str, Counts], baseline: float) -> str:
    """Return what a cycle is to be called when a release closes it."""
    if below(tiers, baseline):
        return "below_baseline"
    return "stable" if sum(counts.items for counts in tiers.values()) >= MIN_READS else "too_few_reads"


def flags_fit(phase: int, namespacing: Namespacing) -> bool:
    """Tell whether the deployed flags are those of the phase. Phase 3 is entered before its flags are deployed."""
    flags = (namespacing.write_canonical, namespacing.compat_read)
    if phase == 0:
        return not namespacing.write_canonical
    return flags == FLAGS[phase] or (phase == 3 and flags == FLAGS[2])
