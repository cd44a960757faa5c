"""Measure a run of the same agent: Retain, Cloudflare's Agents SDK in the same workerd, LangGraph, pydantic-ai with DBOS.

    python -m benchmarks.agents [--quick] [--connections 1 8 32] [--rounds 10] [--without-others] [--json FILE] [--plot FILE]

The agent makes three tool steps, keeps two working values, reads its episodes and writes one; its model is scripted and
answers at once. Each run has an instance of its own. The Agents SDK runs twice: as its users write it, with everything in
the object, and so that others read what Retain lets them read: runs, events and episodes in D1, working values in KV.
LangGraph and pydantic-ai run in processes of their own without HTTP, and write to SQLite as they do by default.
Trips to D1 and rows are counted in a second, short pass.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import itertools
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from tools.paths import ROOT

sys.path.insert(0, str(ROOT / "workers"))

from benchmarks.agents.own_process import LANGGRAPH, PYDANTIC_AI, is_installed, own_process
from benchmarks.agents.sdk import TABLES, sdk_worker
from benchmarks.harness.contestant import Call, Contestant, HttpContestant
from benchmarks.harness.figures import Spread, figures_of
from benchmarks.harness.interleaving import Plan, measure
from benchmarks.harness.plot import bars
from benchmarks.harness.report import Comparison, Report
from benchmarks.harness.retain_worker import Meter, Stores, whole
from benchmarks.harness.services import Service
from benchmarks.harness.workerd import Workerd, running
from retain.cli.keys import new_signing_key

HERE = Path(__file__).parent
RETAIN, SDK, SHARED = "Retain", "Agents SDK, in the object", "Agents SDK, with D1 and KV"
ASKED = "Where is A-17?"
AIMS = {SDK: 1.5, SHARED: 1.5, LANGGRAPH: 1.0, PYDANTIC_AI: 1.0}
FULL = Plan(rounds=10, calls=20, warm_up=30)
QUICK = Plan(rounds=2, calls=10, warm_up=10)
COUNTED = Plan(rounds=1, calls=20, warm_up=5)


def services(*, others: bool, metered: bool) -> list[Service]:
    """Return the Workers. others: with those that Retain is compared with. metered: count the calls of D1."""
    secrets = {name: base64.b64encode(os.urandom(32)).decode() for name in ("CREDENTIALS_KEY", "MEMORY_KEY")}
    secrets["TOKEN_KEY"] = new_signing_key()
    found = whole(secrets=secrets, agents=HERE / "definitions", metered=metered)
    if others:
        database = "d1-meter" if metered else "d1"
        found += [sdk_worker("sdk", shared=False, database=database)]
        found += [sdk_worker("sdk-shared", shared=True, database=database)]
    return found


def contestants(workerd: Workerd, *, others: bool, meter: Meter | None = None) -> list[HttpContestant]:
    """Return those that are called over HTTP."""
    numbers, stamp = itertools.count(), os.urandom(4).hex()

    def retain() -> Call:
        body = {"input": ASKED, "instance_id": f"run-{stamp}-{next(numbers)}"}
        return Call("POST", "/v1/agents/default/clerk/run", body)

    def sdk() -> Call:
        return Call("POST", "/", {"input": ASKED, "instance_id": f"run-{stamp}-{next(numbers)}"})

    called: list[tuple[str, str, Callable[[], Call]]] = [(RETAIN, "retain", retain)]
    if others:
        called += [(SDK, "sdk", sdk), (SHARED, "sdk-shared", sdk)]
    count = None if meter is None else meter.counts
    processes = {"workerd": [workerd.pid]}
    return [HttpContestant(name, workerd.ports[to], call, processes, count) for name, to, call in called]


def prepare(workerd: Workerd, *, others: bool) -> None:
    """Make the tables in D1."""
    stores = Stores(workerd)
    stores.migrate()
    if others:
        stores.run([(sql, ()) for sql in TABLES])


async def report_of(workerd: Workerd, connections: Sequence[int], plan: Plan, *, others: bool) -> Report:
    """Return the figures with each number of connections."""
    report = Report("agents")
    async with AsyncExitStack() as stack:
        called: list[Contestant] = [*contestants(workerd, others=others)]
        if others:
            called += [await stack.enter_async_context(own_process(name)) for name in (LANGGRAPH, PYDANTIC_AI)]
        for number in connections:
            series = await measure(called, number, plan)
            report.figures += [figures_of(one) for one in series.values()]
            own = series[RETAIN]
            for name, aim in AIMS.items():
                if name in series:
                    times = own.paired(series[name], lambda block: block.each_ms)
                    report.comparisons.append(Comparison(f"a run of Retain, against {name}", number, times, aim=aim))
                    cpu = own.paired(series[name], lambda block: block.all_cpu_ms)
                    report.comparisons.append(Comparison(f"CPU of Retain, against {name}", number, cpu))
    return report


async def counts_of(workerd: Workerd, *, others: bool) -> Report:
    """Return what a run asks of D1, one at a time."""
    report = Report("agents, counted")
    called = contestants(workerd, others=others, meter=Meter(workerd))
    series = await measure(called, 1, COUNTED)
    report.figures += [figures_of(one) for one in series.values()]
    return report


def main() -> None:
    """Measure, and print the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.agents", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--connections", type=int, nargs="+", default=[1, 8, 32])
    parser.add_argument("--quick", action="store_true", help="few runs, and the others where they are installed")
    parser.add_argument("--rounds", type=int, default=FULL.rounds)
    parser.add_argument("--without-others", action="store_true", help="Retain alone: nothing is installed")
    parser.add_argument("--json", type=Path, help="also write all figures to this file")
    parser.add_argument("--plot", type=Path, help="also write a plot to this file, as SVG")
    options = parser.parse_args()
    others = not options.without_others and (not options.quick or is_installed())
    with running("agents", services(others=others, metered=False)) as workerd:
        prepare(workerd, others=others)
        plan = QUICK if options.quick else Plan(options.rounds, FULL.calls, FULL.warm_up)
        report = asyncio.run(report_of(workerd, options.connections, plan, others=others))
    print(report)
    with running("agents-counted", services(others=others, metered=True)) as workerd:
        prepare(workerd, others=others)
        print(f"\n{asyncio.run(counts_of(workerd, others=others))}")
    if options.json:
        report.write(options.json)
    if options.plot:
        groups: dict[str, dict[str, Spread]] = {}
        for one in report.figures:
            groups.setdefault(f"{one.connections} at once", {})[one.name] = one.block_ms
        options.plot.write_text(bars("A run with three tool steps", "ms", groups))


if __name__ == "__main__":
    main()
