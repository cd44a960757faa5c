"""Measure what the ingest of many messages costs: `python -m benchmarks.ingest [--messages 10000]`.

Requests of 500 messages, as large as they may be, of one conversation; one message in five states a fact, and facts of
each speaker replace each other. Trips, and the rows that D1 would bill, are counted by workerd's own SQLite
(`benchmarks.costs.database`). The time is that of the processor, on the host's SQLite in memory: Python and SQLite, with
the shipped embedding model, without a vector index. Prints each for one message.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.costs.database import ROOT, counted_database
from benchmarks.costs.memories import SCOPE, START_MS, FewVectors, words
from retain.host.clock import ManualClock
from retain.host.sql import SqliteSql
from retain.ingest.extractors.rule_extractor import RuleExtractor
from retain.ingest.ingestion import Ingestion
from retain.ingest.messages import MAX_MESSAGES
from retain.memory.semantic import SemanticMemory
from retain.ports import Sql
from tests.support.instances import shipped_embedder

_MINUTE_MS = 60_000
_SPEAKERS = ("Ann", "Bea", "Carl", "Dora")
_STATED = ("I live in {}.", "I work at {}.", "I like {}.", "I'm allergic to {}.", "My sister {} is here.")


def conversation(count: int) -> list[dict[str, object]]:
    """Return made-up messages, a minute apart."""
    chance = random.Random(2)
    messages: list[dict[str, object]] = []
    for number in range(count):
        content = f"{words(chance, chance.choice((8, 16, 32)))} {number}."
        if number % 5 == 0:
            content = f"{chance.choice(_STATED).format(words(chance, 1).title())} {content}"
        speaker, at_ms = chance.choice(_SPEAKERS), START_MS + number * _MINUTE_MS
        messages.append({"speaker": speaker, "content": content, "at_ms": at_ms})
    return messages


async def ingested(sql: Sql, messages: Sequence[dict[str, object]]) -> int:
    """Ingest the messages; return how many records there are then."""
    clock = ManualClock(START_MS + (len(messages) + 1) * _MINUTE_MS)
    memory = SemanticMemory(SCOPE, sql, FewVectors([]), shipped_embedder(), clock)
    ingestion = Ingestion(memory, sql, RuleExtractor, clock)
    for start in range(0, len(messages), MAX_MESSAGES):
        receipt = await ingestion.receive("talk", messages[start : start + MAX_MESSAGES], leased=True)
        job = await ingestion.process(receipt)
        assert job.state == "completed", job
        clock.advance(1000)
    return int((await sql.run("SELECT COUNT(*) AS n FROM memory_records")).rows[0]["n"])


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Measure what the ingest of many messages costs.")
    parser.add_argument("--messages", type=int, default=10_000)
    messages = conversation(parser.parse_args().messages)
    with TemporaryDirectory(prefix="retain-ingest-") as folder, counted_database(Path(folder)) as counted:
        records = asyncio.run(ingested(counted, messages))
        cost = counted.cost
    sql = SqliteSql.open()
    sql.migrate(ROOT / "migrations")
    started = time.process_time()
    asyncio.run(ingested(sql, messages))
    spent = time.process_time() - started
    sql.close()
    count = len(messages)
    print(f"{count:,} messages, {records:,} records\n\n| for each message | |\n|---|---:|")
    print(f"| CPU, ms | {1000 * spent / count:.2f} |\n| trips | {cost.trips / count:.3f} |")
    print(f"| rows read | {cost.read / count:.1f} |\n| rows written | {cost.written / count:.1f} |")


if __name__ == "__main__":
    main()
