"""The tables of the register and of world history, most of which stay after an erasure, and of the ledgers."""

from __future__ import annotations

from retain.tenants.tables import TenantTable, Texts

_NAMES = ("instance_id", "user_id")
TENANT_TABLES = (
    TenantTable("error_ledger", ("error_id",), texts=Texts(("concerns",), whole=_NAMES), users="served"),
    TenantTable("kv_audit", ("audit_id",), texts=Texts(("key",), whole=_NAMES), users="served"),
    TenantTable("decision_memories", ("decision_id", "kind", "memory_id"), users="part"),
    TenantTable(
        "decision_log",
        ("decision_id",),
        texts=Texts(("decision",), whole=_NAMES),
        parts={"decision_memories": Texts(("memory_id",))},
        users="served",
    ),
    TenantTable("days_kept", ("tenant_id", "relation", "day")),
    TenantTable("quotas", ("tenant_id",)),
    TenantTable("tenant_use", ("tenant_id",)),
    TenantTable("model_use", ("tenant_id", "day", "agent_type", "model")),
    TenantTable("model_calls", ("tenant_id", "day", "agent_type", "purpose", "model")),
    TenantTable("role_grants", ("tenant_id", "subject")),
    TenantTable("application_keys", ("key_id",)),
    TenantTable("tenants", ("tenant_id",), "never"),
    TenantTable("erased_tenants", ("tenant_id",), "never"),
    TenantTable("world_history", ("tenant_id", "seq"), "never"),
    TenantTable("mutation_log", ("tenant_id", "number"), "never"),
    TenantTable("mutation_subjects", ("number",), texts=Texts(("key",))),
    TenantTable("tenant_places", ("tenant_id",), "never"),
    TenantTable("tenant_moves", ("move_id",), "never"),
    TenantTable("tenant_changes", ("number",)),
)
OF_MOVES = frozenset({"tenant_places", "tenant_moves", "tenant_changes"})
"""The tables that say where tenants are: they do not move with one."""
