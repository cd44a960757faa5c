-- A run says who started it: 'person:' and the name from Cloudflare Access, 'agent:' and a type, or 'retain'.
ALTER TABLE agent_runs ADD COLUMN started_by TEXT; -- NULL: a run from before this was recorded
CREATE INDEX agent_runs_by_starter ON agent_runs (tenant_id, started_by, created_at_ms DESC, run_id DESC)
  WHERE started_by IS NOT NULL;

-- Decisions name who decided in the same form.
UPDATE decision_log SET decided_by = CASE kind WHEN 'outcome' THEN 'agent:' ELSE 'person:' END || decided_by
  WHERE decided_by <> 'expiry' AND decided_by NOT LIKE 'agent:%' AND decided_by NOT LIKE 'person:%';

INSERT INTO schema_versions (version, usable_from) VALUES (38, 36);
