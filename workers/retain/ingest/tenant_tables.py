"""The tables of conversations that are being ingested."""

from __future__ import annotations

from retain.tenants.tables import TenantTable, Texts

TENANT_TABLES = (
    TenantTable(
        "ingest_messages",
        ("tenant_id", "scope_id", "conversation", "position"),
        texts=Texts(
            ("conversation", "message", "speaker", "content", "facts"),
            "state = 'learned', message = NULL, message_key = '', at_ms = NULL, speaker = NULL, content = NULL,"
            " facts = NULL",
        ),
        users="scope",
    ),
    TenantTable(
        "ingest_uploads",
        ("upload_id", "message_index"),
        texts=Texts(("message", "speaker", "content")),
        users="arriving",
    ),
    TenantTable(
        "ingest_jobs",
        ("job_id",),
        texts=Texts(("conversation", "rejections", "error")),
        users="scope",
        lease="lease_until_ms",
    ),
)
