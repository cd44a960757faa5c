"""Measure recall on conversation benchmarks: full text alone, vectors alone, rank fusion, and Retain's own code path.

The data stays outside the repository; its format is in the README next to it. Each conversation becomes a tenant, each
item a record stored through `SemanticMemory.store`, each question a `SemanticMemory.search`, on the host's SQLite and
its exact vector index. Items are recorded at the times when they were spoken, in order, so that a question's relative
dates are relative to its own time. `before` limits a question to what was recorded before an item (`as_of_ms`). An item
without a session is a record outside any conversation.

With `--context` a question that is a message of a session is asked with what was said in the session before it, and with
nothing else: the beginning of a session, and a question that is not in a session's text, have no context.

With `--check` the command fails when Retain is below full text alone or rank fusion in any category of at least 30
questions. With `--cache` it keeps the loaded databases in a folder, until the data, the schema or the preparation changes.

    make bench-recall DATA=path/to/bench-data
    python -m benchmarks.recall path/to/data --table static-multilingual-256
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import hashlib
import json
import math
import re
import sqlite3
import statistics
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from retain.host.clock import ManualClock
from retain.host.connection import open_connection, open_database
from retain.host.sql import SqliteSql
from retain.host.vectors import SqliteVectorIndex
from retain.json_text import read_own_json
from retain.memory.recall.words import STOP, without_runs, words
from retain.memory.records.limits import MAX_CONTENT_BYTES
from retain.memory.records.record import NewRecord, RecordSource, Utterance
from retain.memory.records.vector_names import vector_namespace
from retain.memory.scope import Scope
from retain.memory.semantic import RecallQuery, SemanticMemory
from retain.models.embedders.static import MODEL, TABLES, StaticEmbedder, table_file

ROOT = Path(__file__).resolve().parent.parent
METHODS = ("full text", "vectors", "rank fusion", "retain")
MEASURES = ("R@5", "R@10", "R@30", "NDCG@10")
MOST = 30
"""How many hits are asked for."""
LAW_FROM = 30
"""A category of fewer questions says too little for a law."""
_CONTEXT_CHARACTERS = 4_000
START_MS = 1_800_000_000_000
_TIMES = ("%I:%M %p on %d %B, %Y", "%Y-%m-%d (%A)", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d", "%B-%d-%Y")


@dataclass(frozen=True)
class Loaded:
    """One conversation in Retain and in a full-text table of its own."""

    memory: SemanticMemory
    plain: sqlite3.Connection
    items: Sequence[Mapping[str, Any]]
    recorded_ms: Sequence[int]
    item_of: Mapping[str, str]
    index: SqliteVectorIndex
    scope: Scope


def conversations(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the conversations of a gzipped JSON-lines file."""
    with gzip.open(path, "rt") as lines:
        for line in lines:
            yield read_own_json(line)


def write(path: Path, conversations: Iterator[dict[str, Any]]) -> None:
    """Write conversations as a file of gzipped JSON lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt") as file:
        file.writelines(json.dumps(one) + "\n" for one in conversations)


def spoken_at(text: str) -> int | None:
    """Return an item's time in epoch milliseconds, or None when its format is unknown."""
    for form in _TIMES:
        try:
            return int(datetime.strptime(text, form).replace(tzinfo=UTC).timestamp() * 1000)
        except ValueError:
            continue
    return None


async def load(
    number: int,
    conversation: Mapping[str, Any],
    embedder: StaticEmbedder,
    cache: Path | None = None,
    *,
    later_ms: int | None = None,
) -> Loaded:
    """Store a conversation's items, each at the time it was spoken, at least a millisecond after the previous one.

    cache: a file name without suffix, of the databases with the items; they are written if they do not exist. later_ms:
    store them all as an import does, so long after the last one was spoken; None for each at its time. What is outside
    sessions then has its time as the beginning of its validity.
    """
    items = conversation["items"]
    spoken = [spoken_at(item["at"]) for item in items]
    clock = ManualClock(min([at_ms for at_ms in spoken if at_ms is not None], default=START_MS))
    recorded_ms = list(_timeline(clock(), spoken))
    if later_ms is not None:
        recorded_ms = [recorded_ms[-1] + later_ms + number for number in range(len(recorded_ms))]
    stored = cache is not None and cache.with_suffix(".vectors").exists()
    at = {name: str(cache.with_suffix(name)) if stored and cache else ":memory:" for name in (".sql", ".vectors")}
    database, vectors = open_database(at[".sql"]), open_connection(at[".vectors"])
    sql, index = SqliteSql(database), SqliteVectorIndex.on(vectors, embedder.dimensions)
    scope = Scope(f"bench-{number}", "reader")
    memory = SemanticMemory(scope, sql, index, embedder, clock)
    if not stored:
        sql.migrate(ROOT / "migrations")
        positions: dict[str, int] = defaultdict(int)
        for item, uttered_ms, at_ms in zip(items, spoken, recorded_ms, strict=False):
            clock.set(at_ms)
            utterance = None
            if item["session"] is not None:
                session = str(item["session"])
                utterance = Utterance(session, positions[session], item["speaker"] or "?", uttered_ms)
                positions[session] += 1
            since_ms = uttered_ms if later_ms is not None and utterance is None else None
            new = NewRecord(within_limit(item["text"]), kind="event", utterance=utterance, valid_from_ms=since_ms)
            await memory.store(new, RecordSource("ingest", message=item["id"]))
        if cache is not None:
            for connection, name in ((database, ".sql"), (vectors, ".vectors")):
                with sqlite3.connect(cache.with_suffix(name)) as copy:
                    connection.backup(copy)
    clock.set(recorded_ms[-1])
    plain = sqlite3.connect(":memory:")
    plain.execute("CREATE VIRTUAL TABLE t USING fts5 (content, tokenize = 'porter unicode61')")
    plain.executemany("INSERT INTO t (content) VALUES (?)", [(_spaced(item["text"]),) for item in items])
    found = (await sql.run("SELECT id, json_extract(source, '$.message') AS item FROM memory_records")).rows
    item_of = {str(row["id"]): str(row["item"]) for row in found}
    return Loaded(memory, plain, items, recorded_ms, item_of, index, scope)


