"""The journal of one instance: its runs and their events in the object's SQLite, and what of them goes to D1.

Each method writes the local rows and the outbox entries together, with no `await` between, so both are there or
neither.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from retain.agents.context import AssembledContext
from retain.agents.events import RunCompleted, RunEvent, RunFailed, from_json, kind_of, to_json
from retain.agents.run_state import RunState, Turn, apply, fold
from retain.memory.episodes import STATEMENTS as EPISODE_STATEMENTS
from retain.memory.episodes import episode_id
from retain.memory.outbox import Outbox
from retain.memory.scope import Scope
from retain.models.chat import Message, ToolCall
from retain.ports import Clock, ObjectSql, Row

SCHEMA = (
    """
    CREATE TABLE IF NOT EXISTS turn_state (
      run_id TEXT PRIMARY KEY,
      idempotency_key TEXT UNIQUE,
      request_hash TEXT NOT NULL,
      status TEXT NOT NULL,
      turn INTEGER NOT NULL,
      request TEXT NOT NULL,
      context TEXT NOT NULL,
      result TEXT,
      resumed INTEGER NOT NULL DEFAULT 0,
      created_at_ms INTEGER NOT NULL,
      updated_at_ms INTEGER NOT NULL
    )
    """,
    """
    CREATE TABLE IF NOT EXISTS run_log (
      run_id TEXT NOT NULL,
      seq INTEGER NOT NULL,
      turn INTEGER NOT NULL,
      kind TEXT NOT NULL,
      data TEXT NOT NULL,
      at_ms INTEGER NOT NULL,
      PRIMARY KEY (run_id, seq)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE IF NOT EXISTS procedural_workflows (
      workflow_id TEXT PRIMARY KEY,
      agent_type TEXT NOT NULL,
      task_type TEXT NOT NULL,
      spec TEXT NOT NULL,
      alpha REAL NOT NULL DEFAULT 1,
      beta REAL NOT NULL DEFAULT 1
    )
    """,
)

STATEMENTS = {
    **EPISODE_STATEMENTS,
    "start_run": """
        INSERT OR IGNORE INTO agent_runs
          (run_id, tenant_id, agent_type, instance_id, parent_run_id, status, input, model, created_at_ms)
        VALUES (?, ?, ?, ?, ?, 'running', ?, ?, ?)
    """,
    "close_run": """
        UPDATE agent_runs SET status = ?, output = ?, error = ?, steps = ?, input_tokens = ?, output_tokens = ?,
          completed_at_ms = ? WHERE run_id = ?
    """,
    "append_event": """
        INSERT OR IGNORE INTO run_events (run_id, seq, tenant_id, kind, turn, data, at_ms) VALUES (?, ?, ?, ?, ?, ?, ?)
    """,
}
MAX_EPISODE_BYTES = 16 * 1024


@dataclass(frozen=True, slots=True)
class OpenRun:
    """A run as the journal holds it: who asked what, what the model read first, and the fold of its events."""

    run_id: str
    request: Mapping[str, Any]
    messages: tuple[Message, ...]
    episodes_used: int
    records_used: int
    state: RunState


class Journal:
    """Runs and events of one instance."""

    def __init__(self, local: ObjectSql, outbox: Outbox, clock: Clock, scope: Scope, instance_id: str) -> None:
        self._local = local
        self._outbox = outbox
        self._clock = clock
        self._scope = scope
        self._instance_id = instance_id

    def open(
        self,
        run_id: str,
        request: Mapping[str, Any],
        context: AssembledContext,
        *,
        model: str,
        request_hash: str,
    ) -> OpenRun:
        """Record a new run with its context. Raises: LimitExceeded, then nothing of it is recorded."""
        opened = OpenRun(run_id, request, context.messages, len(context.episodes), len(context.records), RunState())
        self._local.atomically(lambda: self._write_open(opened, context, model, request_hash))
        return opened

    def _write_open(self, run: OpenRun, context: AssembledContext, model: str, request_hash: str) -> None:
        run_id, request = run.run_id, run.request
        now = self._clock()
        stored = {
            "messages": [asdict(message) for message in context.messages],
            "episodes_used": len(context.episodes),
            "records_used": len(context.records),
        }
        self._local.run(
            "INSERT INTO turn_state VALUES (?, ?, ?, 'running', 0, ?, ?, NULL, 0, ?, ?)",
            run_id,
            request.get("idempotency_key"),
            request_hash,
            json.dumps(request),
            json.dumps(stored),
            now,
            now,
        )
        logged = {
            "input": request["input"],
            "metadata": request.get("metadata") or {},
            "episodes": [episode.to_json() for episode in context.episodes],
            "records": [{"id": hit.record.id, "score": hit.score} for hit in context.records],
            "cut": dict(context.cut),
        }
        self._outbox.add(
            self._scope.tenant_id,
            "start_run",
            run_id,
            self._scope.tenant_id,
            self._scope.agent_type,
            self._instance_id,
            request.get("parent_run_id"),
            json.dumps(logged),
            model,
            now,
        )

    def load(self, run_id: str) -> OpenRun:
        """Return a run with the fold of its events."""
        row = self._local.run("SELECT * FROM turn_state WHERE run_id = ?", run_id).rows[0]
        context = json.loads(row["context"])
        return OpenRun(
            run_id,
            json.loads(row["request"]),
            tuple(_message(message) for message in context["messages"]),
            context["episodes_used"],
            context["records_used"],
            fold(from_json(event["kind"], json.loads(event["data"])) for event in self.events(run_id)),
        )

    def append(self, run: OpenRun, event: RunEvent) -> OpenRun:
        """Append an event to the run's log and to the timeline; return the run after it."""
        self._local.atomically(lambda: self._write_event(run, event))
        return replace(run, state=apply(run.state, event))

    def _write_event(self, run: OpenRun, event: RunEvent) -> None:
        now = self._clock()
        tenant = self._scope.tenant_id
        row = self._local.run("SELECT COALESCE(MAX(seq), 0) + 1 AS seq FROM run_log WHERE run_id = ?", run.run_id).rows[
            0
        ]
        seq, kind, data = int(row["seq"]), kind_of(event), json.dumps(to_json(event))
        self._local.run("INSERT INTO run_log VALUES (?, ?, ?, ?, ?, ?)", run.run_id, seq, event.turn, kind, data, now)
        self._local.run(
            "UPDATE turn_state SET turn = ?, updated_at_ms = ? WHERE run_id = ?", event.turn, now, run.run_id
        )
        self._outbox.add(tenant, "append_event", run.run_id, seq, tenant, kind, event.turn, data, now)

    def close(self, run: OpenRun, event: RunCompleted | RunFailed, result: Mapping[str, Any]) -> OpenRun:
        """Append the closing event, the run's result, and one episode for each turn."""
        closed = replace(run, state=apply(run.state, event))
        self._local.atomically(lambda: self._write_close(closed, event, result))
        return closed

    def _write_close(self, run: OpenRun, event: RunCompleted | RunFailed, result: Mapping[str, Any]) -> None:
        self._write_event(run, event)
        now = self._clock()
        completed = isinstance(event, RunCompleted)
        status = "completed" if completed else "failed"
        self._local.run(
            "UPDATE turn_state SET status = ?, result = ?, updated_at_ms = ? WHERE run_id = ?",
            status,
            json.dumps(result),
            now,
            run.run_id,
        )
        scope = self._scope
        for number, turn in enumerate(run.state.turns, start=1):
            self._outbox.add(
                scope.tenant_id,
                "append_episode",
                episode_id(run.run_id, number),
                scope.tenant_id,
                scope.agent_type,
                self._instance_id,
                run.run_id,
                number,
                _episode_text(run, number, turn),
                now,
            )
        self._outbox.add(
            scope.tenant_id,
            "close_run",
            status,
            _unicode(event.output) if isinstance(event, RunCompleted) else None,
            json.dumps({"code": event.code, "message": event.message}) if isinstance(event, RunFailed) else None,
            int(result["steps"]),
            int(result["usage"]["input_tokens"]),
            int(result["usage"]["output_tokens"]),
            now,
            run.run_id,
        )

    def find_by_key(self, idempotency_key: str) -> Row | None:
        """Return the `turn_state` row of the run that was asked with this key, or None."""
        rows = self._local.run("SELECT * FROM turn_state WHERE idempotency_key = ?", idempotency_key).rows
        return rows[0] if rows else None

    def result(self, run_id: str) -> dict[str, Any]:
        """Return the result of a run that has ended."""
        row = self._local.run("SELECT result FROM turn_state WHERE run_id = ?", run_id).rows[0]
        result: dict[str, Any] = json.loads(row["result"])
        return result

    def count_resumption(self, run_id: str) -> int:
        """Note that the run is about to be resumed; return how often that was, this time included."""
        rows = self._local.run(
            "UPDATE turn_state SET resumed = resumed + 1 WHERE run_id = ? RETURNING resumed", run_id
        ).rows
        return int(rows[0]["resumed"])

    def forgive_resumption(self, run_id: str) -> None:
        """Take back what `count_resumption` noted: the run did not end, and its object lives."""
        self._local.run("UPDATE turn_state SET resumed = resumed - 1 WHERE run_id = ?", run_id)

    def running(self) -> list[str]:
        """Return the ids of the runs that have not ended, oldest first."""
        rows = self._local.run("SELECT run_id FROM turn_state WHERE status = 'running' ORDER BY run_id").rows
        return [row["run_id"] for row in rows]

    def events(self, run_id: str) -> list[Row]:
        """Return the rows of the run's log, in order."""
        return self._local.run("SELECT * FROM run_log WHERE run_id = ? ORDER BY seq", run_id).rows

    def recent(self, limit: int) -> tuple[list[Row], list[Row]]:
        """Return the newest `limit` rows of `turn_state` and of `run_log`, newest first."""
        turns = self._local.run("SELECT * FROM turn_state ORDER BY created_at_ms DESC, run_id DESC LIMIT ?", limit).rows
        log = self._local.run("SELECT * FROM run_log ORDER BY at_ms DESC, run_id DESC, seq DESC LIMIT ?", limit).rows
        return turns, log

    def forget(self) -> None:
        """Remove every ended run. What matters of them is in D1."""
        self._local.run("DELETE FROM run_log WHERE run_id IN (SELECT run_id FROM turn_state WHERE status <> 'running')")
        self._local.run("DELETE FROM turn_state WHERE status <> 'running'")

    def erase(self, names: Callable[[str], bool] | None) -> None:
        """Remove everything, or the ended runs with a text that names what is to be erased."""
        if names is None:
            for table in ("run_log", "turn_state", "procedural_workflows"):
                self._local.run(f"DELETE FROM {table}")  # noqa: S608
            return
        for row in self._local.run("SELECT * FROM turn_state WHERE status <> 'running'").rows:
            texts = [row["request"], row["context"], row["result"] or "", row["idempotency_key"] or ""]
            texts += [event["data"] for event in self.events(row["run_id"])]
            if any(names(text) for text in texts):
                self._local.run("DELETE FROM run_log WHERE run_id = ?", row["run_id"])
                self._local.run("DELETE FROM turn_state WHERE run_id = ?", row["run_id"])


def _message(stored: Mapping[str, Any]) -> Message:
    calls = tuple(ToolCall(**call) for call in stored["tool_calls"])
    return Message(stored["role"], stored["content"], calls, stored["tool_call_id"])


def _episode_text(run: OpenRun, number: int, turn: Turn) -> str:
    """Return what is remembered of a turn. An answer that holds recalled text is remembered by its summary."""
    lines: list[str] = []
    if number == 1:
        lines.append(f"input: {run.messages[-1].content}")
    if turn.answer.content:
        lines.append(f"{run.request['agent_type']}: {turn.answer.content}")
    for call, result in zip(turn.answer.calls, turn.results, strict=False):
        answer = result.summary if result.summary is not None else result.content
        lines.append(f"{call.name}({json.dumps(dict(call.arguments), ensure_ascii=False)}) -> {answer}")
    text = _unicode("\n".join(lines))
    encoded = text.encode()
    return text if len(encoded) <= MAX_EPISODE_BYTES else encoded[:MAX_EPISODE_BYTES].decode("utf-8", "ignore") + " […]"


def _unicode(text: str) -> str:
    """Return the text with "?" for lone surrogates, which JSON can bring and a database refuses."""
    return text.encode("utf-8", "replace").decode()
