"""The decision log: what runs and people decided, by which version of what, and on which memories.

It names memories by id and version, and keeps neither their text nor the answer's.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from typing import Literal

from retain.ledgers.pages import EntryPage, Look, entry_page
from retain.ports import Row, Sql

DecisionKind = Literal["outcome", "approval"]
"""outcome: what a run's answer declares. approval: what was answered when a call of a tool had to be approved."""

LOG = """
INSERT OR IGNORE INTO decision_log (decision_id, tenant_id, run_id, kind, decision, confidence, decided_by, tool,
  agent_type, instance_id, user_id, policy, agent_version, model, at_ms)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
LOG_MEMORIES = """
INSERT OR IGNORE INTO decision_memories (decision_id, tenant_id, kind, memory_id, source, version)
SELECT ?1, ?2, value ->> 'kind', value ->> 'id', value ->> 'source', CASE value ->> 'kind'
  WHEN 'record' THEN (SELECT MAX(e.event_id) FROM memory_events e INDEXED BY memory_events_by_record
                      WHERE e.record_id = value ->> 'id' AND e.tenant_id = ?2 AND e.at_ms <= value ->> 'at_ms')
  ELSE value ->> 'version' END
FROM json_each(?3) WHERE EXISTS (SELECT 1 FROM decision_log WHERE decision_id = ?1)
"""
"""Names the memories of a decision. ?3: a JSON array of objects with `kind`, `id`, `source`, and `version`, or for a record
`at_ms`: its version is the newest of its learning events up to then. Without the decision's row it does nothing."""
_MEMORIES = """
SELECT decision_id, kind, memory_id, version, source FROM decision_memories
WHERE decision_id IN (SELECT value FROM json_each(?)) ORDER BY decision_id, kind DESC, memory_id
"""
_RESTS_ON = "decision_id IN (SELECT decision_id FROM decision_memories WHERE tenant_id = ? AND memory_id = ?)"


@dataclass(frozen=True, slots=True)
class UsedMemory:
    """A memory that a decision rests on.

    kind: `record`, `episode` or `procedure`. id: of a procedure, its task type and workflow, as `task/workflow`. version: a
    record's newest learning event then, a procedure's digest, None for an episode, which never changes. source: `context`,
    `profile` or `tool`.
    """

    kind: str
    id: str
    version: str | None
    source: str


@dataclass(frozen=True, slots=True)
class LoggedDecision:
    """A decision. decided_by: the principal of the agent or the person; `expiry` if nobody answered in time."""

    decision_id: str
    tenant_id: str
    run_id: str
    kind: DecisionKind
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
    memories: tuple[UsedMemory, ...] = ()

    def to_json(self) -> dict[str, object]:
        """Return the decision as HTTP answers have it."""
        memories = [dict(zip(UsedMemory.__slots__, astuple(one), strict=True)) for one in self.memories]
        return {name: getattr(self, name) for name in _COLUMNS} | {"memories": memories}


_COLUMNS = LoggedDecision.__slots__[:-1]


async def list_decisions(
    sql: Sql,
    tenant_id: str,
    *,
    agent_type: str | None = None,
    decision: str | None = None,
    memory_id: str | None = None,
    since_ms: int | None = None,
    until_ms: int | None = None,
    limit: int = 50,
    cursor: str | None = None,
) -> EntryPage[LoggedDecision]:
    """Return a page of a tenant's decisions, newest first, each with its memories.

    memory_id: only those that rest on this record, episode or procedure.
    Raises: InvalidInput (code `invalid_cursor`).
    """
    look = Look("decision_log", ("at_ms", "decision_id"), newest_first=True)
    look = look.equal({"tenant_id": tenant_id, "agent_type": agent_type, "decision": decision})
    if memory_id is not None:
        look = look.where(_RESTS_ON, tenant_id, memory_id)
    page = await entry_page(sql, look.between("at_ms", since_ms, until_ms), limit, cursor, _decision)
    memories = await _memories_of(sql, [entry.decision_id for entry in page.entries])
    return EntryPage([replace(entry, memories=memories[entry.decision_id]) for entry in page.entries], page.cursor)


async def _memories_of(sql: Sql, decision_ids: Sequence[str]) -> Mapping[str, tuple[UsedMemory, ...]]:
    found: dict[str, tuple[UsedMemory, ...]] = defaultdict(tuple)
    for row in (await sql.run(_MEMORIES, json.dumps(decision_ids))).rows:
        used = UsedMemory(row["kind"], row["memory_id"], row["version"], row["source"])
        found[row["decision_id"]] += (used,)
    return found


def _decision(row: Row) -> LoggedDecision:
    return LoggedDecision(**{name: row[name] for name in _COLUMNS})
