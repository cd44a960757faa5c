-- The origins whose pages may use a key of an application, and its tokens.
ALTER TABLE application_keys ADD COLUMN origins TEXT NOT NULL DEFAULT '[]';   -- JSON: a list, as browsers write origins

-- What preflights are answered from: they carry no key. It holds no key without origins.
CREATE INDEX application_keys_with_origins ON application_keys (expires_at_ms, origins, revoked_at_ms)
WHERE revoked_at_ms IS NULL AND origins <> '[]';

CREATE TRIGGER application_keys_changed AFTER UPDATE OF name, origins ON application_keys
WHEN new.name <> old.name OR new.origins <> old.origins BEGIN
  INSERT INTO mutations VALUES (new.tenant_id, 'key_changed', 'key', new.key_id, NULL, new.origins);
END;

INSERT INTO schema_versions (version, usable_from) VALUES (42, 42);
