"""Measure recall on the project's own probes: short facts, by the kind of difficulty, with four methods.

Each domain of `evals/recall/` becomes a tenant: its records are stored through `SemanticMemory.store` at their dates, and
each probe's question is a `SemanticMemory.search`, on the host's SQLite and its exact vector index.

    PYTHONPATH=workers:. python -m benchmarks.probes                 # English, by group
    PYTHONPATH=workers:. python -m benchmarks.probes --languages     # every language and pair of languages
    PYTHONPATH=workers:. python -m benchmarks.probes --language de   # one of them, by group
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import sqlite3
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.recall import METHODS, ROOT, Loaded, full_text, fused, vectors
from retain.host.clock import ManualClock
from retain.host.sql import SqliteSql
from retain.host.vectors import SqliteVectorIndex
from retain.json_text import read_own_json
from retain.memory.records.record import NewRecord, RecordSource
from retain.memory.scope import Scope
from retain.memory.semantic import RecallQuery, SemanticMemory
from retain.models.embedders.static import MODEL, MULTILINGUAL, TABLES, StaticEmbedder

PROBES = ROOT / "evals" / "recall"
GROUPS = (
    "synonyms", "negation", "numbers", "typos", "plural", "near duplicates", "corrections", "identifiers",
    "long documents", "preferences", "time",
)  # fmt: skip
DEPTHS = (1, 5)
_FIRST_MS = int(datetime(2025, 6, 1, tzinfo=UTC).timestamp() * 1000)
_ASKED_MS = int(datetime(2026, 7, 1, 9, tzinfo=UTC).timestamp() * 1000)
_MINUTE_MS = 60_000


@dataclass(frozen=True, slots=True)
class ProbeRecord:
    """One record of a domain. at: the date on which it is stored, ISO 8601; None for one that is stored before all dates."""

    id: str
    text: str
    at: str | None = None


@dataclass(frozen=True, slots=True)
class Probe:
    """One question. expect: the records that answer it, of which each counts."""

    id: str
    group: str
    question: str
    expect: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Domain:
    """The records of one domain, and the questions about them."""

    name: str
    records: tuple[ProbeRecord, ...]
    probes: tuple[Probe, ...]


Shares = Mapping[tuple[str, str], tuple[float, ...]]
"""By group and method: the share of the expected records among the first 1 and the first 5."""


def languages() -> list[str]:
    """Return the folders of probes: languages, then pairs of languages, such as `de-en`."""
    return sorted((place.name for place in PROBES.iterdir() if place.is_dir()), key=lambda name: ("-" in name, name))


def read_domains(folder: Path) -> list[Domain]:
    """Return the domains of a language's folder, by name.

    A pair of languages has questions alone: they are about the second language's domain of the same name.
    """
    records = folder.with_name(folder.name.rpartition("-")[2])
    return [
        Domain(
            place.name,
            tuple(ProbeRecord(**row) for row in _rows(records / place.name / "records.jsonl")),
            tuple(Probe(**{**row, "expect": tuple(row["expect"])}) for row in _rows(place / "probes.jsonl")),
        )
        for place in sorted(folder.iterdir())
        if place.is_dir()
    ]


async def measure(domains: Sequence[Domain], embedder: StaticEmbedder) -> tuple[Shares, list[str]]:
    """Return the shares of each group and of `all`, and a line for each probe that Retain does not answer first."""
    found: dict[tuple[str, str], list[tuple[float, ...]]] = defaultdict(list)
    missed: list[str] = []
    for domain in domains:
        loaded = await _load(domain, embedder)
        for probe in domain.probes:
            by_words = full_text(loaded, probe.question, None)
            near = await vectors(loaded, embedder, probe.question, None)
            hits = await loaded.memory.search(RecallQuery(probe.question, max(DEPTHS)))
            own = [loaded.item_of[hit.record.id] for hit in hits]
            for method, ranking in zip(METHODS, (by_words, near, fused([by_words, near]), own), strict=True):
                shares = tuple(_share(probe, ranking, depth) for depth in DEPTHS)
                found[probe.group, method].append(shares)
                found["all", method].append(shares)
            if not _share(probe, own, 1):
                place = min([own.index(one) + 1 for one in probe.expect if one in own], default=0)
                missed.append(f"{probe.id} {probe.group}: {probe.question} -> {own[:1]}, expected at {place or '-'}")
    return {
        key: tuple(statistics.fmean(column) for column in zip(*rows, strict=True)) for key, rows in found.items()
    }, missed


def counts(domains: Sequence[Domain]) -> dict[str, int]:
    """Return how many probes each group has, and how many there are."""
    groups = [probe.group for domain in domains for probe in domain.probes]
    return {"all": len(groups), **{group: groups.count(group) for group in GROUPS}}


async def _load(domain: Domain, embedder: StaticEmbedder) -> Loaded:
    """Store a domain's records: those without a date first, in an order that has nothing to do with their ids."""
    clock = ManualClock(_FIRST_MS)
    sql = SqliteSql.open()
    sql.migrate(ROOT / "migrations")
    index = SqliteVectorIndex.open(embedder.dimensions)
    scope = Scope("probes", "reader")
    memory = SemanticMemory(scope, sql, index, embedder, clock)
    plain = sqlite3.connect(":memory:")
    plain.execute("CREATE VIRTUAL TABLE t USING fts5 (content, tokenize = 'porter unicode61')")
    item_of: dict[str, str] = {}
    ordered = sorted(domain.records, key=lambda one: (one.at or "", hashlib.sha256(one.text.encode()).digest()))
    recorded_ms: list[int] = []
    for place, record in enumerate(ordered):
        at_ms = 0 if record.at is None else int(datetime.fromisoformat(f"{record.at}T12:00Z").timestamp() * 1000)
        clock.set(max(clock() + _MINUTE_MS, at_ms))
        recorded_ms.append(clock())
        item_of[(await memory.store(NewRecord(record.text), RecordSource("person"))).id] = record.id
        plain.execute("INSERT INTO t (rowid, content) VALUES (?, ?)", (place + 1, record.text))
    clock.set(_ASKED_MS)
    items = [{"id": record.id} for record in ordered]
    return Loaded(memory, plain, items, recorded_ms, item_of, index, scope)


