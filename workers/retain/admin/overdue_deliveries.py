"""Messages to webhooks that no instance sends: of one that has lost its storage, or of a run that a replay completed."""

from __future__ import annotations

import logging

from retain.agents.calls.client import InstanceClient
from retain.agents.calls.requests import RedeliverRequest
from retain.agents.duties.overdue import ask_each
from retain.agents.identity import instance_of
from retain.ports import AgentInstances, Clock, Row, Sql

LATE_MS = 3_600_000
"""How long after a message was due the daily work asks the instance of its run to send it."""
OVERDUE_AT_ONCE = 50
# Each is due again, so that one that fails comes after all others, an hour later. A deleted run is sent nothing more.
_OVERDUE = """
UPDATE webhook_deliveries SET due_at_ms = ?1 WHERE (tenant_id, webhook_id, message_id) IN (
  SELECT d.tenant_id, d.webhook_id, d.message_id FROM webhook_deliveries d INDEXED BY webhook_deliveries_due
  WHERE d.status = 'pending' AND d.due_at_ms < ?2 AND EXISTS (SELECT 1 FROM agent_runs r WHERE r.run_id = d.run_id)
  ORDER BY d.due_at_ms LIMIT ?3)
RETURNING tenant_id, webhook_id, message_id, run_id, agent_type, instance_id
"""

_log = logging.getLogger(__name__)


async def ask_for_overdue_deliveries(sql: Sql, instances: AgentInstances, clock: Clock) -> dict[str, int]:
    """Ask the instances to send what was due an hour ago; return how many messages were asked for, and failed."""
    now = clock()

    async def ask(row: Row) -> None:
        instance = instance_of(row["tenant_id"], row["agent_type"], row["instance_id"])
        message = RedeliverRequest(row["run_id"], row["webhook_id"], row["message_id"])
        await InstanceClient(instances, instance).redeliver(message)

    rows = (await sql.run(_OVERDUE, now, now - LATE_MS, OVERDUE_AT_ONCE)).rows
    return await ask_each(rows, ask, clock, "a message to a webhook that is overdue", "run_id")
