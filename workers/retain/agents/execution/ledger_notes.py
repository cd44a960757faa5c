"""What the ledgers are owed for an event of a run: errors that were given up, and decisions with what they rest on."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, get_args

from retain.agents.definitions import AgentDefinition
from retain.agents.identity import InstanceIdentity
from retain.agents.ledgers.declared import Declared, declared_decision
from retain.agents.ledgers.statements import LogDecision, LogDecisionMemories, parked
from retain.agents.runs.context import AssembledContext
from retain.agents.runs.events import ApprovalAnswered, RunCompleted, RunEvent, RunFailed, ToolAnswered
from retain.agents.runs.open_run import Basis, OpenRun
from retain.errors.codes import UnavailableCode, UpstreamFailedCode
from retain.errors.misconfigured_codes import MisconfiguredCode
from retain.json_text import Json, read_json
from retain.ledgers.decisions import DecisionKind
from retain.outbox import OwedStatement
from retain.roles.principals import agent_of_type

OWN_LIMITS = ("turn_limit", "token_budget", "run_deadline", "queue_deadline")
"""Codes of runs that failed because their definition or their caller bounded them: nothing went wrong."""
GIVEN_UP: frozenset[str] = (
    frozenset((*get_args(UnavailableCode), *get_args(UpstreamFailedCode), *get_args(MisconfiguredCode)))
    | {"internal", "outcome_unknown"}
) - {"run_failed", "run_waits"}
"""Codes of tool calls that were given up. The model can correct the others; a delegate's run has its own entry."""

_log = logging.getLogger(__name__)


def basis_of(definition: AgentDefinition, context: AssembledContext, model: str, now_ms: int) -> Basis:
    """Return what the decisions of a run with this context rest on."""
    decisions, procedure = definition.decisions, context.procedure
    return Basis(
        now_ms,
        model,
        _digest(definition.model_dump_json()),
        None if decisions is None else decisions.policy,
        () if decisions is None else decisions.labels,
        None if procedure is None else _digest(procedure.spec),
        tuple(hit.record.id for hit in context.records),
        tuple(fact.id for fact in context.profile),
        tuple(episode.episode_id for episode in context.episodes),
    )


def basis_now(basis: Basis | None, definition: AgentDefinition, model: str, now_ms: int) -> Basis:
    """Return what the decisions of a fork rest on: the same context, read by the agent as it is defined now.

    basis: of the run before it, None for one that an earlier version began; of what that read nothing is known.
    """
    policy = None if definition.decisions is None else definition.decisions.policy
    now = Basis(now_ms, model, _digest(definition.model_dump_json()), policy)
    return (
        now
        if basis is None
        else replace(basis, at_ms=now_ms, model=model, agent_version=now.agent_version, policy=policy)
    )


class LedgerNotes:
    """Notes of one instance's runs."""

    def __init__(self, identity: InstanceIdentity) -> None:
        self._identity = identity

    def of(self, run: OpenRun, event: RunEvent, at_ms: int) -> Sequence[OwedStatement]:
        """Return what the ledgers are owed for an event. run: before it. Raises nothing: a failure is logged."""
        try:
            return list(self._of(run, event, at_ms))
        except Exception:  # noqa: BLE001 -- the event itself must be written, whatever a ledger makes of it
            _log.exception("a ledger's entry could not be made", extra={"run_id": run.run_id})
            return []

    def _of(self, run: OpenRun, event: RunEvent, at_ms: int) -> Iterator[OwedStatement]:
        run_id, user_id, identity = run.run_id, run.request.user_id, self._identity
        match event:
            case RunFailed() if event.code not in OWN_LIMITS:
                yield parked(identity, "run", run_id, event.code, at_ms, run_id=run_id, user_id=user_id)
            case ToolAnswered(failed=True):
                code = _code_in(event.content)
                if code in GIVEN_UP:
                    call = f"{run_id}.{event.turn}.{event.index}"
                    yield parked(identity, "tool", call, code, at_ms, run_id=run_id, user_id=user_id)
            case RunCompleted() if run.basis is not None:
                declared = declared_decision(event.output, run.basis.labels)
                if declared is not None:
                    yield from self._decided(
                        run, run_id, "outcome", declared, agent_of_type(identity.agent_type), None, at_ms
                    )
            case ApprovalAnswered() if run.state.asked is not None:
                answer = Declared("approved" if event.approved else "declined")
                name = f"{run_id}.{event.turn}.{event.index}"
                yield from self._decided(run, name, "approval", answer, event.by, run.state.asked.name, at_ms)

    def _decided(
        self,
        run: OpenRun,
        decision_id: str,
        kind: DecisionKind,
        declared: Declared,
        by: str,
        tool: str | None,
        at_ms: int,
    ) -> Iterator[OwedStatement]:
        identity, basis = self._identity, run.basis
        tenant_id = identity.scope.tenant_id
        yield LogDecision(
            decision_id,
            tenant_id,
            run.run_id,
            kind,
            declared.label,
            declared.confidence,
            by,
            tool,
            identity.agent_type,
            identity.instance_id,
            run.request.user_id,
            None if basis is None else basis.policy,
            None if basis is None else basis.agent_version,
            None if basis is None else basis.model,
            at_ms,
        )
        memories = list(_memories_of(run, at_ms))
        if memories:
            yield LogDecisionMemories(decision_id, tenant_id, json.dumps(memories))


def _memories_of(run: OpenRun, at_ms: int) -> Iterator[Json]:
    """Yield what was in the run's context, and what its tools recalled up to now."""
    basis = run.basis
    if basis is not None:
        for source, ids in (("context", basis.records), ("profile", basis.profile)):
            for record_id in ids:
                yield {"kind": "record", "id": record_id, "source": source, "at_ms": basis.at_ms}
        for episode_id in basis.episodes:
            yield {"kind": "episode", "id": episode_id, "source": "context", "version": None}
    if run.procedure is not None:
        name = f"{run.procedure.task_type}/{run.procedure.workflow_id}"
        version = None if basis is None else basis.procedure_version
        yield {"kind": "procedure", "id": name, "source": "context", "version": version}
    for turn in run.state.turns:
        for result in turn.results:
            for record_id, _ in result.recalled:
                yield {"kind": "record", "id": record_id, "source": "tool", "at_ms": at_ms}


def _code_in(content: str) -> str:
    """Return the code of the error that a failed tool's answer contains."""
    answer: Any = read_json(content)
    return str(answer["error"]["code"])


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
