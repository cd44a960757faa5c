"""The tables of attachments."""

from __future__ import annotations

from retain.tenants.tables import TenantTable, Texts

TENANT_TABLES = (
    TenantTable("attachment_uses", ("run_id", "attachment_id"), users="part"),
    TenantTable("attachments", ("attachment_id",), texts=Texts(("name",), whole=("user_id",)), users="user"),
    TenantTable("attachment_objects", ("tenant_id", "attachment_id"), "step"),
)
