-- Fewer rows for each run. Every event of a run had three: its own, and an index each for the times of a tenant's events and
-- of all events. Now a run has one row that says of whom it is and since when it has events, and events have only their key.
-- What is too old in the KV audit and the decision log is found by the days of each tenant's rows: the times of one tenant
-- have an index already, and an index over the times of all rows is not needed.

-- The runs that have events. Triggers write it, so that no writer can forget it.
CREATE TABLE timelines (
  tenant_id TEXT NOT NULL,
  run_id TEXT NOT NULL,
  since_minute INTEGER NOT NULL,     -- of the run's first event that is left, or before it; since the epoch
  PRIMARY KEY (tenant_id, run_id)
) WITHOUT ROWID;
CREATE INDEX timelines_by_age ON timelines (since_minute);

INSERT INTO timelines
WITH RECURSIVE known (id) AS (
  SELECT MIN(run_id) FROM run_events
  UNION ALL
  SELECT (SELECT MIN(run_id) FROM run_events WHERE run_id > known.id) FROM known WHERE known.id IS NOT NULL
)
SELECT first.tenant_id, first.run_id, first.at_ms / 60000 FROM known JOIN run_events first ON first.run_id = known.id
WHERE first.seq = (SELECT MIN(seq) FROM run_events WHERE run_id = known.id);

-- Without OR IGNORE and ON CONFLICT: a statement that fires a trigger decides what those mean inside it.
CREATE TRIGGER timelines_kept AFTER INSERT ON run_events
WHEN NOT EXISTS (SELECT 1 FROM timelines
  WHERE tenant_id = new.tenant_id AND run_id = new.run_id AND since_minute <= new.at_ms / 60000)
BEGIN
  DELETE FROM timelines WHERE tenant_id = new.tenant_id AND run_id = new.run_id;
  INSERT INTO timelines VALUES (new.tenant_id, new.run_id, new.at_ms / 60000);
END;
CREATE TRIGGER timelines_earlier AFTER UPDATE OF at_ms ON run_events
WHEN EXISTS (SELECT 1 FROM timelines
  WHERE tenant_id = new.tenant_id AND run_id = new.run_id AND since_minute > new.at_ms / 60000)
BEGIN
  UPDATE timelines SET since_minute = new.at_ms / 60000 WHERE tenant_id = new.tenant_id AND run_id = new.run_id;
END;
CREATE TRIGGER timelines_shortened AFTER DELETE ON run_events
WHEN old.at_ms / 60000 < (SELECT at_ms / 60000 FROM run_events WHERE run_id = old.run_id ORDER BY seq LIMIT 1)
BEGIN
  UPDATE timelines SET since_minute = (SELECT MIN(at_ms) / 60000 FROM run_events WHERE run_id = old.run_id)
  WHERE tenant_id = old.tenant_id AND run_id = old.run_id;
END;
CREATE TRIGGER timelines_left AFTER DELETE ON run_events
WHEN NOT EXISTS (SELECT 1 FROM run_events WHERE run_id = old.run_id)
BEGIN
  DELETE FROM timelines WHERE tenant_id = old.tenant_id AND run_id = old.run_id;
END;

-- A row here says that the table has rows of the tenant of that day. Triggers write it as well.
CREATE TABLE days_kept (
  tenant_id TEXT NOT NULL,
  relation TEXT NOT NULL,
  day INTEGER NOT NULL,              -- since the epoch, in UTC
  PRIMARY KEY (tenant_id, relation, day)
) WITHOUT ROWID;
CREATE INDEX days_kept_by_age ON days_kept (relation, day);

INSERT INTO days_kept SELECT DISTINCT tenant_id, 'kv_audit', at_ms / 86400000 FROM kv_audit;
INSERT INTO days_kept SELECT DISTINCT tenant_id, 'decision_log', at_ms / 86400000 FROM decision_log;

CREATE TRIGGER days_of_audit_kept AFTER INSERT ON kv_audit
WHEN NOT EXISTS (SELECT 1 FROM days_kept
  WHERE tenant_id = new.tenant_id AND relation = 'kv_audit' AND day = new.at_ms / 86400000)
BEGIN
  INSERT INTO days_kept VALUES (new.tenant_id, 'kv_audit', new.at_ms / 86400000);
END;
CREATE TRIGGER days_of_audit_changed AFTER UPDATE OF at_ms ON kv_audit
WHEN new.at_ms / 86400000 <> old.at_ms / 86400000
BEGIN
  INSERT INTO days_kept SELECT new.tenant_id, 'kv_audit', new.at_ms / 86400000 WHERE NOT EXISTS (SELECT 1 FROM days_kept
    WHERE tenant_id = new.tenant_id AND relation = 'kv_audit' AND day = new.at_ms / 86400000);
  DELETE FROM days_kept WHERE tenant_id = old.tenant_id AND relation = 'kv_audit' AND day = old.at_ms / 86400000
    AND NOT EXISTS (SELECT 1 FROM kv_audit WHERE tenant_id = old.tenant_id
      AND at_ms >= old.at_ms / 86400000 * 86400000 AND at_ms < (old.at_ms / 86400000 + 1) * 86400000);
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
CREATE TRIGGER days_of_decisions_changed AFTER UPDATE OF at_ms ON decision_log
WHEN new.at_ms / 86400000 <> old.at_ms / 86400000
BEGIN
  INSERT INTO days_kept SELECT new.tenant_id, 'decision_log', new.at_ms / 86400000 WHERE NOT EXISTS (SELECT 1 FROM days_kept
    WHERE tenant_id = new.tenant_id AND relation = 'decision_log' AND day = new.at_ms / 86400000);
  DELETE FROM days_kept WHERE tenant_id = old.tenant_id AND relation = 'decision_log' AND day = old.at_ms / 86400000
    AND NOT EXISTS (SELECT 1 FROM decision_log WHERE tenant_id = old.tenant_id
      AND at_ms >= old.at_ms / 86400000 * 86400000 AND at_ms < (old.at_ms / 86400000 + 1) * 86400000);
END;
CREATE TRIGGER days_of_decisions_left AFTER DELETE ON decision_log
WHEN NOT EXISTS (SELECT 1 FROM decision_log WHERE tenant_id = old.tenant_id
  AND at_ms >= old.at_ms / 86400000 * 86400000 AND at_ms < (old.at_ms / 86400000 + 1) * 86400000)
BEGIN
  DELETE FROM days_kept WHERE tenant_id = old.tenant_id AND relation = 'decision_log' AND day = old.at_ms / 86400000;
END;

DROP INDEX run_events_old;
DROP INDEX run_events_by_age;
DROP INDEX kv_audit_by_age;
DROP INDEX decision_log_by_age;

INSERT INTO schema_versions (version, usable_from) VALUES (59, 42);
