"""What a benchmark reports: JSON with every figure, and tables in Markdown."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from benchmarks.harness.figures import Figures, Spread


@dataclass(frozen=True, slots=True)
class Comparison:
    """One comparison between contestants, taken round by round. unit: "times", "ms". aim: the most that it should be."""

    name: str
    connections: int
    value: Spread
    unit: str = "times"
    aim: float | None = None

    @property
    def is_reached(self) -> bool:
        """Whether the aim is reached, or there is none."""
        return self.aim is None or self.value.median <= self.aim


@dataclass
class Report:
    """The figures of one benchmark. load: of the machine when it began, in runnable processes."""

    name: str
    figures: list[Figures] = field(default_factory=list)
    comparisons: list[Comparison] = field(default_factory=list)
    began_at_s: float = field(default_factory=time.time)
    load: float = field(default_factory=lambda: os.getloadavg()[0])

    def add(self, other: Report, prefix: str) -> None:
        """Add what another report has. prefix: of the names, which tells them apart from others."""
        self.figures += [replace(one, name=prefix + one.name) for one in other.figures]
        self.comparisons += [replace(one, name=prefix + one.name) for one in other.comparisons]

    def value(self) -> dict[str, object]:
        """Return it as JSON has it."""
        return {
            "benchmark": self.name,
            "command": " ".join(["python -m", (sys.modules["__main__"].__spec__ or _Unnamed).name, *sys.argv[1:]]),
            "cores": os.cpu_count(),
            "load_before": self.load,
            "load_after": os.getloadavg()[0],
            "seconds": round(time.time() - self.began_at_s),
            "figures": [one.value() for one in self.figures],
            "comparisons": [asdict(one) for one in self.comparisons],
        }

    def write(self, path: Path) -> None:
        """Write it as JSON, with the folders that are missing."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(self.value(), indent=1) + "\n")

    def __str__(self) -> str:
        tables = [figures_table(self.figures)]
        if self.comparisons:
            tables.append(comparisons_table(self.comparisons))
        return "\n\n".join(tables)


class _Unnamed:
    name = "unnamed"


def figures_table(figures: Sequence[Figures]) -> str:
    """Return the figures in Markdown: times in ms, of one operation; memory and bytes where they are not zero."""
    roles = list({role: None for one in figures for role in one.cpu_ms})
    counted = list({name: None for one in figures for name in one.counted})
    writes = any(one.written_bytes.get(role) for one in figures for role in roles)
    columns = ["", "at once", "p10 ms", "median ms", "p95 ms", "a second"]
    columns += [f"CPU ms, {role}" for role in roles] + [f"MB, {role}" for role in roles]
    columns += [*(["KB written"] if writes else []), *(name.replace("_", " ") for name in counted)]
    rows = []
    for one in figures:
        row = [f"{one.p10_ms:.2f}", f"{one.median_ms:.2f}", f"{one.p95_ms:.2f}", f"{one.per_second.median:,.1f}"]
        row += [_or_nothing(one.cpu_ms.get(role), "{:.2f}") for role in roles]
        row += [_or_nothing(one.resident_mb.get(role), "{:.0f}") for role in roles]
        row += [f"{sum(one.written_bytes.values()) / 1000:.1f}"] if writes else []
        row += [_or_nothing(one.counted.get(name), "{:,.1f}") for name in counted]
        rows.append([one.name, str(one.connections), *row])
    return markdown(columns, rows)


def comparisons_table(comparisons: Sequence[Comparison]) -> str:
    """Return comparisons in Markdown: the median of the rounds with its quartiles, and the aim."""
    rows = [
        [
            one.name,
            str(one.connections),
            f"{one.value.shown()} {one.unit}",
            "" if one.aim is None else f"at most {one.aim:g}, {'reached' if one.is_reached else 'not reached'}",
        ]
        for one in comparisons
    ]
    return markdown(["", "at once", "median of the rounds (quartiles)", "aim"], rows)


def markdown(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown, whose first column is text and whose others are figures."""
    lines = [f"| {' | '.join(columns)} |", f"|---|{'---:|' * (len(columns) - 1)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def _or_nothing(value: float | None, form: str) -> str:
    return "" if value is None else form.format(value)
