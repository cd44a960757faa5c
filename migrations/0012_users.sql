-- Users: the end users of a tenant's application. Their memories have scopes of their own, and their runs name them.

CREATE TABLE users (
  tenant_id TEXT NOT NULL,
  user_id TEXT NOT NULL,             -- the application's own id
  name TEXT,
  locale TEXT,                       -- BCP 47, such as fr-CH
  timezone TEXT,                     -- IANA, such as Europe/Zurich
  created_at_ms INTEGER NOT NULL,
  last_run_at_ms INTEGER NOT NULL,
  last_run_id TEXT NOT NULL,
  PRIMARY KEY (tenant_id, user_id)
) WITHOUT ROWID;
CREATE TRIGGER erased_users_stay_erased BEFORE INSERT ON users
WHEN EXISTS (SELECT 1 FROM erased_tenants WHERE tenant_id = new.tenant_id AND new.last_run_id <= last_run_id) BEGIN
  SELECT RAISE(IGNORE);
END;

ALTER TABLE agent_runs ADD COLUMN user_id TEXT;
CREATE INDEX agent_runs_by_user ON agent_runs (tenant_id, user_id, created_at_ms DESC, run_id DESC)
  WHERE user_id IS NOT NULL;
ALTER TABLE memory_episodes ADD COLUMN user_id TEXT;
CREATE INDEX memory_episodes_by_user ON memory_episodes
  (tenant_id, agent_type, user_id, created_at_ms DESC, episode_id DESC);
CREATE INDEX memory_episodes_of_user ON memory_episodes (tenant_id, user_id) WHERE user_id IS NOT NULL;
DROP INDEX memory_episodes_recent;
ALTER TABLE ingest_jobs ADD COLUMN user_id TEXT;

-- A table's constraints cannot be changed: `scopes` is copied. The triggers that use it are created again.
DROP TRIGGER memory_search_counted;
DROP TRIGGER memory_search_uncounted;
DROP TRIGGER erased_tenants_have_no_scopes;
CREATE TABLE scopes_with_users (
  number INTEGER PRIMARY KEY,        -- the order in which an export lists the scopes
  tenant_id TEXT NOT NULL,
  scope_id TEXT NOT NULL,
  parent_id TEXT,                    -- scope_id of the enclosing scope; NULL for the tenant
  kind TEXT NOT NULL CHECK (kind IN ('tenant', 'house', 'agent', 'user', 'instance')),
  user_id TEXT,                      -- of a user's scope
  records INTEGER NOT NULL DEFAULT 0, -- maintained by triggers, for word statistics
  words INTEGER NOT NULL DEFAULT 0,
  UNIQUE (tenant_id, scope_id),
  CHECK ((kind = 'user') = (user_id IS NOT NULL)),
  -- A scope's id contains its kind, and its parent has a wider kind: walking over parents always ends.
  CHECK (CASE kind WHEN 'tenant' THEN scope_id = 'tenant' ELSE scope_id GLOB kind || '.?*' END),
  CHECK (CASE kind
    WHEN 'tenant' THEN parent_id IS NULL
    WHEN 'house' THEN parent_id IS 'tenant'
    WHEN 'agent' THEN parent_id IS 'tenant' OR COALESCE(parent_id, '') GLOB 'house.?*'
    WHEN 'user' THEN parent_id IS 'tenant' OR COALESCE(parent_id, '') GLOB 'agent.?*'
    ELSE COALESCE(parent_id, '') GLOB 'agent.?*' OR COALESCE(parent_id, '') GLOB 'user.?*'
  END)
);
INSERT INTO scopes_with_users (number, tenant_id, scope_id, parent_id, kind, records, words)
  SELECT number, tenant_id, scope_id, parent_id, kind, records, words FROM scopes;
DROP TABLE scopes;
ALTER TABLE scopes_with_users RENAME TO scopes;
CREATE INDEX scopes_of_user ON scopes (tenant_id, user_id) WHERE user_id IS NOT NULL;
CREATE TRIGGER memory_search_counted AFTER INSERT ON memory_search BEGIN
  UPDATE scopes SET records = records + 1, words = words + new.words
  WHERE tenant_id = new.tenant_id AND scope_id = new.scope_id;
END;
CREATE TRIGGER memory_search_uncounted AFTER DELETE ON memory_search BEGIN
  UPDATE scopes SET records = records - 1, words = words - old.words
  WHERE tenant_id = old.tenant_id AND scope_id = old.scope_id;
END;
CREATE TRIGGER erased_tenants_have_no_scopes BEFORE INSERT ON scopes
WHEN EXISTS (SELECT 1 FROM erased_tenants WHERE tenant_id = new.tenant_id AND closed) BEGIN
  SELECT RAISE(ABORT, 'the tenant was erased');
END;
