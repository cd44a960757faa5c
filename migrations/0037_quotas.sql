-- What a tenant may hold and spend, and what it does. Triggers count, so that nothing walks rows and no writer can forget it.
CREATE TABLE quotas (
  tenant_id TEXT PRIMARY KEY,        -- '*': for every tenant that has no number of its own
  memories INTEGER CHECK (memories >= 0),           -- NULL in each: the number of '*', or without limit
  runs_a_day INTEGER CHECK (runs_a_day >= 0),
  tokens_a_day INTEGER CHECK (tokens_a_day >= 0)
) WITHOUT ROWID;
CREATE TABLE tenant_use (
  tenant_id TEXT PRIMARY KEY,
  memories INTEGER NOT NULL DEFAULT 0,
  day INTEGER NOT NULL DEFAULT 0,    -- since the epoch, in UTC: the last day on which a run began
  runs INTEGER NOT NULL DEFAULT 0,   -- that began on it
  tokens INTEGER NOT NULL DEFAULT 0  -- that those runs spent
) WITHOUT ROWID;
INSERT INTO tenant_use (tenant_id, memories) SELECT tenant_id, COUNT(*) FROM memory_records GROUP BY tenant_id;

CREATE TRIGGER memories_within_quota BEFORE INSERT ON memory_records
WHEN (SELECT memories FROM tenant_use WHERE tenant_id = new.tenant_id)
  >= COALESCE((SELECT memories FROM quotas WHERE tenant_id = new.tenant_id), (SELECT memories FROM quotas WHERE tenant_id = '*'))
  AND NOT EXISTS (SELECT 1 FROM memory_records WHERE id = new.id) -- a record that changes is inserted over itself
BEGIN
  SELECT RAISE(ABORT, 'memory_quota');
END;
-- Without OR IGNORE and ON CONFLICT: a statement that fires a trigger decides what those mean inside it.
CREATE TRIGGER memories_counted AFTER INSERT ON memory_records BEGIN
  INSERT INTO tenant_use (tenant_id) SELECT new.tenant_id
    WHERE NOT EXISTS (SELECT 1 FROM tenant_use WHERE tenant_id = new.tenant_id);
  UPDATE tenant_use SET memories = memories + 1 WHERE tenant_id = new.tenant_id;
END;
CREATE TRIGGER memories_uncounted AFTER DELETE ON memory_records BEGIN
  UPDATE tenant_use SET memories = memories - 1 WHERE tenant_id = old.tenant_id;
END;
CREATE TRIGGER runs_counted AFTER INSERT ON agent_runs BEGIN
  INSERT INTO tenant_use (tenant_id) SELECT new.tenant_id
    WHERE NOT EXISTS (SELECT 1 FROM tenant_use WHERE tenant_id = new.tenant_id);
  UPDATE tenant_use SET
    runs = CASE WHEN day = new.created_at_ms / 86400000 THEN runs ELSE 0 END + 1,
    tokens = CASE WHEN day = new.created_at_ms / 86400000 THEN tokens ELSE 0 END + new.input_tokens + new.output_tokens,
    day = new.created_at_ms / 86400000
    WHERE tenant_id = new.tenant_id AND day <= new.created_at_ms / 86400000;
END;
CREATE TRIGGER tokens_counted AFTER UPDATE OF input_tokens, output_tokens ON agent_runs BEGIN
  UPDATE tenant_use SET tokens = tokens + new.input_tokens + new.output_tokens - old.input_tokens - old.output_tokens
    WHERE tenant_id = new.tenant_id AND day = new.created_at_ms / 86400000;
END;

CREATE TRIGGER quotas_set AFTER INSERT ON quotas BEGIN
  INSERT INTO mutations VALUES (new.tenant_id, 'quota_set', 'tenant', NULL, NULL,
    json_array(new.memories, new.runs_a_day, new.tokens_a_day));
END;
CREATE TRIGGER quotas_changed AFTER UPDATE ON quotas BEGIN
  INSERT INTO mutations VALUES (new.tenant_id, 'quota_set', 'tenant', NULL, NULL,
    json_array(new.memories, new.runs_a_day, new.tokens_a_day));
END;
CREATE TRIGGER quotas_removed AFTER DELETE ON quotas BEGIN
  INSERT INTO mutations VALUES (old.tenant_id, 'quota_removed', 'tenant', NULL, NULL, NULL);
END;

INSERT INTO schema_versions (version, usable_from) VALUES (37, 36);
