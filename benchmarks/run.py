"""Measure side by side: `make bench`, or `make bench QUICK=1` for errors only.

    python -m benchmarks.run [--quick] [--only proxy …] [--into FOLDER]

Each benchmark is a process of its own; it prints its tables and writes its figures as JSON and its plots as SVG.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tools.paths import CACHE

SIDE_BY_SIDE = ("proxy", "agents", "memories", "start")
"""Benchmarks on the harness: each takes --quick, --json and --plot, and compares in one run."""
ALONE: Mapping[str, Sequence[str]] = {"agent": ()}
"""Those of Retain alone, through wrangler, and their arguments. Not in the quick mode."""


def main() -> None:
    """Run each benchmark. Raises: SystemExit when one of them fails."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a few minutes: finds errors, and says nothing of speed")
    parser.add_argument("--only", nargs="+", choices=[*SIDE_BY_SIDE, *ALONE], default=[*SIDE_BY_SIDE, *ALONE])
    parser.add_argument("--into", type=Path, default=CACHE / "bench", help="folder of the figures and plots")
    options = parser.parse_args()
    options.into.mkdir(parents=True, exist_ok=True)
    for name in options.only:
        if options.quick and name not in SIDE_BY_SIDE:
            continue
        written = ["--json", str(options.into / f"{name}.json"), "--plot", str(options.into / f"{name}.svg")]
        arguments = [*written, *(["--quick"] if options.quick else [])] if name in SIDE_BY_SIDE else ALONE[name]
        print(f"\nbenchmarks.{name}\n", flush=True)
        started = time.monotonic()
        done = subprocess.run([sys.executable, "-m", f"benchmarks.{name}", *arguments], check=False)
        if done.returncode != 0:
            raise SystemExit(f"benchmarks.{name} failed")
        print(f"\n{time.monotonic() - started:.0f} s", flush=True)


if __name__ == "__main__":
    main()
