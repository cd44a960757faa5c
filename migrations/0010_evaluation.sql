-- Evaluation: datasets by version, runs over them with one result per case, and the scratch tenants of cases under way.
-- Times are epoch milliseconds.

CREATE TABLE eval_datasets (
  tenant_id TEXT NOT NULL,
  name TEXT NOT NULL,
  version TEXT NOT NULL,             -- SHA-256 of the content, 64 hexadecimal digits
  definition TEXT NOT NULL,          -- JSON: the dataset without its cases
  cases INTEGER NOT NULL,
  current INTEGER NOT NULL,          -- 1 for the version that the name means now; others are kept while runs refer to them
  created_at_ms INTEGER NOT NULL,
  updated_at_ms INTEGER NOT NULL,
  PRIMARY KEY (tenant_id, name, version)
) WITHOUT ROWID;
CREATE UNIQUE INDEX eval_datasets_current ON eval_datasets (tenant_id, name) WHERE current = 1;

CREATE TABLE eval_cases (
  tenant_id TEXT NOT NULL,
  name TEXT NOT NULL,
  version TEXT NOT NULL,
  position INTEGER NOT NULL,
  content TEXT,                      -- JSON; NULL after an erasure by mention
  PRIMARY KEY (tenant_id, name, version, position)
) WITHOUT ROWID;

CREATE TABLE eval_runs (
  run_id TEXT PRIMARY KEY,
  tenant_id TEXT NOT NULL,
  dataset TEXT NOT NULL,
  version TEXT NOT NULL,
  definition TEXT NOT NULL,          -- JSON: the dataset's, as of the start of the run
  state TEXT NOT NULL CHECK (state IN ('running', 'cleaning', 'completed')),
  request_key TEXT,
  lease_until_ms INTEGER NOT NULL DEFAULT 0,
  created_at_ms INTEGER NOT NULL,
  updated_at_ms INTEGER NOT NULL,
  scored_at_ms INTEGER,
  completed_at_ms INTEGER
) WITHOUT ROWID;
CREATE INDEX eval_runs_by_tenant ON eval_runs (tenant_id, run_id);
CREATE UNIQUE INDEX eval_runs_by_key ON eval_runs (tenant_id, request_key) WHERE request_key IS NOT NULL;
CREATE INDEX eval_runs_open ON eval_runs (updated_at_ms) WHERE state <> 'completed';

CREATE TABLE eval_results (
  run_id TEXT NOT NULL,
  position INTEGER NOT NULL,
  tenant_id TEXT NOT NULL,
  case_id TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('pending', 'running', 'scored')),
  attempts INTEGER NOT NULL DEFAULT 0,
  outcome TEXT CHECK (outcome IN ('passed', 'failed', 'errored')),
  output TEXT,
  observed TEXT,                     -- JSON: tool calls, recalled memories, the agent's run, its model and usage
  scores TEXT,                       -- JSON array
  error TEXT,                        -- JSON: {"code", "message"}
  started_at_ms INTEGER,
  scored_at_ms INTEGER,
  CHECK ((state = 'scored') = (outcome IS NOT NULL)),
  PRIMARY KEY (run_id, position)
) WITHOUT ROWID;
CREATE INDEX eval_results_by_tenant ON eval_results (tenant_id);

-- A row exists from before its tenant is created until that tenant is erased, so that it is found again after a crash.
CREATE TABLE eval_scratches (
  scratch_id TEXT PRIMARY KEY,       -- the tenant in which the case runs
  tenant_id TEXT NOT NULL,           -- the tenant whose run it is
  run_id TEXT NOT NULL,
  position INTEGER NOT NULL,
  stubs TEXT NOT NULL,               -- JSON: answers of tools, by tool
  records TEXT,                      -- JSON: id of the stored memory to id of the fixture; NULL until they are stored
  at_ms INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX eval_scratches_by_tenant ON eval_scratches (tenant_id);
CREATE UNIQUE INDEX eval_scratches_by_case ON eval_scratches (run_id, position);

CREATE TRIGGER erased_tenants_keep_no_datasets BEFORE INSERT ON eval_datasets
WHEN EXISTS (SELECT 1 FROM erased_tenants WHERE tenant_id = new.tenant_id AND closed) BEGIN
  SELECT RAISE(ABORT, 'the tenant was erased');
END;
CREATE TRIGGER erased_tenants_evaluate_nothing BEFORE INSERT ON eval_runs
WHEN EXISTS (SELECT 1 FROM erased_tenants WHERE tenant_id = new.tenant_id AND closed) BEGIN
  SELECT RAISE(ABORT, 'the tenant was erased');
END;
CREATE TRIGGER erased_tenants_have_no_scratches BEFORE INSERT ON eval_scratches
WHEN EXISTS (SELECT 1 FROM erased_tenants WHERE tenant_id = new.tenant_id AND closed) BEGIN
  SELECT RAISE(ABORT, 'the tenant was erased');
END;
