"""Measure how long exact searches take on the host, by the number of vectors in their namespace.

Those of `SqlVectorMemory`, and those of the host's vector index, with numpy and without.

python -m benchmarks.exact_search
"""

from __future__ import annotations

import asyncio
import random
import statistics
import time
from unittest import mock

from retain.contracts.backends.vector_sql import SqlVectorMemory
from retain.contracts.vectors import VectorDocument
from retain.host import vectors
from retain.host.sql import SqliteSql
from retain.host.vectors import SqliteVectorIndex
from retain.namespace import Namespace
from retain.ports import VectorEntry
from tools.paths import ROOT

DIMENSIONS = 256
SIZES = (1_000, 5_000, 20_000)
SEARCHES = 9


async def index_ms(size: int) -> tuple[float, float]:
    """Return the processor time of a query of the host's index with so many vectors: with numpy, and without."""
    index, chance = SqliteVectorIndex.open(DIMENSIONS), random.Random(1)

    def vector() -> list[float]:
        return [chance.gauss(0.0, 1.0) for _ in range(DIMENSIONS)]

    async def median_ms() -> float:
        took = []
        for number in range(SEARCHES + 1):
            query = vector()
            began = time.process_time()
            await index.query(query, namespace="bench", filter={"kind": "fact"}, top_k=100)
            took += [time.process_time() - began] if number else []
        return statistics.median(took) * 1000

    for start in range(0, size, 500):
        some = range(start, start + 500)
        await index.upsert([VectorEntry(f"{n}", vector(), "bench", {"kind": "fact"}) for n in some])
    quick = await median_ms()
    with mock.patch.object(vectors, "numpy", None):
        plain = await median_ms()
    index.close()
    return quick, plain


async def main() -> None:
    """Fill namespaces, search each, and print the medians."""
    for size in SIZES:
        quick, plain = await index_ms(size)
        print(f"{size:>6} vectors in the host's index: {quick:.1f} ms of CPU per query, {plain:.0f} without numpy")
    sql = SqliteSql.open()
    sql.migrate(ROOT / "migrations")
    chance = random.Random(1)

    def vector() -> list[float]:
        return [chance.gauss(0.0, 1.0) for _ in range(DIMENSIONS)]

    for size in SIZES:
        memory = SqlVectorMemory(sql, Namespace("bench", "acme", str(size)), dimensions=DIMENSIONS, model="bench")
        for start in range(0, size, 500):
            await memory.store([VectorDocument(f"{n}", f"document {n}", vector()) for n in range(start, start + 500)])
        took = []
        for _ in range(SEARCHES):
            query = vector()
            began = time.process_time()
            await memory.search(query, top_k=10)
            took.append(time.process_time() - began)
        print(
            f"{size:>6} documents of {DIMENSIONS} dimensions: {statistics.median(took) * 1000:.0f} ms of CPU per search"
        )


if __name__ == "__main__":
    asyncio.run(main())
