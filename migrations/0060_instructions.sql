-- The instructions of one scope, newest first: a recall of a request reads a few of these, however many records there are.
CREATE INDEX memory_records_of_instructions ON memory_records (tenant_id, scope_id, number) WHERE kind = 'instruction';

INSERT INTO schema_versions (version, usable_from) VALUES (60, 42);
