"""Deleting a conversation: the object's state, and all that D1 has of its runs."""

from __future__ import annotations

from retain.agents.calls.client import InstanceClient
from retain.agents.calls.requests import DescribeRequest
from retain.errors import NotFound
from retain.identifiers import new_id
from retain.memory.conversations.reading import conversation_of
from retain.ports import Sql, SqlValue, Statement

EVENTS = 1000
"""Run events per statement: D1 bounds how long one may take."""

_OF_INSTANCE = "tenant_id = ?1 AND agent_type = ?2 AND instance_id = ?3"
_RUNS = " UNION ".join(
    f"SELECT run_id FROM {table} WHERE {_OF_INSTANCE} AND run_id <= ?4"  # noqa: S608
    for table in ("agent_runs", "memory_episodes", "conversation_messages")
)
_EVENTS = f"""
DELETE FROM run_events WHERE (run_id, seq) IN
  (SELECT run_id, seq FROM run_events WHERE run_id IN ({_RUNS}) AND tenant_id = ?1 LIMIT {EVENTS})
"""  # noqa: S608
_MEMORIES = f"""
DELETE FROM decision_memories WHERE decision_id IN
  (SELECT decision_id FROM decision_log WHERE {_OF_INSTANCE} AND run_id <= ?4)
"""  # noqa: S608
_THEIRS = f"SELECT attachment_id FROM attachment_uses WHERE {_OF_INSTANCE} AND run_id <= ?4"  # noqa: S608
_FILES = f"""
DELETE FROM attachments WHERE tenant_id = ?1 AND attachment_id IN ({_THEIRS}) AND NOT EXISTS (
  SELECT 1 FROM attachment_uses other WHERE other.attachment_id = attachments.attachment_id
    AND NOT (other.agent_type = ?2 AND other.instance_id = ?3 AND other.run_id <= ?4))
"""  # noqa: S608
"""The files that no run of another conversation names."""
_MESSAGES = f"""
DELETE FROM webhook_deliveries WHERE tenant_id = ?1 AND run_id IN
  (SELECT run_id FROM agent_runs WHERE {_OF_INSTANCE} AND run_id <= ?4)
"""  # noqa: S608
_LEDGERS = ("error_ledger", "kv_audit")
_BY_RUN = (
    "decision_log",
    "memory_episodes",
    "conversation_messages",
    "attachment_uses",
    "procedure_outcomes",
    "parked_runs",
    "agent_runs",
)


async def delete_conversation(sql: Sql, instance: InstanceClient) -> None:
    """Delete what the instance holds, and its messages, episodes, runs with their events and ledgers' rows in D1.

    So are the attachments of its runs that no run of another conversation names, and what webhooks were sent of its runs.

    Records that its runs stored in semantic memory stay: they belong to the agent. A run that waits ends without an answer.
    A run that starts meanwhile is kept. What an interrupted call left is deleted by the next one.
    Raises: NotFound (code `no_such_instance`); Conflict (code `instance_busy`) while a run is under way; Unavailable.
    """
    identity = instance.identity
    names = (identity.scope.tenant_id, identity.agent_type, identity.instance_id)
    last_run_id = f"{new_id()[:10]}{'Z' * 16}"  # every run up to now
    try:
        conversation = await conversation_of(sql, *names)
        last_run_id = max(last_run_id, conversation.last_run_id)  # the clocks of machines differ
    except NotFound:
        await instance.describe(DescribeRequest(1))  # its first run may not have reached D1
    await instance.erase()
    values: tuple[SqlValue, ...] = (*names, last_run_id)
    while (await sql.run(_EVENTS, *values)).changes >= EVENTS:
        pass
    deleted: list[Statement] = [
        (f"DELETE FROM {table} WHERE {_OF_INSTANCE} AND run_id <= ?4", values)  # noqa: S608
        for table in _BY_RUN
    ]
    await sql.batch(
        [
            (_MEMORIES, values),
            (_FILES, values),
            (_MESSAGES, values),
            *deleted,
            (f"DELETE FROM schedules WHERE {_OF_INSTANCE} AND schedule_id <= ?4", values),  # noqa: S608
            *(
                (f"DELETE FROM {table} WHERE {_OF_INSTANCE} AND COALESCE(run_id, '') <= ?4", values)  # noqa: S608
                for table in _LEDGERS
            ),
            (f"DELETE FROM procedure_priors WHERE {_OF_INSTANCE}", names),  # noqa: S608
            ("DELETE FROM outbox_failures WHERE tenant_id = ? AND instance_key = ?", (names[0], identity.key)),
            (f"DELETE FROM conversations WHERE {_OF_INSTANCE} AND last_run_id <= ?4", values),  # noqa: S608
        ]
    )
