"""The tables of the register and of world history: all of them stay after an erasure."""

from __future__ import annotations

from retain.tenants.tables import TenantTable

TENANT_TABLES = (
    TenantTable("tenants", ("tenant_id",), "never"),
    TenantTable("erased_tenants", ("tenant_id",), "never"),
    TenantTable("world_history", ("tenant_id", "seq"), "never"),
)
