-- The records of one scope in the order in which they were stored: a list of a user's memories reads these alone, however
-- many others the tenant has.
CREATE INDEX memory_records_by_scope ON memory_records (tenant_id, scope_id, number);

INSERT INTO schema_versions (version, usable_from) VALUES (46, 42);
