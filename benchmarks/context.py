"""Measure how long a run's context takes on the host, with a tenant full of episodes and records.

    python -m benchmarks.context [--records 10000] [--episodes 10000] [--runs 50]

Everything is real but the network: SQLite in memory, the local embedding model, recall by words and vectors. What is
measured ends where the model would be asked first: episodes, recall, working memory, assembly.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import time
from pathlib import Path

from retain.agents.definitions import AgentDefinition
from retain.agents.runs.context import assemble
from retain.host.clock import ManualClock
from retain.host.connection import open_database
from retain.host.sql import SqliteSql
from retain.host.vectors import SqliteVectorIndex
from retain.memory.episodes import last_episodes
from retain.memory.records.record import NewRecord, Source
from retain.memory.scope import Scope
from retain.memory.semantic import RecallQuery, SemanticMemory
from retain.models.static import StaticEmbedder

ROOT = Path(__file__).parents[1]
_THINGS = ("lamp", "chair", "parcel", "invoice", "refund", "customer", "order", "garden table", "delivery", "discount")
_STEP = 50


def sentence(number: int) -> str:
    """Return a text that resembles others and equals none."""
    one, other = _THINGS[number % 10], _THINGS[number // 10 % 10]
    return f"The {one} of order AB-{number} came with a {other}, and ann{number % 97}@shop.example wrote about it."


async def measure(records: int, episodes: int, runs: int) -> list[float]:
    """Return the milliseconds of each context."""
    connection = open_database()
    sql = SqliteSql(connection)
    sql.migrate(ROOT / "migrations")
    embedder = StaticEmbedder(ROOT / "models" / "static-minilm-256-i8.bin")
    clock = ManualClock()
    scope = Scope("acme", "clerk")
    memory = SemanticMemory(scope, sql, SqliteVectorIndex.open(embedder.dimensions), embedder, clock)
    for start in range(0, records, _STEP):
        new = [NewRecord(sentence(number)) for number in range(start, min(start + _STEP, records))]
        await memory.store_all(new, Source("person"))
    connection.executemany(
        "INSERT INTO memory_episodes VALUES (?, 'acme', 'clerk', 'main', ?, 1, ?, ?)",
        [(f"run-{number}.001", f"run-{number}", sentence(number), number) for number in range(episodes)],
    )
    definition = AgentDefinition.model_validate(
        {"type": "clerk", "description": "Clerk.", "instructions": "Help.", "memory_config": {"recall": "both"}}
    )
    taken: list[float] = []
    for number in range(runs):
        text = f"What about the {_THINGS[number % 10]} of order AB-{number * 7}?"
        began = time.perf_counter()
        recent = await last_episodes(sql, scope, 10)
        hits = await memory.search(RecallQuery(text, 5))
        context = assemble(definition, text, episodes=recent, records=hits, working={"order": "AB-1"})
        taken.append((time.perf_counter() - began) * 1000)
        assert len(context.episodes) == min(10, episodes)
        assert context.records or not records
    return taken


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description="Measure how long a run's context takes on the host.")
    parser.add_argument("--records", type=int, default=10_000)
    parser.add_argument("--episodes", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=50)
    options = parser.parse_args()
    taken = asyncio.run(measure(options.records, options.episodes, options.runs))
    print(f"context with {options.records} records and {options.episodes} episodes, {options.runs} runs, in ms:")
    print(f"median {statistics.median(taken):.1f}, 95th percentile {statistics.quantiles(taken, n=20)[-1]:.1f}")


if __name__ == "__main__":
    main()
