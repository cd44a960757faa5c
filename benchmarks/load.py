"""Measure the server under load: five kinds of requests, each with 1, 8, 32 and 128 connections, next to earlier figures.

    python -m benchmarks.load [--seconds 10] [--connections 1 8 32 128] [--kinds healthz gateway recall store run]

The real wrangler and workerd, with the scripted model and an upstream of its own for the gateway. Each connection sends one
request after another; a request counts when it succeeds. Then what is sent at once: runs of many instances, runs of one
instance, a run with one key, and one record.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from benchmarks.agent import seed_records, sentence
from benchmarks.connection import Connection
from benchmarks.harness.processes import of_group, usage_of
from benchmarks.stores import cpu_ms
from retain.cli.project import Project
from retain.cli.wrangler_kv import wrangler_of
from retain.gateway.provisioning import KvEntry, new_api_key, tool_entry
from tools.local_server import free_port, serving
from tools.paths import LOCAL_CONFIG, ROOT

TENANT, TOOL = "default", "create_order"
RECORDS = 1_000
"""Records that a recall searches."""
WARMING_S = 2
BEFORE: Mapping[str, Mapping[int, str]] = {
    "healthz": {1: "100 (9/20)", 8: "323 (24/46)", 32: "504 (60/134)", 128: "289 (424/832)"},
    "gateway": {1: "34 (27/72)", 8: "58 (137/327)", 32: "114 (241/864)", 128: "152 (830/1085)"},
    "recall": {1: "20 (46/112)", 8: "18 (398/1177)", 32: "19 (1631/2084)", 128: "22 (4850/9733)"},
    "store": {
        1: "12.6 (73/202)",
        8: "8.7 (840/1614)",
        32: "3.4, 18 of 67 refused (6044/8167)",
        128: "1.7, 88 of 129 refused (15667/24035)",
    },
    "run": {1: "12 (79/142)", 8: "15 (500/738)", 32: "18 (1785/2068)", 128: "16 (7092/12490)"},
}
"""Successes per second (median/99th percentile in ms), as they were before the stores of a tenant had one writer."""
BURSTS_BEFORE = {
    "200 runs, an instance each": "200 completed, 13.7 s",
    "50 runs, one instance": "24 completed, 26 refused",
    "50 runs, one key": "1 run, 50 equal answers",
    "12 equal records": "1 record",
}


@dataclass(frozen=True)
class Ask:
    """A request to send."""

    method: str
    path: str
    content: object = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Load:
    """What the connections got. spent_ms: of each success."""

    answers: Counter[int] = field(default_factory=Counter)
    spent_ms: list[float] = field(default_factory=list)
    seconds: float = 0.0

    def __str__(self) -> str:
        ordered = sorted(self.spent_ms) or [0.0]
        p99 = ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]
        failed = self.answers.total() - len(self.spent_ms)
        refused = f", {failed} of {self.answers.total()} refused" if failed else ""
        return f"{len(self.spent_ms) / self.seconds:.1f}{refused} ({statistics.median(ordered):.0f}/{p99:.0f})"


def kinds(api_key: str) -> dict[str, Callable[[], Ask]]:
    """Return what makes the next request of each kind."""
    chance, numbers = random.Random(3), itertools.count()
    authorised = {"authorization": f"Bearer {api_key}"}

    def recall() -> Ask:
        query = {"query": sentence(chance, next(numbers)), "agent_type": "sdr", "top_k": 10}
        return Ask("POST", f"/admin/tenants/{TENANT}/memories/recall", query)

    def store() -> Ask:
        record = {"content": sentence(chance, next(numbers)), "agent_type": "support"}
        return Ask("POST", f"/admin/tenants/{TENANT}/memories", record)

    return {
        "healthz": lambda: Ask("GET", "/healthz"),
        "gateway": lambda: Ask("POST", f"/api/v1/tools/{TOOL}", {"order_id": "A-1"}, authorised),
        "recall": recall,
        "store": store,
        "run": lambda: Ask("POST", f"/v1/agents/{TENANT}/sdr/run", {"input": "Good morning."}),
    }


async def load(base_url: str, make: Callable[[], Ask], connections: int, seconds: float) -> Load:
    """Ask with so many connections for so long; the requests under way then are waited for, and count."""
    measured, started = Load(), time.perf_counter()

    async def one() -> None:
        connection = Connection(base_url)
        while time.perf_counter() - started < seconds:
            ask, begun = make(), time.perf_counter()
            status = await connection.ask(ask.method, ask.path, ask.content, ask.headers)
            measured.answers[status] += 1
            if 200 <= status < 300:
                measured.spent_ms.append((time.perf_counter() - begun) * 1000)

    await asyncio.gather(*(one() for _ in range(connections)))
    measured.seconds = time.perf_counter() - started
    return measured


async def at_once(base_url: str, asks: Sequence[Ask]) -> tuple[list[tuple[int, object]], float]:
    """Send requests at once; return the answers, and the seconds until the last one."""
    started = time.perf_counter()
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(base_url=base_url, timeout=120, trust_env=False, limits=limits) as client:

        async def one(ask: Ask) -> tuple[int, object]:
            answer = await client.request(ask.method, ask.path, json=ask.content, headers=dict(ask.headers))
            is_json = "json" in answer.headers.get("content-type", "")
            return answer.status_code, answer.json() if is_json else None

        return list(await asyncio.gather(*map(one, asks))), time.perf_counter() - started


def bursts(base_url: str) -> Iterator[tuple[str, str]]:
    """Yield what was sent at once, and what was answered."""

    def run(instance: str, **headers: str) -> Ask:
        body = {"input": "Good morning.", "instance_id": instance}
        return Ask("POST", f"/v1/agents/{TENANT}/sdr/run", body, headers)

    for name, asks in (
        ("200 runs, an instance each", [run(f"burst-{number}") for number in range(200)]),
        ("50 runs, one instance", [run("busy") for _ in range(50)]),
        ("50 runs, one key", [run("keyed", **{"idempotency-key": "one"}) for _ in range(50)]),
        (
            "12 equal records",
            [Ask("POST", f"/admin/tenants/{TENANT}/memories", {"content": "Equal.", "house": "orders"})] * 12,
        ),
    ):
        answers, seconds = asyncio.run(at_once(base_url, asks))
        statuses = ", ".join(f"{count} x {status}" for status, count in sorted(Counter(s for s, _ in answers).items()))
        bodies = [body for status, body in answers if status < 300 and isinstance(body, dict)]
        ids = {str(body.get("run_id") or body.get("id")) for body in bodies}
        yield name, f"{statuses}; {len(ids)} different; {seconds:.1f} s"


def resident_mb(group: int) -> int:
    """Return the resident memory of the processes of a group, in MB. Linux only."""
    return usage_of(of_group(group)).resident_bytes // 1_000_000


@contextmanager
def upstream() -> Iterator[str]:
    """Serve the upstream of a tool in a process of its own; yield its host and port."""
    port = free_port()
    process = subprocess.Popen([sys.executable, "-m", "tests.host.echo_server", str(port)], cwd=ROOT)
    try:
        for _ in range(100):
            with suppress(httpx.HTTPError):
                httpx.get(f"http://127.0.0.1:{port}/", trust_env=False)
                break
            time.sleep(0.1)
        yield f"127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def provision(state: Path, host: str) -> str:
    """Write a tool and an API key into the server's KV; return the key."""
    key = new_api_key(TENANT, [TOOL], now_ms=time.time_ns() // 1_000_000)
    config = {
        "version": 1,
        "description": "Create an order.",
        "url": f"http://{host}/orders",
        "method": "POST",
        "host": host,
        "auth": {"kind": "none"},
        "parameters": {"type": "object", "properties": {"order_id": {"type": "string"}}},
        "idempotent": False,
        "timeout_ms": 5000,
    }
    entries: list[KvEntry] = [key.entry, tool_entry(TENANT, TOOL, config, allow_loopback=True)]
    file = state / "entries.json"
    file.write_text(json.dumps([{"key": entry.key, "value": entry.value} for entry in entries]))
    where = ["--binding", "KV", "--config", str(LOCAL_CONFIG), "--local", "--persist-to", str(state)]
    wrangler_of(Project(ROOT))(["kv", "bulk", "put", str(file), *where])
    return key.api_key


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description="Measure the server under load.")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--connections", type=int, nargs="+", default=[1, 8, 32, 128])
    parser.add_argument("--kinds", nargs="+", choices=list(BEFORE), default=list(BEFORE))
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="retain-bench-") as folder,
        upstream() as host,
        serving(Path(folder)) as server,
        httpx.Client(base_url=server.base_url, timeout=60, trust_env=False) as client,
    ):
        made = kinds(provision(Path(folder), host))
        seed_records(client, RECORDS)
        begun_mb = resident_mb(server.process.pid)
        print("| kind | connections | before | now | CPU, ms |\n|---|---:|---|---|---:|")
        for kind in options.kinds:
            asyncio.run(load(server.base_url, made[kind], 1, WARMING_S))
            for connections in options.connections:
                before_ms = cpu_ms(server.process.pid)
                measured = asyncio.run(load(server.base_url, made[kind], connections, options.seconds))
                each_ms = (cpu_ms(server.process.pid) - before_ms) / max(1, len(measured.spent_ms))
                before = BEFORE[kind].get(connections, "")
                print(f"| {kind} | {connections} | {before} | {measured} | {each_ms:.1f} |", flush=True)
        print("\n| at once | before | now |\n|---|---|---|")
        for name, found in bursts(server.base_url):
            print(f"| {name} | {BURSTS_BEFORE[name]} | {found} |", flush=True)
        print(f"\nresident memory of all processes: {begun_mb} MB, then {resident_mb(server.process.pid)} MB")


if __name__ == "__main__":
    main()
