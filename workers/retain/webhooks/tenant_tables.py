"""The tables of webhooks. A delivery belongs to its run, and is erased with it."""

from __future__ import annotations

from retain.tenants.tables import TenantTable

TENANT_TABLES = (
    TenantTable("webhook_deliveries", ("tenant_id", "webhook_id", "message_id"), users="part"),
    TenantTable("webhooks", ("tenant_id", "webhook_id")),
)
