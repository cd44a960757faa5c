"""The fault points by name, and what the product writes at none of them.

A transaction of D1 is named after the first table that it writes: it is one point for all its tables. Each point is before
and after its call. Calls that only read have no points.
"""

from __future__ import annotations

POINTS = frozenset(
    {
        "call.model",
        "call.stream",
        "call.tool",
        "call.webhook",
        "d1.agent_runs",
        "d1.attachment_objects",
        "d1.attachment_uses",
        "d1.attachments",
        "d1.backup_jobs",
        "d1.conversation_messages",
        "d1.conversations",
        "d1.decision_memories",
        "d1.erased_users",
        "d1.erasure_receipts",
        "d1.error_ledger",
        "d1.eval_datasets",
        "d1.eval_results",
        "d1.eval_runs",
        "d1.eval_scratches",
        "d1.index_jobs",
        "d1.ingest_jobs",
        "d1.ingest_messages",
        "d1.ingest_uploads",
        "d1.kv_audit",
        "d1.memory_episodes",
        "d1.memory_events",
        "d1.memory_item_earlier_users",
        "d1.memory_item_objects",
        "d1.memory_items",
        "d1.memory_likeness",
        "d1.memory_outbox",
        "d1.memory_search",
        "d1.memory_text",
        "d1.model_calls",
        "d1.model_use",
        "d1.namespace_backfill",
        "d1.namespace_cycles",
        "d1.outbox_failures",
        "d1.parked_runs",
        "d1.procedure_outcomes",
        "d1.procedure_priors",
        "d1.quotas",
        "d1.refused_episodes",
        "d1.role_grants",
        "d1.run_events",
        "d1.schedules",
        "d1.scopes",
        "d1.tenants",
        "d1.users",
        "d1.vector_removals",
        "d1.webhook_deliveries",
        "d1.world_history",
        "instance.answer",
        "instance.cancel",
        "instance.cancel_call",
        "instance.change_schedule",
        "instance.delete_schedule",
        "instance.erase",
        "instance.follow",
        "instance.fork",
        "instance.record_outcome",
        "instance.redeliver",
        "instance.run",
        "instance.schedule",
        "instance.start",
        "instance.wake",
        "kv.delete",
        "kv.put",
        "r2.delete",
        "r2.put",
        "r2.put_stream",
        "vectors.delete_by_ids",
        "vectors.upsert",
        "writer.store",
    }
)
"""Every fault point. Each is reached by at least one scenario; a transaction of what an instance owes begins with whatever
of it is not yet written, so with other tables of its outbox too."""
READS = frozenset({"show", "describe", "repeated"})
"""Methods of an instance that change nothing."""
NOT_WALKED = {
    "acting": "who makes a change: always in the transaction of the change",
    "application_keys": "a key is shown once: whoever lost its text creates another one, and revokes the first",
    "chat_messages": "conversations as a contract, for programs that embed Retain: no deployment writes them",
    "mutation_log": "triggers write it, in the transaction of the change",
    **dict.fromkeys(
        ("mutation_subjects", "number_ranges", "schema_versions", "tenant_changes", "tenant_moves", "tenant_places"),
        "moves between databases, of which the walk has one: tests/lifecycle/moving interrupts them at every step",
    ),
    "namespace_reads": "a measurement, of which what an isolate has not written may be lost",
    "webhooks": "a secret is shown once: whoever lost it creates another webhook, and deletes the first",
    "vector_documents": "documents as a contract, for programs that embed Retain: no deployment writes them",
}
"""Tables of D1 that the product writes and no scenario does, and why."""