def _spaced(text: str) -> str:
    """Return a text as full text alone reads it: of scripts without spaces between words, the pairs of letters."""
    return text if without_runs(text) == text else " ".join(words(text))


def _timeline(start_ms: int, spoken: Sequence[int | None]) -> Iterator[int]:
    """Yield when each item is recorded, and an hour after the last one."""
    now_ms = start_ms
    for at_ms in spoken:
        now_ms = max(now_ms + 1, at_ms or 0)
        yield now_ms
    yield now_ms + 3_600_000


def _digest(path: Path) -> str:
    """Return a digest of all that decides what is stored for a file: its data, the schema and the preparation."""
    prepared = [ROOT / "workers/retain/memory/recall" / f"{name}.py" for name in ("preparation", "words", "stemmer")]
    digest = hashlib.sha256()
    for part in (path, *sorted((ROOT / "migrations").glob("*.sql")), *prepared):
        digest.update(part.read_bytes())
    return digest.hexdigest()[:16]


def within_limit(text: str) -> str:
    """Return as much of the text as one record may hold."""
    return text.encode()[:MAX_CONTENT_BYTES].decode("utf-8", "ignore")


def full_text(loaded: Loaded, question: str, before: int | None) -> list[str]:
    """Return items ranked only by FTS5: Porter stemming, OR of the words without stop words, bm25 order."""
    found = [word for word in words(question) if word not in STOP] or words(question)
    rows = loaded.plain.execute(
        "SELECT rowid FROM t WHERE t MATCH ? AND rowid <= ? ORDER BY bm25(t), rowid LIMIT 100",
        (" OR ".join(f'"{word}"' for word in dict.fromkeys(found)), before if before is not None else 1 << 40),
    )
    return [loaded.items[row[0] - 1]["id"] for row in rows]


async def vectors(loaded: Loaded, embedder: StaticEmbedder, question: str, as_of_ms: int | None) -> list[str]:
    """Return items ranked only by the cosine of their best part."""
    [vector] = await embedder.embed([question])
    if not any(vector):
        return []
    criteria = {} if as_of_ms is None else {"created_at": {"$lte": as_of_ms}}
    matches = await loaded.index.query(
        vector, namespace=vector_namespace(loaded.scope.tenant_id), filter=criteria, top_k=100
    )
    return list(dict.fromkeys(loaded.item_of[match.id.partition("#")[0]] for match in matches))


def fused(lists: Sequence[Sequence[str]], k: int = 60) -> list[str]:
    """Return the reciprocal rank fusion of several rankings. Source: https://doi.org/10.1145/1571941.1572114"""
    scores: dict[str, float] = defaultdict(float)
    for ranking in lists:
        for rank, item in enumerate(ranking, start=1):
            scores[item] += 1 / (k + rank)
    return sorted(scores, key=lambda item: (-scores[item], item))


def measures(ranking: Sequence[str], evidence: Sequence[str]) -> tuple[float, ...]:
    """Return R@5, R@10, R@30 and NDCG@10 of a ranking, each in [0, 1]."""
    wanted = set(evidence)
    gain = sum(1 / math.log2(place + 2) for place, item in enumerate(ranking[:10]) if item in wanted)
    best = sum(1 / math.log2(place + 2) for place in range(min(10, len(wanted))))
    recalled = [len(wanted & set(ranking[:count])) / len(wanted) for count in (5, 10, 30)]
    return *recalled, gain / best


