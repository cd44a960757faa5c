"""Erasing what names a term outside semantic memory: runs with their timelines and episodes, and texts on their way.

Every row is read, and compared in code: a pattern in SQL would miss other spellings of the same words.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from retain.contracts.messages import said_in
from retain.lifecycle.erasure.receipts import ErasureJob
from retain.lifecycle.erasure.slices import Slice
from retain.lifecycle.stores import Stores
from retain.lifecycle.terms import Term
from retain.ports import Row, Statement

RUNS = 5
ROWS = 100


@dataclass(frozen=True, slots=True)
class Texts:
    """A table whose rows are erased one by one.

    columns: those that may name the term. emptied: the assignments after which a row that has to keep its place says
    nothing; without them, and where its key names the term, the row is deleted. said: of a column's JSON object, what may
    name the term: names of fields do not count.
    """

    table: str
    keys: tuple[str, ...]
    columns: tuple[str, ...]
    emptied: str | None = None
    said: Mapping[str, Callable[[Mapping[str, Any]], object]] = field(default_factory=dict)

    def names(self, term: Term, column: str, text: str | None) -> bool:
        """Tell whether a column's text names the term."""
        if text is None or column not in self.said:
            return term.in_stored(text)
        return term.in_json(self.said[column](json.loads(text)))


TEXTS = (
    Texts("memory_episodes", ("episode_id",), ("content", "instance_id")),
    Texts("outbox_failures", ("instance_key", "entry_id"), ("instance_key", "parameters", "error")),
    Texts(
        "ingest_messages",
        ("tenant_id", "scope_id", "conversation", "position"),
        ("conversation", "message", "speaker", "content", "facts"),
        "state = 'learned', message = NULL, message_key = '', at_ms = NULL, speaker = NULL, content = NULL, facts = NULL",
    ),
    Texts(
        "ingest_uploads",
        ("upload_id", "message_index"),
        ("message", "speaker", "content"),
    ),
    Texts(
        "eval_results",
        ("run_id", "position"),
        ("case_id", "output", "observed", "scores", "error"),
        "case_id = 'erased', output = NULL, observed = NULL, scores = NULL, error = NULL",
    ),
    Texts("eval_cases", ("tenant_id", "name", "version", "position"), ("name", "content"), "content = NULL"),
    Texts("eval_datasets", ("tenant_id", "name", "version"), ("name", "definition")),
    Texts(
        "eval_runs",
        ("run_id",),
        ("dataset", "definition", "request_key"),
        "dataset = 'erased', definition = '{\"target\":{\"recall\":{}}}', request_key = NULL",  # it still has to clean up
    ),
    Texts("ingest_jobs", ("job_id",), ("conversation", "rejections", "error")),
    Texts("chat_messages", ("namespace_key", "position"), ("namespace_key", "message"), said={"message": said_in}),
    Texts("vector_documents", ("number",), ("namespace_key", "document_id", "document")),
)

_RUNS = "SELECT * FROM agent_runs WHERE tenant_id = ? AND run_id > ? ORDER BY run_id LIMIT ?"
_IN_PAGE = (
    "run_id IN (SELECT run_id FROM agent_runs WHERE tenant_id = ?1 AND run_id > ?2 ORDER BY run_id LIMIT ?3)"
    " AND tenant_id = ?1 ORDER BY run_id"
)
_LISTED = "run_id IN (SELECT value FROM json_each({}))"


