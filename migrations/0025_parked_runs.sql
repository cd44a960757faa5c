-- What rebuilds a run that waits for a person or for a delegate, should its instance lose its storage. Its events are in
-- run_events. The row is removed when the wait ends.
CREATE TABLE parked_runs (
  run_id TEXT PRIMARY KEY,
  tenant_id TEXT NOT NULL,
  agent_type TEXT NOT NULL,
  instance_id TEXT NOT NULL,
  user_id TEXT,
  idempotency_key TEXT,
  seq INTEGER NOT NULL,              -- of the event with which the wait began: the last of the run's timeline
  due_at_ms INTEGER NOT NULL,        -- when the run resumes without an answer
  parked_at_ms INTEGER NOT NULL,
  request TEXT NOT NULL,             -- JSON, as in the instance's turn_state
  context TEXT NOT NULL              -- JSON, as in the instance's turn_state
);
CREATE INDEX parked_runs_of_instance ON parked_runs (tenant_id, agent_type, instance_id, idempotency_key);
CREATE INDEX parked_runs_of_user ON parked_runs (tenant_id, user_id) WHERE user_id IS NOT NULL;
CREATE INDEX parked_runs_by_age ON parked_runs (parked_at_ms);

CREATE TRIGGER erased_tenants_park_no_runs BEFORE INSERT ON parked_runs
WHEN EXISTS (SELECT 1 FROM erased_tenants WHERE tenant_id = new.tenant_id AND new.run_id <= last_run_id) BEGIN
  SELECT RAISE(IGNORE);
END;
CREATE TRIGGER erased_users_park_no_runs BEFORE INSERT ON parked_runs
WHEN EXISTS (SELECT 1 FROM erased_users
             WHERE tenant_id = new.tenant_id AND user_id = new.user_id AND new.run_id <= last_run_id) BEGIN
  SELECT RAISE(IGNORE);
END;
