"""Measure the start of an isolate: first requests, imports, the upload, and a snapshot of the memory.

    python -m benchmarks.start [--quick] [--rounds 6] [--only first snapshots imports upload] [--json FILE] [--plot FILE]

First requests are made in fresh processes of workerd, next to a Worker in Python that answers a constant. A snapshot is made
and loaded by workerd itself, as Cloudflare does it when a Worker is deployed. Imports are requests that import one module.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from tools.paths import ROOT

sys.path.insert(0, str(ROOT / "workers"))

from benchmarks.harness.figures import Spread
from benchmarks.harness.plot import bars
from benchmarks.harness.report import Report
from benchmarks.start import imports, upload
from benchmarks.start.first import TOOL, side_by_side, with_snapshots

PARTS = ("first", "snapshots", "imports", "upload")
ROUNDS, IMPORT_ROUNDS = 6, 3


def main() -> None:
    """Measure, and print the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.start", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--quick", action="store_true", help="one round of each: finds errors, and says little about speed"
    )
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="fresh processes of each kind")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--json", type=Path, help="also write all figures to this file")
    parser.add_argument("--plot", type=Path, help="also write a plot to this file, as SVG")
    options = parser.parse_args()
    rounds, report, more = 1 if options.quick else options.rounds, Report("start"), dict[str, object]()
    if "first" in options.only:
        report.add(side_by_side(rounds), "")
    if "snapshots" in options.only:
        report.add(with_snapshots(rounds, *([(TOOL,)] if options.quick else [])), "")
    print(report)
    if "imports" in options.only:
        found = imports.measured(1, main_only=True) if options.quick else imports.measured(IMPORT_ROUNDS)
        print(f"\n{imports.tables(found)}")
        more["imports"] = [asdict(one) for one in found]
    if "upload" in options.only:
        packages = upload.uploaded()
        print(f"\n{upload.table(packages)}")
        more["upload"] = [asdict(one) for one in packages]
    if options.json:
        _write(options.json, report, more)
    if options.plot:
        options.plot.write_text(_plot_of(report))


def _write(path: Path, report: Report, more: Mapping[str, object]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({**report.value(), **more}, indent=1) + "\n")


def _plot_of(report: Report) -> str:
    """Return the first requests as a plot."""
    groups: dict[str, dict[str, Spread]] = {}
    for one in report.figures:
        what, _, how = one.name.rpartition(", ") if one.name.endswith("snapshot") else (one.name, "", "in one process")
        if not what.startswith("start of"):
            groups.setdefault(how, {})[what] = one.block_ms
    return bars("The first request of an isolate", "ms", groups)


if __name__ == "__main__":
    main()
