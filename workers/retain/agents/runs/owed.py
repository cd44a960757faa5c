"""What a run owes to D1: its row in `agent_runs`, and its timeline in `run_events`."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Self

from retain.agents.calls.report import RunResult
from retain.agents.calls.run_request import RunRequest
from retain.agents.identity import InstanceIdentity
from retain.agents.runs.open_run import OpenRun
from retain.json_text import JsonObject
from retain.outbox import OwedStatement

_log = logging.getLogger(__name__)

MAX_PARKED_CHARACTERS = 768 * 1024
"""Largest request and context of which D1 gets a copy. Its entry in the outbox, JSON within JSON, fits a row of 2 MB."""

QUEUED = "status = 'waiting' AND json_extract(waiting_for, '$.kind') = 'queue'"
"""Which rows of `agent_runs` are those of queued runs: they wait for their instance."""

RETURNING_WEBHOOKS = (
    "RETURNING run_id, EXISTS (SELECT 1 FROM webhooks WHERE tenant_id = agent_runs.tenant_id) AS has_webhooks"
)
"""Whether webhooks may be owed messages, which triggers have written: asked of D1 without a request of its own."""

EARLIER: Mapping[str, str] = {
    "start_run": """
        INSERT OR IGNORE INTO agent_runs
          (run_id, tenant_id, agent_type, instance_id, parent_run_id, status, input, model, created_at_ms)
        VALUES (?, ?, ?, ?, ?, 'running', ?, ?, ?)
    """,
    "start_run_of_user": f"""
        INSERT INTO agent_runs
          (run_id, tenant_id, agent_type, instance_id, parent_run_id, status, texts, input, model, created_at_ms, user_id)
        VALUES (?, ?, ?, ?, ?, 'running', 'kept', ?, ?, ?, ?)
        ON CONFLICT (run_id) DO UPDATE SET
          status = 'running', waiting_for = NULL, input = excluded.input, model = excluded.model
        WHERE {QUEUED}
    """,  # noqa: S608
    "queue_run": """
        INSERT OR IGNORE INTO agent_runs
          (run_id, tenant_id, agent_type, instance_id, parent_run_id, status, waiting_for, texts, input, model,
           created_at_ms, user_id)
        VALUES (?, ?, ?, ?, ?, 'waiting', '{"kind": "queue"}', 'kept', ?, '', ?, ?)
    """,
    "start_run_by": f"""
        INSERT INTO agent_runs
          (run_id, tenant_id, agent_type, instance_id, parent_run_id, status, texts, input, model, created_at_ms, user_id,
           started_by)
        VALUES (?, ?, ?, ?, ?, 'running', 'kept', ?, ?, ?, ?, ?)
        ON CONFLICT (run_id) DO UPDATE SET
          status = 'running', waiting_for = NULL, input = excluded.input, model = excluded.model
        WHERE {QUEUED}
    """,  # noqa: S608
    "start_fork": f"""
        INSERT INTO agent_runs
          (run_id, tenant_id, agent_type, instance_id, parent_run_id, status, texts, input, model, created_at_ms, user_id,
           started_by)
        VALUES (?1, ?2, ?3, ?4, ?5, 'running', 'kept',
          COALESCE((SELECT json_set(input, '$.fork', json_extract(?6, '$.fork')) FROM agent_runs
                    WHERE run_id = ?11 AND tenant_id = ?2 AND texts = 'kept'), ?6),
          ?7, ?8, ?9, ?10)
        ON CONFLICT (run_id) DO UPDATE SET
          status = 'running', waiting_for = NULL, input = excluded.input, model = excluded.model
        WHERE {QUEUED}
    """,  # noqa: S608
    "count_run": "UPDATE agent_runs SET steps = ?, input_tokens = ?, output_tokens = ?"
    " WHERE run_id = ? AND completed_at_ms IS NULL",
    "close_run": f"""
        UPDATE agent_runs SET status = ?, output = ?, error = ?, steps = ?, input_tokens = ?, output_tokens = ?,
          completed_at_ms = ?, waiting_for = NULL, texts = CASE texts WHEN 'removed' THEN 'kept' ELSE texts END
        WHERE run_id = ? {RETURNING_WEBHOOKS}
    """,  # noqa: S608
}
"""Statements of earlier versions, which an outbox may still hold.

