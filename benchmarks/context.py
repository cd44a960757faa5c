"""Measure how long building a run's context takes on the host, with a tenant full of episodes and records.

    python -m benchmarks.context [--records 10000] [--episodes 10000] [--runs 50]

SQLite (in memory), the local embedding model, recall and assembly are real. What Vectorize does outside the isolate is
left out: the index answers at once, with records of the tenant in an arbitrary order, so that recall has its full
number of candidates to examine. Measuring ends before the first call of the model. The time is that of the processor:
nothing here waits, and a busy machine does not change it.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import random
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from retain.agents.definitions import AgentDefinition
from retain.agents.runs.context import Remembered, assemble
from retain.host.clock import ManualClock
from retain.host.connection import open_database
from retain.host.sql import SqliteSql
from retain.host.vectors import SqliteVectorIndex
from retain.memory.episodes import Turns, last_episodes
from retain.memory.records.record import NewRecord, RecordSource
from retain.memory.scope import Scope
from retain.memory.semantic import RecallQuery, SemanticMemory
from retain.models.embedders.static import StaticEmbedder
from retain.ports import MetadataFilter, Vector, VectorEntry, VectorMatch

ROOT = Path(__file__).parents[1]
_STEP = 50
_WORDS = ["".join(parts) for parts in itertools.product("bdfgklmnprst", "aeiou", "blmnrst", "aeiou")]
_WEIGHTS = [1 / place for place in range(1, len(_WORDS) + 1)]
"""The relative frequency of each word: by Zipf's law, as in any language."""
_STOP_WORDS = 40
"""How many of the most frequent words queries leave out, as recall leaves out a language's stop words."""


def words(chance: random.Random, count: int, *, rarer_than: int = 0) -> str:
    """Return made-up words."""
    return " ".join(chance.choices(_WORDS[rarer_than:], _WEIGHTS[rarer_than:], k=count))


class ReadyIndex(SqliteVectorIndex):
    """Answers each query at once with the first vectors that were written."""

    ready: ClassVar[list[VectorMatch]] = []

    async def upsert(self, entries: Sequence[VectorEntry]) -> str:
        """Note the ids."""
        missing = entries[: max(0, 100 - len(self.ready))]
        self.ready.extend(VectorMatch(entry.id, 1 / (2 + len(self.ready) + n)) for n, entry in enumerate(missing))
        return "noted"

    async def query(
        self,
        vector: Vector,  # noqa: ARG002
        *,
        namespace: str,  # noqa: ARG002
        filter: MetadataFilter,  # noqa: A002, ARG002 -- the port's name
        top_k: int,
        with_metadata: bool = False,  # noqa: ARG002
    ) -> list[VectorMatch]:
        """Return the first of them."""
        return self.ready[:top_k]


async def measure(records: int, episodes: int, runs: int) -> dict[str, list[float]]:
    """Return the milliseconds of the processor for each part of each context."""
    connection = open_database()
    sql = SqliteSql(connection)
    sql.migrate(ROOT / "migrations")
    embedder = StaticEmbedder(ROOT / "models" / "static-minilm-256-i8.bin")
    clock, chance = ManualClock(), random.Random(1)
    scope = Scope("acme", "clerk")
    memory = SemanticMemory(scope, sql, ReadyIndex.open(embedder.dimensions), embedder, clock)
    for start in range(0, records, _STEP):
        new = [NewRecord(f"{words(chance, 12)} AB-{number}") for number in range(start, min(start + _STEP, records))]
        await memory.store_all(new, RecordSource("person"))
    connection.executemany(
        "INSERT INTO memory_episodes VALUES (?, 'acme', 'clerk', 'main', ?, 1, ?, ?, NULL)",
        [(f"run-{number}.001", f"run-{number}", words(chance, 60), number) for number in range(episodes)],
    )
    definition = AgentDefinition.model_validate(
        {"type": "clerk", "description": "Clerk.", "instructions": "Help.", "memory_config": {"recall": "both"}}
    )
    taken: dict[str, list[float]] = {"episodes": [], "recall": [], "assembly": [], "all": []}
    for number in range(runs):
        text = f"{words(chance, 6, rarer_than=_STOP_WORDS)} AB-{number * 7}"
        times = [time.process_time()]
        recent = await last_episodes(sql, scope, Turns("agent", "desk", None), 10)
        times.append(time.process_time())
        hits = await memory.search(RecallQuery(text, 5))
        times.append(time.process_time())
        context = assemble(
            definition,
            text,
            Remembered(episodes=recent, records=hits, working={"order": "AB-1"}),
            instance_id="desk",
        )
        times.append(time.process_time())
        assert len(context.episodes) == min(10, episodes)
        assert context.records or not records
        for part, began, ended in zip(taken, times, times[1:], strict=False):
            taken[part].append((ended - began) * 1000)
        taken["all"].append((times[-1] - times[0]) * 1000)
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
    for part, times in taken.items():
        print(
            f"{part}: median {statistics.median(times):.2f}, 95th percentile {statistics.quantiles(times, n=20)[-1]:.2f}"
        )


if __name__ == "__main__":
    main()
