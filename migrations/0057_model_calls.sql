-- Costs are whole: what a model read from its server's cache, and what models are asked outside of runs.

ALTER TABLE agent_runs ADD COLUMN cached_input_tokens INTEGER NOT NULL DEFAULT 0;  -- a part of input_tokens
ALTER TABLE model_use ADD COLUMN cached_input_tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE model_use ADD COLUMN learning_cached_input_tokens INTEGER NOT NULL DEFAULT 0;

-- What was spent on a model outside of the runs of a tenant's agents, by the day on which it answered.
CREATE TABLE model_calls (
  tenant_id TEXT NOT NULL,
  day INTEGER NOT NULL,                     -- since the epoch, in UTC
  agent_type TEXT NOT NULL,                 -- '': of none
  purpose TEXT NOT NULL,                    -- ingest, judge, answer
  model TEXT NOT NULL,
  calls INTEGER NOT NULL DEFAULT 0,         -- how often it was asked
  input_tokens INTEGER NOT NULL DEFAULT 0,
  cached_input_tokens INTEGER NOT NULL DEFAULT 0,  -- a part of input_tokens
  output_tokens INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (tenant_id, day, agent_type, purpose, model)
) WITHOUT ROWID;
CREATE INDEX model_calls_by_agent ON model_calls (tenant_id, agent_type, day, purpose, model);
CREATE INDEX model_calls_by_age ON model_calls (day);

-- The writer of a count: it adds to the row of its day. A tenant that is erased has none.
CREATE VIEW spent_calls (tenant_id, day, agent_type, purpose, model, input_tokens, cached_input_tokens, output_tokens)
  AS SELECT '', 0, '', '', '', 0, 0, 0 WHERE false;
CREATE TRIGGER calls_counted INSTEAD OF INSERT ON spent_calls
WHEN NOT EXISTS (SELECT 1 FROM erased_tenants WHERE tenant_id = new.tenant_id AND closed)
BEGIN
  INSERT INTO model_calls (tenant_id, day, agent_type, purpose, model)
  SELECT new.tenant_id, new.day, new.agent_type, new.purpose, new.model
  WHERE NOT EXISTS (SELECT 1 FROM model_calls WHERE tenant_id = new.tenant_id AND day = new.day
    AND agent_type = new.agent_type AND purpose = new.purpose AND model = new.model);
  UPDATE model_calls SET calls = calls + 1, input_tokens = input_tokens + new.input_tokens,
    cached_input_tokens = cached_input_tokens + new.cached_input_tokens, output_tokens = output_tokens + new.output_tokens
  WHERE tenant_id = new.tenant_id AND day = new.day AND agent_type = new.agent_type AND purpose = new.purpose
    AND model = new.model;
  -- They count in the tenant's tokens of the day, as those of its runs do.
  INSERT INTO tenant_use (tenant_id) SELECT new.tenant_id
    WHERE NOT EXISTS (SELECT 1 FROM tenant_use WHERE tenant_id = new.tenant_id);
  UPDATE tenant_use SET
    runs = CASE WHEN day = new.day THEN runs ELSE 0 END,
    tokens = CASE WHEN day = new.day THEN tokens ELSE 0 END + new.input_tokens + new.output_tokens,
    day = new.day
  WHERE tenant_id = new.tenant_id AND day <= new.day;
END;

-- As in 0049, with cached tokens.
DROP TRIGGER ended_runs_counted;
CREATE TRIGGER ended_runs_counted AFTER UPDATE OF completed_at_ms ON agent_runs
WHEN old.completed_at_ms IS NULL AND new.completed_at_ms IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM erased_tenants WHERE tenant_id = new.tenant_id AND closed)
BEGIN
  INSERT INTO model_use (tenant_id, day, agent_type, model)
  SELECT new.tenant_id, new.completed_at_ms / 86400000, new.agent_type, new.model
  WHERE NOT EXISTS (SELECT 1 FROM model_use WHERE tenant_id = new.tenant_id AND day = new.completed_at_ms / 86400000
    AND agent_type = new.agent_type AND model = new.model);
  UPDATE model_use SET runs = runs + 1,
    input_tokens = input_tokens + MAX(old.input_tokens, new.input_tokens),
    cached_input_tokens = cached_input_tokens + MAX(old.cached_input_tokens, new.cached_input_tokens),
    output_tokens = output_tokens + MAX(old.output_tokens, new.output_tokens),
    learning_input_tokens = learning_input_tokens
      + CASE WHEN json_valid(new.learning) THEN COALESCE(json_extract(new.learning, '$.usage.input_tokens'), 0) ELSE 0 END,
    learning_cached_input_tokens = learning_cached_input_tokens + CASE WHEN json_valid(new.learning)
      THEN COALESCE(json_extract(new.learning, '$.usage.cached_input_tokens'), 0) ELSE 0 END,
    learning_output_tokens = learning_output_tokens
      + CASE WHEN json_valid(new.learning) THEN COALESCE(json_extract(new.learning, '$.usage.output_tokens'), 0) ELSE 0 END
  WHERE tenant_id = new.tenant_id AND day = new.completed_at_ms / 86400000 AND agent_type = new.agent_type AND model = new.model;
