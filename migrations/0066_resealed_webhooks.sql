-- How often the secrets of a webhook were sealed again with another key. They are the same secrets, so it was not rotated.
ALTER TABLE webhooks ADD COLUMN reseals INTEGER NOT NULL DEFAULT 0;

DROP TRIGGER webhooks_rotated;
CREATE TRIGGER webhooks_rotated AFTER UPDATE OF secret ON webhooks WHEN new.reseals IS old.reseals BEGIN
  INSERT INTO mutations VALUES (new.tenant_id, 'webhook_rotated', 'webhook', new.webhook_id, NULL, NULL);
END;

INSERT INTO schema_versions (version, usable_from) VALUES (66, 42);
