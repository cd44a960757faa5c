-- Semantic memory. Records and learning events are the truth; everything under "index" can be made again from them.

CREATE TABLE scopes (
  number INTEGER PRIMARY KEY,        -- the order in which an export lists the scopes
  tenant_id TEXT NOT NULL,
  scope_id TEXT NOT NULL,
  parent_id TEXT,                    -- scope_id of the scope around it; NULL for the tenant
  kind TEXT NOT NULL CHECK (kind IN ('tenant', 'house', 'agent', 'instance')),
  records INTEGER NOT NULL DEFAULT 0, -- kept by triggers: what word statistics need
  words INTEGER NOT NULL DEFAULT 0,
  UNIQUE (tenant_id, scope_id),
  -- A scope's id says its kind, and its parent is of a wider kind: walking over parents always ends.
  CHECK (CASE kind WHEN 'tenant' THEN scope_id = 'tenant' ELSE scope_id GLOB kind || '.?*' END),
  CHECK (CASE kind
    WHEN 'tenant' THEN parent_id IS NULL
    WHEN 'house' THEN parent_id IS 'tenant'
    WHEN 'agent' THEN parent_id IS 'tenant' OR COALESCE(parent_id, '') GLOB 'house.?*'
    ELSE COALESCE(parent_id, '') GLOB 'agent.?*'
  END)
);

CREATE TABLE memory_records (
  number INTEGER PRIMARY KEY,        -- row of the full-text index
  id TEXT NOT NULL UNIQUE,
  tenant_id TEXT NOT NULL,
  scope_id TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('fact', 'event', 'instruction', 'task')),
  content TEXT NOT NULL,
  metadata TEXT NOT NULL,            -- JSON object
  subject TEXT,
  predicate TEXT,
  object TEXT,
  confidence REAL NOT NULL,
  importance REAL NOT NULL,
  valid_from_ms INTEGER NOT NULL,
  valid_to_ms INTEGER,
  expires_at_ms INTEGER,
  recorded_at_ms INTEGER NOT NULL,
  updated_at_ms INTEGER NOT NULL,
  superseded_by TEXT,
  edited INTEGER NOT NULL,           -- a person changed it: no rule may
  conversation TEXT,                 -- place in a conversation, all four or none
  position INTEGER,
  speaker TEXT,
  said_at_ms INTEGER,
  source TEXT NOT NULL,              -- JSON: {"origin", "run_id", "step", "message", "record_id"}
  content_hash TEXT NOT NULL
);
-- Equal content in an equal scope is one record.
CREATE UNIQUE INDEX memory_records_by_content ON memory_records (tenant_id, scope_id, content_hash);
CREATE INDEX memory_records_by_number ON memory_records (tenant_id, number);
CREATE INDEX memory_records_by_fact ON memory_records (tenant_id, scope_id, subject, predicate, valid_from_ms)
  WHERE subject IS NOT NULL AND predicate IS NOT NULL;
CREATE INDEX memory_records_by_subject ON memory_records (tenant_id, subject) WHERE subject IS NOT NULL;
CREATE INDEX memory_records_by_expiry ON memory_records (expires_at_ms) WHERE expires_at_ms IS NOT NULL;

-- The learning stream: append-only, and the record is its fold.
CREATE TABLE memory_events (
  event_id TEXT PRIMARY KEY,
  tenant_id TEXT NOT NULL,
  record_id TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('stored', 'edited', 'superseded', 'invalidated', 'restored', 'deleted')),
  data TEXT NOT NULL,                -- JSON
  source TEXT NOT NULL,              -- JSON, as in memory_records
  nonce TEXT NOT NULL,               -- makes the digest say nothing about erased data
  digest TEXT NOT NULL,              -- as in world_history
  at_ms INTEGER NOT NULL
);
CREATE INDEX memory_events_by_record ON memory_events (record_id, event_id);
CREATE INDEX memory_events_by_tenant ON memory_events (tenant_id, event_id);