def turns_before(conversation: Mapping[str, Any], question: Mapping[str, Any]) -> list[str]:
    """Return what was said before a question in its own session, if the item after those that may be searched has it."""
    before, items = question["before"], conversation["items"]
    if before is None or before >= len(items):
        return []
    earlier, found, _ = within_limit(items[before]["text"]).partition(question["text"])
    return [earlier[-_CONTEXT_CHARACTERS:]] if found and earlier.strip() else []


Results = Mapping[tuple[str, str], Sequence[tuple[float, ...]]]
"""By method and category: the measures of each question. The category `all` has every question."""


async def measure(path: Path, embedder: StaticEmbedder, cache: Path | None = None, *, context: bool = False) -> Results:
    """Measure one file, print how long a recall took, and return the measures. context: ask within sessions."""
    results: dict[tuple[str, str], list[tuple[float, ...]]] = defaultdict(list)
    spent_ms: list[float] = []
    kept_as = f"{path.name.partition('.')[0]}-{embedder.model}-{_digest(path)}"
    for number, conversation in enumerate(conversations(path)):
        kept = None if cache is None else cache / f"{kept_as}-{number}"
        loaded = await load(number, conversation, embedder, kept)
        for question in conversation["questions"]:
            before = question["before"]
            as_of_ms = None if before is None else loaded.recorded_ms[before] - 1
            text = full_text(loaded, question["text"], before)
            near = await vectors(loaded, embedder, question["text"], as_of_ms)
            turns = turns_before(conversation, question) if context else []
            started = time.perf_counter()
            hits = await loaded.memory.search(RecallQuery(question["text"], MOST, as_of_ms, context=turns))
            spent_ms.append((time.perf_counter() - started) * 1000)
            own = [loaded.item_of[hit.record.id] for hit in hits]
            for method, ranking in zip(METHODS, (text, near, fused([text, near]), own), strict=True):
                scores = measures(ranking, question["evidence"])
                results[method, "all"].append(scores)
                results[method, str(question["category"])].append(scores)
    quantiles = statistics.quantiles(spent_ms, n=20)
    print(
        f"\n{path.name.removesuffix('.jsonl.gz')}: {len(spent_ms)} questions; latency of retain on the host: median ",
        end="",
    )
    print(f"{statistics.median(spent_ms):.1f} ms, p95 {quantiles[18]:.1f} ms")
    return results


def means(results: Results, method: str, category: str) -> list[float]:
    """Return the mean of each measure, in percent."""
    return [100 * statistics.fmean(column) for column in zip(*results[method, category], strict=True)]


def categories(results: Results) -> list[str]:
    """Return the categories, `all` first; `all` alone if there is only one other."""
    found = sorted({category for _, category in results}, key=lambda name: (name != "all", name))
    return found if len(found) > 2 else ["all"]


def show(results: Results) -> None:
    """Print the tables of one file."""
    for category in categories(results):
        count = len(results[METHODS[0], category])
        print(f"  {category} ({count})".ljust(42) + "".join(f"{m:>9}" for m in MEASURES))
        for method in METHODS:
            print(f"    {method}".ljust(42) + "".join(f"{mean:9.1f}" for mean in means(results, method, category)))


def broken(results: Results) -> list[str]:
    """Return the categories of at least `LAW_FROM` questions whose R@10 is below that of full text alone or rank fusion."""
    return [
        f"{category}: retain {own:.1f}, {method} {other:.1f}"
        for category in categories(results)
        if len(results["retain", category]) >= LAW_FROM
        for method in ("full text", "rank fusion")
        for own, other in [(means(results, "retain", category)[1], means(results, method, category)[1])]
        if own < other
    ]


def main() -> None:
    """Measure every file of a folder, or the selected ones."""
    parser = argparse.ArgumentParser(description="Measure recall.")
    parser.add_argument("data", type=Path, help="folder of *.jsonl.gz files")
    parser.add_argument("--only", help="measure only files whose name contains this")
    parser.add_argument("--cache", type=Path, help="folder for the loaded databases")
    parser.add_argument(
        "--context", action="store_true", help="ask messages of a session with what was said before them"
    )
    parser.add_argument("--table", choices=sorted(TABLES), default=MODEL, help="the embedding table")
    parser.add_argument("--check", action="store_true", help="fail if retain is below full text alone or rank fusion")
    options = parser.parse_args()
    files = sorted(path for path in options.data.glob("*.jsonl.gz") if re.search(options.only or "", path.name))
    if not files:
        raise SystemExit(f"there is no benchmark data in {options.data}: give the folder of *.jsonl.gz files")
    if options.cache is not None:
        options.cache.mkdir(parents=True, exist_ok=True)
    embedder = StaticEmbedder(ROOT / "models" / table_file(options.table), model=options.table)
    below: list[str] = []
    for path in files:
        results = asyncio.run(measure(path, embedder, options.cache, context=options.context))
        show(results)
        below += [f"{path.name}: {one}" for one in broken(results)]
    if options.check and below:
        raise SystemExit("\n".join(["retain is below", *below]))


if __name__ == "__main__":
    main()
