"""What a walk found, per fault point."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from tests.kills.place import Things

Fault = tuple[str, str, int]
"""Scenario, point, and which time."""


@dataclass
class Row:
    """One point. runs, records: those that were compared after the kills here. stuck: work that did not end in time."""

    killed: int = 0
    runs: int = 0
    records: int = 0
    lost: int = 0
    doubled: int = 0
    stuck: int = 0


@dataclass
class Table:
    """What a walk found. faults: how many there are. not_met: those that the work did not come by. wrong: what differed."""

    seed: int
    faults: int = 0
    starts: int = 0
    seconds: float = 0.0
    rows: dict[str, Row] = field(default_factory=dict)
    not_met: list[Fault] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    @property
    def kills(self) -> int:
        """How much work was killed."""
        return self._sum("killed")

    def compare(self, fault: Fault, found: Things, expected: Things) -> None:
        """Note what a work came to that was killed at a fault."""
        row = self.row(fault)
        row.runs += sum(found.get("runs", Counter()).values())
        row.records += sum(found.get("records", Counter()).values())
        for kind in expected:
            lost, doubled = expected[kind] - found[kind], found[kind] - expected[kind]
            row.lost += sum(lost.values())
            row.doubled += sum(doubled.values())
            if lost or doubled:
                self.wrong.append(f"{_named(fault)}: {kind}: lost {dict(lost)}, doubled {dict(doubled)}"[:600])

    def stuck(self, fault: Fault, error: Exception) -> None:
        """Note a work that did not end, or broke an invariant."""
        self.row(fault).stuck += 1
        self.wrong.append(f"{_named(fault)}: {str(error)[:500]}")

    def row(self, fault: Fault) -> Row:
        """Return the row of a fault's point."""
        return self.rows.setdefault(fault[1], Row())

    @property
    def summary(self) -> str:
        """The table in one line."""
        return (
            f"fault points: seed {self.seed}, {self.kills} of {self.faults} faults killed at {len(self.rows)} points"
            f" ({len(self.not_met)} not met), {self.starts} starts, {self.seconds:.0f} s;"
            f" runs {self._sum('runs')}, records {self._sum('records')}, lost {self._sum('lost')},"
            f" doubled {self._sum('doubled')}, stuck {self._sum('stuck')}"
        )

    def __str__(self) -> str:
        lines = [f"| {'point':42} | killed | runs | records | lost | doubled | stuck |"]
        lines.append(f"|{'-' * 44}|-------:|-----:|--------:|-----:|--------:|------:|")
        for point, row in sorted(self.rows.items()):
            cells = f"{row.killed:6} | {row.runs:4} | {row.records:7} | {row.lost:4} | {row.doubled:7} | {row.stuck:5}"
            lines.append(f"| {f'`{point}`':42} | {cells} |")
        lines += ["", self.summary, *(f"  {one}" for one in self.wrong)]
        lines += [f"  not met: {_named(fault)}" for fault in self.not_met]
        return "\n".join(lines)

    def _sum(self, column: str) -> int:
        return sum(getattr(row, column) for row in self.rows.values())


def _named(fault: Fault) -> str:
    scenario, point, time = fault
    return f"{scenario}, killed at {point} ({time})"
