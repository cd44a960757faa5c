"""Measure how many memories a second one tenant can store, alone and with many connections at once.

    python -m benchmarks.stores [--seconds 10] [--connections 1 8 32 128] [--tenants 1]

The real wrangler and workerd. Each connection stores one memory after another, all different, in the same scope. A store
counts when it was answered with 201, so it is durable. Then each tenant's history is verified.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import random
import statistics
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from benchmarks.agent import sentence
from benchmarks.connection import Connection
from benchmarks.harness.processes import of_group, usage_of
from tools.local_server import serving

WARMING_S = 2


@dataclass
class Load:
    """What the connections of one step got.

    spent_ms: of each store that was answered with 201. cpu_ms: what the server's processes used of the processor.
    """

    answers: Counter[int] = field(default_factory=Counter)
    spent_ms: list[float] = field(default_factory=list)
    seconds: float = 0.0
    cpu_ms: float = 0.0

    def row(self, connections: int) -> str:
        """Return the step as a row of a Markdown table."""
        stored, refused = self.answers[201], self.answers.total() - self.answers[201]
        ordered = sorted(self.spent_ms) or [0.0]
        p99 = ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]
        each = (
            f"{stored / self.seconds:.1f}",
            f"{statistics.median(ordered):.0f}",
            f"{p99:.0f}",
            f"{refused} of {self.answers.total()}",
        )
        return f"| {connections} | {' | '.join(each)} | {self.cpu_ms / max(stored, 1):.1f} |"


async def load(
    base_url: str, tenants: list[str], connections: int, seconds: float, numbers: itertools.count[int]
) -> Load:
    """Store with so many connections for so long; those under way then are waited for, and count."""
    measured, chance = Load(), random.Random(connections)
    started = time.perf_counter()

    async def one(number: int) -> None:
        path, connection = f"/admin/tenants/{tenants[number % len(tenants)]}/memories", Connection(base_url)
        while time.perf_counter() - started < seconds:
            record = {"content": sentence(chance, next(numbers)), "agent_type": "sdr"}
            begun = time.perf_counter()
            status = await connection.ask("POST", path, record)
            measured.answers[status] += 1
            if status == 201:
                measured.spent_ms.append((time.perf_counter() - begun) * 1000)

    await asyncio.gather(*map(one, range(connections)))
    measured.seconds = time.perf_counter() - started
    return measured


def cpu_ms(group: int) -> float:
    """Return the processor time that the processes of a group have used, in milliseconds. Linux only."""
    return usage_of(of_group(group)).cpu_ms


def problem_of(client: httpx.Client, tenant: str) -> str | None:
    """Return what the verification of the tenant's whole history finds, None when it is intact."""
    parameters: dict[str, str] = {}
    while True:
        verdict = client.get(f"/admin/tenants/{tenant}/history/verify", params=parameters).raise_for_status().json()
        if verdict["problem"] is not None or verdict["cursor"] is None:
            return None if verdict["problem"] is None else str(verdict["problem"])
        parameters = {"cursor": verdict["cursor"]}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Measure stores of one tenant at once.")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--connections", type=int, nargs="+", default=[1, 8, 32, 128])
    parser.add_argument("--tenants", type=int, default=1, help="spread the connections over so many")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="retain-bench-") as folder,
        serving(Path(folder)) as server,
        httpx.Client(base_url=server.base_url, timeout=60, trust_env=False) as client,
    ):
        tenants, numbers = [f"bench{number}" for number in range(options.tenants)], itertools.count()
        for tenant in tenants:
            client.put(f"/admin/tenants/{tenant}").raise_for_status()
        asyncio.run(load(server.base_url, tenants, 1, WARMING_S, numbers))
        print("| connections | stores/s | median ms | p99 ms | refused | CPU ms each |")
        print("|---:|---:|---:|---:|---:|---:|")
        for connections in options.connections:
            before = cpu_ms(server.process.pid)
            measured = asyncio.run(load(server.base_url, tenants, connections, options.seconds, numbers))
            measured.cpu_ms = cpu_ms(server.process.pid) - before
            print(measured.row(connections), flush=True)
        for tenant in tenants:
            print(f"history of {tenant}: {problem_of(client, tenant) or 'intact'}")


if __name__ == "__main__":
    main()
