"""Measure what the tool proxy adds: the upstream called directly, through a JavaScript Worker, and through Retain.

    python -m benchmarks.proxy [--quick] [--connections 1 8 32] [--uncached-kv] [--json FILE] [--plot FILE]

All run in one bare workerd and are called in turn, a block of calls each. "Adds" is the difference from the direct call in
the same round, and a ratio is taken in the same round, so that whatever else the machine does affects both.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tools.paths import ROOT

sys.path.insert(0, str(ROOT / "workers"))

from benchmarks.harness.figures import Block, Series, Spread, figures_of, spread_of
from benchmarks.harness.interleaving import Plan, measure
from benchmarks.harness.plot import bars
from benchmarks.harness.report import Comparison, Report
from benchmarks.harness.retain_worker import Stores
from benchmarks.harness.workerd import Workerd, running
from benchmarks.proxy.setting import (
    DIRECT,
    JAVASCRIPT,
    JAVASCRIPT_AT_ONCE,
    JAVASCRIPT_KEEPING,
    PYTHON,
    RETAIN,
    RETAIN_READING,
    contestants,
    provision,
    services,
)

ADDED_MS, ADDED_TIMES, FIRST_TIMES = 1.2, 2.0, 1.5
"""The aims: what Retain adds to a call, the same against JavaScript, and the first call against a constant in Python."""
_SCRIPTS = (JAVASCRIPT, JAVASCRIPT_AT_ONCE, JAVASCRIPT_KEEPING)
_OWN = (RETAIN_READING, RETAIN)
_PAIRS = (
    (RETAIN, JAVASCRIPT),
    (RETAIN_READING, JAVASCRIPT),
    (RETAIN_READING, JAVASCRIPT_AT_ONCE),
    (RETAIN, JAVASCRIPT_KEEPING),
)
"""What is compared: with the Worker that one would write first, and with one that reads as Retain does."""
FULL = Plan(rounds=25, calls=40, warm_up=400)
QUICK = Plan(rounds=3, calls=20, warm_up=40)


def added(series: Mapping[str, Series], name: str, value: str) -> Spread:
    """Return what a contestant adds to the direct call. value: `median_ms`, `each_ms` or `all_cpu_ms` of a block."""
    return series[name].more_than(series[DIRECT], lambda block: float(getattr(block, value)))


def times_javascript(series: Mapping[str, Series], name: str, other: str, value: str) -> Spread:
    """Return how many times as much as a Worker in JavaScript a contestant adds to the direct call."""

    def over(block: Block, direct: Block) -> float:
        return float(getattr(block, value)) - float(getattr(direct, value))

    rounds = zip(series[name].blocks, series[other].blocks, series[DIRECT].blocks, strict=True)
    return spread_of([over(own, direct) / max(1e-6, over(script, direct)) for own, script, direct in rounds])


def compared(series: Mapping[str, Series], connections: int) -> list[Comparison]:
    """Return what is added. The aim in milliseconds is for one call at a time; more of them wait for each other."""
    aim = ADDED_MS if connections == 1 else None
    found = [
        Comparison(f"added: {name}", connections, added(series, name, "each_ms"), "ms", aim if name in _OWN else None)
        for name in (*_SCRIPTS, *_OWN)
    ]
    for name, other in _PAIRS:
        times = times_javascript(series, name, other, "each_ms")
        found.append(Comparison(f"added: {name}, against {other}", connections, times, aim=ADDED_TIMES))
    times = times_javascript(series, RETAIN, JAVASCRIPT, "all_cpu_ms")
    return [*found, Comparison(f"CPU added: {RETAIN}, against {JAVASCRIPT}", connections, times)]


async def first_calls(workerd: Workerd, api_key: str) -> dict[str, float]:
    """Return the milliseconds of each contestant's first call, which makes its isolate."""
    first = {}
    for contestant in contestants(workerd, api_key):
        [first[contestant.name]] = await contestant.block(1, 1)
        contestant.close()
    return first


async def report_of(workerd: Workerd, api_key: str, connections: Sequence[int], plan: Plan) -> Report:
    """Return the figures with each number of connections."""
    report = Report("proxy")
    first = await first_calls(workerd, api_key)
    ratio = first[RETAIN] / first[PYTHON]
    report.comparisons.append(
        Comparison("first call, against a constant in Python", 1, spread_of([ratio]), aim=FIRST_TIMES)
    )
    called = contestants(workerd, api_key)
    for number in connections:
        wanted = called if number == 1 else [one for one in called if one.name in (DIRECT, *_SCRIPTS, *_OWN)]
        series = await measure(wanted, number, plan)
        report.figures += [figures_of(one) for one in series.values()]
        report.comparisons += compared(series, number)
    return report


def plot_of(report: Report) -> str:
    """Return what is added at each number of connections as a plot."""
    groups: dict[str, dict[str, Spread]] = {}
    for one in report.comparisons:
        name = one.name.removeprefix("added: ")
        if name in (*_SCRIPTS, *_OWN):
            groups.setdefault(f"{one.connections} at once", {})[name] = one.value
    return bars("What a proxy adds to a call of its upstream", "ms", groups)


def main() -> None:
    """Measure, and print the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.proxy", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--connections", type=int, nargs="+", default=[1, 8, 32])
    parser.add_argument("--quick", action="store_true", help="few calls: finds errors, and says little about speed")
    parser.add_argument("--uncached-kv", action="store_true", help="make each KV read go to storage")
    parser.add_argument("--json", type=Path, help="also write all figures to this file")
    parser.add_argument("--plot", type=Path, help="also write a plot to this file, as SVG")
    options = parser.parse_args()
    secret = base64.b64encode(os.urandom(32)).decode()
    with running("proxy", services(secret, cached=not options.uncached_kv)) as workerd:
        api_key = provision(Stores(workerd), secret, workerd.ports["upstream"])
        plan = QUICK if options.quick else FULL
        report = asyncio.run(report_of(workerd, api_key, options.connections, plan))
    print(report)
    if options.json:
        report.write(options.json)
    if options.plot:
        options.plot.write_text(plot_of(report))


if __name__ == "__main__":
    main()
