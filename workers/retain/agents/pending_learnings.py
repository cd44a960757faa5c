"""The runs of one instance from which is still to be learned: a table in the object's SQLite."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from retain.json_text import Json
from retain.outbox import OwedStatement
from retain.ports import ObjectSql

SCHEMA = """
CREATE TABLE IF NOT EXISTS pending_learnings (
  run_id TEXT PRIMARY KEY,
  method TEXT NOT NULL,
  ended_at_ms INTEGER NOT NULL,
  found TEXT,
  attempts INTEGER NOT NULL DEFAULT 0,
  due_at_ms INTEGER NOT NULL
)
"""


@dataclass(frozen=True, slots=True)
class NoteLearning(OwedStatement):
    """The outcome of learning from a run, as JSON."""

    NAME: ClassVar[str] = "note_learning"
    SQL: ClassVar[str] = "UPDATE agent_runs SET learning = ? WHERE run_id = ?"

    learning: str
    run_id: str


@dataclass(frozen=True, slots=True)
class PendingLearning:
    """A run from which is to be learned. method: `rules` or `model`. ended_at_ms: when the run ended.

    found: the facts that were extracted, as JSON, None before that. attempts: how often it was begun.
    """

    run_id: str
    method: str
    ended_at_ms: int
    found: str | None
    attempts: int


class PendingLearnings:
    """Reads and writes the table. Nothing here reaches D1."""

    def __init__(self, local: ObjectSql) -> None:
        self._local = local
        self._empty = False
        """Whether nothing waits, as far as is known without a query."""

    def add(self, run_id: str, method: str, now_ms: int) -> None:
        """Let the run wait for being learned from, from now on."""
        self._empty = False
        self._local.run(
            "INSERT OR IGNORE INTO pending_learnings (run_id, method, ended_at_ms, due_at_ms) VALUES (?, ?, ?, ?)",
            run_id,
            method,
            now_ms,
            now_ms,
        )

    def due(self, now_ms: int) -> list[PendingLearning]:
        """Return what is due, oldest first."""
        if self.next_due_ms() is None:
            return []
        rows = self._local.run("SELECT * FROM pending_learnings WHERE due_at_ms <= ? ORDER BY run_id", now_ms).rows
        return [
            PendingLearning(row["run_id"], row["method"], row["ended_at_ms"], row["found"], row["attempts"])
            for row in rows
        ]

    def next_due_ms(self) -> int | None:
        """Return when the first is due, None when nothing waits."""
        if self._empty:
            return None
        due = self._local.run("SELECT MIN(due_at_ms) AS due FROM pending_learnings").rows[0]["due"]
        self._empty = due is None
        return None if due is None else int(due)

    def begin(self, run_id: str, again_at_ms: int) -> None:
        """Count an attempt; unless it ends, it is repeated at a time."""
        self._local.run(
            "UPDATE pending_learnings SET attempts = attempts + 1, due_at_ms = ? WHERE run_id = ?", again_at_ms, run_id
        )

    def postpone(self, run_id: str, due_at_ms: int) -> None:
        """Repeat the attempt at a time."""
        self._local.run("UPDATE pending_learnings SET due_at_ms = ? WHERE run_id = ?", due_at_ms, run_id)

    def keep(self, run_id: str, found: Mapping[str, Json]) -> None:
        """Keep what was extracted, so that a repeated attempt stores the same."""
        self._local.run("UPDATE pending_learnings SET found = ? WHERE run_id = ?", json.dumps(found), run_id)

    def remove(self, run_id: str) -> None:
        """Remove the run's row, if there is one."""
        self._local.run("DELETE FROM pending_learnings WHERE run_id = ?", run_id)

    def clear(self) -> None:
        """Remove every row."""
        self._local.run("DELETE FROM pending_learnings")
