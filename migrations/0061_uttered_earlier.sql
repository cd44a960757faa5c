-- What was recorded more than an hour after it was said, as an import is: a recall that asks for a time alone finds it by
-- that time, since the vector index knows when it was recorded. A record that is stored as it is said has no row here.
CREATE INDEX memory_records_uttered_earlier ON memory_records (tenant_id, scope_id, COALESCE(said_at_ms, valid_from_ms))
  WHERE COALESCE(said_at_ms, valid_from_ms) < recorded_at_ms - 3600000;

INSERT INTO schema_versions (version, usable_from) VALUES (61, 42);
