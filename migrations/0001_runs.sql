-- Tenants, runs with their timeline, and episodic memory. Times are epoch milliseconds.

CREATE TABLE tenants (
  tenant_id TEXT PRIMARY KEY,
  created_at_ms INTEGER NOT NULL
);
INSERT INTO tenants (tenant_id, created_at_ms) VALUES ('default', 0);

CREATE TABLE agent_runs (
  run_id TEXT PRIMARY KEY,
  tenant_id TEXT NOT NULL,
  agent_type TEXT NOT NULL,
  instance_id TEXT NOT NULL,
  parent_run_id TEXT,
  status TEXT NOT NULL CHECK (status IN ('running', 'waiting', 'completed', 'failed', 'cancelled')),
  input TEXT NOT NULL,               -- JSON: {"input", "metadata", "episodes": [those in the run's context]}
  output TEXT,
  error TEXT,                        -- JSON: {"code", "message"}; of a cancelled run {"code", "message", "by"}
  model TEXT NOT NULL,
  steps INTEGER NOT NULL DEFAULT 0,
  input_tokens INTEGER NOT NULL DEFAULT 0,
  output_tokens INTEGER NOT NULL DEFAULT 0,
  created_at_ms INTEGER NOT NULL,
  completed_at_ms INTEGER
);
CREATE INDEX agent_runs_by_time ON agent_runs (tenant_id, created_at_ms DESC, run_id DESC);
CREATE INDEX agent_runs_by_agent ON agent_runs (tenant_id, agent_type, created_at_ms DESC, run_id DESC);
CREATE INDEX agent_runs_by_parent ON agent_runs (parent_run_id) WHERE parent_run_id IS NOT NULL;

CREATE TABLE run_events (
  run_id TEXT NOT NULL,
  seq INTEGER NOT NULL,
  tenant_id TEXT NOT NULL,
  kind TEXT NOT NULL,
  turn INTEGER NOT NULL,
  data TEXT NOT NULL,                -- JSON
  at_ms INTEGER NOT NULL,
  PRIMARY KEY (run_id, seq)
) WITHOUT ROWID;
CREATE INDEX run_events_by_age ON run_events (tenant_id, at_ms);

CREATE TABLE memory_episodes (
  episode_id TEXT PRIMARY KEY,       -- {run_id}.{turn, three digits}: writing an episode twice changes nothing
  tenant_id TEXT NOT NULL,
  agent_type TEXT NOT NULL,
  instance_id TEXT NOT NULL,
  run_id TEXT NOT NULL,
  turn INTEGER NOT NULL,
  content TEXT NOT NULL,
  created_at_ms INTEGER NOT NULL
);
CREATE INDEX memory_episodes_recent ON memory_episodes (tenant_id, agent_type, created_at_ms DESC, episode_id DESC);
CREATE INDEX memory_episodes_by_age ON memory_episodes (tenant_id, created_at_ms);
CREATE INDEX memory_episodes_by_run ON memory_episodes (run_id);

-- Counting 100,000 rows in each run would cost more than the run: triggers maintain the number.
CREATE TABLE episode_counts (
  tenant_id TEXT PRIMARY KEY,
  episodes INTEGER NOT NULL
);
CREATE TRIGGER memory_episodes_counted AFTER INSERT ON memory_episodes BEGIN
  INSERT INTO episode_counts (tenant_id, episodes) VALUES (new.tenant_id, 1)
  ON CONFLICT (tenant_id) DO UPDATE SET episodes = episodes + 1;
END;
CREATE TRIGGER memory_episodes_uncounted AFTER DELETE ON memory_episodes BEGIN
  UPDATE episode_counts SET episodes = episodes - 1 WHERE tenant_id = old.tenant_id;
END;

-- Statements that an instance could not write after the last retry. The daily brief counts them.
CREATE TABLE outbox_failures (
  instance_key TEXT NOT NULL,
  entry_id INTEGER NOT NULL,
  tenant_id TEXT NOT NULL,
  statement TEXT NOT NULL,
  parameters TEXT NOT NULL,          -- JSON array
  error TEXT NOT NULL,
  failed_at_ms INTEGER NOT NULL,
  PRIMARY KEY (instance_key, entry_id)
) WITHOUT ROWID;
