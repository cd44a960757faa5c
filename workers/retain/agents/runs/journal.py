"""The journal of one instance: its runs and their events in the object's SQLite, and what of them goes to D1.

Each method writes the local rows and the outbox entries together, with no `await` between, so both are there or
neither. What came into the log meanwhile, from a person's answer or a wish to stop, is read before each write.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

from retain.agents.runs.context import AssembledContext
from retain.agents.runs.events import (
    ApprovalRequested,
    CancelRequested,
    Closing,
    RunCompleted,
    RunEvent,
    RunSuspended,
    from_json,
    kind_of,
    to_json,
)
from retain.agents.runs.result import error_of, result_of, status_of, waiting_for
from retain.agents.runs.run_state import RunState, Turn, apply
from retain.errors import NotFound
from retain.memory.episodes import episode_id
from retain.memory.procedures.procedural import Choice
from retain.memory.scope import Scope
from retain.models.chat import ChatMessage, ToolCall
from retain.outbox import Outbox
from retain.ports import Clock, ObjectSql, Row

MAX_EPISODE_BYTES = 16 * 1024
RECHECK_MS = 60_000
MAX_RECHECK_MS = 3_600_000
"""When a suspended run looks after its delegate by itself: after a minute, then after twice as long each time."""
_OPEN = "status IN ('running', 'waiting')"


@dataclass(frozen=True, slots=True)
class OpenRun:
    """A run as the journal holds it: who asked what, what the model read first, and the fold of its events up to `seq`.

    procedure: task type and id of the workflow that it follows.
    """

    run_id: str
    request: Mapping[str, Any]
    messages: tuple[ChatMessage, ...]
    episodes_used: int
    records_used: int
    state: RunState
    seq: int = 0
    procedure: Mapping[str, str] | None = None


class Journal:
    """Runs and events of one instance."""

    def __init__(
        self,
        local: ObjectSql,
        outbox: Outbox,
        clock: Clock,
        scope: Scope,
        instance_id: str,
        written: Callable[[], None] = lambda: None,
    ) -> None:
        """Take what is told of each event that was written, beside the instance's ports."""
        self._local = local
        self._outbox = outbox
        self._clock = clock
        self._scope = scope
        self._instance_id = instance_id
        self._written = written

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
        opened = OpenRun(
            run_id,
            request,
            context.messages,
            len(context.episodes),
            len(context.records),
            RunState(),
            procedure=_named(context.procedure),
        )
        self._local.atomically(lambda: self._write_open(opened, context, model, request_hash))
        return self.caught_up(opened)

    def _write_open(self, run: OpenRun, context: AssembledContext, model: str, request_hash: str) -> None:
        run_id, request = run.run_id, run.request
        now = self._clock()
        stored = {
            "messages": [asdict(message) for message in context.messages],
            "episodes_used": len(context.episodes),
            "records_used": len(context.records),
            "procedure": run.procedure,
        }
        self._local.run(
            "INSERT INTO turn_state VALUES (?, ?, ?, 'running', 0, ?, ?, NULL, 0, NULL, ?, ?)",
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
        if run.procedure is not None:
            logged["procedure"] = run.procedure
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
        for row in self._local.run(
            "DELETE FROM cancel_requests WHERE idempotency_key = ? RETURNING *", request.get("idempotency_key")
        ).rows:
            self._write_event(run, CancelRequested(0, row["asked_by"], row["reason"]))

    def load(self, run_id: str) -> OpenRun:
        """Return a run with the fold of its events. Raises: NotFound (code `no_such_run`)."""
        row = self._row(run_id)
        context = json.loads(row["context"])
        run = OpenRun(
            run_id,
            json.loads(row["request"]),
            tuple(_message(message) for message in context["messages"]),
            context["episodes_used"],
            context["records_used"],
            RunState(),
            procedure=context["procedure"],
        )
        return self.caught_up(run)

    def caught_up(self, run: OpenRun) -> OpenRun:
        """Return the run after what came into its log meanwhile."""
        state, seq = run.state, run.seq
        for row in self.events(run.run_id, after=run.seq):
            state, seq = apply(state, from_json(row["kind"], json.loads(row["data"]))), int(row["seq"])
        return run if seq == run.seq else replace(run, state=state, seq=seq)

    def append(self, run: OpenRun, event: RunEvent) -> OpenRun:
        """Append an event to the run's log and to the timeline; return the run after it."""
        run = self.caught_up(run)
        self._local.atomically(lambda: self._write_event(run, event))
        self._written()
        return self.caught_up(run)

    def _write_event(self, run: OpenRun, event: RunEvent) -> None:
        now = self._clock()
        tenant, run_id = self._scope.tenant_id, run.run_id
        seq, kind, data = run.seq + 1, kind_of(event), json.dumps(to_json(event))
        self._local.run("INSERT INTO run_log VALUES (?, ?, ?, ?, ?, ?)", run_id, seq, event.turn, kind, data, now)
        self._local.run("UPDATE turn_state SET turn = ?, updated_at_ms = ? WHERE run_id = ?", event.turn, now, run_id)
        self._outbox.add(tenant, "append_event", run_id, seq, tenant, kind, event.turn, data, now)
        after = apply(run.state, event)
        if after.waiting:
            self._local.run(
                "UPDATE turn_state SET status = 'waiting', due_at_ms = ? WHERE run_id = ?", _due_ms(event, now), run_id
            )
            self._outbox.add(tenant, "wait_run", json.dumps(waiting_for(after)), run_id)
        elif run.state.waiting:
            self._local.run(
                "UPDATE turn_state SET status = 'running', due_at_ms = NULL, resumed = -1 WHERE run_id = ?", run_id
            )
            self._outbox.add(tenant, "go_on_run", run_id)

    def close(self, run: OpenRun, event: Closing) -> OpenRun:
        """Append the closing event, the run's result, and one episode for each turn."""
        run = self.caught_up(run)
        self._local.atomically(lambda: self._write_close(run, event))
        self._written()
        return self.caught_up(run)

    def _write_close(self, run: OpenRun, event: Closing) -> None:
        self._write_event(run, event)
        now = self._clock()
        scope, status, error = self._scope, status_of(event), error_of(event)
        result = result_of(
            run.run_id,
            self._instance_id,
            run.state,
            event,
            episodes_used=run.episodes_used,
            records_used=run.records_used,
            procedure=run.procedure,
        )
        self._local.run(
            "UPDATE turn_state SET status = ?, result = ?, due_at_ms = NULL, updated_at_ms = ? WHERE run_id = ?",
            status,
            json.dumps(result),
            now,
            run.run_id,
        )
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
            None if error is None else json.dumps(error),
            int(result["steps"]),
            int(result["usage"]["input_tokens"]),
            int(result["usage"]["output_tokens"]),
            now,
            run.run_id,
        )

    def standing(self, run_id: str) -> dict[str, Any]:
        """Return the run's result, or its status and what it waits for. Raises: NotFound (code `no_such_run`)."""
        row = self._row(run_id)
        if row["result"] is not None:
            result: dict[str, Any] = json.loads(row["result"])
            return result
        shown: dict[str, Any] = {"run_id": run_id, "instance_id": self._instance_id, "status": row["status"]}
        state = self.load(run_id).state
        if state.cancel is not None:
            shown["cancelling"] = True
        elif row["status"] == "waiting":
            shown["waiting_for"] = waiting_for(state)
        return shown

    def cancel_unknown(self, idempotency_key: str, asked_by: str, reason: str | None) -> None:
        """Remember a wish to stop a run that is not here yet: it stops as soon as it is opened."""
        self._local.run(
            "INSERT OR IGNORE INTO cancel_requests VALUES (?, ?, ?, ?)",
            idempotency_key,
            asked_by,
            reason,
            self._clock(),
        )

    def _row(self, run_id: str) -> Row:
        rows = self._local.run("SELECT * FROM turn_state WHERE run_id = ?", run_id).rows
        if not rows:
            raise NotFound("the instance has no such run", code="no_such_run")
        return rows[0]

    def find_by_key(self, idempotency_key: str) -> Row | None:
        """Return the `turn_state` row of the run that was asked with this key, or None."""
        rows = self._local.run("SELECT * FROM turn_state WHERE idempotency_key = ?", idempotency_key).rows
        return rows[0] if rows else None

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
        """Return the ids of the runs that have not ended and do not wait, oldest first."""
        rows = self._local.run("SELECT run_id FROM turn_state WHERE status = 'running' ORDER BY run_id").rows
        return [row["run_id"] for row in rows]

    def waiting(self, *, due_by_ms: int | None = None) -> list[str]:
        """Return the ids of the runs that wait, oldest first; with `due_by_ms` those that go on by then."""
        due = 2**53 if due_by_ms is None else due_by_ms
        sql = "SELECT run_id FROM turn_state WHERE status = 'waiting' AND due_at_ms <= ? ORDER BY run_id"
        return [row["run_id"] for row in self._local.run(sql, due).rows]

    def waited(self, run_id: str) -> bool:
        """Tell whether the run ever waited."""
        sql = "SELECT 1 FROM run_log WHERE run_id = ? AND kind IN ('approval_requested', 'run_suspended') LIMIT 1"
        return bool(self._local.run(sql, run_id).rows)

    def next_due_ms(self) -> int | None:
        """Return when the first waiting run goes on by itself, None when none waits."""
        sql = "SELECT MIN(due_at_ms) AS due FROM turn_state WHERE status = 'waiting'"
        due = self._local.run(sql).rows[0]["due"]
        return None if due is None else int(due)

    def events(self, run_id: str, *, after: int = 0) -> list[Row]:
        """Return the rows of the run's log behind the number `after`, in order."""
        return self._local.run("SELECT * FROM run_log WHERE run_id = ? AND seq > ? ORDER BY seq", run_id, after).rows

    def recent(self, limit: int) -> tuple[list[Row], list[Row]]:
        """Return the newest `limit` rows of `turn_state` and of `run_log`, newest first."""
        turns = self._local.run("SELECT * FROM turn_state ORDER BY created_at_ms DESC, run_id DESC LIMIT ?", limit).rows
        log = self._local.run("SELECT * FROM run_log ORDER BY at_ms DESC, run_id DESC, seq DESC LIMIT ?", limit).rows
        return turns, log

    def forget(self) -> None:
        """Remove every ended run. What matters of them is in D1."""
        ended = f"SELECT run_id FROM turn_state WHERE NOT {_OPEN}"  # noqa: S608
        self._local.run(f"DELETE FROM run_log WHERE run_id IN ({ended})")  # noqa: S608
        self._local.run(f"DELETE FROM turn_state WHERE NOT {_OPEN}")  # noqa: S608
        self._local.run("DELETE FROM cancel_requests")

    def erase(self, names: Callable[[str], bool] | None) -> None:
        """Remove everything, or the runs with a text that names what is to be erased. None may be under way.

        A run that waits is removed as well, and stands in D1 as cancelled.
        """
        if names is None:
            for table in ("run_log", "turn_state", "cancel_requests", "procedural_workflows"):
                self._local.run(f"DELETE FROM {table}")  # noqa: S608
            return
        for row in self._local.run("SELECT * FROM turn_state WHERE status <> 'running'").rows:
            texts = [row["request"], row["context"], row["result"] or "", row["idempotency_key"] or ""]
            texts += [event["data"] for event in self.events(row["run_id"])]
            if any(names(text) for text in texts):
                self._local.atomically(partial(self._erase_run, row["run_id"], row["status"]))

    def _erase_run(self, run_id: str, status: str) -> None:
        if status == "waiting":
            error = json.dumps({"code": "erased", "message": "what the run was about was erased"})
            tenant = self._scope.tenant_id
            self._outbox.add(tenant, "close_run", "cancelled", None, error, 0, 0, 0, self._clock(), run_id)
        self._local.run("DELETE FROM run_log WHERE run_id = ?", run_id)
        self._local.run("DELETE FROM turn_state WHERE run_id = ?", run_id)


def _due_ms(event: RunEvent, now: int) -> int:
    """Return when a run goes on by itself that this event lets wait."""
    match event:
        case ApprovalRequested():
            return event.expires_at_ms
        case RunSuspended():
            return now + min(RECHECK_MS << min(event.times, 20), MAX_RECHECK_MS)
        case _:
            return now


def _message(stored: Mapping[str, Any]) -> ChatMessage:
    calls = tuple(ToolCall(**call) for call in stored["tool_calls"])
    return ChatMessage(stored["role"], stored["content"], calls, stored["tool_call_id"])


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


def _named(chosen: Choice | None) -> dict[str, str] | None:
    return None if chosen is None else {"task_type": chosen.task_type, "workflow_id": chosen.workflow_id}


def _unicode(text: str) -> str:
    """Return the text with "?" for lone surrogates, which JSON can bring and a database refuses."""
    return text.encode("utf-8", "replace").decode()
