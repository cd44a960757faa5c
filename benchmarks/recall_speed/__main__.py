"""Measure recalls through HTTP: `python -m benchmarks.recall_speed [--records 1000 10000 100000] [--data FOLDER]`.

The real wrangler and workerd, with all records in one agent's scope, and no fresh ones. The kinds of questions: `short`,
four words of a made-up language of which one is rare, and with `--data` the questions of the longest conversation of
LifeBench. Latency is measured with one connection. The processor's time is that of each process for one recall; the first
row is `GET /healthz`, which costs what a request costs before any work. Prints a table in Markdown.

With `--context` also runs that recall into their context, each of a new instance, with nothing remembered and with 10,000
records and 10,000 episodes: the difference is what reading them and assembling the context takes.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import random
import statistics
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx

from benchmarks.agent import seed_episodes
from benchmarks.costs.memories import words
from benchmarks.load import Ask, Load, load
from benchmarks.recall_speed.filling import fill_conversation, fill_synthetic
from benchmarks.recall_speed.processes import APP, used_ms
from retain.memory.scope import Scope
from retain.models.embedders.static import StaticEmbedder
from tools.local_server import LocalServer, serving, start, stop
from tools.paths import ROOT

AGENT = "sdr"
SCOPE = Scope("default", AGENT)
CONTEXT = 10_000
"""Records and episodes of the run whose context is measured."""
WARMING_S = 3
_PROCESSES = (APP, "wrangler's proxy", "wrangler")


def embedder() -> StaticEmbedder:
    """Return the local embedding model."""
    return StaticEmbedder(ROOT / "models" / "static-minilm-256-i8.bin")


def short_questions(count: int, records: int) -> list[str]:
    """Return questions of three words and a rare one."""
    chance = random.Random(2)
    return [f"{words(chance, 3)} AB-{chance.randrange(1, records + 1):06}" for _ in range(count)]


def asking(questions: Sequence[str]) -> Callable[[], Ask]:
    """Return what makes the next recall."""
    order = itertools.cycle(questions)

    def ask() -> Ask:
        body = {"query": next(order), "agent_type": AGENT, "top_k": 10}
        return Ask("POST", f"/admin/tenants/{SCOPE.tenant_id}/memories/recall", body)

    return ask


def measure(server: LocalServer, state: Path, name: str, make: Callable[[], Ask], options: argparse.Namespace) -> None:
    """Print a row for each number of connections."""
    asyncio.run(load(server.base_url, make, 1, WARMING_S))
    for connections in options.connections:
        before = used_ms(server.process.pid, state)
        measured = asyncio.run(load(server.base_url, make, connections, options.seconds))
        spent = used_ms(server.process.pid, state) - before
        print(row(name, connections, measured, [spent[one] for one in _PROCESSES]), flush=True)


def row(name: str, connections: int, measured: Load, spent_ms: Sequence[float]) -> str:
    """Return a row of the table. spent_ms: of each process, for all answers."""
    count = len(measured.spent_ms)
    assert count == measured.answers.total() > 1, measured.answers
    p95 = statistics.quantiles(measured.spent_ms, n=20)[-1]
    each = " | ".join(f"{spent / count:.1f}" for spent in spent_ms)
    median = statistics.median(measured.spent_ms)
    return f"| {name} | {connections} | {count / measured.seconds:.1f} | {median:.1f} | {p95:.1f} | {each} |"


def running() -> Callable[[], Ask]:
    """Return what makes the next run, of an instance that has none yet."""
    numbers, questions = itertools.count(), itertools.cycle(short_questions(1000, CONTEXT))

    def ask() -> Ask:
        body = {"input": next(questions), "instance_id": f"run-{next(numbers)}"}
        return Ask("POST", f"/v1/agents/{SCOPE.tenant_id}/{AGENT}/run", body)

    return ask


@contextmanager
def served(fill: Callable[[Path], None]) -> Iterator[tuple[LocalServer, Path]]:
    """Serve a state that is filled while the server is stopped."""
    with tempfile.TemporaryDirectory(prefix="retain-bench-") as folder:
        state = Path(folder)
        with serving(state) as empty, httpx.Client(base_url=empty.base_url, timeout=60, trust_env=False) as client:
            client.get("/readyz").raise_for_status()  # makes the stand-in's database
        fill(state)
        server = start(state)
        try:
            yield server, state
        finally:
            stop(server)


def synthetic(count: int) -> Callable[[Path], None]:
    """Return what fills a state with so many made-up memories."""
    return lambda state: asyncio.run(fill_synthetic(state, SCOPE, count, embedder()))


def remembering(state: Path) -> None:
    """Fill a state with records and episodes."""
    synthetic(CONTEXT)(state)
    seed_episodes(state, CONTEXT)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Measure recalls through HTTP.")
    parser.add_argument("--records", type=int, nargs="*", default=[1000, 10_000, 100_000])
    parser.add_argument("--connections", type=int, nargs="+", default=[1, 8, 32])
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--data", type=Path, help="folder with lifebench.jsonl.gz")
    parser.add_argument("--context", action="store_true", help="measure runs as well")
    options = parser.parse_args()
    columns = ["what", "connections", "a second", "median ms", "p95 ms", *(f"{one}, CPU ms" for one in _PROCESSES)]
    print(f"| {' | '.join(columns)} |\n|---|{'---:|' * (len(columns) - 1)}")
    for number, count in enumerate(options.records):
        with served(synthetic(count)) as on:
            if not number:
                measure(*on, "`GET /healthz`", lambda: Ask("GET", "/healthz"), options)
            measure(*on, f"{count:,} records, short", asking(short_questions(1000, count)), options)
    if options.context:
        for name, fill in (("run, nothing remembered", lambda _: None), (f"run, {CONTEXT:,} of both", remembering)):
            with served(fill) as on:
                measure(*on, name, running(), options)
    if options.data is not None:
        found: list[tuple[int, list[str]]] = []
        path = options.data / "lifebench.jsonl.gz"
        with served(lambda state: found.append(asyncio.run(fill_conversation(state, SCOPE, path, embedder())))) as on:
            [(count, questions)] = found
            measure(*on, f"LifeBench, {count:,} records, its questions", asking(questions), options)
            short = [" ".join(question.split()[-4:]) for question in questions]
            measure(*on, f"LifeBench, {count:,} records, four words", asking(short), options)


if __name__ == "__main__":
    main()
