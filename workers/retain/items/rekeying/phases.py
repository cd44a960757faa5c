"""The phases of the migration as rules: what is measured, and when a release cycle was stable. Pure.

0 before, 1 dual read, 2 canonical write with compatible reads and backfill, 3 canonical only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from retain.items.rekeying.flags import Namespacing

DEFAULT_BASELINE = 0.99
MIN_READS = 100
"""Fewest reads that found an item for a cycle to be judged."""
STABLE_CYCLES = 2
"""Consecutive release cycles that must be stable before legacy keys are no longer read."""

FLAGS = {1: (False, True), 2: (True, True), 3: (True, False)}
"""Phase to `MEMORY_NAMESPACE_WRITE_CANONICAL` and `MEMORY_NAMESPACE_COMPAT_READ`."""


@dataclass(frozen=True, slots=True)
class Counts:
    """Reads and repairs of one tier. unread: estimate of the misses that a legacy key could have answered."""

    canonical: int = 0
    legacy: int = 0
    absent: int = 0
    unread: int = 0
    repaired: int = 0
    repair_failed: int = 0

    @property
    def items(self) -> int:
        """The number of reads of items that existed."""
        return self.canonical + self.legacy + self.unread

    @property
    def hit_rate(self) -> float | None:
        """The share of these that the canonical key answered; None when there were none."""
        return self.canonical / self.items if self.items else None


@dataclass(frozen=True, slots=True)
class Cycle:
    """A cycle, from a release to the next one or to a change of phase. closed_at_ms, verdict: None while it is open."""

    cycle: int
    phase: int
    opened_by: str
    opened_at_ms: int
    closed_at_ms: int | None
    verdict: str | None
    tiers: Mapping[str, Counts]


@dataclass(frozen=True, slots=True)
class Backfilled:
    """The progress of the backfill of one pattern in one tier."""

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
    """Return the verdict on a cycle that a release closes."""
    if below(tiers, baseline):
        return "below_baseline"
    return "stable" if sum(counts.items for counts in tiers.values()) >= MIN_READS else "too_few_reads"


def flags_fit(phase: int, namespacing: Namespacing) -> bool:
    """Return whether the deployed flags are those of the phase. Phase 3 begins before its flags are deployed."""
    flags = (namespacing.write_canonical, namespacing.compat_read)
    if phase == 0:
        return not namespacing.write_canonical
    return flags == FLAGS[phase] or (phase == 3 and flags == FLAGS[2])
