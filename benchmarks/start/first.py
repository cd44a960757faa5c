"""The first requests of fresh isolates, in fresh processes of workerd: with and without a snapshot of the memory."""

from __future__ import annotations

import asyncio
import base64
import os
import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.agents.__main__ import ASKED
from benchmarks.harness.contestant import Call, HttpContestant
from benchmarks.harness.figures import Block, Series, figures_of
from benchmarks.harness.interleaving import one_block
from benchmarks.harness.processes import usage_of
from benchmarks.harness.report import Comparison, Report
from benchmarks.harness.retain_worker import Stores, python_worker, whole, with_stores
from benchmarks.harness.services import Service, javascript
from benchmarks.harness.workerd import Workerd, running
from benchmarks.proxy import setting
from retain.cli.keys import new_signing_key
from retain.gateway.routes import PREFIX
from tools.paths import CACHE

HERE = Path(__file__).parents[1]
AGENTS = HERE / "agents" / "definitions"
CONSTANT, HEALTH, TOOL, RUN = "a constant in Python", "Retain, healthz", "Retain, call of a tool", "Retain, a run"
FIRST_TIMES = 1.5
"""The aim: the first request against that of a Worker in Python which answers a constant."""
_ISOLATES = {CONSTANT: "constant", HEALTH: "retain-health", TOOL: "retain-tool", RUN: "retain"}
SNAPSHOT = "snapshot.bin"
"""What workerd calls the snapshot that it makes."""


def new_secrets() -> dict[str, str]:
    """Return secrets of a deployment."""
    found = {name: base64.b64encode(os.urandom(32)).decode() for name in ("CREDENTIALS_KEY", "MEMORY_KEY")}
    return {**found, "TOKEN_KEY": new_signing_key()}


def services(secrets: Mapping[str, str], wanted: Sequence[str] = tuple(_ISOLATES)) -> list[Service]:
    """Return the stores, the upstream and a Worker of its own for each kind of first request that is wanted."""
    own, *stores = whole(secrets=secrets, agents=AGENTS)
    found = [*stores, javascript("upstream", HERE / "proxy" / "upstream.mjs")]
    for name in wanted:
        if name == CONSTANT:
            found.append(
                python_worker("constant", {"entry.py": (HERE / "proxy" / "constant_entry.py").read_bytes()}, [])
            )
        else:
            found.append(own if name == RUN else with_stores(_ISOLATES[name], secrets, agents=AGENTS))
    return found


async def first_requests(workerd: Workerd, secrets: Mapping[str, str], order: Sequence[str]) -> dict[str, Block]:
    """Return the first request of each isolate, made in this order. The stores are filled before."""
    stores = Stores(workerd)
    if RUN in order:
        await asyncio.to_thread(stores.migrate)
    key = await asyncio.to_thread(setting.provision, stores, secrets["CREDENTIALS_KEY"], workerd.ports["upstream"])
    sent = {"content-type": "application/json", "authorization": f"Bearer {key}"}
    calls = {
        CONSTANT: Call("GET", "/constant"),
        HEALTH: Call("GET", "/healthz"),
        TOOL: Call("POST", PREFIX + setting.TOOL, setting.BODY, sent),
        RUN: Call("POST", "/v1/agents/default/clerk/run", {"input": ASKED, "instance_id": "first"}),
    }
    found = {}
    for name in order:
        contestant = HttpContestant(name, workerd.ports[_ISOLATES[name]], calls[name], {"workerd": [workerd.pid]})
        found[name] = await one_block(contestant, 1, 1)
        contestant.close()
    return found


def side_by_side(rounds: int) -> Report:
    """Return the first requests, all in one process in each round, which begins with another one each time."""
    secrets, names = new_secrets(), list(_ISOLATES)
    every, blocks = services(secrets), dict[str, list[Block]]((name, []) for name in names)
    for number in range(rounds):
        place = number % len(names)
        with running("start", every) as workerd:
            found = asyncio.run(first_requests(workerd, secrets, [*names[place:], *names[:place]]))
        for name, block in found.items():
            blocks[name].append(block)
    return _report("first requests", blocks)


def with_snapshots(rounds: int, names: Sequence[str] = tuple(_ISOLATES)) -> Report:
    """Return starts and first requests of one Worker in a process, from a snapshot of its memory and without, in turn.

    A snapshot is of one Worker, so each has a process of its own. The start is until workerd listens.
    """
    secrets, blocks = new_secrets(), dict[str, list[Block]]()
    kept = {name: _snapshot_of(name, secrets) for name in names}
    for _ in range(rounds):
        for name, folder in kept.items():
            for how, options in _ways(folder):
                start, first = _started(name, secrets, options)
                worker = CONSTANT if name == CONSTANT else "Retain"
                blocks.setdefault(f"start of {worker}, {how}", []).append(start)
                blocks.setdefault(f"{name}, {how}", []).append(first)
    return _report("snapshots", blocks)


def _snapshot_of(name: str, secrets: Mapping[str, str]) -> Path:
    """Make the snapshot of a Worker that has loaded its main module, as a deployment does; return its folder."""
    folder = CACHE / f"bench-start-snapshot-{_ISOLATES[name]}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with running("start-snapshot", services(secrets, [name]), options=["--python-save-snapshot", _in(folder)]):
        if not (folder / SNAPSHOT).exists():
            raise SystemExit("workerd made no snapshot")
    return folder


def _started(name: str, secrets: Mapping[str, str], options: Sequence[str]) -> tuple[Block, Block]:
    started_ns = time.perf_counter_ns()
    with running("start-snapshot", services(secrets, [name]), options=options) as workerd:
        ms, used = (time.perf_counter_ns() - started_ns) / 1e6, usage_of([workerd.pid])
        start = Block([ms], ms, {"workerd": used.cpu_ms}, {"workerd": used.resident_bytes}, {})
        return start, asyncio.run(first_requests(workerd, secrets, [name]))[name]


def _ways(folder: Path) -> tuple[tuple[str, list[str]], ...]:
    loading = [f"--python-load-snapshot={SNAPSHOT}", _in(folder)]
    return ("without a snapshot", []), ("from a snapshot", loading)


def _in(folder: Path) -> str:
    return f"--python-snapshot-dir={folder}"


def _cpu(block: Block) -> float:
    return block.all_cpu_ms


def _report(name: str, blocks: Mapping[str, Sequence[Block]]) -> Report:
    series = {one: Series(one, 1, of) for one, of in blocks.items()}
    report = Report(name, [figures_of(one) for one in series.values()])
    for one, own in series.items():
        what, comma, how = one.rpartition(", ") if one.endswith("snapshot") else (one, "", "")
        constant = series.get(CONSTANT + comma + how)
        if constant is not None and what in (HEALTH, TOOL, RUN):
            aim = None if what == RUN else FIRST_TIMES
            report.comparisons.append(Comparison(f"{one}, against a constant", 1, own.paired(constant), aim=aim))
            report.comparisons.append(Comparison(f"CPU: {one}, against a constant", 1, own.paired(constant, _cpu)))
    return report
