"""Measure what a change gave: the Worker of an earlier commit next to this one's, in one bare workerd and in turn.

    python -m benchmarks.versions REF [--connections 1 8] [--rounds 10] [--starts 6] [--memories 2000]
        [--own-schema] [--json FILE]

A call of a tool (what is added to the direct call of its upstream), a run with three tool steps in a new instance, a
recall of eight words among memories that were all just written, and the first call of a tool in a fresh process. Every
ratio is taken within a round. Both use the schema of D1 of this commit, which the earlier one has to accept, and the
packages that are installed now. With `--own-schema` each has a D1 with the migrations of its commit, and runs are compared
alone.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import io
import itertools
import os
import subprocess
import tarfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.agents.__main__ import ASKED
from benchmarks.harness.contestant import Call, HttpContestant
from benchmarks.harness.figures import Block, Series, Spread, figures_of, spread_of
from benchmarks.harness.interleaving import Plan, measure
from benchmarks.harness.processes import usage_of
from benchmarks.harness.report import Comparison, Report
from benchmarks.harness.retain_worker import Stores, python_worker, whole, with_stores
from benchmarks.harness.services import Service, d1, d1_store, javascript, kv
from benchmarks.harness.workerd import Workerd, running
from benchmarks.memories.__main__ import questions, texts
from benchmarks.memories.over_http import OverHttp
from benchmarks.proxy import setting
from retain.cli.keys import new_signing_key
from retain.gateway.routes import PREFIX
from tools.paths import CACHE, ROOT

HERE = Path(__file__).parent
NOW, BEFORE = "now", "before"
AGENTS = HERE / "agents" / "definitions"
CALLS, RUNS, RECALLS = 40, 12, 20
"""Operations of a block: calls of a tool, runs, and recalls."""
AGENT = "clerk"
EARLIER = "earlier-d1"
"""The D1 of the earlier commit."""
STORES = HERE / "harness" / "stores.mjs"


def sources_of(ref: str) -> Path:
    """Return a folder with the code of a commit. Raises: SystemExit when git does not know it."""
    asked = ["git", "archive", "--format=tar", ref, "workers", "durable_objects", "migrations"]
    found = subprocess.run(asked, cwd=ROOT, capture_output=True, check=False)
    if found.returncode != 0:
        raise SystemExit(found.stderr.decode().strip())
    folder = CACHE / "bench-sources" / ref.replace("/", "-")
    with tarfile.open(fileobj=io.BytesIO(found.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder


def services(secrets: dict[str, str], sources: Path, *, own_schema: bool) -> list[Service]:
    """Return both versions, with their stores, and what they are compared with."""
    database = EARLIER if own_schema else "d1"
    stores = javascript("earlier-stores", STORES, bindings=[kv("KV"), d1("DB", EARLIER)])
    return [
        *whole(NOW, secrets=secrets, agents=AGENTS),
        with_stores(BEFORE, secrets, agents=AGENTS, sources=sources, database=database),
        *([d1_store(EARLIER), stores] if own_schema else []),
        javascript("upstream", HERE / "proxy" / "upstream.mjs"),
        python_worker("constant", {"entry.py": (HERE / "proxy" / "constant_entry.py").read_bytes()}, []),
    ]


def proxied(workerd: Workerd, api_key: str) -> list[HttpContestant]:
    """Return the direct call, and the call of the tool by each version."""
    body = {"content-type": "application/json"}
    direct = Call("POST", "/orders", setting.BODY, body)
    tool = Call("POST", PREFIX + setting.TOOL, setting.BODY, {**body, "authorization": f"Bearer {api_key}"})
    called = {setting.DIRECT: ("upstream", direct), **{name: (name, tool) for name in (NOW, BEFORE)}}
    return [
        HttpContestant(name, workerd.ports[to], call, {"workerd": [workerd.pid]}) for name, (to, call) in called.items()
    ]


def runs(workerd: Workerd) -> list[HttpContestant]:
    """Return a run by each version, each in an instance of its own."""
    numbers = itertools.count()

    def run() -> Call:
        return Call("POST", f"/v1/agents/default/{AGENT}/run", {"input": ASKED, "instance_id": f"run-{next(numbers)}"})

    return [HttpContestant(name, workerd.ports[name], run, {"workerd": [workerd.pid]}) for name in (NOW, BEFORE)]


def recalls(workerd: Workerd) -> list[HttpContestant]:
    """Return a recall by each version, of the same memories."""
    return [OverHttp(workerd, name, AGENT).contestant(name, "search", questions(2)) for name in (NOW, BEFORE)]


def added(series: dict[str, Series], value: str) -> Spread:
    """Return how many times as much as before a call of a tool adds to the direct one."""

    def over(name: str, place: int) -> float:
        return float(getattr(series[name].blocks[place], value)) - float(
            getattr(series[setting.DIRECT].blocks[place], value)
        )

    return spread_of([over(NOW, place) / max(1e-6, over(BEFORE, place)) for place in range(len(series[NOW].blocks))])


async def report_of(
    workerd: Workerd, api_key: str, connections: Sequence[int], rounds: int, *, runs_alone: bool
) -> Report:
    """Return the figures of calls, runs and recalls with each number of connections. runs_alone: of runs alone."""
    report = Report("versions")
    for number in connections:
        compared = [("run", runs(workerd), RUNS)]
        if not runs_alone:
            report.add(await report_of_calls(workerd, api_key, number, rounds), "call of a tool: ")
            compared.append(("recall", recalls(workerd), RECALLS))
        for one, both, count in compared:
            made = await measure(both, number, Plan(rounds, count, count))
            shown = Report(one, [figures_of(series) for series in made.values()])
            for what, of in (("time", _each_ms), ("CPU", _cpu_ms)):
                times = made[NOW].paired(made[BEFORE], of)
                shown.comparisons.append(Comparison(f"{what}, {NOW} against {BEFORE}", number, times))
            report.add(shown, f"{one}: ")
    return report


async def report_of_calls(workerd: Workerd, api_key: str, connections: int, rounds: int) -> Report:
    """Return the figures of calls of a tool."""
    calls = await measure(proxied(workerd, api_key), connections, Plan(rounds, CALLS, 200))
    report = Report("calls", [figures_of(one) for one in calls.values()])
    for what, value in (("time", "each_ms"), ("CPU", "all_cpu_ms")):
        report.comparisons.append(Comparison(f"{what} added, {NOW} against {BEFORE}", connections, added(calls, value)))
    return report


def _each_ms(block: Block) -> float:
    return block.each_ms


def _cpu_ms(block: Block) -> float:
    return block.all_cpu_ms


async def first_calls(workerd: Workerd, api_key: str, order: Sequence[str]) -> dict[str, tuple[float, float]]:
    """Return the milliseconds and the processor's milliseconds of each one's first call, made in this order."""
    every = {one.name: one for one in proxied(workerd, api_key)}
    constant = HttpContestant(setting.PYTHON, workerd.ports["constant"], Call("GET", "/constant"), every[NOW].processes)
    found = {}
    for name in order:
        before = usage_of([workerd.pid]).cpu_ms
        contestant = constant if name == setting.PYTHON else every[name]
        [ms] = await contestant.block(1, 1)
        contestant.close()
        found[name] = ms, usage_of([workerd.pid]).cpu_ms - before
    return found


def main() -> None:
    """Measure, and print the tables."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.versions", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("ref", help="the earlier commit")
    parser.add_argument("--connections", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--starts", type=int, default=6, help="fresh processes, in which each is called first in turn")
    parser.add_argument("--memories", type=int, default=2000, help="how many memories there are to recall")
    parser.add_argument("--own-schema", action="store_true", help="compare runs, each with the D1 of its commit")
    parser.add_argument("--json", type=Path, help="also write all figures to this file")
    options = parser.parse_args()
    secrets = {name: base64.b64encode(os.urandom(32)).decode() for name in ("CREDENTIALS_KEY", "MEMORY_KEY")}
    secrets["TOKEN_KEY"] = new_signing_key()
    sources = sources_of(options.ref)
    every = services(secrets, sources, own_schema=options.own_schema)
    with running("versions", every) as workerd:
        stores = Stores(workerd)
        stores.migrate()
        key = setting.provision(stores, secrets["CREDENTIALS_KEY"], workerd.ports["upstream"])
        if options.own_schema:
            Stores(workerd, "earlier-stores").migrate(sources / "migrations")
        else:
            OverHttp(workerd, NOW, AGENT).fill(list(itertools.islice(texts(1), options.memories)))
        report = asyncio.run(
            report_of(workerd, key, options.connections, options.rounds, runs_alone=options.own_schema)
        )
    print(report)
    if options.own_schema:
        if options.json:
            report.write(options.json)
        return
    starts: dict[str, list[tuple[float, float]]] = {}
    orders = itertools.cycle(itertools.permutations((setting.PYTHON, NOW, BEFORE)))
    for order in itertools.islice(orders, options.starts):
        with running("versions", every) as workerd:
            key = setting.provision(Stores(workerd), secrets["CREDENTIALS_KEY"], workerd.ports["upstream"])
            for name, spent in asyncio.run(first_calls(workerd, key, order)).items():
                starts.setdefault(name, []).append(spent)
    print(f"\nFirst call in {options.starts} fresh processes, in each order\n\n| | ms | CPU ms |\n|---|---:|---:|")
    for name, spents in starts.items():
        print(f"| {name} | {' | '.join(spread_of([one[place] for one in spents]).shown(1) for place in (0, 1))} |")
    if options.json:
        report.write(options.json)


if __name__ == "__main__":
    main()
