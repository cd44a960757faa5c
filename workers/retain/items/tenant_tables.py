"""The tables of items. Their rows name hot copies and objects, which an erasure removes first."""

from __future__ import annotations

from retain.tenants.tables import TenantTable

TENANT_TABLES = (
    TenantTable("memory_items", ("tenant_id", "key"), "step", users="step"),
    TenantTable("memory_item_objects", ("object_key",), "step"),
    TenantTable("memory_item_earlier_users", ("tenant_id", "user_id", "key"), "step", users="step"),
)
