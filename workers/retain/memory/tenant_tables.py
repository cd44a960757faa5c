"""The tables of what agents remember."""

from __future__ import annotations

from retain.tenants.tables import TenantTable, Texts

TENANT_TABLES = (
    TenantTable("memory_records", ("id",), "step", users="step"),
    TenantTable("memory_outbox", ("record_id",), "step", users="step"),
    TenantTable("memory_earlier", ("number",), "step", users="step"),
    TenantTable("memory_events", ("event_id",)),
    TenantTable("memory_episodes", ("episode_id",), texts=Texts(("content", "instance_id")), users="instance and user"),
    TenantTable(
        "conversation_messages",
        ("message_id",),
        texts=Texts(("content", "attachments", "instance_id")),
        users="instance and user",
    ),
    TenantTable(
        "conversations",
        ("tenant_id", "agent_type", "instance_id"),
        texts=Texts(
            ("title", "summary"),
            "title = NULL, summary = NULL, summary_through = NULL, summary_since_ms = NULL",
            whole=("instance_id", "user_id"),
        ),
        instances=True,
        users="instance and user",
    ),
    TenantTable("procedure_outcomes", ("run_id",), users="instance"),
    TenantTable(
        "procedure_priors", ("tenant_id", "agent_type", "instance_id", "task_type", "workflow_id"), users="instance"
    ),
    TenantTable("episode_counts", ("tenant_id",)),
    TenantTable("refused_episodes", ("episode_id",)),
    TenantTable("scopes", ("number",), users="step"),
    TenantTable("memory_likeness", ("record_id",), parted=("key IS NULL", "key IS NOT NULL")),
    TenantTable(
        "memory_search", ("number",), users="step", parted=("conversation IS NULL", "conversation IS NOT NULL")
    ),
    TenantTable("memory_postings", ("tenant_id", "field", "value", "number"), users="step"),
)
