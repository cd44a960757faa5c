"""Figures of what was measured: medians with their spread, and ratios that are taken within a round."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field


@dataclass(frozen=True, slots=True)
class Spread:
    """A median, and the quartiles around it: half of what was measured is between them."""

    median: float
    lower: float
    upper: float

    def shown(self, digits: int = 2) -> str:
        """Return it as a table shows it."""
        return f"{self.median:.{digits}f} ({self.lower:.{digits}f} to {self.upper:.{digits}f})"


def spread_of(values: Sequence[float]) -> Spread:
    """Return the spread of one value or more."""
    if len(values) == 1:
        return Spread(values[0], values[0], values[0])
    lower, median, upper = statistics.quantiles(values, n=4, method="inclusive")
    return Spread(median, lower, upper)


@dataclass(frozen=True, slots=True)
class Block:
    """Consecutive operations of one contestant.

    cpu_ms and written_bytes: of all of them, by role; resident_bytes: after the last. counted: by the contestant.
    """

    times_ms: Sequence[float]
    wall_ms: float
    cpu_ms: Mapping[str, float]
    resident_bytes: Mapping[str, int]
    written_bytes: Mapping[str, int]
    counted: Mapping[str, float] = field(default_factory=dict)

    @property
    def median_ms(self) -> float:
        """The median of one operation's time."""
        return statistics.median(self.times_ms)

    @property
    def each_ms(self) -> float:
        """The time of the block for each operation: with several connections less than an operation's time."""
        return self.wall_ms / len(self.times_ms)

    @property
    def all_cpu_ms(self) -> float:
        """The processor time of an operation, in all processes together."""
        return sum(self.cpu_ms.values()) / len(self.times_ms)


@dataclass(frozen=True, slots=True)
class Series:
    """The blocks of one contestant with a number of connections: one of each round, in order."""

    name: str
    connections: int
    blocks: Sequence[Block]

    def paired(self, other: Series, value: Callable[[Block], float] = lambda block: block.median_ms) -> Spread:
        """Return how many times as much this takes as another, round by round: disturbances affect both of a round."""
        return spread_of([value(a) / value(b) for a, b in zip(self.blocks, other.blocks, strict=True)])

    def more_than(self, other: Series, value: Callable[[Block], float] = lambda block: block.median_ms) -> Spread:
        """Return how much more this takes than another, round by round."""
        return spread_of([value(a) - value(b) for a, b in zip(self.blocks, other.blocks, strict=True)])


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of one contestant with a number of connections.

    p10_ms: what an operation takes that nothing disturbs. block_ms: the spread of the blocks' medians.
    cpu_ms, written_bytes, counted: of one operation. resident_mb: the most of any block.
    """

    name: str
    connections: int
    operations: int
    p10_ms: float
    median_ms: float
    p95_ms: float
    block_ms: Spread
    per_second: Spread
    cpu_ms: Mapping[str, float]
    resident_mb: Mapping[str, float]
    written_bytes: Mapping[str, float]
    counted: Mapping[str, float]

    def value(self) -> dict[str, object]:
        """Return it as JSON has it."""
        return asdict(self)


def figures_of(series: Series) -> Figures:
    """Return the figures of a contestant."""
    times = sorted(time for block in series.blocks for time in block.times_ms)
    count = len(times)

    def summed(of: Callable[[Block], Mapping[str, float]]) -> dict[str, float]:
        names = {name: None for block in series.blocks for name in of(block)}
        return {name: sum(of(block).get(name, 0) for block in series.blocks) / count for name in names}

    roles = {role: None for block in series.blocks for role in block.resident_bytes}
    return Figures(
        series.name,
        series.connections,
        count,
        times[count // 10],
        statistics.median(times),
        times[min(count - 1, count * 95 // 100)],
        spread_of([block.median_ms for block in series.blocks]),
        spread_of([1000 / block.each_ms for block in series.blocks]),
        summed(lambda block: block.cpu_ms),
        {role: max(block.resident_bytes.get(role, 0) for block in series.blocks) / 1e6 for role in roles},
        summed(lambda block: block.written_bytes),
        summed(lambda block: block.counted),
    )
