"""The tables of the life cycle's jobs. Receipts prove an erasure, so they are never erased."""

from __future__ import annotations

from retain.tenants.tables import TenantTable

TENANT_TABLES = (
    TenantTable("index_jobs", ("job_id",)),
    TenantTable("backup_jobs", ("job_id",)),
    TenantTable("erased_users", ("tenant_id", "user_id"), users="kept"),
    TenantTable("erasure_receipts", ("receipt_id",), "never"),
)
