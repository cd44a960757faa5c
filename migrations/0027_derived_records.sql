-- The events by the message from which a fact was extracted: recall asks which facts a message stated.
CREATE INDEX memory_events_derived ON memory_events (json_extract(source, '$.record_id'))
  WHERE json_extract(source, '$.record_id') IS NOT NULL;