def _share(probe: Probe, ranking: Sequence[str], depth: int) -> float:
    return len(set(probe.expect) & set(ranking[:depth])) / len(probe.expect)


def _rows(path: Path) -> list[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        return [read_own_json(line) for line in lines]


def shipped(model: str) -> StaticEmbedder:
    """Return the embedder of a table that the project ships."""
    return StaticEmbedder(ROOT / "models" / TABLES[model], model=model)


def own_table(language: str) -> str:
    """Return the table with which the probes of a language, or of a pair of languages, are measured by default."""
    return MODEL if language == "en" else MULTILINGUAL


def show_groups(domains: Sequence[Domain], shares: Shares) -> None:
    """Print the table of one language, by group."""
    print("| R@1 / R@5 | probes | " + " | ".join(METHODS) + " |")
    print("|---|---:|" + "---:|" * len(METHODS))
    for group, count in counts(domains).items():
        if count:
            cells = [_cell(shares[group, method]) for method in METHODS]
            print(f"| {group} | {count} | " + " | ".join(cells) + " |")


def show_languages(names: Sequence[str]) -> None:
    """Print a line for each language: every method with the multilingual table, and Retain with the English one."""
    heads = [*METHODS, "retain, English table"]
    print("| R@1 / R@5 | probes | " + " | ".join(heads) + " |")
    print("|---|---:|" + "---:|" * len(heads))
    for name in names:
        domains = read_domains(PROBES / name)
        shares = asyncio.run(measure(domains, shipped(MULTILINGUAL)))[0]
        english = asyncio.run(measure(domains, shipped(MODEL)))[0]
        cells = [*(_cell(shares["all", method]) for method in METHODS), _cell(english["all", METHODS[-1]])]
        print(f"| {name} | {counts(domains)['all']} | " + " | ".join(cells) + " |", flush=True)


def _cell(shares: tuple[float, ...]) -> str:
    return " / ".join(f"{100 * share:.1f}" for share in shares)


def main() -> None:
    """Print the table of one language, and with `--missed` what Retain does not answer first."""
    parser = argparse.ArgumentParser(description="Measure recall on the project's own probes.")
    parser.add_argument("--language", default="en", help="a folder of evals/recall/ (%(default)s)")
    parser.add_argument("--languages", action="store_true", help="a line for each language, instead of one by group")
    parser.add_argument(
        "--table", choices=sorted(TABLES), help="the embedding table (English for en, else multilingual)"
    )
    parser.add_argument("--missed", action="store_true", help="list the probes that Retain does not answer first")
    options = parser.parse_args()
    if options.languages:
        show_languages(languages())
        return
    domains = read_domains(PROBES / options.language)
    embedder = shipped(options.table or own_table(options.language))
    shares, missed = asyncio.run(measure(domains, embedder))
    show_groups(domains, shares)
    if options.missed:
        print("\n".join(missed))


if __name__ == "__main__":
    main()
