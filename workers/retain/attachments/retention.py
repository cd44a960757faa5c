"""How long attachments are kept: as long as the texts of the runs that name them; without any, a day."""

from __future__ import annotations

from retain.retention import DAY_MS, TEXT_KEPT_MS, RetentionRule

_USES = """
DELETE FROM attachment_uses WHERE (run_id, attachment_id) IN (
  SELECT run_id, attachment_id FROM attachment_uses u WHERE at_ms < ?1 AND (at_ms < ?1 - {open_ms}
    OR NOT EXISTS (SELECT 1 FROM agent_runs r WHERE r.run_id = u.run_id AND r.completed_at_ms IS NULL))
  ORDER BY at_ms LIMIT ?2
) RETURNING tenant_id
"""
_OLD = """
DELETE FROM attachments WHERE attachment_id IN (
  SELECT attachment_id FROM attachments a WHERE used_at_ms < ?1
    AND NOT EXISTS (SELECT 1 FROM attachment_uses u WHERE u.attachment_id = a.attachment_id)
  ORDER BY used_at_ms LIMIT ?2)
OR attachment_id IN (
  SELECT attachment_id FROM attachments
  WHERE last_run_id IS NULL AND used_at_ms < ?1 + {longer_ms} ORDER BY used_at_ms LIMIT ?2
) RETURNING tenant_id
"""
"""What runs have named is kept for `longer_ms` more than what none has."""


def attachment_rules(runs_kept_ms: int) -> tuple[RetentionRule, ...]:
    """Return the rules of attachments. runs_kept_ms: how long the row of a run is kept.

    What a run that has not ended names is kept for 90 days, as what rebuilds the run is: its model may still read it. A row
    that is deleted leaves its object as a debt (`retain.attachments.removal`).
    """
    kept_ms = min(TEXT_KEPT_MS, runs_kept_ms)
    return (
        RetentionRule("attachment_uses", kept_ms, (_USES.format(open_ms=TEXT_KEPT_MS - kept_ms),), 5000),
        RetentionRule("attachments", kept_ms, (_OLD.format(longer_ms=kept_ms - DAY_MS),), 1000),
    )
