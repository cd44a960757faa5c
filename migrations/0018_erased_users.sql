-- Erasing users, caps on users, and finding what is theirs. Times are epoch milliseconds.

-- A receipt may be about a user. A table's constraints cannot be changed: it is copied, and the trigger that reads it too.
DROP TRIGGER tenants_wait_for_their_erasure;
CREATE TABLE receipts_with_users (
  receipt_id TEXT PRIMARY KEY,
  tenant_id TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('subject', 'user', 'tenant')),
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
INSERT INTO receipts_with_users
  (receipt_id, tenant_id, kind, state, request_digest, counts, error, started_at_ms, updated_at_ms, completed_at_ms,
   revision, request, salt, step, cursor, pending)
  SELECT receipt_id, tenant_id, kind, state, request_digest, counts, error, started_at_ms, updated_at_ms, completed_at_ms,
   revision, request, salt, step, cursor, pending FROM erasure_receipts;
DROP TABLE erasure_receipts;
ALTER TABLE receipts_with_users RENAME TO erasure_receipts;
CREATE INDEX erasure_receipts_open ON erasure_receipts (tenant_id) WHERE state = 'running';
CREATE UNIQUE INDEX erasure_receipts_of_tenant ON erasure_receipts (tenant_id) WHERE kind = 'tenant' AND state = 'running';
CREATE TRIGGER tenants_wait_for_their_erasure BEFORE INSERT ON tenants
WHEN EXISTS (SELECT 1 FROM erasure_receipts WHERE tenant_id = new.tenant_id AND kind = 'tenant' AND state = 'running') BEGIN
  SELECT RAISE(ABORT, 'the tenant is being erased');
END;

-- Users that were erased. An instance may wake up much later and write what it still owes D1: such writes are ignored.
-- The daily brief removes a row after 30 days.
CREATE TABLE erased_users (
  tenant_id TEXT NOT NULL,
  user_id TEXT NOT NULL,
  last_run_id TEXT NOT NULL,         -- runs up to this one are erased, whenever their rows arrive
  erased_at_ms INTEGER NOT NULL,
  PRIMARY KEY (tenant_id, user_id)
) WITHOUT ROWID;
CREATE INDEX erased_users_by_age ON erased_users (erased_at_ms);
CREATE TRIGGER erased_users_have_no_runs BEFORE INSERT ON agent_runs
WHEN EXISTS (SELECT 1 FROM erased_users
             WHERE tenant_id = new.tenant_id AND user_id = new.user_id AND new.run_id <= last_run_id) BEGIN
  SELECT RAISE(IGNORE);
END;
CREATE TRIGGER erased_users_have_no_conversations BEFORE INSERT ON conversations
WHEN EXISTS (SELECT 1 FROM erased_users
             WHERE tenant_id = new.tenant_id AND user_id = new.user_id AND new.last_run_id <= last_run_id) BEGIN
  SELECT RAISE(IGNORE);
END;
CREATE TRIGGER erased_users_have_no_episodes BEFORE INSERT ON memory_episodes
WHEN EXISTS (SELECT 1 FROM erased_users
             WHERE tenant_id = new.tenant_id AND user_id = new.user_id AND new.run_id <= last_run_id) BEGIN
  SELECT RAISE(IGNORE);
END;
CREATE TRIGGER erased_users_have_no_messages BEFORE INSERT ON conversation_messages
WHEN EXISTS (SELECT 1 FROM erased_users
             WHERE tenant_id = new.tenant_id AND user_id = new.user_id AND new.run_id <= last_run_id) BEGIN
  SELECT RAISE(IGNORE);
END;
-- What names no user belongs to a run, whose row is written first: without that row it is an erased user's.
CREATE TRIGGER erased_users_have_no_events BEFORE INSERT ON run_events
WHEN NOT EXISTS (SELECT 1 FROM agent_runs WHERE run_id = new.run_id)
 AND EXISTS (SELECT 1 FROM erased_users WHERE tenant_id = new.tenant_id AND new.run_id <= last_run_id) BEGIN
  SELECT RAISE(IGNORE);
END;
CREATE TRIGGER erased_users_have_no_outcomes BEFORE INSERT ON procedure_outcomes
WHEN NOT EXISTS (SELECT 1 FROM agent_runs WHERE run_id = new.run_id)
 AND EXISTS (SELECT 1 FROM erased_users WHERE tenant_id = new.tenant_id AND new.run_id <= last_run_id) BEGIN
  SELECT RAISE(IGNORE);
END;
DROP TRIGGER erased_users_stay_erased;
CREATE TRIGGER erased_users_stay_erased BEFORE INSERT ON users
WHEN new.last_run_id <> '' AND (
  EXISTS (SELECT 1 FROM erased_tenants WHERE tenant_id = new.tenant_id AND new.last_run_id <= last_run_id)
  OR EXISTS (SELECT 1 FROM erased_users
             WHERE tenant_id = new.tenant_id AND user_id = new.user_id AND new.last_run_id <= last_run_id)) BEGIN
  SELECT RAISE(IGNORE);
END;
-- A user's record needs its scope, which an erasure deletes, and is not stored by a run from before the erasure.
CREATE TRIGGER erased_users_remember_nothing BEFORE INSERT ON memory_records
WHEN new.scope_id GLOB 'user.*' AND (
  NOT EXISTS (SELECT 1 FROM scopes WHERE tenant_id = new.tenant_id AND scope_id = new.scope_id)
  OR EXISTS (SELECT 1 FROM scopes s JOIN erased_users e ON e.tenant_id = s.tenant_id AND e.user_id = s.user_id
             WHERE s.tenant_id = new.tenant_id AND s.scope_id = new.scope_id
               AND json_extract(new.source, '$.imported_from') IS NULL
               AND json_extract(new.source, '$.run_id') <= e.last_run_id)) BEGIN
  SELECT RAISE(ABORT, 'the user was erased');
END;

-- Whoever has a scope is a user of the tenant, before a first run too. An empty last_run_id is older than every run.
CREATE TRIGGER users_have_scopes AFTER INSERT ON scopes WHEN new.kind = 'user' BEGIN
  INSERT INTO users (tenant_id, user_id, created_at_ms, last_run_at_ms, last_run_id)
  VALUES (new.tenant_id, new.user_id, CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER), 0, '')
  ON CONFLICT DO NOTHING;
END;

-- What belongs to a user is found by scope, and a scope by what is below it.
CREATE INDEX memory_events_by_scope ON memory_events (tenant_id, json_extract(data, '$.scope_id')) WHERE kind = 'stored';
CREATE INDEX scopes_by_parent ON scopes (tenant_id, parent_id);
