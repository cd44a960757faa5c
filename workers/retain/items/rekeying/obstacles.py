"""What prevents a phase of the migration from beginning: the obstacles as values, and each as a sentence. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from retain.items.rekeying.flags import Namespacing
from retain.items.rekeying.phases import FLAGS, STABLE_CYCLES, Backfilled, Cycle, below


@dataclass(frozen=True, slots=True)
class NoPatterns:
    """There are no legacy keys, so nothing to migrate."""


@dataclass(frozen=True, slots=True)
class FlagsDiffer:
    """The deployed flags differ from these, which the phase needs to begin."""

    write_canonical: bool
    compat_read: bool


@dataclass(frozen=True, slots=True)
class BackfillIncomplete:
    """The backfill of a pattern in a tier is not complete."""

    tier: str
    template: str


@dataclass(frozen=True, slots=True)
class ValuesRefused:
    """The backfill of a pattern in a tier left out values that the store does not accept."""

    tier: str
    template: str
    values: int


@dataclass(frozen=True, slots=True)
class CyclesUnstable:
    """The last release cycles were not all stable. verdicts: theirs, oldest first."""

    verdicts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HitRateLow:
    """The canonical hit rate of the open cycle is below the baseline in some tiers."""

    baseline: float
    tiers: tuple[str, ...]


Obstacle = NoPatterns | FlagsDiffer | BackfillIncomplete | ValuesRefused | CyclesUnstable | HitRateLow


def obstacles(
    to: int,
    namespacing: Namespacing,
    baseline: float,
    stay: Sequence[Cycle],
    backfill: Sequence[Backfilled],
    tiers: Sequence[str],
) -> list[Obstacle]:
    """Return what prevents a phase from beginning; empty when it may begin.

    stay: the cycles since the current phase began, oldest first, the open one last. tiers: those that are backfilled.
    """
    if not namespacing.patterns:
        return [NoPatterns()]
    found: list[Obstacle] = []
    write, read = FLAGS[min(to, 2)]  # phase 3 is decided by what phase 2 measures
    if (namespacing.write_canonical, namespacing.compat_read) != (write, read):
        found.append(FlagsDiffer(write, read))
    if to < 3:
        return found
    found += _of_backfill(namespacing, backfill, tiers)
    verdicts = tuple(cycle.verdict for cycle in stay if cycle.verdict)[-STABLE_CYCLES:]
    if verdicts != ("stable",) * STABLE_CYCLES:
        found.append(CyclesUnstable(verdicts))
    lows = [below(cycle.tiers, baseline) for cycle in stay if not cycle.verdict]
    return [*found, *(HitRateLow(baseline, tuple(low)) for low in lows if low)]


def _of_backfill(
    namespacing: Namespacing, backfill: Sequence[Backfilled], tiers: Sequence[str]
) -> Iterator[BackfillIncomplete | ValuesRefused]:
    rows = {(row.tier, row.template): row for row in backfill}
    for tier in tiers:
        for pattern in namespacing.patterns:
            row = rows.get((tier, pattern.template))
            if row is None or row.completed_at_ms is None:
                yield BackfillIncomplete(tier, pattern.template)
            elif row.refused:
                yield ValuesRefused(tier, pattern.template, row.refused)


def in_words(obstacle: Obstacle) -> str:
    """Return an obstacle as administrators read it: what to do, or what is still missing."""
    match obstacle:
        case NoPatterns():
            return "MEMORY_NAMESPACE_LEGACY_PATTERNS is empty: there is nothing to migrate"
        case FlagsDiffer(write, read):
            flags = {"MEMORY_NAMESPACE_WRITE_CANONICAL": write, "MEMORY_NAMESPACE_COMPAT_READ": read}
            return f"deploy {', '.join(f'{name}={str(value).lower()}' for name, value in flags.items())}"
        case BackfillIncomplete(tier, template):
            return f"the backfill of {template} in the {tier} tier is not complete"
        case ValuesRefused(tier, template, values):
            return f"{values} values of {template} in the {tier} tier could not be copied"
        case CyclesUnstable(verdicts):
            were = ", ".join(verdicts) or "none"
            return f"the last {STABLE_CYCLES} release cycles must be stable, but are: {were}"
        case HitRateLow(baseline, tiers):
            return f"the canonical hit rate is below the baseline of {baseline} in: {', '.join(tiers)}"
