-- Waiting runs: for a person's approval, or for a delegate that is itself waiting.

ALTER TABLE agent_runs ADD COLUMN waiting_for TEXT; -- JSON while the status is 'waiting': who or what is asked, see docs/agents.md
CREATE INDEX agent_runs_waiting ON agent_runs (tenant_id, created_at_ms DESC, run_id DESC) WHERE status = 'waiting';
