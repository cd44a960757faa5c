-- Where a tenant's applications hear of runs, and what is sent there. Times are epoch milliseconds.
CREATE TABLE webhooks (
  tenant_id TEXT NOT NULL,
  webhook_id TEXT NOT NULL,
  url TEXT NOT NULL,
  events TEXT NOT NULL,              -- JSON: a list of names, as in webhook_deliveries.event
  secret TEXT NOT NULL,              -- sealed for `webhook:` and webhook_id
  created_by TEXT NOT NULL,          -- as in mutation_log.changed_by
  created_at_ms INTEGER NOT NULL,
  PRIMARY KEY (tenant_id, webhook_id)
) WITHOUT ROWID;

CREATE TRIGGER webhooks_created AFTER INSERT ON webhooks BEGIN
  INSERT INTO mutations VALUES (new.tenant_id, 'webhook_created', 'webhook', new.webhook_id, NULL, new.events);
END;
CREATE TRIGGER webhooks_removed AFTER DELETE ON webhooks BEGIN
  INSERT INTO mutations VALUES (old.tenant_id, 'webhook_removed', 'webhook', old.webhook_id, NULL, NULL);
  DELETE FROM mutation_subjects WHERE tenant_id = old.tenant_id AND thing = 'webhook' AND key = old.webhook_id;
END;
CREATE TRIGGER erased_tenants_get_no_webhooks BEFORE INSERT ON webhooks
WHEN EXISTS (SELECT 1 FROM erased_tenants WHERE tenant_id = new.tenant_id AND closed) BEGIN
  SELECT RAISE(ABORT, 'the tenant was erased');
END;

-- One message to one webhook: what is sent is read from the run's row at that moment, so that no text is kept twice.
CREATE TABLE webhook_deliveries (
  tenant_id TEXT NOT NULL,
  webhook_id TEXT NOT NULL,
  message_id TEXT NOT NULL,
  event TEXT NOT NULL,
  run_id TEXT NOT NULL,
  agent_type TEXT NOT NULL,
  instance_id TEXT NOT NULL,
  at_ms INTEGER NOT NULL,            -- of the event
  status TEXT NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'delivered', 'failed')),
  attempts INTEGER NOT NULL DEFAULT 0,
  response_status INTEGER,           -- of the last attempt; NULL without an answer
  error TEXT,                        -- a code; NULL after an answer
  last_at_ms INTEGER,
  due_at_ms INTEGER NOT NULL,        -- of the next attempt, while it is pending
  PRIMARY KEY (tenant_id, webhook_id, message_id)
) WITHOUT ROWID;
CREATE INDEX webhook_deliveries_of_run ON webhook_deliveries (run_id);
CREATE INDEX webhook_deliveries_by_age ON webhook_deliveries (at_ms);
CREATE INDEX webhook_deliveries_undelivered ON webhook_deliveries (tenant_id, webhook_id, message_id) WHERE status <> 'delivered';

-- In the transaction that records the change: no run ends without its deliveries.
CREATE TRIGGER runs_end_for_webhooks AFTER UPDATE OF status ON agent_runs
WHEN new.status IN ('completed', 'failed', 'cancelled') AND old.status IN ('running', 'waiting') AND new.parent_run_id IS NULL
BEGIN
  INSERT INTO webhook_deliveries (tenant_id, webhook_id, message_id, event, run_id, agent_type, instance_id, at_ms, due_at_ms)
  SELECT w.tenant_id, w.webhook_id, 'msg_' || new.run_id, 'run.' || new.status, new.run_id, new.agent_type, new.instance_id,
    new.completed_at_ms, new.completed_at_ms
  FROM webhooks w
  WHERE w.tenant_id = new.tenant_id AND EXISTS (SELECT 1 FROM json_each(w.events) WHERE value = 'run.' || new.status)
    AND NOT EXISTS (SELECT 1 FROM webhook_deliveries d WHERE d.tenant_id = w.tenant_id AND d.webhook_id = w.webhook_id
      AND d.message_id = 'msg_' || new.run_id);
END;
CREATE TRIGGER runs_wait_for_webhooks AFTER UPDATE OF waiting_for ON agent_runs
WHEN new.status = 'waiting' AND new.waiting_for IS NOT old.waiting_for AND json_extract(new.waiting_for, '$.kind') = 'approval'
BEGIN
  INSERT INTO webhook_deliveries (tenant_id, webhook_id, message_id, event, run_id, agent_type, instance_id, at_ms, due_at_ms)
  SELECT w.tenant_id, w.webhook_id, 'msg_' || new.run_id || '_' || replace(json_extract(new.waiting_for, '$.call'), '.', '_'),
    'run.waiting', new.run_id, new.agent_type, new.instance_id, asked.at_ms, asked.at_ms
  FROM webhooks w JOIN (SELECT at_ms FROM run_events WHERE run_id = new.run_id ORDER BY seq DESC LIMIT 1) asked
  WHERE w.tenant_id = new.tenant_id AND EXISTS (SELECT 1 FROM json_each(w.events) WHERE value = 'run.waiting')
    AND NOT EXISTS (SELECT 1 FROM webhook_deliveries d WHERE d.tenant_id = w.tenant_id AND d.webhook_id = w.webhook_id
      AND d.message_id = 'msg_' || new.run_id || '_' || replace(json_extract(new.waiting_for, '$.call'), '.', '_'));
END;

INSERT INTO schema_versions (version, usable_from) VALUES (47, 42);
