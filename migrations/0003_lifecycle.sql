-- The life cycle of memory: reindexing, consolidation, erasure, and the proof of an erasure.

-- Rebuilding a tenant's index. One job at a time is open; a failed one stays open and resumes where it stopped.
CREATE TABLE index_jobs (
  job_id TEXT PRIMARY KEY,
  tenant_id TEXT NOT NULL,
  model TEXT NOT NULL,               -- the embedding model that the index is rebuilt for
  state TEXT NOT NULL CHECK (state IN ('running', 'completed', 'failed')),
  cursor INTEGER NOT NULL,           -- memory_records.number of the last record that was examined
  done INTEGER NOT NULL,
  refused INTEGER NOT NULL,          -- records that could not be indexed; if any, the job cannot complete
  total INTEGER NOT NULL,
  error TEXT,
  started_at_ms INTEGER NOT NULL,
  updated_at_ms INTEGER NOT NULL,
  completed_at_ms INTEGER
);
CREATE UNIQUE INDEX index_jobs_open ON index_jobs (tenant_id) WHERE state <> 'completed';

-- What consolidation compares: one row per record outside conversations. The key is NULL until the record has been examined.
CREATE TABLE memory_likeness (
  record_id TEXT PRIMARY KEY,
  tenant_id TEXT NOT NULL,
  key TEXT                           -- SHA-256 over everything that near duplicates have in common
) WITHOUT ROWID;
CREATE INDEX memory_likeness_by_key ON memory_likeness (tenant_id, key) WHERE key IS NOT NULL;
CREATE INDEX memory_likeness_new ON memory_likeness (record_id) WHERE key IS NULL;
INSERT INTO memory_likeness (record_id, tenant_id) SELECT id, tenant_id FROM memory_records WHERE conversation IS NULL;
CREATE TRIGGER memory_likeness_stored AFTER INSERT ON memory_records WHEN new.conversation IS NULL BEGIN
  INSERT OR REPLACE INTO memory_likeness (record_id, tenant_id) VALUES (new.id, new.tenant_id);
END;
CREATE TRIGGER memory_likeness_edited AFTER UPDATE ON memory_records
WHEN new.conversation IS NULL
  AND (new.content_hash, new.kind, new.metadata, new.subject, new.predicate, new.object, new.expires_at_ms)
  IS NOT (old.content_hash, old.kind, old.metadata, old.subject, old.predicate, old.object, old.expires_at_ms) BEGIN
  UPDATE memory_likeness SET key = NULL WHERE record_id = new.id;
END;
CREATE TRIGGER memory_likeness_removed AFTER DELETE ON memory_records BEGIN
  DELETE FROM memory_likeness WHERE record_id = old.id;
END;

-- Erasures: jobs while they run, receipts afterwards. The request is kept only while the erasure runs.
CREATE TABLE erasure_receipts (
  receipt_id TEXT PRIMARY KEY,
  tenant_id TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('subject', 'tenant')),
  state TEXT NOT NULL CHECK (state IN ('running', 'completed')),
  request_digest TEXT NOT NULL,      -- SHA-256 over salt and request
  counts TEXT NOT NULL,              -- JSON: what was erased, by store
  error TEXT,
  started_at_ms INTEGER NOT NULL,
  updated_at_ms INTEGER NOT NULL,
  completed_at_ms INTEGER,
  revision INTEGER NOT NULL DEFAULT 0, -- raised with every slice: a worker that read an older one is too late
  request TEXT,                      -- JSON; NULL when completed, as are all columns below
  salt TEXT,
  step TEXT,
  cursor TEXT,                       -- JSON: the step's state
  pending TEXT,                      -- JSON: what was counted and may not yet be erased
  CHECK (state = 'running' OR (request IS NULL AND salt IS NULL AND cursor IS NULL AND pending IS NULL))
);
CREATE INDEX erasure_receipts_open ON erasure_receipts (tenant_id) WHERE state = 'running';
CREATE UNIQUE INDEX erasure_receipts_of_tenant ON erasure_receipts (tenant_id) WHERE kind = 'tenant' AND state = 'running';

-- Tenants that were erased. An instance may wake up much later and write what it still owes D1: such writes are ignored.
CREATE TABLE erased_tenants (
  tenant_id TEXT PRIMARY KEY,
  last_run_id TEXT NOT NULL,         -- runs up to this one are erased, whenever their rows arrive
  closed INTEGER NOT NULL            -- 1 until the tenant is registered again: nothing may be written
) WITHOUT ROWID;
CREATE TRIGGER erased_runs_stay_erased BEFORE INSERT ON agent_runs
WHEN EXISTS (SELECT 1 FROM erased_tenants WHERE tenant_id = new.tenant_id AND new.run_id <= last_run_id) BEGIN
  SELECT RAISE(IGNORE);
END;
CREATE TRIGGER erased_run_events_stay_erased BEFORE INSERT ON run_events
WHEN EXISTS (SELECT 1 FROM erased_tenants WHERE tenant_id = new.tenant_id AND new.run_id <= last_run_id) BEGIN
  SELECT RAISE(IGNORE);
END;
CREATE TRIGGER erased_episodes_stay_erased BEFORE INSERT ON memory_episodes
WHEN EXISTS (SELECT 1 FROM erased_tenants WHERE tenant_id = new.tenant_id AND new.run_id <= last_run_id) BEGIN
  SELECT RAISE(IGNORE);
END;
CREATE TRIGGER erased_failures_stay_erased BEFORE INSERT ON outbox_failures
WHEN EXISTS (SELECT 1 FROM erased_tenants WHERE tenant_id = new.tenant_id AND closed) BEGIN
  SELECT RAISE(IGNORE);
END;
CREATE TRIGGER erased_tenants_learn_nothing BEFORE INSERT ON memory_events
WHEN EXISTS (SELECT 1 FROM erased_tenants WHERE tenant_id = new.tenant_id AND closed) BEGIN
  SELECT RAISE(ABORT, 'the tenant was erased');
END;
CREATE TRIGGER erased_tenants_have_no_scopes BEFORE INSERT ON scopes
WHEN EXISTS (SELECT 1 FROM erased_tenants WHERE tenant_id = new.tenant_id AND closed) BEGIN
  SELECT RAISE(ABORT, 'the tenant was erased');
END;
CREATE TRIGGER erased_tenants_owe_nothing BEFORE INSERT ON memory_outbox
WHEN EXISTS (SELECT 1 FROM erased_tenants WHERE tenant_id = new.tenant_id AND closed) BEGIN
  SELECT RAISE(ABORT, 'the tenant was erased');
END;
CREATE TRIGGER tenants_wait_for_their_erasure BEFORE INSERT ON tenants
WHEN EXISTS (SELECT 1 FROM erasure_receipts WHERE tenant_id = new.tenant_id AND kind = 'tenant' AND state = 'running') BEGIN
  SELECT RAISE(ABORT, 'the tenant is being erased');
END;
CREATE TRIGGER tenants_open_again AFTER INSERT ON tenants BEGIN
  UPDATE erased_tenants SET closed = 0 WHERE tenant_id = new.tenant_id;
END;

-- The learning events that history reports as erased.
CREATE INDEX world_history_erased_records ON world_history (tenant_id, subject_id, seq) WHERE kind = 'record_erased';
CREATE INDEX world_history_erased_tenants ON world_history (tenant_id, seq) WHERE kind = 'tenant_erased';