The input of `start_run` (version 0.1.0) holds the texts of episodes: the column `texts` marks such a row by its default."""


@dataclass(frozen=True, slots=True)
class StartRun(OwedStatement):
    """The row of a new run; one that was queued has a row. input: as JSON, with references to the episodes in its context.

    created_at_ms: when it began; a run that was queued keeps when it was queued. started_by: a principal. agent_version: of
    a tenant's own agent, None for one of the repository.
    """

    NAME: ClassVar[str] = "start_run_of_version"
    SQL: ClassVar[str] = f"""
        INSERT INTO agent_runs
          (run_id, tenant_id, agent_type, instance_id, parent_run_id, status, texts, input, model, created_at_ms, user_id,
           started_by, agent_version)
        VALUES (?, ?, ?, ?, ?, 'running', 'kept', ?, ?, ?, ?, ?, ?)
        ON CONFLICT (run_id) DO UPDATE SET
          status = 'running', waiting_for = NULL, input = excluded.input, model = excluded.model,
          agent_version = excluded.agent_version
        WHERE {QUEUED}
    """  # noqa: S608

    run_id: str
    tenant_id: str
    agent_type: str
    instance_id: str
    parent_run_id: str | None
    input: str
    model: str
    created_at_ms: int
    user_id: str | None
    started_by: str | None
    agent_version: int | None

    @classmethod
    def of(cls, identity: InstanceIdentity, run: OpenRun, logged: JsonObject, model: str, at_ms: int) -> Self:
        """Return the row of a run that begins at a time. logged: its input for D1."""
        request = run.request
        return cls(
            run_id=run.run_id,
            tenant_id=identity.scope.tenant_id,
            agent_type=identity.agent_type,
            instance_id=identity.instance_id,
            parent_run_id=None if request.parent is None else request.parent.run_id,
            input=json.dumps(logged),
            model=model,
            created_at_ms=at_ms,
            user_id=request.user_id,
            started_by=request.by,
            agent_version=None if run.agent is None else run.agent.version,
        )


@dataclass(frozen=True, slots=True)
class StartFork(StartRun):
    """The row of a new fork. Its input refers to the memory that the model of the run before it read, as does that run's."""

    NAME: ClassVar[str] = "start_fork_of_version"
    SQL: ClassVar[str] = f"""
        INSERT INTO agent_runs
          (run_id, tenant_id, agent_type, instance_id, parent_run_id, status, texts, input, model, created_at_ms, user_id,
           started_by, agent_version)
        VALUES (?1, ?2, ?3, ?4, ?5, 'running', 'kept',
          COALESCE((SELECT json_set(input, '$.fork', json_extract(?6, '$.fork')) FROM agent_runs
                    WHERE run_id = ?12 AND tenant_id = ?2 AND texts = 'kept'), ?6),
          ?7, ?8, ?9, ?10, ?11)
        ON CONFLICT (run_id) DO UPDATE SET
          status = 'running', waiting_for = NULL, input = excluded.input, model = excluded.model,
          agent_version = excluded.agent_version
        WHERE {QUEUED}
    """  # noqa: S608

    forked_from: str = ""


@dataclass(frozen=True, slots=True)
class CarryEvents(OwedStatement):
    """The events of another run with which a fork's timeline begins, numbered from 1. numbers: theirs, as JSON, in order."""

    NAME: ClassVar[str] = "carry_events"
    SQL: ClassVar[str] = """
        INSERT OR IGNORE INTO run_events (run_id, seq, tenant_id, kind, turn, data, at_ms)
        SELECT ?1, number.key + 1, ?2, event.kind, event.turn, event.data, ?5
        FROM json_each(?4) number JOIN run_events event ON event.run_id = ?3 AND event.seq = number.value
        WHERE event.tenant_id = ?2
    """

    run_id: str
    tenant_id: str
    forked_from: str
    numbers: str
    at_ms: int


@dataclass(frozen=True, slots=True)
class QueueRun(OwedStatement):
    """The row of a run that is queued. input: as JSON. started_by: a principal."""

    NAME: ClassVar[str] = "queue_run_by"
    SQL: ClassVar[str] = """
        INSERT OR IGNORE INTO agent_runs
          (run_id, tenant_id, agent_type, instance_id, parent_run_id, status, waiting_for, texts, input, model,
           created_at_ms, user_id, started_by)
        VALUES (?, ?, ?, ?, ?, 'waiting', '{"kind": "queue"}', 'kept', ?, '', ?, ?, ?)
    """

    run_id: str
    tenant_id: str
    agent_type: str
    instance_id: str
    parent_run_id: str | None
    input: str
    created_at_ms: int
    user_id: str | None
    started_by: str | None

    @classmethod
    def of(cls, identity: InstanceIdentity, run_id: str, request: RunRequest, at_ms: int) -> QueueRun:
        """Return the row of a run that was queued at a time."""
        return cls(
            run_id=run_id,
            tenant_id=identity.scope.tenant_id,
            agent_type=identity.agent_type,
            instance_id=identity.instance_id,
            parent_run_id=None if request.parent is None else request.parent.run_id,
            input=json.dumps(request.logged()),
            created_at_ms=at_ms,
            user_id=request.user_id,
            started_by=request.by,
        )


@dataclass(frozen=True, slots=True)
class WaitRun(OwedStatement):
    """The run waits."""

    NAME: ClassVar[str] = "wait_run"
    SQL: ClassVar[str] = f"""
        UPDATE agent_runs SET status = 'waiting', waiting_for = ? WHERE run_id = ? AND completed_at_ms IS NULL
        {RETURNING_WEBHOOKS}
    """  # noqa: S608

    waiting_for: str
    run_id: str


