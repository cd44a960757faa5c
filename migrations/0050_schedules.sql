-- Runs that begin without being asked for. The instance's object decides; these rows are listed, erased, and rebuild what an
-- object has lost. Times are epoch milliseconds.
CREATE TABLE schedules (
  schedule_id TEXT PRIMARY KEY,
  tenant_id TEXT NOT NULL,
  agent_type TEXT NOT NULL,
  instance_id TEXT NOT NULL,
  user_id TEXT,
  request TEXT NOT NULL,             -- JSON: the request of each run, as in parked_runs
  cron TEXT,                         -- either this, in the time zone,
  timezone TEXT,
  at_ms INTEGER,                     -- or one time
  state TEXT NOT NULL CHECK (state IN ('active', 'paused', 'ended')),
  next_at_ms INTEGER,                -- of the next run; NULL unless it is active
  due_at_ms INTEGER,                 -- when the object does something for it: tries that, or forgets one that has ended
  last_run_id TEXT,
  last_at_ms INTEGER,                -- the planned time of the last run
  last_error TEXT,                   -- a code; NULL when the last run began
  created_at_ms INTEGER NOT NULL,
  updated_at_ms INTEGER NOT NULL
);
CREATE INDEX schedules_of_tenant ON schedules (tenant_id, schedule_id);
CREATE INDEX schedules_of_instance ON schedules (tenant_id, agent_type, instance_id, schedule_id);
CREATE INDEX schedules_of_user ON schedules (tenant_id, user_id, schedule_id) WHERE user_id IS NOT NULL;
CREATE INDEX schedules_by_state ON schedules (tenant_id, state, schedule_id);
CREATE INDEX schedules_due ON schedules (due_at_ms) WHERE due_at_ms IS NOT NULL;

CREATE TRIGGER schedules_created AFTER INSERT ON schedules BEGIN
  INSERT INTO mutations VALUES (new.tenant_id, 'schedule_created', 'schedule', new.schedule_id, NULL, new.agent_type);
END;
CREATE TRIGGER schedules_changed AFTER UPDATE OF state ON schedules WHEN new.state <> old.state BEGIN
  INSERT INTO mutations VALUES (new.tenant_id, 'schedule_changed', 'schedule', new.schedule_id, NULL, new.state);
END;
CREATE TRIGGER schedules_removed AFTER DELETE ON schedules BEGIN
  INSERT INTO mutations VALUES (old.tenant_id, 'schedule_removed', 'schedule', old.schedule_id, NULL, NULL);
  DELETE FROM mutation_subjects WHERE tenant_id = old.tenant_id AND thing = 'schedule' AND key = old.schedule_id;
END;
CREATE TRIGGER erased_tenants_keep_no_schedules BEFORE INSERT ON schedules
WHEN EXISTS (SELECT 1 FROM erased_tenants WHERE tenant_id = new.tenant_id AND new.schedule_id <= last_run_id) BEGIN
  SELECT RAISE(IGNORE);
END;
CREATE TRIGGER erased_users_keep_no_schedules BEFORE INSERT ON schedules
WHEN EXISTS (SELECT 1 FROM erased_users
             WHERE tenant_id = new.tenant_id AND user_id = new.user_id AND new.schedule_id <= last_run_id) BEGIN
  SELECT RAISE(IGNORE);
END;

INSERT INTO schema_versions (version, usable_from) VALUES (50, 42);
