-- Indexes that every ingested message was written to, and that only some rows are looked up by.

-- Which messages became a record: until then there is none.
DROP INDEX ingest_messages_by_record;
CREATE INDEX ingest_messages_by_record ON ingest_messages (record_id) WHERE record_id IS NOT NULL;

-- What the index is owed is found by when it is due; by age only what was sent, or what was abandoned.
DROP INDEX memory_outbox_by_age;
CREATE INDEX memory_outbox_by_age ON memory_outbox (at_ms) WHERE state = 'sent';

INSERT INTO schema_versions (version, usable_from) VALUES (48, 42);