@dataclass(frozen=True, slots=True)
class ParkRun(OwedStatement):
    """What rebuilds a waiting run whose instance loses its storage; its events are owed before it.

    seq: of the event with which the wait began. due_at_ms: when the run resumes without an answer.
    """

    NAME: ClassVar[str] = "park_run"
    SQL: ClassVar[str] = """
        INSERT OR REPLACE INTO parked_runs
          (run_id, tenant_id, agent_type, instance_id, user_id, idempotency_key, seq, due_at_ms, parked_at_ms, request,
           context)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    """

    run_id: str
    tenant_id: str
    agent_type: str
    instance_id: str
    user_id: str | None
    idempotency_key: str | None
    seq: int
    due_at_ms: int
    parked_at_ms: int
    request: str
    context: str

    @classmethod
    def of(cls, identity: InstanceIdentity, run: OpenRun, *, seq: int, due_at_ms: int, now_ms: int) -> ParkRun | None:
        """Return the copy of a run, None for one that is too large for it."""
        request, context = json.dumps(run.request.to_json()), run.stored_context()
        if len(request) + len(context) > MAX_PARKED_CHARACTERS:
            _log.warning("a waiting run is too large for a copy in D1", extra={"run_id": run.run_id})
            return None
        return cls(
            run_id=run.run_id,
            tenant_id=identity.scope.tenant_id,
            agent_type=identity.agent_type,
            instance_id=identity.instance_id,
            user_id=run.request.user_id,
            idempotency_key=run.request.idempotency_key,
            seq=seq,
            due_at_ms=due_at_ms,
            parked_at_ms=now_ms,
            request=request,
            context=context,
        )


@dataclass(frozen=True, slots=True)
class UnparkRun(OwedStatement):
    """The run's wait has ended: it can no longer be rebuilt."""

    NAME: ClassVar[str] = "unpark_run"
    SQL: ClassVar[str] = "DELETE FROM parked_runs WHERE run_id = ?"

    run_id: str


@dataclass(frozen=True, slots=True)
class CountRun(OwedStatement):
    """What the run has done and spent so far."""

    NAME: ClassVar[str] = "count_cached_run"
    SQL: ClassVar[
        str
    ] = """UPDATE agent_runs SET steps = ?, input_tokens = ?, cached_input_tokens = ?, output_tokens = ?
        WHERE run_id = ? AND completed_at_ms IS NULL"""

    steps: int
    input_tokens: int
    cached_input_tokens: int
    output_tokens: int
    run_id: str


@dataclass(frozen=True, slots=True)
class ContinueRun(OwedStatement):
    """The run no longer waits. NAME must not change: deployed outboxes hold entries with it."""

    NAME: ClassVar[str] = "go_on_run"
    SQL: ClassVar[str] = """UPDATE agent_runs SET status = 'running', waiting_for = NULL
        WHERE run_id = ? AND completed_at_ms IS NULL"""

    run_id: str


@dataclass(frozen=True, slots=True)
class CloseRun(OwedStatement):
    """The run has ended. error: as JSON, None for a completed run. If its texts were removed, it has a text again."""

    NAME: ClassVar[str] = "close_cached_run"
    SQL: ClassVar[str] = f"""
        UPDATE agent_runs SET status = ?, output = ?, error = ?, steps = ?, input_tokens = ?, cached_input_tokens = ?,
          output_tokens = ?, completed_at_ms = ?, waiting_for = NULL,
          texts = CASE texts WHEN 'removed' THEN 'kept' ELSE texts END WHERE run_id = ? {RETURNING_WEBHOOKS}
    """  # noqa: S608

    status: str
    output: str | None
    error: str | None
    steps: int
    input_tokens: int
    cached_input_tokens: int
    output_tokens: int
    completed_at_ms: int
    run_id: str

    @classmethod
    def of(cls, result: RunResult, output: str | None, now_ms: int) -> CloseRun:
        """Return the end of a run with this result. output: as D1 keeps it."""
        usage, error = result.usage, None if result.error is None else json.dumps(result.error.to_json())
        spent = (result.steps, usage.input_tokens, usage.cached_input_tokens, usage.output_tokens)
        return cls(result.status, output, error, *spent, now_ms, result.run_id)


@dataclass(frozen=True, slots=True)
class AppendEvent(OwedStatement):
    """One event of the run's timeline."""

    ALONE: ClassVar[bool] = False
    NAME: ClassVar[str] = "append_event"
    SQL: ClassVar[str] = """INSERT OR IGNORE INTO run_events (run_id, seq, tenant_id, kind, turn, data, at_ms)
        VALUES (?, ?, ?, ?, ?, ?, ?)"""

    run_id: str
    seq: int
    tenant_id: str
    kind: str
    turn: int
    data: str
    at_ms: int
