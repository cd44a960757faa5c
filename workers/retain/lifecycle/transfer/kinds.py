"""The kinds of lines that are rows of D1 as they are: conversations, runs, outcomes, agents, documents,
evaluations.

Records, scopes and users have lines of their own, because they are merged; items too, because their values are in several
stores. What lasts for hours at most is not exported: working memory, runs under way, jobs, debts of the index.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Column = Literal[
    "id", "id?", "named", "named?", "text", "text?", "object", "object?", "list", "list?", "files?", "lines?", "context",
    "whole", "whole?", "real", "real?", "share", "time", "time?", "day", "space",
]  # fmt: skip
"""What a column has. A question mark: or null.

id: a ULID, alone or before a dot. named: the id of something that may be a ULID. whole: a whole number from 0. time: the
same, in epoch milliseconds, and not in the future. day: the same, in days since the epoch. share: a number from 0 to 1.
space: a namespace key, whose second segment is the tenant. object, list: as JSON. files, lines, context: attachments,
the lines of a summary, and what a run was asked with what it read, as JSON.
"""

_INSTANCE: Mapping[str, Column] = {"agent_type": "text", "instance_id": "text"}
_OWNER = """(SELECT c.user_id FROM conversations c WHERE c.tenant_id = t.tenant_id AND c.agent_type = t.agent_type
  AND c.instance_id = t.instance_id)"""
_OF_INSTANCE = f"COALESCE(t.user_id, {_OWNER})"
_OF_RUN = _OF_INSTANCE.replace("t.", "r.")


@dataclass(frozen=True, slots=True)
class RowKind:
    """One kind of line.

    keys: the columns by which the rows are ordered, unique in the tenant. columns: all that are exported, `tenant_id` is
    not among them. at_ms: SQL for the time of a row's content; None if nothing records it, then it is that of the export.
    owner: SQL for the user whose it is. history: whether the row never changes, so that one that was written after a time
    says nothing about that time. condition: on the rows that are exported. needs: SQL that must hold for a row to be
    written. values: among which a column's value must be. written: SQL for a column's value, from `?` as it was exported.
    added: columns that earlier exports lack, with the value that they have then. listed: the table that lists the first
    key's values of a tenant, where no index has the rows of a tenant in order. counted: whether `needs` counts the rows of
    the table, so that each row is written by a statement of its own.
    """

    name: str
    table: str
    keys: tuple[str, ...]
    columns: Mapping[str, Column]
    at_ms: str | None
    owner: str = "NULL"
    history: bool = False
    condition: str = ""
    needs: str = "true"
    values: Mapping[str, tuple[str | int, ...]] | None = None
    written: Mapping[str, str] | None = None
    added: Mapping[str, str | int | None] | None = None
    listed: str | None = None
    counted: bool = False

    @property
    def dating(self) -> tuple[str, ...]:
        """The columns that have the time of a row's content, the first that is not null."""
        return tuple(re.findall(r"\bt\.(\w+_ms)", self.at_ms or ""))


_ENDED = ("completed", "failed", "cancelled")
_NO_RUN_OF_OTHERS = """NOT EXISTS (SELECT 1 FROM agent_runs r
  WHERE r.run_id IN (new.run_id, substr(new.{}, 1, 26)) AND r.tenant_id <> new.tenant_id)"""
"""Ids that are made from a run's are taken once in a database: whoever has the run has them. It may be gone itself."""
_OTHER_AGENTS = """(SELECT COUNT(*) FROM agent_versions v WHERE v.tenant_id = new.tenant_id
  AND v.agent_type <> new.agent_type AND v.definition IS NOT NULL AND v.version = (
    SELECT MAX(n.version) FROM agent_versions n WHERE n.tenant_id = v.tenant_id AND n.agent_type = v.agent_type))"""
_NO_NEWER_VERSION = """NOT EXISTS (SELECT 1 FROM agent_versions v WHERE v.tenant_id = new.tenant_id
  AND v.agent_type = new.agent_type AND v.version < new.version AND v.created_at_ms > new.created_at_ms + 60000)"""
"""The greatest version is the current one: an older one must not replace the tenant's own. Clocks differ by less."""
_HAS_RUN = "EXISTS (SELECT 1 FROM agent_runs r WHERE r.run_id = new.run_id AND r.tenant_id = new.tenant_id)"

