-- A tenant that moves to another database takes the rows of its attachments along: removing them where they were leaves no
-- debts, because the objects stay.
DROP TRIGGER attachments_leave_objects;
CREATE TRIGGER attachments_leave_objects AFTER DELETE ON attachments
WHEN NOT EXISTS (SELECT 1 FROM tenant_places WHERE tenant_id = old.tenant_id AND state NOT IN ('here', 'leaving', 'frozen'))
BEGIN
  INSERT OR REPLACE INTO attachment_objects (tenant_id, attachment_id, due_at_ms)
  VALUES (old.tenant_id, old.attachment_id, CASE WHEN old.sha256 IS NULL THEN old.created_at_ms + 600000 ELSE 0 END);
END;

-- How many files a user has uploaded that no run has named is bounded.
CREATE INDEX attachments_unused_of_user ON attachments (tenant_id, COALESCE(user_id, '')) WHERE last_run_id IS NULL;

INSERT INTO schema_versions (version, usable_from) VALUES (54, 42);
