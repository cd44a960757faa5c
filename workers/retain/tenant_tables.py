"""Every table with rows of tenants, as its area declares it: what a deployment passes to the eraser.

An erasure empties them in this order. Tables without an index by tenant come last in their area.
"""

from __future__ import annotations

from retain.agents.tenant_tables import TENANT_TABLES as OF_AGENTS
from retain.attachments.tenant_tables import TENANT_TABLES as OF_ATTACHMENTS
from retain.contracts.stored.tenant_tables import TENANT_TABLES as OF_CONTRACTS
from retain.evaluation.tenant_tables import TENANT_TABLES as OF_EVALUATION
from retain.ingest.tenant_tables import TENANT_TABLES as OF_INGEST
from retain.items.tenant_tables import TENANT_TABLES as OF_ITEMS
from retain.lifecycle.tenant_tables import TENANT_TABLES as OF_LIFECYCLE
from retain.memory.tenant_tables import TENANT_TABLES as OF_MEMORY
from retain.tenants.tenant_tables import TENANT_TABLES as OF_TENANTS
from retain.webhooks.tenant_tables import TENANT_TABLES as OF_WEBHOOKS

TENANT_TABLES = (
    *OF_AGENTS,
    *OF_ATTACHMENTS,
    *OF_WEBHOOKS,
    *OF_EVALUATION,
    *OF_LIFECYCLE,
    *OF_ITEMS,
    *OF_CONTRACTS,
    *OF_INGEST,
    *OF_MEMORY,
    *OF_TENANTS,
)
