-- Messages by their times, to place a part of a conversation that arrives late.
CREATE INDEX ingest_messages_by_time ON ingest_messages (tenant_id, scope_id, conversation, at_ms, position)
  WHERE at_ms IS NOT NULL;
