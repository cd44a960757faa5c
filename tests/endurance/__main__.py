"""Soak, attack and kill for so many minutes, and print one summary: `python -m tests.endurance --minutes 60`.

The state machines get four tenths of the time, the attacker two, the fault points four. Each finishes what it has begun.
"""

from __future__ import annotations

import argparse
import asyncio
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.attack.trial import Summary, attack
from tests.kills.__main__ import walked
from tests.kills.scenarios import SCENARIOS
from tools.paths import ROOT

SHARES = {"soak": 0.4, "attack": 0.2, "kills": 0.4}
_MOST_ATTEMPTS = 10_000_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Do all three, and return 1 when one of them has a finding."""
    parser = argparse.ArgumentParser(prog="python -m tests.endurance")
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, help="of all three; a new one is printed")
    wanted = parser.parse_args(arguments)
    seed = secrets.randbelow(10**6) if wanted.seed is None else wanted.seed
    minutes = {name: share * wanted.minutes for name, share in SHARES.items()}
    print(f"for {wanted.minutes:g} minutes, seed {seed}", flush=True)
    soaked, report = _soaked(minutes["soak"], seed)
    attacked = _attacked(minutes["attack"], seed)
    killed = walked(minutes["kills"], seed, list(SCENARIOS))
    print("\n".join(["", "summary", report, str(attacked), str(killed)]), flush=True)
    return 1 if soaked or attacked.findings or killed.wrong else 0


def _soaked(minutes: float, seed: int) -> tuple[int, str]:
    """Return the exit status of a soak, and the last line of what it printed about each round, with what it found."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.md"
        command = [sys.executable, "-m", "tests.soak", "--minutes", str(minutes), "--seed", str(seed)]
        done = subprocess.run(
            [*command, "--report", str(report)], cwd=ROOT, capture_output=True, text=True, check=False
        )
        found = report.read_text(encoding="utf-8") if done.returncode and report.exists() else ""
    lines = [line for line in done.stdout.splitlines() if line.startswith("seed ")]
    return done.returncode, f"soak: {len(lines)} rounds; {lines[-1] if lines else ''}{done.stderr[-500:]}\n{found}"


def _attacked(minutes: float, seed: int) -> Summary:
    """Attack, round after round, until the time is over."""
    return asyncio.run(attack(_MOST_ATTEMPTS, seed, deadline=time.monotonic() + minutes * 60))


if __name__ == "__main__":
    raise SystemExit(main())
