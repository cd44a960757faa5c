-- A run that is deleted while it is open (with its conversation, or with its user) ends by that: what it had spent counts on the
-- day of the deletion. Erasing or moving a tenant counts nothing.
CREATE TRIGGER deleted_runs_counted AFTER DELETE ON agent_runs
WHEN old.completed_at_ms IS NULL AND old.input_tokens + old.output_tokens > 0
  AND NOT EXISTS (SELECT 1 FROM erased_tenants WHERE tenant_id = old.tenant_id AND closed)
  AND NOT EXISTS (SELECT 1 FROM tenant_places WHERE tenant_id = old.tenant_id AND state NOT IN ('here', 'leaving', 'frozen'))
BEGIN
  INSERT INTO model_use (tenant_id, day, agent_type, model)
  SELECT old.tenant_id, CAST(julianday('now') - 2440587.5 AS INTEGER), old.agent_type, old.model
  WHERE NOT EXISTS (SELECT 1 FROM model_use WHERE tenant_id = old.tenant_id
    AND day = CAST(julianday('now') - 2440587.5 AS INTEGER) AND agent_type = old.agent_type AND model = old.model);
  UPDATE model_use SET runs = runs + 1,
    input_tokens = input_tokens + old.input_tokens,
    cached_input_tokens = cached_input_tokens + old.cached_input_tokens,
    output_tokens = output_tokens + old.output_tokens
  WHERE tenant_id = old.tenant_id AND day = CAST(julianday('now') - 2440587.5 AS INTEGER) AND agent_type = old.agent_type
    AND model = old.model;
END;

INSERT INTO schema_versions (version, usable_from) VALUES (62, 42);
