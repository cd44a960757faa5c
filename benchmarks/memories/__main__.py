"""Measure memories side by side: Retain, mem0, LangGraph's SqliteStore, full text alone; and Retain over HTTP.

    python -m benchmarks.memories [--quick] [--records 1000 10000] [--rounds 5] [--connections 1 8 32 128]
        [--only NAME …] [--json FILE] [--plot FILE]

Each is in a process of its own, without HTTP, on SQLite or files of its own; all embed with the same local table. Retain
over HTTP is the Worker on bare workerd, with its stand-in of the vector index; it alone is asked by several connections.
The texts are made up, sixteen words each; a search has eight words. They are asked in turn: a block of searches each, and
a block of additions.
"""

from __future__ import annotations

import argparse
import asyncio
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from benchmarks.agent import sentence
from benchmarks.agents.own_process import is_installed
from benchmarks.harness.contestant import Contestant
from benchmarks.harness.figures import Spread, figures_of, spread_of
from benchmarks.harness.interleaving import Plan, measure
from benchmarks.harness.plot import bars
from benchmarks.harness.report import Comparison, Report
from benchmarks.memories.over_http import HTTP, over_http
from benchmarks.memories.processes import FULL_TEXT, LANGGRAPH, MEM0, RETAIN, Kept, MemoryProcess, asked, running

FILLED = 1000
"""Texts in one message to a process that is filled."""
CALLS = 15
HTTP_MS: Mapping[int, float] = {10_000: 15.0, 100_000: 30.0}
"""What a search over HTTP may take at so many records."""
QUICK_RECORDS = 200


@dataclass(frozen=True)
class Memory:
    """One of those compared. made: returns the contestant that searches or adds these texts. folder: what it keeps."""

    fill: Callable[[Sequence[str]], object]
    made: Callable[[str, str, Iterator[str]], Contestant]
    folder: Path

    def disk_mb(self) -> float:
        """Return the size of its files, in millions of bytes."""
        return sum(path.stat().st_size for path in self.folder.rglob("*") if path.is_file()) / 1e6


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


def compared(memories: Mapping[str, Memory], size: int, connections: Sequence[int], plan: Plan) -> Report:
    """Return what searches and additions take with so many records."""
    report = Report(f"memories, {size:,} records")
    for name, memory in memories.items():
        report.comparisons.append(Comparison(f"on disk: {name}", 1, spread_of([memory.disk_mb()]), "MB"))
    for what, made in (("search", questions), ("add", texts)):
        called = [one.made(f"{name}, {what}", what, made(size)) for name, one in memories.items()]
        series = asyncio.run(measure(called, 1, plan))
        report.figures += [figures_of(one) for one in series.values()]
        others = [name for name in (LANGGRAPH, MEM0, FULL_TEXT) if name in memories]
        for own in (name for name in (RETAIN, HTTP) if name in memories):
            for other in others:
                times = series[f"{own}, {what}"].paired(series[f"{other}, {what}"])
                aim = 1.0 if own == RETAIN and what == "search" and other != FULL_TEXT and size >= 10_000 else None
                report.comparisons.append(Comparison(f"{what}: {own} against {other}", 1, times, aim=aim))
        if HTTP in memories:
            alone = f"{HTTP}, {what}"
            if what == "search":
                spread = report_of(report, alone)
                report.comparisons.append(Comparison(alone, 1, spread, "ms", HTTP_MS.get(size)))
            for number in connections:
                if number > 1:
                    more = Plan(plan.rounds, max(plan.calls, 4 * number), number)
                    one = memories[HTTP].made(alone, what, made(size + number))
                    report.figures.append(figures_of(asyncio.run(measure([one], number, more))[alone]))
    return report


def report_of(report: Report, name: str) -> Spread:
    """Return the spread of the blocks' medians of one contestant of a report."""
    [figures] = [one for one in report.figures if one.name == name and one.connections == 1]
    return figures.block_ms


def in_process(process: MemoryProcess) -> Memory:
    """Return the memory of a process."""
    return Memory(
        lambda some: asked(process, {"fill": some}),
        lambda name, what, made: Kept(name, process, what, made),
        process.folder,
    )


def main() -> None:
    """Measure, and print the tables."""
    every = (RETAIN, LANGGRAPH, MEM0, FULL_TEXT, HTTP)
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.memories", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--records", type=int, nargs="+", default=[1_000, 10_000])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--connections", type=int, nargs="+", default=[1, 8, 32, 128])
    parser.add_argument("--quick", action="store_true", help="few memories, and the others where they are installed")
    parser.add_argument("--only", nargs="+", choices=every, default=every, help="compare only these")
    parser.add_argument("--json", type=Path, help="also write all figures to this file")
    parser.add_argument("--plot", type=Path, help="also write a plot to this file, as SVG")
    options = parser.parse_args()
    plan = Plan(2, 5, 2) if options.quick else Plan(options.rounds, CALLS, 3)
    chosen = [name for name in every if name in options.only]
    if options.quick and not is_installed():
        chosen = [name for name in chosen if name not in (LANGGRAPH, MEM0)]
    whole, groups = Report("memories"), {}
    with ExitStack() as stack:
        processes = stack.enter_context(running(name for name in chosen if name != HTTP))
        memories = {name: in_process(process) for name, process in processes.items()}
        if HTTP in chosen:
            worker = stack.enter_context(over_http())
            memories[HTTP] = Memory(worker.fill, worker.contestant, worker.workerd.state)
        filled, source = 0, texts(1)
        for size in [QUICK_RECORDS] if options.quick else options.records:
            while filled < size:
                some = [next(source) for _ in range(min(FILLED, size - filled))]
                for memory in memories.values():
                    memory.fill(some)
                filled += len(some)
            report = compared(memories, size, [] if options.quick else options.connections, plan)
            print(f"{size:,} records\n\n{report}\n", flush=True)
            whole.add(report, f"{size:,} records: ")
            searched = [one for one in report.figures if one.name.endswith("search") and one.connections == 1]
            groups[f"{size:,}"] = {one.name.removesuffix(", search"): one.block_ms for one in searched}
            if options.json:
                whole.write(options.json)
    if options.plot:
        options.plot.write_text(bars("A search, by records", "ms", groups))


if __name__ == "__main__":
    main()
