"""The tables of attachments."""

from __future__ import annotations

from retain.tenants.tables import TenantTable, Texts

_OF_ONE_USER = """
user_id IS NULL
AND attachment_id IN (SELECT attachment_id FROM attachment_uses
                      WHERE tenant_id = {tenant} AND (agent_type, instance_id) IN ({theirs}))
AND NOT EXISTS (SELECT 1 FROM attachment_uses other
                WHERE other.attachment_id = attachments.attachment_id
                  AND (other.agent_type, other.instance_id) NOT IN ({theirs}))
"""
"""As with a deleted conversation: nobody's files that only runs of the user's instances named."""

TENANT_TABLES = (
    TenantTable("attachment_uses", ("run_id", "attachment_id"), users="part"),
    TenantTable(
        "attachments",
        ("attachment_id",),
        texts=Texts(("name",), whole=("user_id",)),
        users="user",
        unnamed=_OF_ONE_USER,
    ),
    TenantTable("attachment_objects", ("tenant_id", "attachment_id"), "step"),
)
