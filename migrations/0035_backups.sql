-- Backups of tenants and their restores, as jobs. The pages are objects in R2. Times are epoch milliseconds.

CREATE TABLE backup_jobs (
  job_id TEXT PRIMARY KEY,           -- of a backup also its id
  tenant_id TEXT NOT NULL,           -- of a restore the tenant that is written to
  kind TEXT NOT NULL CHECK (kind IN ('backup', 'restore')),
  state TEXT NOT NULL CHECK (state IN ('running', 'completed')),
  request TEXT NOT NULL,             -- JSON: of a restore what was asked for, and the parts that follow from it
  cursor TEXT,                       -- where the next page begins; NULL at first
  pages INTEGER NOT NULL DEFAULT 0,  -- written, or restored
  counts TEXT NOT NULL DEFAULT '{}', -- JSON: how much, by what
  error TEXT,                        -- the code of what stopped it for now
  lease_until_ms INTEGER NOT NULL DEFAULT 0, -- until then a worker has it
  started_at_ms INTEGER NOT NULL,
  updated_at_ms INTEGER NOT NULL,
  completed_at_ms INTEGER
);
CREATE UNIQUE INDEX backup_jobs_open ON backup_jobs (tenant_id, kind) WHERE state = 'running';
CREATE INDEX backup_jobs_by_tenant ON backup_jobs (tenant_id, kind, started_at_ms);
CREATE INDEX backup_jobs_by_age ON backup_jobs (started_at_ms);
CREATE TRIGGER erased_tenants_back_up_nothing BEFORE INSERT ON backup_jobs
WHEN EXISTS (SELECT 1 FROM erased_tenants WHERE tenant_id = new.tenant_id AND closed) BEGIN
  SELECT RAISE(ABORT, 'the tenant was erased');
END;

INSERT INTO schema_versions (version, usable_from) VALUES (35, 34);
