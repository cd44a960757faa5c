"""Measure how fast the stand-in for Vectorize answers: `python -m benchmarks.vector_stand_in`.

Starts it on workerd, fills one namespace with random vectors of 256 dimensions, and times calls over HTTP. The line
`describe` shows the cost of a call that does nothing. Prints a table in Markdown.
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import time
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx

from tests.vectorize.workerd import running, variables

DIMENSIONS = 256
BATCH = 1000
BINDING = "VECTORIZE"


class Binding:
    """Calls the stand-in."""

    def __init__(self, url: str) -> None:
        self._client = httpx.Client(base_url=url, timeout=120)

    def call(self, method: str, *arguments: object) -> Any:
        """Call the method; return its result. A refusal raises."""
        response = self._client.post(f"{BINDING}/{method}", json=arguments)
        response.raise_for_status()
        return response.json()["result"]


def vector(chance: random.Random) -> list[int]:
    """Return a random vector of small whole numbers, which are short as JSON."""
    return array("b", chance.randbytes(DIMENSIONS)).tolist()


def batch(chance: random.Random, start: int) -> list[dict[str, object]]:
    """Return a thousand vectors of seven agents, numbered from `start`."""
    return [
        {
            "id": f"{number:026}",
            "values": vector(chance),
            "namespace": "large",
            "metadata": {
                "tenant_id": "t",
                "agent_id": f"agent{number % 7}",
                "scope_id": f"scope{number % 50}",
                "kind": "fact",
                "created_at": 1_700_000_000_000 + number,
            },
        }
        for number in range(start, start + BATCH)
    ]


def timed(work: Callable[[], object], repeats: int) -> tuple[float, float]:
    """Return the median and the 95th percentile of the work's time, in milliseconds, after two runs to warm up."""
    times = []
    for turn in range(repeats + 2):
        started = time.perf_counter()
        work()
        if turn >= 2:
            times.append((time.perf_counter() - started) * 1000)
    return statistics.median(times), statistics.quantiles(times, n=20)[-1]


def measure(binding: Binding, chance: random.Random, vectors: int, repeats: int) -> None:
    """Print one row for each kind of call."""

    def query(**options: object) -> Callable[[], object]:
        return lambda: binding.call("query", vector(chance), {"namespace": "large", "topK": 20, **options})

    one = {"id": "one", "namespace": "large"}
    calls: dict[str, Callable[[], object]] = {
        "describe": lambda: binding.call("describe"),
        "query": query(),
        "query with all metadata": query(returnMetadata="all"),
        "query, filter passes all": query(filter={"tenant_id": "t", "kind": "fact"}),
        "query, filter passes 1 in 7": query(filter={"tenant_id": "t", "agent_id": "agent3"}),
        "query in a namespace of 100": query(namespace="small"),
        "upsert of one": lambda: binding.call("upsert", [{**one, "values": vector(chance)}]),
    }
    for name, call in calls.items():
        median, high = timed(call, repeats)
        print(f"| {vectors:,} | {name} | {median:.1f} | {high:.1f} |")


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description="Time the stand-in for Vectorize.")
    parser.add_argument("--vectors", type=int, nargs="+", default=[10_000, 100_000], help="sizes of the namespace")
    parser.add_argument("--repeats", type=int, default=40, help="timed calls of each kind (%(default)s)")
    options = parser.parse_args()
    chance = random.Random(1)
    indexes = {BINDING: variables(DIMENSIONS=str(DIMENSIONS))}
    print("| vectors | call | median ms | p95 ms |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        with running(Path(folder), indexes) as url:
            binding, written = Binding(url), 0
            small = [{**one, "id": f"s{n}", "namespace": "small"} for n, one in enumerate(batch(chance, 0)[:100])]
            binding.call("upsert", small)
            for size in sorted(options.vectors):
                started = time.perf_counter()
                while written < size:
                    binding.call("upsert", batch(chance, written))
                    written += BATCH
                print(f"| {size:,} | fill, in total | {(time.perf_counter() - started) * 1000:.0f} | |")
                measure(binding, chance, size, options.repeats)
        with running(Path(folder), indexes) as url:
            started = time.perf_counter()
            Binding(url).call("query", vector(chance), {"namespace": "large"})
            print(f"| {written:,} | first query after a restart | {(time.perf_counter() - started) * 1000:.0f} | |")


if __name__ == "__main__":
    main()