ROW_KINDS: Mapping[str, RowKind] = {
    kind.name: kind
    for kind in (
        RowKind(
            "conversation",
            "conversations",
            ("agent_type", "instance_id"),
            {
                **_INSTANCE,
                "user_id": "text?",
                "title": "text?",
                "delegated": "whole",
                "created_at_ms": "time",
                "last_run_at_ms": "time",
                "last_run_id": "id",
                "status": "text",
                "runs": "whole",
                "summary": "lines?",
                "summary_through": "id?",
                "summary_since_ms": "time?",
            },
            "t.last_run_at_ms",
            "t.user_id",
            values={"status": (*_ENDED, "running", "waiting"), "delegated": (0, 1)},
            written={"status": "CASE WHEN ? IN ('running', 'waiting') THEN 'failed' ELSE ? END"},
        ),
        RowKind(
            "message",
            "conversation_messages",
            ("message_id",),
            {
                "message_id": "id",
                **_INSTANCE,
                "run_id": "id",
                "role": "text",
                "content": "text",
                "at_ms": "time",
                "user_id": "text?",
                "recalled": "whole",
                "attachments": "files?",
            },
            "t.at_ms",
            _OF_INSTANCE,
            history=True,
            needs=_NO_RUN_OF_OTHERS.format("message_id"),
            values={"role": ("user", "assistant"), "recalled": (0, 1)},
            added={"attachments": None},
        ),
        RowKind(
            "run",
            "agent_runs",
            ("run_id",),
            {
                "run_id": "id",
                **_INSTANCE,
                "parent_run_id": "id?",
                "status": "text",
                "input": "context",
                "output": "text?",
                "error": "object?",
                "model": "text",
                "steps": "whole",
                "input_tokens": "whole",
                "cached_input_tokens": "whole",
                "output_tokens": "whole",
                "created_at_ms": "time",
                "completed_at_ms": "time?",
                "user_id": "text?",
                "texts": "text",
                "learning": "object?",
                "started_by": "text?",
                "agent_version": "whole?",
            },
            "COALESCE(t.completed_at_ms, t.created_at_ms)",
            _OF_INSTANCE,
            history=True,
            condition="AND t.status IN ('completed', 'failed', 'cancelled')",
            values={"status": _ENDED, "texts": ("copied", "kept", "removed")},
            added={"cached_input_tokens": 0, "started_by": None, "agent_version": None},
        ),
        RowKind(
            "event",
            "run_events",
            ("run_id", "seq"),
            {"run_id": "id", "seq": "whole", "kind": "text", "turn": "whole", "data": "object", "at_ms": "time"},
            "t.at_ms",
            f"(SELECT {_OF_RUN} FROM agent_runs r WHERE r.run_id = t.run_id)",
            history=True,
            needs=_HAS_RUN,
            listed="timelines",
        ),
        RowKind(
            "episode",
            "memory_episodes",
            ("episode_id",),
            {
                "episode_id": "id",
                **_INSTANCE,
                "run_id": "id",
                "turn": "whole",
                "content": "text",
                "created_at_ms": "time",
                "user_id": "text?",
            },
            "t.created_at_ms",
            _OF_INSTANCE,
            history=True,
            needs=_NO_RUN_OF_OTHERS.format("episode_id"),
        ),
        RowKind(
            "outcome",
            "procedure_outcomes",
            ("run_id",),
            {
                "run_id": "id",
                "agent_type": "text",
                "house": "text?",
                "instance_id": "text",
                "task_type": "text",
                "workflow_id": "text",
                "score": "share",
                "at_ms": "time",
            },
            "t.at_ms",
            _OWNER,
            history=True,
            needs=_NO_RUN_OF_OTHERS.format("run_id"),
        ),
        RowKind(
            "prior",
            "procedure_priors",
            ("agent_type", "instance_id", "task_type", "workflow_id"),
            {
                **_INSTANCE,
                "workflow_id": "text",
                "task_type": "text",
                "alpha": "real",
                "beta": "real",
                "at_ms": "time",
            },
            "t.at_ms",
            _OWNER,
        ),
        RowKind(
            "decision",
            "decision_log",
            ("decision_id",),
            {
                "decision_id": "id",
                "run_id": "id",
                "kind": "text",
                "decision": "text",
                "confidence": "real?",
                "decided_by": "text",
                "tool": "text?",
                **_INSTANCE,
                "user_id": "text?",
                "policy": "text?",
                "agent_version": "text?",
                "model": "text?",
                "at_ms": "time",
            },
            "t.at_ms",
            _OF_INSTANCE,
            history=True,
            needs=_NO_RUN_OF_OTHERS.format("decision_id"),
            values={"kind": ("outcome", "approval")},
        ),
        RowKind(
            "decision_memory",
            "decision_memories",
            ("decision_id", "kind", "memory_id"),
            {"decision_id": "id", "kind": "text", "memory_id": "named", "version": "named?", "source": "text"},
            "(SELECT d.at_ms FROM decision_log d WHERE d.decision_id = t.decision_id)",
            f"(SELECT {_OF_RUN} FROM decision_log r WHERE r.decision_id = t.decision_id)",
            history=True,
            needs="EXISTS (SELECT 1 FROM decision_log d WHERE d.decision_id = new.decision_id"
            " AND d.tenant_id = new.tenant_id)",
            values={"kind": ("record", "episode", "procedure"), "source": ("context", "profile", "tool")},
        ),
        RowKind(
            "chat_message",
            "chat_messages",
            ("namespace_key", "position"),
            {"namespace_key": "space", "position": "whole", "message": "object"},
            None,
        ),
        RowKind(
            "document",
            "vector_documents",
            ("namespace_key", "document_id"),
            {
                "namespace_key": "space",
                "document_id": "text",
                "document": "list",
                "embedding": "text",
                "indexed": "whole",
                "model": "text",
            },
            None,
            values={"indexed": (0, 1)},
        ),
        RowKind(
            "spent",
            "model_calls",
            ("day", "agent_type", "purpose", "model"),
            {
                "day": "day",
                "agent_type": "text",
                "purpose": "text",
                "model": "text",
                "calls": "whole",
                "input_tokens": "whole",
                "cached_input_tokens": "whole",
                "output_tokens": "whole",
            },
            "t.day * 86400000",
            values={"purpose": ("ingest", "judge", "answer", "evaluation")},
        ),
        RowKind(
            "agent",
            "agent_versions",
            ("agent_type", "version"),
            {
                "agent_type": "text",
                "version": "whole",
                "definition": "object?",
                "digest": "text",
                "restored_from": "whole?",
                "created_by": "text",
                "created_at_ms": "time",
            },
            "t.created_at_ms",
            history=True,
            needs="new.version > 0 AND COALESCE(length(CAST(new.definition AS BLOB)), 0) <= 65536"
            " AND (SELECT COUNT(*) FROM agent_versions v WHERE v.tenant_id = new.tenant_id) < 2000"
            f" AND (new.definition IS NULL OR {_OTHER_AGENTS} < 100) AND {_NO_NEWER_VERSION}",
            counted=True,
        ),
        RowKind(
            "dataset",
            "eval_datasets",
            ("name", "version"),
            {
                "name": "text",
                "version": "text",
                "definition": "object",
                "cases": "whole",
                "current": "whole",
                "created_at_ms": "time",
                "updated_at_ms": "time",
            },
            "t.updated_at_ms",
            values={"current": (0, 1)},
        ),
        RowKind(
            "case",
            "eval_cases",
            ("name", "version", "position"),
            {"name": "text", "version": "text", "position": "whole", "content": "object?"},
            None,
            needs="EXISTS (SELECT 1 FROM eval_datasets d WHERE d.tenant_id = new.tenant_id AND d.name = new.name"
            " AND d.version = new.version)",
        ),
        RowKind(
            "evaluation",
            "eval_runs",
            ("run_id",),
            {
                "run_id": "id",
                "dataset": "text",
                "version": "text",
                "definition": "object",
                "state": "text",
                "created_at_ms": "time",
                "updated_at_ms": "time",
                "scored_at_ms": "time?",
                "completed_at_ms": "time?",
            },
            "t.completed_at_ms",
            history=True,
            condition="AND t.state = 'completed'",
            values={"state": ("completed",)},
        ),
        RowKind(
            "result",
            "eval_results",
            ("run_id", "position"),
            {
                "run_id": "id",
                "position": "whole",
                "case_id": "text",
                "state": "text",
                "attempts": "whole",
                "outcome": "text",
                "output": "text?",
                "observed": "object?",
                "scores": "list?",
                "error": "object?",
                "started_at_ms": "time?",
                "scored_at_ms": "time?",
            },
            "t.scored_at_ms",
            history=True,
            condition="AND t.state = 'scored'",
            needs="EXISTS (SELECT 1 FROM eval_runs r WHERE r.run_id = new.run_id AND r.tenant_id = new.tenant_id)",
            values={"state": ("scored",), "outcome": ("passed", "failed", "errored")},
        ),
    )
}
"""The kinds in the order in which an export has them: what a line needs comes before it."""
