"""Measure the tiers in one run: reads and writes of KV, D1 and R2, and of the client over them, on Miniflare.

    python -m benchmarks.tiers [--rounds 20]

A request makes the Worker do a call 25 times in sequence; the figure is the median request's time less that of a
request that does nothing, divided by 25. The kinds of calls alternate. The value has 1,000 bytes.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

from tests.workerd.server import TestWorker, serving
from tools.local_server import migrate
from tools.paths import PRODUCTION_CONFIG

CALLS = 25
VALUE_BYTES = 1000

KINDS = (
    "hot read",
    "warm read",
    "cold read",
    "hot write",
    "warm write",
    "cold write",
    "get, hot copy",
    "get, hot copy, checked",
    "get, from warm",
    "get, from cold",
    "put preferences",
    "put preferences, write_through",
    "put order_history",
)
"""What the probe `tier_calls` can do (tests/workerd/inside/tier_probes.py)."""


def measure(worker: TestWorker, rounds: int) -> dict[str, float]:
    """Return the median milliseconds of each kind of call."""
    spent: dict[str, list[float]] = {kind: [] for kind in ("nothing", *KINDS)}
    for number in range(rounds + 2):
        for kind, times in spent.items():
            started = time.perf_counter()
            worker.probe("tier_calls", kind=kind, calls=CALLS, value="x" * VALUE_BYTES)
            if number >= 2:
                times.append((time.perf_counter() - started) * 1000)
    floor = statistics.median(spent.pop("nothing"))
    return {kind: (statistics.median(times) - floor) / CALLS for kind, times in spent.items()}


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description="Measure the tiers of memory.")
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="retain-bench-tiers-") as folder:
        migrate(Path(folder), PRODUCTION_CONFIG)
        with serving(Path(folder)) as worker:
            found = measure(worker, options.rounds)
    print("| call | median ms |\n|---|---:|")
    for kind, milliseconds in found.items():
        print(f"| {kind} | {milliseconds:.2f} |")


if __name__ == "__main__":
    main()
