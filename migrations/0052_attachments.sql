-- Files that messages to agents bring. The content is an object in R2, under attachments/{tenant_id}/{attachment_id}. Times are
-- epoch milliseconds.
CREATE TABLE attachments (
  attachment_id TEXT PRIMARY KEY,
  tenant_id TEXT NOT NULL,
  user_id TEXT,                      -- whose it is; NULL for nobody's
  name TEXT NOT NULL,
  media_type TEXT NOT NULL,
  bytes INTEGER NOT NULL,
  sha256 TEXT,                       -- of the content; NULL while it arrives: nobody can read it then
  created_at_ms INTEGER NOT NULL,
  used_at_ms INTEGER NOT NULL,       -- when it was uploaded, or last named by a run
  last_run_id TEXT                   -- the newest run that named it; NULL before the first
);
CREATE INDEX attachments_of_tenant ON attachments (tenant_id, attachment_id);
CREATE INDEX attachments_of_user ON attachments (tenant_id, user_id, attachment_id) WHERE user_id IS NOT NULL;
CREATE UNIQUE INDEX attachments_once ON attachments (tenant_id, COALESCE(user_id, ''), sha256, name, media_type)
  WHERE sha256 IS NOT NULL;
CREATE INDEX attachments_by_use ON attachments (used_at_ms);
CREATE INDEX attachments_unused ON attachments (used_at_ms) WHERE last_run_id IS NULL;

-- Which run names which: what a conversation takes with it when it is deleted.
CREATE TABLE attachment_uses (
  run_id TEXT NOT NULL,
  attachment_id TEXT NOT NULL,
  tenant_id TEXT NOT NULL,
  agent_type TEXT NOT NULL,
  instance_id TEXT NOT NULL,
  at_ms INTEGER NOT NULL,
  PRIMARY KEY (run_id, attachment_id)
) WITHOUT ROWID;
CREATE INDEX attachment_uses_of_attachment ON attachment_uses (attachment_id, run_id);
CREATE INDEX attachment_uses_of_instance ON attachment_uses (tenant_id, agent_type, instance_id, run_id);
CREATE INDEX attachment_uses_by_age ON attachment_uses (at_ms);
CREATE TRIGGER attachments_are_used AFTER INSERT ON attachment_uses BEGIN
  UPDATE attachments SET last_run_id = MAX(COALESCE(last_run_id, ''), new.run_id), used_at_ms = MAX(used_at_ms, new.at_ms)
  WHERE attachment_id = new.attachment_id AND tenant_id = new.tenant_id;
END;

-- Objects without a row, to be removed: one that may still be arriving, ten minutes after its upload began.
CREATE TABLE attachment_objects (
  tenant_id TEXT NOT NULL,
  attachment_id TEXT NOT NULL,
  due_at_ms INTEGER NOT NULL,
  PRIMARY KEY (tenant_id, attachment_id)
) WITHOUT ROWID;
CREATE INDEX attachment_objects_due ON attachment_objects (due_at_ms);
CREATE TRIGGER attachments_leave_objects AFTER DELETE ON attachments BEGIN
  INSERT OR REPLACE INTO attachment_objects (tenant_id, attachment_id, due_at_ms)
  VALUES (old.tenant_id, old.attachment_id, CASE WHEN old.sha256 IS NULL THEN old.created_at_ms + 600000 ELSE 0 END);
END;

CREATE TRIGGER attachments_created AFTER INSERT ON attachments BEGIN
  INSERT INTO mutations VALUES (new.tenant_id, 'attachment_created', 'attachment', new.attachment_id, NULL, new.media_type);
END;
CREATE TRIGGER attachments_removed AFTER DELETE ON attachments BEGIN
  INSERT INTO mutations VALUES (old.tenant_id, 'attachment_removed', 'attachment', old.attachment_id, NULL, NULL);
  DELETE FROM mutation_subjects WHERE tenant_id = old.tenant_id AND thing = 'attachment' AND key = old.attachment_id;
END;

CREATE TRIGGER erased_tenants_keep_no_attachments BEFORE INSERT ON attachments
WHEN EXISTS (SELECT 1 FROM erased_tenants WHERE tenant_id = new.tenant_id AND closed) BEGIN
  SELECT RAISE(ABORT, 'the tenant was erased');
END;
CREATE TRIGGER erased_tenants_use_no_attachments BEFORE INSERT ON attachment_uses
WHEN EXISTS (SELECT 1 FROM erased_tenants WHERE tenant_id = new.tenant_id AND new.run_id <= last_run_id) BEGIN
  SELECT RAISE(IGNORE);
END;
-- As for events: a run without a row is an erased user's.
CREATE TRIGGER erased_users_use_no_attachments BEFORE INSERT ON attachment_uses
WHEN NOT EXISTS (SELECT 1 FROM agent_runs WHERE run_id = new.run_id)
 AND EXISTS (SELECT 1 FROM erased_users WHERE tenant_id = new.tenant_id AND new.run_id <= last_run_id) BEGIN
  SELECT RAISE(IGNORE);
END;

-- What a message of a conversation brought: as JSON, a list of id, name, media_type and bytes.
ALTER TABLE conversation_messages ADD COLUMN attachments TEXT;

INSERT INTO schema_versions (version, usable_from) VALUES (52, 42);
