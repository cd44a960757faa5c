"""Measure runs and recall through the local server: the real wrangler and workerd, D1, Durable Objects, the stand-in.

    python -m benchmarks.agent [--records 10000] [--episodes 10000]

Every figure is the median of its requests less the median of `GET /healthz` in the same run, so that the cost of
wrangler's own proxies is not counted. The kinds of requests alternate.
"""

from __future__ import annotations

import argparse
import random
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import httpx

from retain.identifiers import new_id
from tools.local_server import serving

ROUNDS = 40
TENANT = "default"
_WORDS = (
    "refund order invoice delivery late broken vase lamp customer asked wanted liked called wrote paid parcel address "
    "meeting budget contract renewal discount price offer friend garden music travel dinner recipe doctor school train"
).split()


def sentence(chance: random.Random, number: int) -> str:
    """Return a made-up memory: sixteen words and a number, so that all differ."""
    return f"{' '.join(chance.choices(_WORDS, k=16))} {chance.choice('abcdefgh')}{number}"


def seed_records(client: httpx.Client, count: int) -> float:
    """Store records for the agent sdr, 100 per request; return milliseconds per record."""
    chance = random.Random(1)
    started = time.perf_counter()
    for start in range(0, count, 100):
        memories = [{"content": sentence(chance, number)} for number in range(start, min(start + 100, count))]
        body = {"tenant": TENANT, "agent_type": "sdr", "memories": memories}
        client.post("/admin/seed-memory", json=body, timeout=120).raise_for_status()
    return (time.perf_counter() - started) * 1000 / max(count, 1)


def seed_episodes(state: Path, count: int) -> None:
    """Write episodes of the agent sdr into the local D1's file."""
    [database] = [path for path in (state / "v3" / "d1").rglob("*.sqlite") if "metadata" not in path.name]
    now_ms = int(time.time() * 1000)
    rows = [
        (f"{new_id()}.001", TENANT, "sdr", "bench", new_id(), 1, "input: hello\nsdr: hello", now_ms - 1000 * number)
        for number in range(count)
    ]
    with sqlite3.connect(database, timeout=30) as connection:
        connection.executemany("INSERT INTO memory_episodes VALUES (?, ?, ?, ?, ?, ?, ?, ?, NULL)", rows)


def medians(calls: dict[str, Callable[[int], httpx.Response]]) -> dict[str, float]:
    """Return the median of each kind of request in milliseconds; the kinds alternate."""
    spent: dict[str, list[float]] = {name: [] for name in calls}
    for number in range(ROUNDS + 3):
        for name, call in calls.items():
            started = time.perf_counter()
            call(number).raise_for_status()
            if number >= 3:
                spent[name].append((time.perf_counter() - started) * 1000)
    return {name: statistics.median(values) for name, values in spent.items()}


def measure(client: httpx.Client, title: str) -> None:
    """Print how long runs and recalls take now."""
    chance = random.Random(2)

    def run(text: str) -> Callable[[int], httpx.Response]:
        return lambda _: client.post(f"/v1/agents/{TENANT}/sdr/run", json={"input": text})

    def recall(_: int) -> httpx.Response:
        query = {"query": " ".join(chance.choices(_WORDS, k=8)), "agent_type": "sdr", "top_k": 10}
        return client.post(f"/admin/tenants/{TENANT}/memories/recall", json=query)

    found = medians(
        {
            "healthz": lambda _: client.get("/healthz"),
            "recall": recall,
            "run, no tool step": run("Good morning."),
            "run, three tool steps": run("Draft an e-mail to contact hubspot_id:123456"),
        }
    )
    floor = found.pop("healthz")
    print(f"{title} (healthz {floor:.1f} ms, subtracted)")
    for name, value in found.items():
        print(f"  {name:<24}{value - floor:8.1f} ms")


def main() -> None:
    """Measure on an empty state, then with records and episodes."""
    parser = argparse.ArgumentParser(description="Measure runs and recall.")
    parser.add_argument("--records", type=int, default=10_000)
    parser.add_argument("--episodes", type=int, default=10_000)
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="retain-bench-") as folder,
        serving(Path(folder)) as server,
        httpx.Client(base_url=server.base_url, timeout=60) as client,
    ):
        seed_records(client, 10)
        measure(client, "10 records, no episodes")
        each = seed_records(client, options.records // 10)
        seed_episodes(Path(folder), options.episodes // 10)
        measure(client, f"{options.records // 10} records, {options.episodes // 10} episodes more")
        each = seed_records(client, options.records)
        seed_episodes(Path(folder), options.episodes)
        measure(client, f"{options.records} records, {options.episodes} episodes")
        print(f"storing, 100 records per request: {each:.2f} ms per record")


if __name__ == "__main__":
    main()
