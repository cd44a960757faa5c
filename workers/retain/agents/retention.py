"""How long D1 keeps runs, their timelines, and what an outbox could not write."""

from __future__ import annotations

from retain.retention import DAY_MS, TEXT_KEPT_MS, RetentionRule

WITHOUT_TEXT = ("messages", "episodes", "records", "profile", "cut", "procedure", "erased")
"""What stays of a run's logged input: ids, scores and counts. Everything else goes with the run's texts."""

_OLD_RUNS = """
SELECT run_id FROM agent_runs WHERE texts = '{texts}' AND created_at_ms < ?1 AND ({which}) ORDER BY created_at_ms LIMIT ?2
"""
_HEARD = """
completed_at_ms IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM webhook_deliveries d WHERE d.run_id = agent_runs.run_id AND d.status = 'pending')
"""
"""Which runs have ended without a message to a webhook that is still to be sent: it is made of the run's row."""
_REFER = f"""
UPDATE agent_runs SET texts = 'kept', input =
  CASE WHEN json_valid(input) AND json_type(input, '$.episodes') = 'array' THEN json_set(input, '$.episodes', json((
    SELECT json_group_array(json_object('episode_id', json_extract(value, '$.episode_id')))
    FROM json_each(input, '$.episodes')))) ELSE input END
WHERE run_id IN ({_OLD_RUNS.format(texts="copied", which="true")}) RETURNING tenant_id
"""  # noqa: S608
_FORGET = f"""
UPDATE agent_runs SET texts = 'removed', output = NULL, waiting_for = NULL,
  input = CASE WHEN json_valid(input) THEN (SELECT json_group_object(key, json_extract(input, '$.' || key))
    FROM json_each(input) WHERE key IN ({", ".join(map(repr, WITHOUT_TEXT))})) ELSE '{{}}' END,
  learning = CASE WHEN json_valid(learning) THEN json_remove(learning, '$.error.message') END,
  error = CASE WHEN json_valid(error) THEN json_object('code', json_extract(error, '$.code'), 'message', NULL) END
WHERE run_id IN ({_OLD_RUNS.format(texts="kept", which=f"{_HEARD} OR created_at_ms < ?1 - {{open_ms}}")})
RETURNING tenant_id
"""  # noqa: S608
OPEN_KEPT_MS = 90 * DAY_MS
"""How much longer the row of a run is kept that has not ended, or of which webhooks have not heard.

It may wait for a person, and its result goes into the row. A run whose instance was lost never ends."""
_REMOVE = f"""
DELETE FROM agent_runs WHERE run_id IN (
  SELECT run_id FROM agent_runs WHERE texts = 'removed' AND created_at_ms < ?1
    AND ({_HEARD} OR created_at_ms < ?1 - {OPEN_KEPT_MS})
  ORDER BY created_at_ms LIMIT ?2)
RETURNING tenant_id
"""  # noqa: S608
_EVENTS = """
DELETE FROM run_events WHERE (run_id, seq) IN (
  SELECT event.run_id, event.seq FROM timelines t CROSS JOIN run_events event ON event.run_id = t.run_id AND event.at_ms < ?1
  WHERE t.since_minute < ?1 / 60000 ORDER BY t.since_minute LIMIT ?2)
RETURNING tenant_id
"""
"""The events of the runs that have old ones, oldest first."""
_FAILURES = """
DELETE FROM outbox_failures WHERE (instance_key, entry_id) IN
  (SELECT instance_key, entry_id FROM outbox_failures WHERE failed_at_ms < ? ORDER BY failed_at_ms LIMIT ?)
RETURNING tenant_id
"""
_PARKED = """
DELETE FROM parked_runs WHERE run_id IN
  (SELECT run_id FROM parked_runs WHERE parked_at_ms < ? ORDER BY parked_at_ms LIMIT ?) RETURNING tenant_id
"""


def run_rules(kept_ms: int) -> tuple[RetentionRule, ...]:
    """Return the rules of runs. kept_ms: how long a run's row is kept.

    Version 0.1.0 wrote the texts of the episodes in a run's context into its row. They become references, whatever the
    age: the row may be younger than they are. What a run was asked and answered is the text of its episodes, and stays
    as long as they do. What a run that has not ended needs to be shown and rebuilt is kept for 90 days, however soon the
    rows of those that have ended are removed.
    """
    texts_kept_ms = min(TEXT_KEPT_MS, kept_ms)
    forget = _FORGET.replace("{open_ms}", str(TEXT_KEPT_MS - texts_kept_ms))
    return (
        RetentionRule("texts_copied_into_runs", 0, (_REFER,), 500),
        RetentionRule("run_events", TEXT_KEPT_MS, (_EVENTS,), 5000),
        RetentionRule("parked_runs", TEXT_KEPT_MS, (_PARKED,), 1000),
        RetentionRule("texts_of_runs", texts_kept_ms, (forget,), 1000),
        RetentionRule("agent_runs", kept_ms, (_REMOVE,), 5000),
        RetentionRule("outbox_failures", TEXT_KEPT_MS, (_FAILURES,), 1000),
    )
