"""The tables of the backends on D1."""

from __future__ import annotations

from retain.contracts.stored.conversations import words_of
from retain.tenants.tables import TenantTable, Texts

TENANT_TABLES = (
    TenantTable("vector_documents", ("number",), "step", Texts(("namespace_key", "document_id", "document"))),
    TenantTable("vector_removals", ("vector_id",), "step"),
    TenantTable(
        "chat_messages",
        ("namespace_key", "position"),
        texts=Texts(("namespace_key", "message"), searched={"message": words_of}),
    ),
)
