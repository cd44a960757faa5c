"""What an instance owes to D1 of its conversation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from retain.outbox import OwedStatement
from retain.retention import TEXT_KEPT_MS, RetentionRule

MessageRole = Literal["user", "assistant"]
_YOUNG = "FROM json_each(summary) WHERE json_extract(value, '$.at_ms') >= ?1"
_WITHOUT_OLD_LINES = f"""
UPDATE conversations SET summary = (SELECT json_group_array(json(value)) {_YOUNG}),
  summary_since_ms = (SELECT MIN(json_extract(value, '$.at_ms')) {_YOUNG})
WHERE (tenant_id, agent_type, instance_id) IN (
  SELECT tenant_id, agent_type, instance_id FROM conversations
  WHERE summary_since_ms < ?1 ORDER BY summary_since_ms LIMIT ?2
) RETURNING tenant_id
"""
CONVERSATION_RULES = (
    RetentionRule(
        "conversation_messages",
        TEXT_KEPT_MS,
        (
            "DELETE FROM conversation_messages WHERE message_id IN (SELECT message_id FROM conversation_messages"
            " WHERE at_ms < ? ORDER BY at_ms LIMIT ?) RETURNING tenant_id",
        ),
        5000,
    ),
    RetentionRule("summaries", TEXT_KEPT_MS, (_WITHOUT_OLD_LINES,), 500),
)


@dataclass(frozen=True, slots=True)
class OpenConversation(OwedStatement):
    """The conversation has a new run. delegated: 1 when another agent's run started it.

    The ids of an instance's runs ascend, so a repeated statement counts no run twice.
    """

    NAME: ClassVar[str] = "open_conversation"
    SQL: ClassVar[str] = """
        INSERT INTO conversations
          (tenant_id, agent_type, instance_id, user_id, delegated, last_run_id, last_run_at_ms, created_at_ms, status, runs)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'running', 1)
        ON CONFLICT (tenant_id, agent_type, instance_id) DO UPDATE SET
          runs = runs + (excluded.last_run_id > last_run_id), last_run_id = excluded.last_run_id,
          user_id = COALESCE(user_id, excluded.user_id),
          last_run_at_ms = MAX(last_run_at_ms, excluded.last_run_at_ms), status = 'running'
        WHERE excluded.last_run_id >= last_run_id
    """

    tenant_id: str
    agent_type: str
    instance_id: str
    user_id: str | None
    delegated: int
    last_run_id: str
    last_run_at_ms: int
    created_at_ms: int


@dataclass(frozen=True, slots=True)
class MarkConversation(OwedStatement):
    """The status of a run of the conversation, which changes nothing unless the run is its newest."""

    NAME: ClassVar[str] = "mark_conversation"
    SQL: ClassVar[str] = """
        UPDATE conversations SET status = ? WHERE tenant_id = ? AND agent_type = ? AND instance_id = ? AND last_run_id = ?
    """

    status: str
    tenant_id: str
    agent_type: str
    instance_id: str
    last_run_id: str


@dataclass(frozen=True, slots=True)
class AppendMessage(OwedStatement):
    """What was asked, or the answer. recalled: 1 when remembered text was in the context of the run that answers."""

    NAME: ClassVar[str] = "append_message"
    SQL: ClassVar[str] = """
        INSERT OR IGNORE INTO conversation_messages
          (message_id, tenant_id, agent_type, instance_id, run_id, role, content, at_ms, user_id, recalled)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    """

    message_id: str
    tenant_id: str
    agent_type: str
    instance_id: str
    run_id: str
    role: MessageRole
    content: str
    at_ms: int
    user_id: str | None
    recalled: int


@dataclass(frozen=True, slots=True)
class SummariseConversation(OwedStatement):
    """The summary of the messages up to `summary_through`. summary: as JSON. summary_since_ms: of its oldest line."""

    NAME: ClassVar[str] = "summarise_conversation"
    SQL: ClassVar[str] = """
        UPDATE conversations SET summary = ?, summary_through = ?, summary_since_ms = ?
        WHERE tenant_id = ? AND agent_type = ? AND instance_id = ?
    """

    summary: str
    summary_through: str
    summary_since_ms: int | None
    tenant_id: str
    agent_type: str
    instance_id: str


def message_id(run_id: str, role: MessageRole) -> str:
    """Return the id of a run's message: equal for each attempt to write it, and in the order of the conversation."""
    return f"{run_id}.{'0' if role == 'user' else '1'}"
