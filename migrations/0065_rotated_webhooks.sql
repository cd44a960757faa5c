-- The secret that a webhook had before its last rotation, sealed as the other one, and until when messages are signed with both.
-- NULL: with the newest alone.
ALTER TABLE webhooks ADD COLUMN previous_secret TEXT;
ALTER TABLE webhooks ADD COLUMN previous_until_ms INTEGER;

CREATE TRIGGER webhooks_rotated AFTER UPDATE OF secret ON webhooks BEGIN
  INSERT INTO mutations VALUES (new.tenant_id, 'webhook_rotated', 'webhook', new.webhook_id, NULL, NULL);
END;

INSERT INTO schema_versions (version, usable_from) VALUES (65, 42);
