"""Measure memories side by side, in-process: Retain, LangGraph's SqliteStore, full text alone.

    python -m benchmarks.memories [--records 1000 10000] [--rounds 5] [--json FILE]

Each is in a process of its own, without HTTP, on SQLite in files; all embed with the same local table. The texts are made
up, sixteen words each; a search has eight words. They are asked in turn: a block of searches each, and a block of additions.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from benchmarks.agent import sentence
from benchmarks.agents.langgraph_contestant import VENV, python
from benchmarks.harness.figures import figures_of
from benchmarks.harness.interleaving import Plan, measure
from benchmarks.harness.report import Comparison, Report
from retain.json_text import read_own_json
from tools.paths import ROOT

HERE = Path(__file__).parent
RETAIN, LANGGRAPH, FULL_TEXT = "Retain, in-process", "LangGraph, SqliteStore", "full text alone"
FILLED = 1000
"""Texts in one message to a process that is filled."""
CALLS = 15


class Kept:
    """Implements `Contestant`: searches, or adds, in the process of one memory."""

    def __init__(self, name: str, process: subprocess.Popen[str], what: str, texts: Iterator[str]) -> None:
        self.name = name
        self._process = process
        self._what = what
        self._texts = texts

    @property
    def processes(self) -> Mapping[str, Sequence[int]]:
        """See the protocol."""
        return {"python": [self._process.pid]}

    async def block(self, connections: int, calls: int) -> list[float]:
        """See the protocol. One at a time: neither store has more of one connection to a file."""
        assert connections == 1
        texts = [next(self._texts) for _ in range(calls)]
        return await asyncio.to_thread(asked, self._process, {self._what: texts})

    async def counters(self) -> Mapping[str, float]:
        """See the protocol."""
        return {}


def asked(process: subprocess.Popen[str], message: Mapping[str, Sequence[str]]) -> list[float]:
    """Send a block and return its times. Raises: SystemExit when the process has ended."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(message) + "\n")
    process.stdin.flush()
    line = process.stdout.readline()
    if not line:
        raise SystemExit("the process of a memory ended")
    times_ms, hits = read_own_json(line)
    assert hits == len(times_ms) or "search" not in message, "every search finds something"
    return list(times_ms)


def interpreter() -> list[str]:
    """Return the interpreter for LangGraph's store, whose SQLite must load extensions, as not every build can.

    Raises: SystemExit where neither the environment's own nor the system's can.
    """
    own = str(python())
    test = "import sqlite3, sys; sys.exit(not hasattr(sqlite3.Connection, 'enable_load_extension'))"
    for program in (own, "/usr/bin/python3"):
        if Path(program).exists() and subprocess.run([program, "-c", test], check=False).returncode == 0:
            return [program]
    raise SystemExit("no interpreter here has a SQLite that loads extensions, which LangGraph's store needs")


def started(kind: str, program: Sequence[str], folder: str) -> subprocess.Popen[str]:
    """Start the process of one memory."""
    packages = sorted(VENV.glob("lib/python*/site-packages")) if kind == "langgraph" else []
    paths = os.pathsep.join(map(str, [ROOT / "workers", *packages]))
    table = ROOT / "models" / "static-minilm-256-i8.bin"
    command = [*program, str(HERE / "kept.py"), kind, folder, str(table)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env={**os.environ, "PYTHONPATH": paths})


def texts(seed: int) -> Iterator[str]:
    """Yield made-up texts for ever, all different."""
    chance, number = random.Random(seed), seed * 10_000_000
    while True:
        yield sentence(chance, number)
        number += 1


def questions(seed: int) -> Iterator[str]:
    """Yield searches for ever."""
    for text in texts(seed):
        yield " ".join(text.split()[:8])


def main() -> None:
    """Measure, and print the tables."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.memories", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--records", type=int, nargs="+", default=[1_000, 10_000])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, help="also write all figures to this file")
    options = parser.parse_args()
    kinds = {RETAIN: ("retain", [sys.executable]), LANGGRAPH: ("langgraph", interpreter())}
    kinds[FULL_TEXT] = ("fulltext", [sys.executable])
    report = Report("memories")
    with ExitStack() as stack:
        processes = {}
        for name, (kind, program) in kinds.items():
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="retain-bench-"))
            processes[name] = stack.enter_context(started(kind, program, folder))
            stack.callback(processes[name].terminate)
        filled, source = 0, texts(1)
        for size in options.records:
            while filled < size:
                some = [next(source) for _ in range(min(FILLED, size - filled))]
                for process in processes.values():
                    asked(process, {"fill": some})
                filled += len(some)
            for what, made in (("search", questions), ("add", texts)):
                called = [Kept(f"{name}, {what}", one, what, made(size)) for name, one in processes.items()]
                series = asyncio.run(measure(called, 1, Plan(options.rounds, CALLS, 3)))
                report.figures += [figures_of(one) for one in series.values()]
                own = series[f"{RETAIN}, {what}"]
                for name in (LANGGRAPH, FULL_TEXT):
                    times = own.paired(series[f"{name}, {what}"])
                    report.comparisons.append(Comparison(f"{what} at {size:,}: Retain against {name}", 1, times))
            print(f"{size:,} records\n\n{report}\n", flush=True)
            if options.json:
                report.write(options.json)
            report = Report("memories")


if __name__ == "__main__":
    main()