END;
DROP TRIGGER imported_runs_counted;
CREATE TRIGGER imported_runs_counted AFTER INSERT ON agent_runs
WHEN new.completed_at_ms IS NOT NULL
BEGIN
  INSERT INTO model_use (tenant_id, day, agent_type, model)
  SELECT new.tenant_id, new.completed_at_ms / 86400000, new.agent_type, new.model
  WHERE NOT EXISTS (SELECT 1 FROM model_use WHERE tenant_id = new.tenant_id AND day = new.completed_at_ms / 86400000
    AND agent_type = new.agent_type AND model = new.model);
  UPDATE model_use SET runs = runs + 1, input_tokens = input_tokens + new.input_tokens,
    cached_input_tokens = cached_input_tokens + new.cached_input_tokens,
    output_tokens = output_tokens + new.output_tokens,
    learning_input_tokens = learning_input_tokens
      + CASE WHEN json_valid(new.learning) THEN COALESCE(json_extract(new.learning, '$.usage.input_tokens'), 0) ELSE 0 END,
    learning_cached_input_tokens = learning_cached_input_tokens + CASE WHEN json_valid(new.learning)
      THEN COALESCE(json_extract(new.learning, '$.usage.cached_input_tokens'), 0) ELSE 0 END,
    learning_output_tokens = learning_output_tokens
      + CASE WHEN json_valid(new.learning) THEN COALESCE(json_extract(new.learning, '$.usage.output_tokens'), 0) ELSE 0 END
  WHERE tenant_id = new.tenant_id AND day = new.completed_at_ms / 86400000 AND agent_type = new.agent_type AND model = new.model;
END;
DROP TRIGGER learning_counted;
CREATE TRIGGER learning_counted AFTER UPDATE OF learning ON agent_runs
WHEN old.completed_at_ms IS NOT NULL AND json_valid(new.learning)
  AND json_type(new.learning, '$.usage.input_tokens') IS NOT NULL
  AND CASE WHEN json_valid(old.learning) THEN json_type(old.learning, '$.usage.input_tokens') END IS NULL
BEGIN
  UPDATE model_use SET
    learning_input_tokens = learning_input_tokens + json_extract(new.learning, '$.usage.input_tokens'),
    learning_cached_input_tokens = learning_cached_input_tokens
      + COALESCE(json_extract(new.learning, '$.usage.cached_input_tokens'), 0),
    learning_output_tokens = learning_output_tokens + COALESCE(json_extract(new.learning, '$.usage.output_tokens'), 0)
  WHERE tenant_id = new.tenant_id AND day = new.completed_at_ms / 86400000 AND agent_type = new.agent_type AND model = new.model;
END;
-- What is learned from a run counts in the tokens of its day, as the run does.
CREATE TRIGGER learning_tokens_counted AFTER UPDATE OF learning ON agent_runs
WHEN json_valid(new.learning) AND json_type(new.learning, '$.usage.input_tokens') IS NOT NULL
  AND CASE WHEN json_valid(old.learning) THEN json_type(old.learning, '$.usage.input_tokens') END IS NULL
BEGIN
  UPDATE tenant_use SET tokens = tokens + json_extract(new.learning, '$.usage.input_tokens')
    + COALESCE(json_extract(new.learning, '$.usage.output_tokens'), 0)
  WHERE tenant_id = new.tenant_id AND day = new.created_at_ms / 86400000;
END;

INSERT INTO schema_versions (version, usable_from) VALUES (57, 42);