async def erase_runs(stores: Stores, job: ErasureJob) -> Slice:
    """Erase what some runs were asked and did where any of it names the term; their rows stay, without it.

    A run of an instance whose very id names the term goes with its row.
    """
    page = (job.tenant_id, job.cursor or "", RUNS)
    runs, events, episodes = await stores.sql.batch(
        [
            (_RUNS, page),
            (f"SELECT run_id, data FROM run_events WHERE {_IN_PAGE}", page),
            (f"SELECT run_id, content FROM memory_episodes WHERE {_IN_PAGE}", page),
        ]
    )
    if not runs.rows:
        return Slice.DONE
    term = Term.of(job.request["subject"])
    named = {row["run_id"] for row in runs.rows if _run_names(term, row)}
    named |= {row["run_id"] for row in events.rows if any(term.in_json(part) for part in _parts(row["data"]))}
    named |= {row["run_id"] for row in episodes.rows if term.in_text(row["content"])}
    whole = {row["run_id"] for row in runs.rows if term.in_text(row["instance_id"])}
    await stores.sql.batch(
        [
            *job.moved(stores.clock(), {"d1.agent_runs": len(named | whole)}, cursor=runs.rows[-1]["run_id"]),
            *_gone(job, "run_events", named | whole),
            *_gone(job, "memory_episodes", named | whole),
            (
                "UPDATE agent_runs SET input = ?, output = NULL, error = NULL, waiting_for = NULL"
                f" WHERE {_LISTED.format('?')}",
                (json.dumps({"erased": job.receipt.receipt_id}), json.dumps(sorted(named))),
            ),
            (f"DELETE FROM agent_runs WHERE {_LISTED.format('?')}", (json.dumps(sorted(whole)),)),
        ]
    )
    return Slice.MORE


async def erase_texts(stores: Stores, job: ErasureJob) -> Slice:
    """Erase the rows of the other tables that name the term, a page of one table at a time."""
    number, *after = job.cursor or [0]
    if number == len(TEXTS):
        return Slice.DONE
    texts = TEXTS[number]
    table, keys = texts.table, texts.keys
    key = ", ".join(keys)
    columns = ", ".join(f"{column} AS text_{column}" for column in texts.columns)
    beyond = f"AND ({key}) > ({', '.join('?' * len(keys))})" if after else ""
    page = f"SELECT {key}, {columns} FROM {table} WHERE tenant_id = ? {beyond} ORDER BY {key} LIMIT ?"
    rows = (await stores.sql.run(page, job.tenant_id, *after, ROWS)).rows
    term = Term.of(job.request["subject"])
    where = " AND ".join(f"{name} = ?" for name in keys)
    gone: list[Statement] = []
    for row in rows:
        named = [column for column in texts.columns if texts.names(term, column, row[f"text_{column}"])]
        if named:
            kept = texts.emptied is not None and not set(named) & set(keys)
            erased = (
                f"UPDATE {table} SET {texts.emptied} WHERE {where}" if kept else f"DELETE FROM {table} WHERE {where}"
            )
            gone.append((erased, tuple(row[name] for name in keys)))
    cursor = [number, *(rows[-1][name] for name in keys)] if len(rows) == ROWS else [number + 1]
    await stores.sql.batch([*job.moved(stores.clock(), {f"d1.{table}": len(gone)}, cursor=cursor), *gone])
    return Slice.MORE


def _gone(job: ErasureJob, table: str, run_ids: set[str]) -> list[Statement]:
    """Return the statements that count and erase the rows of these runs."""
    listed = json.dumps(sorted(run_ids))
    return [
        job.counted(f"d1.{table}", f"SELECT COUNT(*) FROM {table} WHERE {_LISTED.format('?3')}", listed),
        (f"DELETE FROM {table} WHERE {_LISTED.format('?')}", (listed,)),
    ]


def _run_names(term: Term, run: Row) -> bool:
    """Tell whether what the run was asked, had in its context or answered names the term; names of fields do not count."""
    logged = _parsed(run["input"])
    if isinstance(logged, dict):
        seen = [episode.get("content") for episode in logged.get("episodes", [])]
        logged = [logged.get("input"), logged.get("metadata"), seen]
    error = _parsed(run["error"] or "null")
    said = list(error.values()) if isinstance(error, dict) else error
    return term.in_json(logged) or term.in_stored(run["output"]) or term.in_json(said)


def _parts(data: str) -> list[Any]:
    """Return what an event says, without the names of its fields."""
    parsed = _parsed(data)
    return list(parsed.values()) if isinstance(parsed, dict) else [parsed]


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
