"""Soak: run the state machines marked `soak` and all property tests in rounds, with a new seed each, until the time is over.

    python -m tests.soak [--minutes 240] [--seed N] [path …]

The round that has begun is finished. A soak of an hour or more ends with the faults that are planted in the product
(`test_planted.py`), which have seeds of their own and are all to be found.
The report is written again after each round; the exit code is 1 if there are findings.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.soak.report import Finding, Soak
from tests.support.machines import SOAK

ROOT = Path(__file__).parents[2]
REPORT = ROOT / ".cache" / "soak" / "report.md"
PLANTED_FROM_MINUTES = 60
CHOSEN = "(soak or hypothesis) and not workerd"
_PLANTED = "test_planted"
_PASSED, _FAILED = 0, 1
"""Exit codes of pytest that ran its tests. Source: https://docs.pytest.org/en/stable/reference/exit-codes.html"""


def main() -> int:
    """Run a soak as the command line says."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak")
    parser.add_argument("--minutes", type=float, default=240.0)
    parser.add_argument("--seed", type=int, help="of the first round; a random one is printed")
    parser.add_argument("--report", type=Path, default=REPORT)
    parser.add_argument("paths", nargs="*", default=["tests"])
    wanted = parser.parse_args()
    soak = Soak(random.SystemRandom().randrange(2**31) if wanted.seed is None else wanted.seed)
    print(
        f"soaking for {wanted.minutes:g} minutes, first seed {soak.first_seed}, report in {wanted.report}", flush=True
    )
    wanted.report.parent.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    while True:
        seed = soak.first_seed + soak.rounds
        for finding in run_round(soak, seed, f"not {_PLANTED}", wanted.paths):
            print(f"seed {seed}: {finding.test}: {finding.error}", flush=True)
        soak.seconds = time.monotonic() - began
        wanted.report.write_text(soak.page(), encoding="utf-8")
        steps = ", ".join(f"{name} {count}" for name, count in sorted(soak.steps.items()))
        print(f"seed {seed} done; steps: {steps}; findings: {len(soak.findings)}", flush=True)
        if soak.seconds >= wanted.minutes * 60:
            break
    if wanted.minutes >= PLANTED_FROM_MINUTES:
        for finding in run_round(soak, soak.first_seed, _PLANTED, wanted.paths):
            print(f"not found: {finding.test}: {finding.error}", flush=True)
        wanted.report.write_text(soak.page(), encoding="utf-8")
    return 1 if soak.findings else 0


def run_round(soak: Soak, seed: int, chosen: str, paths: list[str]) -> list[Finding]:
    """Run every chosen machine and property once with this seed; return the new findings.

    chosen: pytest's expression of names.
    """
    with TemporaryDirectory() as folder:
        file = Path(folder) / "record.json"
        options = ["-q", "-m", CHOSEN, "-k", chosen, "-o", "timeout=0", "-p", "no:randomly", "-p", "no:cacheprovider"]
        options += ["-p", "tests.soak.recording", f"--soak-record={file}", f"--rootdir={ROOT}", "-c", "pyproject.toml"]
        options += [f"--hypothesis-profile={SOAK}", f"--hypothesis-seed={seed}"]
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *options, *paths], cwd=ROOT, capture_output=True, text=True, check=False
        )
        if done.returncode not in (_PASSED, _FAILED) or not file.exists():
            raise SystemExit(f"pytest ran nothing:\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
        record = json.loads(file.read_text(encoding="utf-8"))
    failures = [Finding(failure["test"], seed, failure["text"]) for failure in record["failures"]]
    return soak.take(record["passed"], record["steps"], failures)


if __name__ == "__main__":
    sys.exit(main())
