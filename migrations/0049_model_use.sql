-- What a tenant's agents spent on which model on which day: the runs that ended then. Triggers count when a run ends, so that no
-- writer can forget it, and a list reads a row for each day, agent and model, however many runs there were.
CREATE TABLE model_use (
  tenant_id TEXT NOT NULL,
  day INTEGER NOT NULL,                     -- since the epoch, in UTC, on which the runs ended
  agent_type TEXT NOT NULL,
  model TEXT NOT NULL,
  runs INTEGER NOT NULL DEFAULT 0,
  input_tokens INTEGER NOT NULL DEFAULT 0,  -- of the runs' own answers; a delegated run is a run of its own agent
  output_tokens INTEGER NOT NULL DEFAULT 0,
  learning_input_tokens INTEGER NOT NULL DEFAULT 0,  -- of what was learned from those runs after they had ended
  learning_output_tokens INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (tenant_id, day, agent_type, model)
) WITHOUT ROWID;
CREATE INDEX model_use_by_agent ON model_use (tenant_id, agent_type, day, model);
CREATE INDEX model_use_by_age ON model_use (day);

INSERT INTO model_use
SELECT tenant_id, completed_at_ms / 86400000, agent_type, model, COUNT(*), SUM(input_tokens), SUM(output_tokens),
  SUM(CASE WHEN json_valid(learning) THEN COALESCE(json_extract(learning, '$.usage.input_tokens'), 0) ELSE 0 END),
  SUM(CASE WHEN json_valid(learning) THEN COALESCE(json_extract(learning, '$.usage.output_tokens'), 0) ELSE 0 END)
FROM agent_runs WHERE completed_at_ms IS NOT NULL GROUP BY 1, 2, 3, 4;

-- Without ON CONFLICT: a statement that fires a trigger decides what that means inside it.
-- A run whose texts are erased while it is open ends with no tokens: what it had spent by then counts.
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
    output_tokens = output_tokens + MAX(old.output_tokens, new.output_tokens),
    learning_input_tokens = learning_input_tokens
      + CASE WHEN json_valid(new.learning) THEN COALESCE(json_extract(new.learning, '$.usage.input_tokens'), 0) ELSE 0 END,
    learning_output_tokens = learning_output_tokens
      + CASE WHEN json_valid(new.learning) THEN COALESCE(json_extract(new.learning, '$.usage.output_tokens'), 0) ELSE 0 END
  WHERE tenant_id = new.tenant_id AND day = new.completed_at_ms / 86400000 AND agent_type = new.agent_type AND model = new.model;
END;
-- Runs that are imported or restored have ended.
CREATE TRIGGER imported_runs_counted AFTER INSERT ON agent_runs
WHEN new.completed_at_ms IS NOT NULL
BEGIN
  INSERT INTO model_use (tenant_id, day, agent_type, model)
  SELECT new.tenant_id, new.completed_at_ms / 86400000, new.agent_type, new.model
  WHERE NOT EXISTS (SELECT 1 FROM model_use WHERE tenant_id = new.tenant_id AND day = new.completed_at_ms / 86400000
    AND agent_type = new.agent_type AND model = new.model);
  UPDATE model_use SET runs = runs + 1, input_tokens = input_tokens + new.input_tokens,
    output_tokens = output_tokens + new.output_tokens,
    learning_input_tokens = learning_input_tokens
      + CASE WHEN json_valid(new.learning) THEN COALESCE(json_extract(new.learning, '$.usage.input_tokens'), 0) ELSE 0 END,
    learning_output_tokens = learning_output_tokens
      + CASE WHEN json_valid(new.learning) THEN COALESCE(json_extract(new.learning, '$.usage.output_tokens'), 0) ELSE 0 END
  WHERE tenant_id = new.tenant_id AND day = new.completed_at_ms / 86400000 AND agent_type = new.agent_type AND model = new.model;
END;
-- Once for a run, however often its report arrives. One that arrives before the run's end is counted with the end.
CREATE TRIGGER learning_counted AFTER UPDATE OF learning ON agent_runs
WHEN old.completed_at_ms IS NOT NULL AND json_valid(new.learning)
  AND json_type(new.learning, '$.usage.input_tokens') IS NOT NULL
  AND CASE WHEN json_valid(old.learning) THEN json_type(old.learning, '$.usage.input_tokens') END IS NULL
BEGIN
  UPDATE model_use SET
    learning_input_tokens = learning_input_tokens + json_extract(new.learning, '$.usage.input_tokens'),
    learning_output_tokens = learning_output_tokens + COALESCE(json_extract(new.learning, '$.usage.output_tokens'), 0)
  WHERE tenant_id = new.tenant_id AND day = new.completed_at_ms / 86400000 AND agent_type = new.agent_type AND model = new.model;
END;

INSERT INTO schema_versions (version, usable_from) VALUES (49, 42);
