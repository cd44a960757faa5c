-- What was recorded in a scope just before and after a record, outside conversations: a recall looks there.
CREATE INDEX memory_search_by_number ON memory_search (tenant_id, scope_id, number) WHERE conversation IS NULL;

INSERT INTO schema_versions (version, usable_from) VALUES (45, 42);
