"""How long attachments are kept: as long as the texts of the runs that name them; without any, a day."""

from __future__ import annotations

from retain.retention import DAY_MS, TEXT_KEPT_MS, RetentionRule

_USES = """
DELETE FROM attachment_uses WHERE (run_id, attachment_id) IN
  (SELECT run_id, attachment_id FROM attachment_uses WHERE at_ms < ? ORDER BY at_ms LIMIT ?) RETURNING tenant_id
"""
_OLD = """
DELETE FROM attachments WHERE attachment_id IN
  (SELECT attachment_id FROM attachments WHERE {condition} used_at_ms < ? ORDER BY used_at_ms LIMIT ?) RETURNING tenant_id
"""


def attachment_rules(runs_kept_ms: int) -> tuple[RetentionRule, ...]:
    """Return the rules of attachments. runs_kept_ms: how long the row of a run is kept.

    A row that is deleted leaves its object as a debt (`retain.attachments.removal`).
    """
    kept_ms = min(TEXT_KEPT_MS, runs_kept_ms)
    return (
        RetentionRule("attachment_uses", kept_ms, (_USES,), 5000),
        RetentionRule("attachments", kept_ms, (_OLD.format(condition=""),), 1000),
        RetentionRule("attachments_unused", DAY_MS, (_OLD.format(condition="last_run_id IS NULL AND"),), 1000),
    )
