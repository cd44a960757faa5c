-- Ledgers for the operator, written off the path of requests. Times are epoch milliseconds. They hold ids, codes, labels, sizes
-- and digests, never the text of a user or a secret.

-- What went wrong and was given up for now.
CREATE TABLE error_ledger (
  error_id TEXT PRIMARY KEY,         -- SHA-256 over tenant, stage and concern: what fails again raises `attempts`
  tenant_id TEXT NOT NULL,           -- '' for the deployment's own work
  stage TEXT NOT NULL,
  concerns TEXT NOT NULL,            -- the id of what it happened to
  code TEXT NOT NULL,
  agent_type TEXT,
  instance_id TEXT,
  user_id TEXT,
  run_id TEXT,
  attempts INTEGER NOT NULL,
  state TEXT NOT NULL DEFAULT 'parked' CHECK (state IN ('parked', 'replayed', 'dismissed')),
  first_at_ms INTEGER NOT NULL,
  last_at_ms INTEGER NOT NULL,
  settled_at_ms INTEGER,
  settled_by TEXT
) WITHOUT ROWID;
CREATE INDEX error_ledger_by_time ON error_ledger (last_at_ms, error_id);
CREATE INDEX error_ledger_by_tenant ON error_ledger (tenant_id, last_at_ms, error_id);
CREATE INDEX error_ledger_by_state ON error_ledger (state, last_at_ms, error_id);
CREATE INDEX error_ledger_by_stage ON error_ledger (stage, last_at_ms, error_id);
CREATE INDEX error_ledger_of_users ON error_ledger (tenant_id, user_id) WHERE user_id IS NOT NULL;
CREATE INDEX error_ledger_of_instances ON error_ledger (tenant_id, agent_type, instance_id);

-- An instance may wake up after an erasure and write what it still owes: such rows are ignored.
CREATE TRIGGER erased_tenants_park_nothing BEFORE INSERT ON error_ledger
WHEN EXISTS (SELECT 1 FROM erased_tenants WHERE tenant_id = new.tenant_id AND (closed OR new.run_id <= last_run_id)) BEGIN
  SELECT RAISE(IGNORE);
END;
CREATE TRIGGER erased_users_park_nothing BEFORE INSERT ON error_ledger
WHEN EXISTS (SELECT 1 FROM erased_users WHERE tenant_id = new.tenant_id AND new.run_id <= last_run_id
               AND (user_id = new.user_id
                    OR new.user_id IS NULL AND NOT EXISTS (SELECT 1 FROM agent_runs WHERE run_id = new.run_id))) BEGIN
  SELECT RAISE(IGNORE);
END;

-- Who changed which key of KV through Retain.
CREATE TABLE kv_audit (
  audit_id TEXT PRIMARY KEY,
  tenant_id TEXT NOT NULL,
  key TEXT NOT NULL,
  operation TEXT NOT NULL CHECK (operation IN ('put', 'delete')),
  changed_by TEXT NOT NULL,          -- 'agent:' and its type, 'person:' and the name from Cloudflare Access, or 'retain'
  agent_type TEXT,
  instance_id TEXT,
  user_id TEXT,
  run_id TEXT,
  value_bytes INTEGER,               -- of a put, as are the next two
  digest TEXT,                       -- SHA-256 of the value
  ttl_s INTEGER,
  at_ms INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX kv_audit_by_time ON kv_audit (tenant_id, at_ms, audit_id);
CREATE INDEX kv_audit_by_key ON kv_audit (tenant_id, key, at_ms, audit_id);
CREATE INDEX kv_audit_by_age ON kv_audit (at_ms);
CREATE INDEX kv_audit_of_users ON kv_audit (tenant_id, user_id) WHERE user_id IS NOT NULL;
CREATE INDEX kv_audit_of_instances ON kv_audit (tenant_id, agent_type, instance_id);
CREATE TRIGGER erased_tenants_have_no_audit BEFORE INSERT ON kv_audit
WHEN EXISTS (SELECT 1 FROM erased_tenants WHERE tenant_id = new.tenant_id AND (closed OR new.run_id <= last_run_id)) BEGIN
  SELECT RAISE(IGNORE);
END;
CREATE TRIGGER erased_users_have_no_audit BEFORE INSERT ON kv_audit
WHEN EXISTS (SELECT 1 FROM erased_users WHERE tenant_id = new.tenant_id AND new.run_id <= last_run_id
               AND (user_id = new.user_id
                    OR new.user_id IS NULL AND NOT EXISTS (SELECT 1 FROM agent_runs WHERE run_id = new.run_id))) BEGIN
  SELECT RAISE(IGNORE);
END;

-- What was decided, and on which memories.
CREATE TABLE decision_log (
  decision_id TEXT PRIMARY KEY,      -- the run's id; of an approval, with the number of the call
  tenant_id TEXT NOT NULL,
  run_id TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('outcome', 'approval')),
  decision TEXT NOT NULL,            -- a label
  confidence REAL,
  decided_by TEXT NOT NULL,          -- the agent, or the name from Cloudflare Access
  tool TEXT,                         -- of an approval
  agent_type TEXT NOT NULL,
  instance_id TEXT NOT NULL,
  user_id TEXT,
  policy TEXT,
  agent_version TEXT,
  model TEXT,
  at_ms INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX decision_log_by_time ON decision_log (tenant_id, at_ms, decision_id);
CREATE INDEX decision_log_by_agent ON decision_log (tenant_id, agent_type, at_ms, decision_id);
CREATE INDEX decision_log_by_label ON decision_log (tenant_id, decision, at_ms, decision_id);
CREATE INDEX decision_log_by_age ON decision_log (at_ms);
CREATE INDEX decision_log_of_users ON decision_log (tenant_id, user_id) WHERE user_id IS NOT NULL;
CREATE INDEX decision_log_of_instances ON decision_log (tenant_id, agent_type, instance_id);
CREATE TRIGGER erased_tenants_decided_nothing BEFORE INSERT ON decision_log
WHEN EXISTS (SELECT 1 FROM erased_tenants WHERE tenant_id = new.tenant_id AND new.run_id <= last_run_id) BEGIN
  SELECT RAISE(IGNORE);
END;
CREATE TRIGGER erased_users_decided_nothing BEFORE INSERT ON decision_log
WHEN EXISTS (SELECT 1 FROM erased_users WHERE tenant_id = new.tenant_id AND new.run_id <= last_run_id
               AND (user_id = new.user_id
                    OR new.user_id IS NULL AND NOT EXISTS (SELECT 1 FROM agent_runs WHERE run_id = new.run_id))) BEGIN
  SELECT RAISE(IGNORE);
END;
CREATE TABLE decision_memories (
  decision_id TEXT NOT NULL,
  tenant_id TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('record', 'episode', 'procedure')),
  memory_id TEXT NOT NULL,
  version TEXT,                      -- a record's newest learning event then, a procedure's digest
  source TEXT NOT NULL CHECK (source IN ('context', 'profile', 'tool')),
  PRIMARY KEY (decision_id, kind, memory_id)
) WITHOUT ROWID;
CREATE INDEX decision_memories_by_memory ON decision_memories (tenant_id, memory_id, decision_id);
