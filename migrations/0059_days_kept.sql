-- Fewer rows for each run: what is too old in a table of which much is written is found by the days of each tenant's rows,
-- and no longer by an index over the times of all rows. The times of one tenant have an index already.

-- A row here says that the table has rows of the tenant of that day. Triggers write it, so that no writer can forget it.
CREATE TABLE days_kept (
  tenant_id TEXT NOT NULL,
  relation TEXT NOT NULL,
  day INTEGER NOT NULL,              -- since the epoch, in UTC
  PRIMARY KEY (tenant_id, relation, day)
) WITHOUT ROWID;
CREATE INDEX days_kept_by_age ON days_kept (relation, day);

INSERT INTO days_kept SELECT DISTINCT tenant_id, 'run_events', at_ms / 86400000 FROM run_events;
INSERT INTO days_kept SELECT DISTINCT tenant_id, 'kv_audit', at_ms / 86400000 FROM kv_audit;
INSERT INTO days_kept SELECT DISTINCT tenant_id, 'decision_log', at_ms / 86400000 FROM decision_log;

-- Without OR IGNORE and ON CONFLICT: a statement that fires a trigger decides what those mean inside it.
CREATE TRIGGER days_of_events_kept AFTER INSERT ON run_events
WHEN NOT EXISTS (SELECT 1 FROM days_kept
  WHERE tenant_id = new.tenant_id AND relation = 'run_events' AND day = new.at_ms / 86400000)
BEGIN
  INSERT INTO days_kept VALUES (new.tenant_id, 'run_events', new.at_ms / 86400000);
END;
CREATE TRIGGER days_of_events_left AFTER DELETE ON run_events
WHEN NOT EXISTS (SELECT 1 FROM run_events WHERE tenant_id = old.tenant_id
  AND at_ms >= old.at_ms / 86400000 * 86400000 AND at_ms < (old.at_ms / 86400000 + 1) * 86400000)
BEGIN
  DELETE FROM days_kept WHERE tenant_id = old.tenant_id AND relation = 'run_events' AND day = old.at_ms / 86400000;
END;
CREATE TRIGGER days_of_audit_kept AFTER INSERT ON kv_audit
WHEN NOT EXISTS (SELECT 1 FROM days_kept
  WHERE tenant_id = new.tenant_id AND relation = 'kv_audit' AND day = new.at_ms / 86400000)
BEGIN
  INSERT INTO days_kept VALUES (new.tenant_id, 'kv_audit', new.at_ms / 86400000);
END;
CREATE TRIGGER days_of_audit_left AFTER DELETE ON kv_audit
WHEN NOT EXISTS (SELECT 1 FROM kv_audit WHERE tenant_id = old.tenant_id
  AND at_ms >= old.at_ms / 86400000 * 86400000 AND at_ms < (old.at_ms / 86400000 + 1) * 86400000)
BEGIN
  DELETE FROM days_kept WHERE tenant_id = old.tenant_id AND relation = 'kv_audit' AND day = old.at_ms / 86400000;
END;
CREATE TRIGGER days_of_decisions_kept AFTER INSERT ON decision_log
WHEN NOT EXISTS (SELECT 1 FROM days_kept
  WHERE tenant_id = new.tenant_id AND relation = 'decision_log' AND day = new.at_ms / 86400000)
BEGIN
  INSERT INTO days_kept VALUES (new.tenant_id, 'decision_log', new.at_ms / 86400000);
END;
CREATE TRIGGER days_of_decisions_left AFTER DELETE ON decision_log
WHEN NOT EXISTS (SELECT 1 FROM decision_log WHERE tenant_id = old.tenant_id
  AND at_ms >= old.at_ms / 86400000 * 86400000 AND at_ms < (old.at_ms / 86400000 + 1) * 86400000)
BEGIN
  DELETE FROM days_kept WHERE tenant_id = old.tenant_id AND relation = 'decision_log' AND day = old.at_ms / 86400000;
END;

DROP INDEX run_events_old;
DROP INDEX kv_audit_by_age;
DROP INDEX decision_log_by_age;

INSERT INTO schema_versions (version, usable_from) VALUES (59, 42);
