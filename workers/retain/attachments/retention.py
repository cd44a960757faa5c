"""How long attachments are kept: as long as the texts of the runs that name them; without any, a day."""

from __future__ import annotations

from retain.retention import DAY_MS, TEXT_KEPT_MS, RetentionRule

_USES = """
DELETE FROM attachment_uses WHERE (run_id, attachment_id) IN
  (SELECT run_id, attachment_id FROM attachment_uses WHERE at_ms < ? ORDER BY at_ms LIMIT ?) RETURNING tenant_id
"""
_OLD = """
DELETE FROM attachments WHERE attachment_id IN
  (SELECT attachment_id FROM attachments WHERE used_at_ms < ?1 ORDER BY used_at_ms LIMIT ?2)
OR attachment_id IN (
  SELECT attachment_id FROM attachments
  WHERE last_run_id IS NULL AND used_at_ms < ?1 + {longer_ms} ORDER BY used_at_ms LIMIT ?2
) RETURNING tenant_id
"""
"""What runs have named is kept for `longer_ms` more than what none has."""


def attachment_rules(runs_kept_ms: int) -> tuple[RetentionRule, ...]:
    """Return the rules of attachments. runs_kept_ms: how long the row of a run is kept.

    A row that is deleted leaves its object as a debt (`retain.attachments.removal`).
    """
    kept_ms = min(TEXT_KEPT_MS, runs_kept_ms)
    return (
        RetentionRule("attachment_uses", kept_ms, (_USES,), 5000),
        RetentionRule("attachments", kept_ms, (_OLD.format(longer_ms=kept_ms - DAY_MS),), 1000),
    )
