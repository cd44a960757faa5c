"""Measure how much of what a recall returns was asked for: the right memories, and no others.

The data are PrecisionMemBench's (MIT, https://github.com/tenurehq/precisionMemBench), which stays outside the repository:
35 statements about a developer and a novel in their own scopes, and questions that list all statements that answer them, or
none. Up to twenty records are asked for, among those of the question's scopes; what was superseded or resolved is no longer
valid. Pinned statements belong to every context and are not counted, nor are questions about the size of a context.

Precision and recall are the means over the questions, as the data's own harness counts them: a question that nothing answers
counts in the precision, as 0, if anything is returned. Exact: the questions with an answer that is returned whole, and
nothing else. Empty: the questions without one for which nothing is returned.

    python -m benchmarks.precision path/to/precisionMemBench
"""

from __future__ import annotations

import argparse
import asyncio
import sqlite3
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.recall import ROOT
from retain.host.clock import ManualClock
from retain.host.sql import SqliteSql
from retain.host.vectors import SqliteVectorIndex
from retain.json_text import read_own_json
from retain.memory.recall.words import STOP, words
from retain.memory.records.record import NewRecord, RecordSource
from retain.memory.scope import Scope
from retain.memory.semantic import RecallQuery, SemanticMemory
from retain.models.embedders.static import StaticEmbedder

FLOORS = (0.0, 0.2, 0.25, 0.3, 0.35, 0.4)
MOST = 20
_USER = "test-user"

Answers = Sequence[tuple[Set[str], Set[str]]]
"""For each question, the statements that answer it, and those that were returned."""


@dataclass(frozen=True, slots=True)
class Remembered:
    """The user's statements that are valid and not pinned, in a memory. name_of: by record. texts: by name."""

    memory: SemanticMemory
    name_of: Mapping[str, str]
    texts: Mapping[str, str]
    scopes: Mapping[str, str]


async def remember(statements: Sequence[Mapping[str, Any]], embedder: StaticEmbedder) -> Remembered:
    """Store every statement, and end those that were superseded or resolved."""
    sql, source = SqliteSql.open(), RecordSource("person")
    sql.migrate(ROOT / "migrations")
    index, clock = SqliteVectorIndex.open(embedder.dimensions), ManualClock()
    memories: dict[str, SemanticMemory] = {}
    name_of, texts, scopes = {}, {}, {}
    for one in statements:
        user, [scope, *_] = one["user_id"], one["scope"]
        text = " ".join([one["canonical_name"], *one["aliases"], one["content"], one["why_it_matters"]])
        memory = memories.setdefault(
            user, SemanticMemory(Scope("bench", "reader", user_id=user), sql, index, embedder, clock)
        )
        stored = await memory.store(NewRecord(text, metadata={"scope": scope}), source)
        name_of[stored.id] = one["_id"]
        if one["superseded_by"] or one["resolved_at"]:
            await memory.invalidate(stored.id, clock(), source)
        elif user == _USER and not one["pinned"]:
            texts[one["_id"]], scopes[one["_id"]] = text, scope
    return Remembered(memories[_USER], name_of, texts, scopes)


async def measure(folder: Path, embedder: StaticEmbedder) -> Mapping[str, Answers]:
    """Return the answers of each method. folder: a clone of the data set."""
    statements, cases = (
        read_own_json((folder / "fixtures" / f"{name}.json").read_text("utf-8"))
        for name in ("beliefs.seed", "retrieval.cases")
    )
    known = await remember(statements, embedder)
    answers: dict[str, list[tuple[Set[str], Set[str]]]] = defaultdict(list)
    for case in cases:
        wanted = case["expect"].get("relevantBeliefs", {}).get("shouldOnlyInclude")
        if wanted is None or "budget" in case or not case["query"].strip() or case.get("userId", _USER) != _USER:
            continue
        query, within = case["query"], case["scope"]
        answers["full text"].append((set(wanted), full_text(known, query, within)))
        answers["vectors"].append((set(wanted), await nearest(known, embedder, query, within)))
        asked = RecallQuery(query, MOST, filter={"scope": {"$in": within}})
        found = {known.name_of[hit.record.id]: hit.relevance for hit in await known.memory.search(asked)}
        for floor in FLOORS:
            kept = {name for name, relevance in found.items() if relevance >= floor and name in known.texts}
            answers[f"retain, floor {floor}"].append((set(wanted), kept))
    return answers


def full_text(known: Remembered, query: str, within: Sequence[str]) -> Set[str]:
    """Return the statements that have any of the question's words: FTS5, Porter stemming, without stop words."""
    plain = sqlite3.connect(":memory:")
    plain.execute("CREATE VIRTUAL TABLE t USING fts5 (name UNINDEXED, content, tokenize = 'porter unicode61')")
    rows = [(name, text) for name, text in known.texts.items() if known.scopes[name] in within]
    plain.executemany("INSERT INTO t VALUES (?, ?)", rows)
    asked = [word for word in words(query) if word not in STOP] or words(query)
    match = " OR ".join(f'"{word}"' for word in dict.fromkeys(asked))
    return {
        row[0] for row in plain.execute("SELECT name FROM t WHERE t MATCH ? ORDER BY bm25(t) LIMIT ?", (match, MOST))
    }


async def nearest(known: Remembered, embedder: StaticEmbedder, query: str, within: Sequence[str]) -> Set[str]:
    """Return the statements whose vectors are nearest to the question's."""
    names = [name for name in known.texts if known.scopes[name] in within]
    [asked, *vectors] = await embedder.embed([query, *(known.texts[name] for name in names)])
    cosine = {
        name: sum(one * other for one, other in zip(asked, vector, strict=True))
        for name, vector in zip(names, vectors, strict=True)
    }
    return set(sorted(names, key=cosine.__getitem__, reverse=True)[:MOST])


def row(answers: Answers) -> tuple[float, float, int, int]:
    """Return the precision and recall of a method's answers, from 0 to 1, and how many are exact and how many empty."""
    answered = [(wanted, found) for wanted, found in answers if wanted]
    precision = [len(wanted & found) / len(found) if found else 0.0 for wanted, found in answers if wanted or found]
    recall = [len(wanted & found) / len(wanted) for wanted, found in answered]
    exact = sum(wanted == found for wanted, found in answered)
    return statistics.fmean(precision), statistics.fmean(recall), exact, sum(not (one | two) for one, two in answers)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Measure the precision of recall.")
    parser.add_argument("data", type=Path, help="a clone of PrecisionMemBench")
    embedder = StaticEmbedder(ROOT / "models" / "static-minilm-256-i8.bin")
    measured = asyncio.run(measure(parser.parse_args().data, embedder))
    print("method".ljust(24) + "precision  recall  exact  empty")
    for method, answers in measured.items():
        precision, recall, exact, empty = row(answers)
        print(f"{method.ljust(24)}{precision:9.2f}{recall:8.2f}{exact:7}{empty:7}")
    wanted = [bool(wanted) for wanted, _ in next(iter(measured.values()))]
    print(f"of {sum(wanted)} questions with an answer, and {len(wanted) - sum(wanted)} without")


if __name__ == "__main__":
    main()
