-- Keys of applications: each for one tenant, with what it allows there. Times are epoch milliseconds.
CREATE TABLE application_keys (
  key_id TEXT PRIMARY KEY,
  tenant_id TEXT NOT NULL,
  name TEXT NOT NULL,
  scopes TEXT NOT NULL,              -- JSON: a list of names
  hash TEXT NOT NULL UNIQUE,         -- SHA-256 of the key, in hex: the key itself is nowhere
  created_by TEXT NOT NULL,          -- as in mutation_log.changed_by
  created_at_ms INTEGER NOT NULL,
  expires_at_ms INTEGER,             -- NULL: never
  revoked_at_ms INTEGER,
  last_used_at_ms INTEGER            -- to the minute
) WITHOUT ROWID;
CREATE INDEX application_keys_by_tenant ON application_keys (tenant_id, key_id);

CREATE TRIGGER application_keys_created AFTER INSERT ON application_keys BEGIN
  INSERT INTO mutations VALUES (new.tenant_id, 'key_created', 'key', new.key_id, NULL, new.scopes);
END;
CREATE TRIGGER application_keys_revoked AFTER UPDATE OF revoked_at_ms ON application_keys
WHEN old.revoked_at_ms IS NULL AND new.revoked_at_ms IS NOT NULL BEGIN
  INSERT INTO mutations VALUES (new.tenant_id, 'key_revoked', 'key', new.key_id, NULL, NULL);
END;
CREATE TRIGGER application_keys_limited AFTER UPDATE OF expires_at_ms ON application_keys
WHEN new.expires_at_ms IS NOT old.expires_at_ms BEGIN
  INSERT INTO mutations VALUES (new.tenant_id, 'key_limited', 'key', new.key_id, NULL, new.expires_at_ms);
END;
CREATE TRIGGER application_keys_removed AFTER DELETE ON application_keys BEGIN
  INSERT INTO mutations VALUES (old.tenant_id, 'key_removed', 'key', old.key_id, NULL, NULL);
  DELETE FROM mutation_subjects WHERE tenant_id = old.tenant_id AND thing = 'key' AND key = old.key_id;
END;
CREATE TRIGGER erased_tenants_get_no_keys BEFORE INSERT ON application_keys
WHEN EXISTS (SELECT 1 FROM erased_tenants WHERE tenant_id = new.tenant_id AND closed) BEGIN
  SELECT RAISE(ABORT, 'the tenant was erased');
END;

INSERT INTO schema_versions (version, usable_from) VALUES (39, 36);
