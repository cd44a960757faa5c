"""Runs of a tenant and their schedules, what was learned of workflows, decisions, changes in KV, and the error ledger."""

from __future__ import annotations

from typing import Literal, NotRequired

from typing_extensions import TypedDict

from retain.agents.calls.schedule import ScheduleState
from retain.agents.calls.shown import AwaitedJson, PosteriorJson
from retain.json_text import JsonObject
from retain.ledgers.debts import Debt
from retain.ledgers.decisions import LoggedDecision
from retain.ledgers.errors import ErrorState, ParkedError, Stage
from retain.ledgers.kv_audit import KvChange
from retain.ledgers.put_aside import PutAside
from retain.models.prices import CostJson

RunStatus = Literal["queued", "running", "waiting", "completed", "failed", "cancelled"]


class ListedRunJson(TypedDict):
    """A run in a list. by: the principal that started it. queue_position: of a queued one, null once it has begun.

    agent_version: with which it began, null for an agent of the repository. cached_input_tokens: those of its input tokens
    that the cache of the model's server supplied. cost: of its own tokens; null for a model without a price.
    """

    run_id: str
    tenant_id: str
    agent_type: str
    instance_id: str
    parent_run_id: str | None
    user_id: str | None
    by: str | None
    status: RunStatus
    model: str
    agent_version: int | None
    steps: int
    input_tokens: int
    cached_input_tokens: int
    output_tokens: int
    cost: CostJson | None
    waiting_for: AwaitedJson | None
    created_at_ms: int
    completed_at_ms: int | None
    queue_position: NotRequired[int | None]


class RunsJson(TypedDict):
    """A page of runs, newest first."""

    runs: list[ListedRunJson]
    cursor: str | None


class RunRefusalJson(TypedDict):
    """Why an instance did not cancel a run."""

    code: str
    message: str


class CancelledRunJson(TypedDict):
    """A run that was to be cancelled, and its status after that. error: null unless its instance refused."""

    run_id: str
    agent_type: str
    instance_id: str
    status: RunStatus
    error: RunRefusalJson | None


class CancelledRunsJson(TypedDict):
    """Runs that were to be cancelled, newest first."""

    runs: list[CancelledRunJson]
    cursor: str | None


class LeftEpisodeJson(TypedDict):
    """An episode that a run left."""

    episode_id: str
    turn: int
    content: str
    created_at_ms: int


class DelegatedRunJson(TypedDict):
    """A run that this one delegated."""

    run_id: str
    agent_type: str
    status: str


class InspectedRunJson(ListedRunJson):
    """A run with what it read and left. input: also what was in its context. learning: what was learned from it.

    texts: `kept`, or `removed` after 90 days.
    """

    input: JsonObject
    output: str | None
    error: JsonObject | None
    texts: str
    learning: JsonObject | None
    episodes: list[LeftEpisodeJson]
    delegated: list[DelegatedRunJson]


class RunEventJson(TypedDict):
    """One event of a run's timeline. cost: of the tokens of a model's answer; null for a model without a price."""

    seq: int
    turn: int
    kind: str
    data: JsonObject
    at_ms: int
    cost: NotRequired[CostJson | None]


class RunEventsJson(TypedDict):
    """A page of a run's timeline, oldest first."""

    events: list[RunEventJson]
    cursor: str | None


class RunOutcomeJson(TypedDict):
    """The outcome of a run, and what its instance believes of the workflow now."""

    run_id: str
    task_type: str
    workflow_id: str
    score: float
    posterior: PosteriorJson | None


class LearnedWorkflowJson(TypedDict):
    """What a tenant's agents learned of a workflow, over all their instances."""

    agent_type: str
    task_type: str
    workflow_id: str
    outcomes: int
    mean_score: float


class ProceduresJson(TypedDict):
    """What a tenant's agents learned of their workflows."""

    procedures: list[LearnedWorkflowJson]


class DecisionsJson(TypedDict):
    """A page of decisions, newest first."""

    decisions: list[LoggedDecision]
    cursor: str | None


class KvChangesJson(TypedDict):
    """A page of changes in KV."""

    changes: list[KvChange]
    cursor: str | None


class DebtsJson(TypedDict):
    """What is still to be done for a tenant, by kind."""

    debts: list[Debt]


class ErrorsJson(TypedDict):
    """A page of the error ledger, the last to go wrong first."""

    errors: list[ParkedError]
    cursor: str | None


class ShownErrorJson(TypedDict):
    """One error. owed: what it owes D1, if it is a write of an instance."""

    error_id: str
    tenant_id: str
    stage: Stage
    concerns: str
    code: str
    agent_type: str | None
    instance_id: str | None
    user_id: str | None
    run_id: str | None
    attempts: int
    state: ErrorState
    first_at_ms: int
    last_at_ms: int
    settled_at_ms: int | None
    settled_by: str | None
    owed: PutAside | None


class ReplayJson(TypedDict):
    """The error after a replay, and what was reported by the part that owns the work."""

    error: ParkedError
    outcome: JsonObject | None


class ScheduleJson(TypedDict):
    """A schedule. next_at_ms: when its next run is to begin. last_run_id: of the last run that began. last_at_ms: when the
    last one was planned. last_error: the code with which that was refused, null when it began."""

    schedule_id: str
    agent_type: str
    instance_id: str
    user_id: str | None
    state: ScheduleState
    cron: str | None
    timezone: str | None
    at_ms: int | None
    next_at_ms: int | None
    last_run_id: str | None
    last_at_ms: int | None
    last_error: str | None
    input: str | JsonObject
    metadata: JsonObject
    by: str | None
    created_at_ms: int


class SchedulesJson(TypedDict):
    """A page of schedules, the newest first."""

    schedules: list[ScheduleJson]
    cursor: str | None
