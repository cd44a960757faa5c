"""The tables of the register and of world history. They stay after an erasure, except what the log's numbers mean."""

from __future__ import annotations

from retain.tenants.tables import TenantTable, Texts

TENANT_TABLES = (
    TenantTable("tenants", ("tenant_id",), "never"),
    TenantTable("erased_tenants", ("tenant_id",), "never"),
    TenantTable("world_history", ("tenant_id", "seq"), "never"),
    TenantTable("mutation_log", ("tenant_id", "number"), "never"),
    TenantTable("mutation_subjects", ("number",), texts=Texts(("key",))),
)
