-- Procedural memory outside its instances: each instance's prior, and the outcome of each run. Together they restore
-- every posterior when an object is lost. Times are epoch milliseconds.

CREATE TABLE procedure_priors (
  tenant_id TEXT NOT NULL,
  agent_type TEXT NOT NULL,
  instance_id TEXT NOT NULL,
  workflow_id TEXT NOT NULL,
  task_type TEXT NOT NULL,
  alpha REAL NOT NULL,
  beta REAL NOT NULL,
  at_ms INTEGER NOT NULL,
  PRIMARY KEY (tenant_id, agent_type, instance_id, task_type, workflow_id)
) WITHOUT ROWID;

CREATE TABLE procedure_outcomes (
  run_id TEXT PRIMARY KEY,           -- a run has one outcome; reporting it again replaces it
  tenant_id TEXT NOT NULL,
  agent_type TEXT NOT NULL,
  house TEXT,
  instance_id TEXT NOT NULL,
  task_type TEXT NOT NULL,
  workflow_id TEXT NOT NULL,
  score REAL NOT NULL CHECK (score BETWEEN 0 AND 1),
  at_ms INTEGER NOT NULL
);
CREATE INDEX procedure_outcomes_by_instance
  ON procedure_outcomes (tenant_id, agent_type, instance_id, task_type, workflow_id, score);
CREATE INDEX procedure_outcomes_by_agent
  ON procedure_outcomes (tenant_id, agent_type, task_type, workflow_id, score);
CREATE INDEX procedure_outcomes_by_house
  ON procedure_outcomes (tenant_id, house, task_type, workflow_id, score) WHERE house IS NOT NULL;

CREATE TRIGGER erased_outcomes_stay_erased BEFORE INSERT ON procedure_outcomes
WHEN EXISTS (SELECT 1 FROM erased_tenants WHERE tenant_id = new.tenant_id AND new.run_id <= last_run_id) BEGIN
  SELECT RAISE(IGNORE);
END;
CREATE TRIGGER erased_priors_stay_erased BEFORE INSERT ON procedure_priors
WHEN EXISTS (SELECT 1 FROM erased_tenants WHERE tenant_id = new.tenant_id AND closed) BEGIN
  SELECT RAISE(IGNORE);
END;
