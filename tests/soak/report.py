"""What a soak has found so far, as a value and as a page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

_SHOWN_LINES = 60


@dataclass(frozen=True, slots=True)
class Finding:
    """A test that failed. seed: of the round in which it failed first."""

    test: str
    seed: int
    text: str

    @property
    def error(self) -> str:
        """The line that names the error: the last one that pytest marks with an E."""
        lines = [line for line in self.text.splitlines() if line.startswith("E  ")]
        named = [line for line in lines if "Error" in line or "Exception" in line]
        return (named or lines or ["unknown"])[0].removeprefix("E").strip()


@dataclass
class Soak:
    """A soak: its rounds have the seeds from `first_seed` on."""

    first_seed: int
    rounds: int = 0
    passed: int = 0
    seconds: float = 0.0
    steps: Counter[str] = field(default_factory=Counter)
    findings: dict[tuple[str, str], Finding] = field(default_factory=dict)
    again: Counter[tuple[str, str]] = field(default_factory=Counter)

    def take(self, passed: int, steps: Mapping[str, int], failures: list[Finding]) -> list[Finding]:
        """Add a round; return the findings that are new: another test, or another error."""
        self.rounds += 1
        self.passed += passed
        self.steps.update(steps)
        new = []
        for failure in failures:
            key = failure.test, failure.error
            self.again[key] += 1
            if key not in self.findings:
                self.findings[key] = failure
                new.append(failure)
        return new

    def page(self) -> str:
        """Return the report in Markdown."""
        last = self.first_seed + self.rounds - 1
        lines = [
            "# Soak",
            "",
            f"{self.rounds} round(s) in {self.seconds / 60:.0f} minutes, seeds {self.first_seed} to {last}; "
            f"{self.passed} tests passed, {len(self.findings)} findings.",
            "",
            "| machine | steps |",
            "|---|---:|",
            *(f"| {name} | {count} |" for name, count in sorted(self.steps.items())),
        ]
        for key, finding in self.findings.items():
            shown = finding.text.splitlines()[-_SHOWN_LINES:]
            lines += [
                "",
                f"## {finding.test}",
                "",
                f"seed {finding.seed}, {self.again[key]} times: {finding.error}",
                "",
            ]
            lines += ["```", *shown, "```"]
        return "\n".join(lines) + "\n"
