"""Measure how long an exact search of `SqlVectorMemory` takes on the host, by the number of documents in its namespace.

python -m benchmarks.exact_search
"""

from __future__ import annotations

import asyncio
import random
import statistics
import time

from retain.contracts.backends.vector_sql import SqlVectorMemory
from retain.contracts.vectors import VectorDocument
from retain.host.sql import SqliteSql
from retain.namespace import Namespace
from tools.paths import ROOT

DIMENSIONS = 256
SIZES = (1_000, 5_000, 20_000)
SEARCHES = 9


async def main() -> None:
    """Fill namespaces, search each, and print the medians."""
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
