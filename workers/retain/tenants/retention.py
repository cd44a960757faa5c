"""How long D1 keeps the ledgers."""

from __future__ import annotations

from retain.retention import TEXT_KEPT_MS, RetentionRule, old_by_days

_OLD_ERRORS = """
DELETE FROM error_ledger WHERE error_id IN
  (SELECT error_id FROM error_ledger WHERE last_at_ms < ? ORDER BY last_at_ms LIMIT ?) RETURNING tenant_id
"""


def ledger_rules(runs_kept_ms: int) -> tuple[RetentionRule, ...]:
    """Return the rules of the ledgers. runs_kept_ms: how long the row of a run is kept, and so its decisions.

    An error is kept for 90 days after it last happened, dealt with or not: what could replay it is gone by then.
    """
    return (
        RetentionRule("error_ledger", TEXT_KEPT_MS, (_OLD_ERRORS,), 1000),
        RetentionRule("kv_audit", TEXT_KEPT_MS, (old_by_days("kv_audit", "audit_id"),), 5000),
        RetentionRule("decision_log", runs_kept_ms, (old_by_days("decision_log", "decision_id"),), 500),
    )