-- World history: what happened to a tenant's substrate, each entry chained to the one before by its hash.
CREATE TABLE world_history (
  tenant_id TEXT NOT NULL,
  seq INTEGER NOT NULL,
  kind TEXT NOT NULL,
  subject_id TEXT NOT NULL,          -- what it happened to: a record, a job, an erasure
  digest TEXT NOT NULL,              -- SHA-256 over nonce and data of what happened
  at_ms INTEGER NOT NULL,
  previous_hash TEXT NOT NULL,
  hash TEXT NOT NULL,
  PRIMARY KEY (tenant_id, seq)
) WITHOUT ROWID;

CREATE INDEX world_history_by_digest ON world_history (tenant_id, digest);

-- Index: one row per record with what ranking needs.
CREATE TABLE memory_search (
  number INTEGER PRIMARY KEY,        -- as in memory_records
  tenant_id TEXT NOT NULL,
  scope_id TEXT NOT NULL,
  conversation TEXT,
  position INTEGER,
  length INTEGER NOT NULL,           -- characters
  words INTEGER NOT NULL,            -- tokens in the full-text index
  span INTEGER NOT NULL,             -- turns of context on either side, 0 for long or lone records
  terms TEXT NOT NULL,               -- distinct stems, for records short enough to have a window
  names_time INTEGER NOT NULL,
  asking REAL NOT NULL,              -- share of its sentences that are questions
  signature TEXT NOT NULL,           -- signs of random projections of the mean part vector, hexadecimal
  parts INTEGER NOT NULL,            -- vectors in the vector index: {id}#0 … {id}#{parts-1}; 0 when it has none
  embedding_model TEXT NOT NULL
);
CREATE INDEX memory_search_by_place ON memory_search (tenant_id, scope_id, conversation, position)
  WHERE conversation IS NOT NULL;

CREATE TRIGGER memory_search_counted AFTER INSERT ON memory_search BEGIN
  UPDATE scopes SET records = records + 1, words = words + new.words
  WHERE tenant_id = new.tenant_id AND scope_id = new.scope_id;
END;
CREATE TRIGGER memory_search_uncounted AFTER DELETE ON memory_search BEGIN
  UPDATE scopes SET records = records - 1, words = words - old.words
  WHERE tenant_id = old.tenant_id AND scope_id = old.scope_id;
END;

-- Index: full text. Every token is a Porter stem behind its scope's tag, so that a search costs what its scopes hold.
CREATE VIRTUAL TABLE memory_text USING fts5 (content, tokenize = 'unicode61');
CREATE VIRTUAL TABLE memory_vocabulary USING fts5vocab ('memory_text', 'row');
CREATE VIRTUAL TABLE memory_occurrences USING fts5vocab ('memory_text', 'instance');

-- What the vector index is owed ('owed'), and what it was given so lately that it may not show it yet ('sent'): recall
-- judges both by their signatures.
CREATE TABLE memory_outbox (
  record_id TEXT PRIMARY KEY,
  tenant_id TEXT NOT NULL,
  scope_id TEXT NOT NULL,
  parts INTEGER NOT NULL,            -- the most vectors that the record may have in the index
  state TEXT NOT NULL CHECK (state IN ('owed', 'sent')),
  changed INTEGER NOT NULL DEFAULT 0, -- the index may show what the record was before
  writers INTEGER NOT NULL DEFAULT 1, -- that owe it and have not settled it: while there are any it stays
  attempts INTEGER NOT NULL DEFAULT 0,
  last_error TEXT,
  at_ms INTEGER NOT NULL,
  due_at_ms INTEGER NOT NULL         -- when the reconciler is to take it: later after each failure
);
CREATE INDEX memory_outbox_by_age ON memory_outbox (state, at_ms);
CREATE INDEX memory_outbox_by_turn ON memory_outbox (due_at_ms) WHERE state = 'owed';
CREATE INDEX memory_outbox_fresh ON memory_outbox (tenant_id, state, at_ms);
