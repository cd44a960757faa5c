"""The ledgers' rows as an instance's outbox holds them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from retain.agents.identity import InstanceIdentity
from retain.ledgers.decisions import LOG, LOG_MEMORIES
from retain.ledgers.errors import PARK, Stage, Trouble
from retain.ledgers.kv_audit import NOTE, KvChange
from retain.outbox import OwedStatement
from retain.ports import SqlValue


@dataclass(frozen=True, slots=True)
class ParkTrouble(OwedStatement):
    """A row of the error ledger."""

    NAME: ClassVar[str] = "park_trouble"
    SQL: ClassVar[str] = PARK

    trouble: Trouble

    def values(self) -> tuple[SqlValue, ...]:
        """Return the statement's values in order."""
        return self.trouble.values


@dataclass(frozen=True, slots=True)
class NoteKvChange(OwedStatement):
    """A row of the KV audit."""

    ALONE: ClassVar[bool] = False
    NAME: ClassVar[str] = "note_kv_change"
    SQL: ClassVar[str] = NOTE

    change: KvChange

    def values(self) -> tuple[SqlValue, ...]:
        """Return the statement's values in order."""
        return self.change.values


@dataclass(frozen=True, slots=True)
class LogDecision(OwedStatement):
    """A row of the decision log."""

    NAME: ClassVar[str] = "log_decision"
    SQL: ClassVar[str] = LOG

    decision_id: str
    tenant_id: str
    run_id: str
    kind: str
    decision: str
    confidence: float | None
    decided_by: str
    tool: str | None
    agent_type: str
    instance_id: str
    user_id: str | None
    policy: str | None
    agent_version: str | None
    model: str | None
    at_ms: int


@dataclass(frozen=True, slots=True)
class LogDecisionMemories(OwedStatement):
    """The memories that a decision rests on. memories: a JSON array, see `retain.ledgers.decisions.LOG_MEMORIES`."""

    NAME: ClassVar[str] = "log_decision_memories"
    SQL: ClassVar[str] = LOG_MEMORIES

    decision_id: str
    tenant_id: str
    memories: str


def parked(
    identity: InstanceIdentity,
    stage: Stage,
    concerns: str,
    code: str,
    at_ms: int,
    *,
    run_id: str,
    user_id: str | None = None,
) -> ParkTrouble:
    """Return the row of something that an instance gave up."""
    tenant_id = identity.scope.tenant_id
    trouble = Trouble(
        stage,
        concerns,
        code,
        at_ms,
        tenant_id,
        identity.agent_type,
        identity.instance_id,
        user_id,
        run_id=run_id,
    )
    return ParkTrouble(trouble)
