-- Texts that records had before they were edited, for recalls as of a time before the edit. Derived from the learning events,
-- as the other indexes are: retain/memory/earlier_texts.py.

CREATE TABLE memory_earlier (
  number INTEGER PRIMARY KEY,        -- row of the full text
  event_id TEXT NOT NULL UNIQUE,     -- the learning event that gave the record this text
  record_id TEXT NOT NULL,
  tenant_id TEXT NOT NULL,
  scope_id TEXT NOT NULL,
  from_ms INTEGER NOT NULL,          -- when the text was recorded
  until_ms INTEGER NOT NULL,         -- when the next one was
  length INTEGER NOT NULL,           -- this and the following as in memory_search
  words INTEGER NOT NULL,
  terms TEXT NOT NULL,
  names_time INTEGER NOT NULL,
  asking REAL NOT NULL,
  signature TEXT NOT NULL,
  embedding_model TEXT NOT NULL
);
CREATE INDEX memory_earlier_by_record ON memory_earlier (record_id, until_ms);
CREATE INDEX memory_earlier_by_time ON memory_earlier (tenant_id, until_ms);

CREATE VIRTUAL TABLE memory_earlier_text USING fts5 (content, tokenize = 'unicode61');
CREATE VIRTUAL TABLE memory_earlier_vocabulary USING fts5vocab ('memory_earlier_text', 'row');
CREATE VIRTUAL TABLE memory_earlier_occurrences USING fts5vocab ('memory_earlier_text', 'instance');

-- An earlier text goes with its record and with its event, whoever deletes or erases them.
CREATE TRIGGER memory_earlier_removed AFTER DELETE ON memory_earlier BEGIN
  DELETE FROM memory_earlier_text WHERE rowid = old.number;
END;
CREATE TRIGGER memory_earlier_without_record AFTER DELETE ON memory_records BEGIN
  DELETE FROM memory_earlier WHERE record_id = old.id;
END;
CREATE TRIGGER memory_earlier_without_event AFTER DELETE ON memory_events BEGIN
  DELETE FROM memory_earlier WHERE event_id = old.event_id;
END;

-- Records that were edited before: the index is owed their earlier texts, as the oldest debts of all.
INSERT INTO memory_outbox (record_id, tenant_id, scope_id, parts, state, at_ms, due_at_ms)
SELECT r.id, r.tenant_id, r.scope_id, s.parts, 'owed', 0, 0
FROM memory_records r JOIN memory_search s ON s.number = r.number
WHERE r.id IN (SELECT record_id FROM memory_events WHERE kind = 'edited' AND json_type(data, '$.content') IS NOT NULL)
  AND r.tenant_id NOT IN (SELECT tenant_id FROM erased_tenants WHERE closed)
ON CONFLICT (record_id) DO NOTHING;
