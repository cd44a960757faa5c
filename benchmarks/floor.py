"""Measure a floor of recall: how much evidence it keeps, and how many records it lets in that answer nothing.

Each conversation of the data sets, and a small memory of its own (`benchmarks.floor_cases`), becomes a tenant. Three kinds
of questions are asked, each with the five records that an agent's recall returns without a floor:

- answerable ones: which share of the evidence among the five stays with a floor;
- negatives, which no memory answers (arithmetic, small talk, general knowledge): how many of the five stay, and with how
  many of the questions any stays;
- questions about other conversations of the same data set: how many of the five stay. They are of the same style and of
  similar subjects, so this is the hardest kind, and some of what stays does concern the question.

The small memory is measured whole, and with five records at a time, one of which answers.

    python -m benchmarks.floor [path/to/bench-data] [--only locomo] [--conversations 5] [--questions 60]
"""

from __future__ import annotations

import argparse
import asyncio
import random
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.floor_cases import MEMORY, NEGATIVES, QUESTIONS
from benchmarks.recall import ROOT, conversations, load
from retain.host.clock import ManualClock
from retain.host.sql import SqliteSql
from retain.host.vectors import SqliteVectorIndex
from retain.memory.records.record import NewRecord, RecordSource
from retain.memory.scope import Scope
from retain.memory.semantic import RecallQuery, SemanticMemory
from retain.models.embedders.static import StaticEmbedder

FLOORS = (0.0, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5)
TOP_K = 5
FOREIGN = 30
"""How many questions about other conversations each conversation is asked."""


@dataclass
class Measured:
    """The relevance of the records that were found. negatives, foreign: one list per question."""

    evidence: list[float] = field(default_factory=list)
    negatives: list[list[float]] = field(default_factory=list)
    foreign: list[list[float]] = field(default_factory=list)


async def found(memory: SemanticMemory, question: str, as_of_ms: int | None = None) -> list[tuple[str, float]]:
    """Return the id and the relevance of each record that a recall without a floor finds."""
    hits = await memory.search(RecallQuery(question, TOP_K, as_of_ms))
    return [(hit.record.id, hit.relevance) for hit in hits]


async def relevances(memory: SemanticMemory, questions: Sequence[str]) -> list[list[float]]:
    """Return the relevance of what each question finds."""
    return [[relevance for _, relevance in await found(memory, question)] for question in questions]


async def of_conversations(path: Path, embedder: StaticEmbedder, most: int, questions: int) -> Measured:
    """Return what at most this many of a file's conversations give, with at most this many questions of each."""
    measured, chance, everything = Measured(), random.Random(7), list(conversations(path))
    for number, conversation in enumerate(everything[:most]):
        loaded = await load(number, conversation, embedder)
        asked = conversation["questions"]
        for question in chance.sample(asked, min(questions, len(asked))):
            before = question["before"]
            as_of_ms = None if before is None else loaded.recorded_ms[before] - 1
            wanted: Set[str] = set(question["evidence"])
            hits = await found(loaded.memory, question["text"], as_of_ms)
            measured.evidence += [relevance for found_id, relevance in hits if loaded.item_of[found_id] in wanted]
        measured.negatives += await relevances(loaded.memory, NEGATIVES)
        others = [other["text"] for one in everything if one is not conversation for other in one["questions"]]
        measured.foreign += await relevances(loaded.memory, chance.sample(others, min(FOREIGN, len(others))))
    return measured


async def remembering(texts: Sequence[str], embedder: StaticEmbedder) -> tuple[SemanticMemory, Mapping[str, str]]:
    """Return a memory of these records, and the contents by id."""
    sql = SqliteSql.open()
    sql.migrate(ROOT / "migrations")
    index = SqliteVectorIndex.open(embedder.dimensions)
    memory = SemanticMemory(Scope("bench", "reader"), sql, index, embedder, ManualClock())
    stored = await memory.store_all([NewRecord(text) for text in texts], RecordSource("person"))
    return memory, {result.id: text for result, text in zip(stored, texts, strict=True)}


async def of_small_memories(embedder: StaticEmbedder, *, size: int | None = None) -> Measured:
    """Return what the small memory gives; with a size, as many memories of it as there are questions."""
    measured, chance = Measured(), random.Random(7)
    memory, contents = await remembering(MEMORY, embedder)
    for question, place in QUESTIONS:
        answer: str = MEMORY[place]
        negatives: Sequence[str] = NEGATIVES
        if size is not None:
            others = [text for text in MEMORY if text != answer]
            memory, contents = await remembering([answer, *chance.sample(others, size - 1)], embedder)
            negatives = chance.sample(NEGATIVES, 5)
        hits = await found(memory, question)
        measured.evidence += [relevance for found_id, relevance in hits if contents[found_id] == answer]
        if size is not None or place == 0:
            measured.negatives += await relevances(memory, negatives)
    return measured


def table(results: Mapping[str, Measured]) -> str:
    """Return the results as a table: a row for each floor of each memory, in percent."""
    lines = ["memory".ljust(20) + "floor  evidence  negatives  any negative  foreign"]
    for name, measured in results.items():
        for floor in FLOORS:
            cells = (
                _share(measured.evidence, floor),
                _share([one for few in measured.negatives for one in few], floor),
                _share([max(few, default=-1.0) for few in measured.negatives], floor),
                _share([one for few in measured.foreign for one in few], floor),
            )
            widths = (10, 11, 14, 9)
            row = [cell.rjust(width) for cell, width in zip(cells, widths, strict=True)]
            lines.append(f"{name.ljust(20)}{floor:5.2f}" + "".join(row))
    return "\n".join(lines)


def _share(values: Sequence[float], floor: float) -> str:
    """Return how many of the values a floor keeps, in percent."""
    return f"{100 * sum(value >= floor for value in values) / len(values):.1f}" if values else "-"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Measure a floor of recall.")
    parser.add_argument("data", type=Path, nargs="?", help="folder of *.jsonl.gz files")
    parser.add_argument("--only", help="only files whose name contains this")
    parser.add_argument("--conversations", type=int, default=5, help="most conversations of a file")
    parser.add_argument("--questions", type=int, default=60, help="most answerable questions of a conversation")
    options = parser.parse_args()
    embedder = StaticEmbedder(ROOT / "models" / "static-minilm-256-i8.bin")
    results: dict[str, Measured] = defaultdict(Measured)
    results[f"small, {len(MEMORY)} records"] = asyncio.run(of_small_memories(embedder))
    results["small, 5 records"] = asyncio.run(of_small_memories(embedder, size=5))
    if options.data is None:
        print("no folder of data sets given: only the small memory is measured")
    files = sorted(options.data.glob("*.jsonl.gz")) if options.data else []
    for path in files:
        if re.search(options.only or "", path.name):
            name = path.name.removesuffix(".jsonl.gz")
            results[name] = asyncio.run(of_conversations(path, embedder, options.conversations, options.questions))
    print(table(results))


if __name__ == "__main__":
    main()
