"""How long D1 keeps the ledgers."""

from __future__ import annotations

from retain.retention import TEXT_KEPT_MS, RetentionRule

_OLD = """
DELETE FROM {table} WHERE {key} IN (SELECT {key} FROM {table} WHERE {at} < ? ORDER BY {at} LIMIT ?) RETURNING tenant_id
"""
_OLD_DECISIONS = "SELECT decision_id FROM decision_log WHERE at_ms < ? ORDER BY at_ms, decision_id LIMIT ?"


def ledger_rules(runs_kept_ms: int) -> tuple[RetentionRule, ...]:
    """Return the rules of the ledgers. runs_kept_ms: how long the row of a run is kept, and so its decisions.

    An error is kept for 90 days after it last happened, dealt with or not: what could replay it is gone by then.
    """
    errors = _OLD.format(table="error_ledger", key="error_id", at="last_at_ms")
    audit = _OLD.format(table="kv_audit", key="audit_id", at="at_ms")
    return (
        RetentionRule("error_ledger", TEXT_KEPT_MS, (errors,), 1000),
        RetentionRule("kv_audit", TEXT_KEPT_MS, (audit,), 5000),
        RetentionRule(
            "decision_log",
            runs_kept_ms,
            (f"DELETE FROM decision_log WHERE decision_id IN ({_OLD_DECISIONS}) RETURNING tenant_id",),
            500,
        ),
    )
