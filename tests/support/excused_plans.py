"""What `plans` lets pass, each with its reason. A new entry is a decision: it reads what is of other tenants as well."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from retain.admin.maintenance import retention_rules

SMALL: Mapping[str, str] = {
    "episode_counts": "a row for each tenant, read by the daily brief",
    "index_jobs": "a row for each reindexing",
    "outbox_failures": "a row for each write of an instance that was given up, for 30 days",
    "parked_runs": "a row for each run that waits, for 30 days",
    "tenants": "a row for each tenant, counted once a minute at most",
}
"""Tables that may be read whole."""
WHOLE: Mapping[str, tuple[str, ...]] = {
    "the daily brief counts the rows of a database": (
        "SELECT COUNT(*) AS n FROM ",
        "SELECT COALESCE(SUM(1 + (SELECT seq FROM run_events",
        "SELECT tenant_id, COUNT(*) AS episodes FROM refused_episodes WHERE at_ms >= ?",
    ),
    "the page of the capacity counts the namespaces of an index": (
        "SELECT (SELECT COUNT(DISTINCT tenant_id) FROM scopes",
    ),
    "an operator reads the ledger by time; an index has that order": (
        "SELECT * FROM error_ledger ORDER BY last_at_ms DESC, error_id DESC LIMIT ?",
    ),
    "each minute, the tenants with vectors to remove: an index has them alone": ("SELECT o.tenant_id, o.size FROM",),
    "a migration of the keys walks all items, once": ("SELECT DISTINCT key FROM memory_items WHERE key >= ?1",),
}
"""Statements that may read a table whole: how they begin."""
PARTS: Mapping[str, str] = {
    "attachment_uses": "of a run",
    "decision_memories": "of a decision",
    "erasure_receipts": "of the job that writes it",
    "eval_results": "of a run of an evaluation",
    "eval_scratches": "of a case, whose scratch tenant has the id",
    "index_jobs": "of the job that writes it",
    "ingest_messages": "of a job",
    "ingest_uploads": "of the request that uploads",
    "memory_earlier": "of a record",
    "memory_events": "of a record",
    "memory_item_objects": "of an item that is written",
    "memory_likeness": "of a record",
    "memory_outbox": "of a record",
    "memory_search": "of a record",
    "kv_audit": "of an erasure, which wrote it",
    "parked_runs": "of a run",
    "run_events": "of a run",
    "tenant_moves": "of the move that writes it",
    "vector_documents": "of a namespace that was read, which has the tenant in its name",
    "vector_removals": "of a document",
}
"""Tables whose rows an id alone may find, in a statement that has no tenant at all: what has the id was found before."""
ACROSS: Mapping[str, tuple[str, ...]] = {
    "the work of every few minutes, by time or state, goes through all tenants": (
        "DELETE FROM ingest_uploads WHERE created_at_ms < ?",
        "DELETE FROM memory_items WHERE (tenant_id, key) IN ( SELECT tenant_id, key FROM memory_items WHERE expires_at_ms",
        "DELETE FROM memory_outbox WHERE state = 'sent' AND at_ms <= ?",
        "SELECT * FROM backup_jobs WHERE state = 'running' AND NOT EXISTS",
        "SELECT * FROM erasure_receipts WHERE state = 'running' ORDER BY",
        "SELECT * FROM ingest_jobs WHERE state <> 'completed' AND lease_until_ms <= ?",
        "SELECT * FROM tenant_moves WHERE state = 'running' ORDER BY",
        "SELECT concerns AS step, last_at_ms AS at_ms, COALESCE(begun_at_ms > since_ms, 0) AS interrupted FROM (SELECT",
        "SELECT f.instance_key, f.entry_id, f.tenant_id, f.error, f.failed_at_ms FROM outbox_failures f WHERE NOT EXISTS",
        "SELECT id, tenant_id, 0 AS tried_at_ms FROM (SELECT record_id AS id, tenant_id FROM memory_likeness WHERE key IS",
        "SELECT job_id, tenant_id, kind FROM backup_jobs WHERE started_at_ms < ?",
        "SELECT n.tenant_id, n.user_id, n.key, n.noted_at_ms, i.tier, i.version, i.updated_at_ms FROM",
        "SELECT o.object_key FROM memory_item_objects o WHERE o.noted_at_ms <= ?",
        "SELECT o.tenant_id, o.size FROM",
        "SELECT r.id, r.tenant_id, COALESCE(p.last_at_ms, 0) AS tried_at_ms FROM memory_records r LEFT JOIN",
        "SELECT record_id, tenant_id, attempts FROM memory_outbox WHERE state = 'owed'",
        "SELECT run_id, tenant_id FROM eval_runs WHERE state <> 'completed'",
        "SELECT tenant_id FROM index_jobs WHERE state <> 'completed'",
        "SELECT t.tenant_id, MAX(COALESCE(b.started_at_ms, 0)) AS last_at_ms FROM tenants t LEFT JOIN backup_jobs b",
        "SELECT tenant_id, attachment_id FROM attachment_objects WHERE due_at_ms <= ?2",
        "SELECT tenant_id, key, kind, version, object_key FROM memory_items WHERE expires_at_ms <= ?",
        "SELECT tenant_id, key, kind, tier, version, deleted, size_bytes, key_id IS NOT NULL AS sealed, object_key,",
        "UPDATE agent_runs SET texts = 'removed', output = NULL,",
        "UPDATE error_ledger SET state = 'replayed', settled_at_ms = ?, settled_by = NULL WHERE stage = ?",
        "UPDATE ingest_jobs SET state = 'failed', error = ?, updated_at_ms = ? WHERE state <> 'completed'",
        "UPDATE memory_outbox SET writers = 1 WHERE state = 'owed'",
        "UPDATE parked_runs SET due_at_ms = ?1 WHERE run_id IN ( SELECT run_id FROM parked_runs WHERE due_at_ms < ?2",
        "UPDATE schedules SET due_at_ms = ?1 WHERE schedule_id IN ( SELECT schedule_id FROM schedules WHERE due_at_ms < ?2",
        "UPDATE webhook_deliveries SET due_at_ms = ?1 WHERE (tenant_id, webhook_id, message_id) IN (",
        "WITH RECURSIVE tenants_in_log (tenant_id) AS",
    ),
    "the daily brief counts the rows of a database": (
        "SELECT COUNT(*) AS n FROM agent_runs",
        "SELECT COUNT(*) AS n FROM memory_episodes",
        "SELECT COUNT(*) AS n FROM memory_outbox",
        "SELECT COUNT(*) AS n FROM memory_records WHERE tenant_id <> ''",
        "SELECT COUNT(*) AS n FROM outbox_failures",
        "SELECT COUNT(*) AS n FROM tenants",
        "SELECT COALESCE(SUM(1 + (SELECT seq FROM run_events",
        "SELECT tenant_id, COUNT(*) AS episodes FROM refused_episodes WHERE at_ms >= ?",
        "SELECT tenant_id, episodes FROM episode_counts WHERE episodes >= ?",
    ),
    "an operator of the deployment reads or settles what is of all tenants": (
        "SELECT (SELECT COUNT(*) FROM tenants t WHERE NOT EXISTS",
        "SELECT (SELECT COUNT(DISTINCT tenant_id) FROM scopes",
        "SELECT * FROM error_ledger ORDER BY last_at_ms",
        "SELECT * FROM error_ledger WHERE (last_at_ms, error_id) < (?, ?) ORDER BY",
        "SELECT * FROM error_ledger WHERE error_id = ?",
        "SELECT * FROM error_ledger WHERE stage = ?",
        "SELECT * FROM error_ledger WHERE state = ?",
        "SELECT * FROM tenant_moves WHERE move_id < ? ORDER BY",
        "SELECT k.tenant_id, h.seq, h.hash FROM ( SELECT DISTINCT tenant_id FROM world_history WHERE tenant_id > ?",
        "SELECT tenant_id FROM tenants ORDER BY tenant_id LIMIT ?1",
        "UPDATE error_ledger SET settled_by = ? WHERE error_id = ?",
        "UPDATE error_ledger SET state = ?, settled_at_ms = ?, settled_by = ? WHERE error_id = ?",
    ),
    "the tenant is what it looks for": (
        "SELECT DISTINCT tenant_id FROM role_grants WHERE subject IN",
        "SELECT key_id, tenant_id, name, scopes, origins, created_by, created_at_ms, expires_at_ms, revoked_at_ms,"
        " last_used_at_ms FROM application_keys WHERE hash = ?",
        "SELECT key_id, tenant_id, name, scopes, origins, created_by, created_at_ms, expires_at_ms, revoked_at_ms,"
        " last_used_at_ms FROM application_keys WHERE key_id = ?",
        "SELECT origins FROM ( SELECT origins FROM application_keys WHERE revoked_at_ms IS NULL",
        "SELECT tenant_id FROM tenant_places WHERE state IN",
        "UPDATE application_keys SET last_used_at_ms = ? WHERE key_id = ?",
    ),
    "a move knows which tenants come or go": (
        "DELETE FROM tenant_moves WHERE move_id IN (SELECT move_id FROM tenant_moves WHERE started_at_ms < ?",
        "SELECT 1 FROM tenant_places WHERE state IN",
        "UPDATE tenant_places SET state = 'recorded' WHERE state IN",
    ),
    "the numbers of a database's rows, which all of its tenants share": (
        "DELETE FROM memory_records WHERE id = 'range'",
        "DELETE FROM vector_documents WHERE number = ?",
        "INSERT INTO memory_earlier (number, event_id,",
        "INSERT INTO memory_records (number, id, tenant_id, scope_id, kind, content, metadata, confidence, importance,"
        " valid_from_ms, recorded_at_ms, updated_at_ms, edited, conversation, position, speaker, said_at_ms, source,"
        " content_hash) SELECT ?, 'range', ?",
        "SELECT MAX(COALESCE((SELECT MAX(number) FROM memory_records), 0)",
        "SELECT number FROM memory_records WHERE id = 'range'",
    ),
    "a migration of the keys walks all items, once": ("SELECT DISTINCT key FROM memory_items WHERE key >= ?1",),
}
"""Statements that find rows of several tenants, and name none: how they begin."""
NARROWED: Mapping[str, tuple[str, ...]] = {
    "of what the vector index found, whether it is the tenant's": (
        "SELECT json_group_array(json_array(r.id, r.recorded_at_ms, +r.tenant_id = ? AND +r.scope_id IN",
    ),
    "a page of the tenants, of those that the caller may see": (
        "SELECT tenant_id, created_at_ms FROM tenants WHERE length(tenant_id) <= 32",
        "SELECT tenant_id, created_at_ms, max_memories_per_user FROM tenants WHERE tenant_id > ?",
    ),
}
"""Statements that find rows of several tenants, and keep those of some: how they begin."""
ONE_EACH = frozenset({"episode_counts", "erased_tenants", "quotas", "tenant_use", "tenants"})
"""Tables with one row for each tenant: whoever finds the tenant has read no other."""
FOUND = (
    "DELETE FROM agent_runs WHERE run_id IN (SELECT value FROM json_each(?))",
    "DELETE FROM attachments WHERE attachment_id = ?",
    "DELETE FROM attachments WHERE attachment_id IN (SELECT value FROM json_each(?))",
    "DELETE FROM conversation_messages WHERE run_id IN (SELECT value FROM json_each(?))",
    "DELETE FROM decision_log WHERE decision_id IN (SELECT value FROM json_each(?))",
    "DELETE FROM backup_jobs WHERE job_id = ?",
    "DELETE FROM eval_runs WHERE run_id = ?",
    "DELETE FROM ingest_jobs WHERE job_id = ?",
    "DELETE FROM memory_episodes WHERE run_id IN (SELECT value FROM json_each(?))",
    "DELETE FROM memory_records WHERE id = ?",
    "DELETE FROM memory_records WHERE id IN (SELECT value FROM json_each(?))",
    "DELETE FROM memory_search WHERE number ",
    "DELETE FROM memory_text WHERE rowid ",
    "DELETE FROM webhook_deliveries WHERE run_id IN (SELECT value FROM json_each(?))",
    "INSERT INTO memory_earlier (event_id, record_id, tenant_id, scope_id, from_ms, until_ms, length, words, terms,",
    "INSERT INTO memory_earlier_text (rowid, content) SELECT e.number, t.content FROM memory_records r JOIN memory_text t",
    "INSERT INTO memory_outbox (record_id, tenant_id, scope_id, parts, state, changed, at_ms, due_at_ms) VALUES",
    "INSERT INTO memory_search (tenant_id, scope_id, conversation, position, length, words, span, terms, names_time,",
    "INSERT INTO memory_text (content, rowid) SELECT ",
    "SELECT * FROM memory_records WHERE id IN (SELECT value FROM json_each(?))",
    "SELECT 1 FROM attachments WHERE attachment_id = ?",
    "SELECT DISTINCT o.doc AS number FROM json_each(?) tag CROSS JOIN memory_occurrences o ON o.term >= tag.value",
    "SELECT m.position, m.message, m.record_id, m.facts, r.said_at_ms FROM ingest_messages m LEFT JOIN memory_records r ON",
    "SELECT m.position, m.record_id, m.role, r.speaker, r.content, r.said_at_ms FROM ingest_messages m LEFT JOIN",
    "SELECT r.*, t.event_id, t.from_ms, t.until_ms, json_extract(v.data, '$.content') AS earlier FROM",
    "SELECT r.id, s.number, s.parts FROM json_each(?) one CROSS JOIN memory_search s ON s.number = one.value",
    "SELECT r.id, s.parts FROM memory_records r JOIN memory_search s ON s.number = r.number WHERE r.id IN",
    "INSERT INTO ingest_messages (tenant_id, scope_id, conversation, position, message, message_key, at_ms, state, speaker,",
    "UPDATE agent_runs SET input = ?, output = NULL, error = NULL, waiting_for = NULL WHERE run_id IN",
    "UPDATE agent_runs SET learning = ? WHERE run_id = ?",
    "UPDATE agent_runs SET status = 'running', waiting_for = NULL WHERE run_id = ?",
    "UPDATE agent_runs SET steps = ?, input_tokens = ?, cached_input_tokens = ?, output_tokens = ? WHERE run_id = ?",
    "UPDATE attachments SET sha256 = ? WHERE attachment_id = ?",
    "UPDATE backup_jobs SET ",
    "UPDATE conversation_messages SET attachments = ? WHERE message_id = ?",
    "UPDATE erasure_receipts SET counts = ",
    "UPDATE eval_runs SET ",
    "UPDATE ingest_jobs SET ",
    "UPDATE memory_likeness SET key = ?, similar = ? WHERE record_id = ?",
    "UPDATE memory_records SET content_hash = id WHERE id = ?",
)
"""Statements that find by an id what the same work has found in the tenant just before, and that have no tenant at all: how
they begin."""
_NEVER = re.compile(r"\(\+r\.(?:confidence|importance)\) IS NULL")
"""A filter that no record passes, as SQLite knows by then: the plan has steps that are never taken."""
_OTHERS = re.compile(r"\btenant_id <> (?:\?\d?|new\.tenant_id)(?!\w)")
"""Of an import, which takes no id that is of another tenant."""
_NUMBER = re.compile(r"(?<!\?)\b\d+\b")
_TENANT = re.compile(r"\btenant_id (?:= \?|IS \?|IN \((?:\?|SELECT value ))")


def may_read_whole(text: str, table: str) -> bool:
    """Return whether a statement may read a table whole. text: with single spaces."""
    return (
        bool(_NEVER.search(text))
        or table in SMALL
        or any(text.startswith(beginning) for some in WHOLE.values() for beginning in some)
    )


def may_cross_tenants(text: str) -> bool:
    """Return whether a statement may find rows of several tenants."""
    excused = (ACROSS,) if _TENANT.search(text) is None else ()
    beginnings = (some for group in (NARROWED, *excused) for some in group.values())
    return (
        bool(_NEVER.search(text))
        or _NUMBER.sub("0", text) in _retention()
        or any(text.startswith(some) for some in beginnings)
    )


def may_follow_id(text: str, table: str) -> bool:
    """Return whether a statement may find rows of a table by an id, though no step of it finds any by a tenant.

    An import asks whether an id is of another tenant; else the id was found in the tenant before.
    """
    return bool(_OTHERS.search(text)) or (_TENANT.search(text) is None and (table in PARTS or text.startswith(FOUND)))


@cache
def _retention() -> frozenset[str]:
    """Return the statements that remove what is too old, of all tenants, by an index of age. Each number reads as 0."""
    statements = (" ".join(statement.split()) for rule in retention_rules(1) for statement in rule.statements)
    return frozenset(_NUMBER.sub("0", statement) for statement in statements)
