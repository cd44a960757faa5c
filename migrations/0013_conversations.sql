-- Conversations: one row per instance, and what was asked and answered in it. Times are epoch milliseconds.

CREATE TABLE conversations (
  tenant_id TEXT NOT NULL,
  agent_type TEXT NOT NULL,
  instance_id TEXT NOT NULL,
  user_id TEXT,                      -- NULL when no run named a user
  title TEXT,                        -- as the application named it
  delegated INTEGER NOT NULL DEFAULT 0, -- 1: another agent's run works here
  created_at_ms INTEGER NOT NULL,
  last_run_at_ms INTEGER NOT NULL,
  last_run_id TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('running', 'waiting', 'completed', 'failed', 'cancelled')), -- of that run
  runs INTEGER NOT NULL,
  summary TEXT,                      -- JSON: what is kept of the messages up to summary_through
  summary_through TEXT,              -- message_id of the last message in the summary
  PRIMARY KEY (tenant_id, agent_type, instance_id)
);
CREATE INDEX conversations_by_time ON conversations (tenant_id, last_run_at_ms DESC, agent_type DESC, instance_id DESC);
CREATE INDEX conversations_of_user
  ON conversations (tenant_id, user_id, last_run_at_ms DESC, agent_type DESC, instance_id DESC) WHERE user_id IS NOT NULL;

CREATE TABLE conversation_messages (
  message_id TEXT PRIMARY KEY,       -- {run_id}.0 what was asked, {run_id}.1 the answer: ordered by time
  tenant_id TEXT NOT NULL,
  agent_type TEXT NOT NULL,
  instance_id TEXT NOT NULL,
  run_id TEXT NOT NULL,
  role TEXT NOT NULL CHECK (role IN ('user', 'assistant')),
  content TEXT NOT NULL,
  at_ms INTEGER NOT NULL,
  user_id TEXT                       -- of the run
);
CREATE INDEX conversation_messages_in_order ON conversation_messages (tenant_id, agent_type, instance_id, message_id);
CREATE INDEX conversation_messages_by_age ON conversation_messages (tenant_id, at_ms);
CREATE INDEX conversation_messages_by_run ON conversation_messages (run_id);
CREATE INDEX conversation_messages_of_user ON conversation_messages (tenant_id, user_id) WHERE user_id IS NOT NULL;
CREATE INDEX agent_runs_of_instance ON agent_runs (tenant_id, agent_type, instance_id, run_id);

CREATE TRIGGER erased_conversations_stay_erased BEFORE INSERT ON conversations
WHEN EXISTS (SELECT 1 FROM erased_tenants WHERE tenant_id = new.tenant_id AND new.last_run_id <= last_run_id) BEGIN
  SELECT RAISE(IGNORE);
END;
CREATE TRIGGER erased_messages_stay_erased BEFORE INSERT ON conversation_messages
WHEN EXISTS (SELECT 1 FROM erased_tenants WHERE tenant_id = new.tenant_id AND new.run_id <= last_run_id) BEGIN
  SELECT RAISE(IGNORE);
END;

-- The conversations of the runs that there are. An erased run has no input.
INSERT INTO conversations
  (tenant_id, agent_type, instance_id, user_id, delegated, created_at_ms, last_run_at_ms, last_run_id, status, runs)
SELECT r.tenant_id, r.agent_type, r.instance_id, g.user_id, r.parent_run_id IS NOT NULL, g.created_at_ms, r.created_at_ms, r.run_id,
  r.status, g.runs
FROM (
  SELECT MAX(run_id) AS last_run_id, MAX(user_id) AS user_id, MIN(created_at_ms) AS created_at_ms, COUNT(*) AS runs FROM agent_runs
  GROUP BY tenant_id, agent_type, instance_id
) AS g JOIN agent_runs AS r ON r.run_id = g.last_run_id;
INSERT INTO conversation_messages (message_id, tenant_id, agent_type, instance_id, run_id, role, content, at_ms, user_id)
SELECT run_id || '.0', tenant_id, agent_type, instance_id, run_id, 'user', json_extract(input, '$.input'), created_at_ms,
  user_id
FROM agent_runs WHERE CASE WHEN json_valid(input) THEN json_type(input, '$.input') END IN ('text', 'object');
INSERT INTO conversation_messages (message_id, tenant_id, agent_type, instance_id, run_id, role, content, at_ms, user_id)
SELECT run_id || '.1', tenant_id, agent_type, instance_id, run_id, 'assistant', output, completed_at_ms, user_id
FROM agent_runs WHERE output IS NOT NULL AND completed_at_ms IS NOT NULL;
