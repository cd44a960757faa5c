-- Semantic memory. Records and learning events are the source of truth; everything under "index" can be rebuilt from them.

CREATE TABLE scopes (
  number INTEGER PRIMARY KEY,        -- the order in which an export lists the scopes
  tenant_id TEXT NOT NULL,
  scope_id TEXT NOT NULL,
  parent_id TEXT,                    -- scope_id of the enclosing scope; NULL for the tenant
  kind TEXT NOT NULL CHECK (kind IN ('tenant', 'house', 'agent', 'instance')),
  records INTEGER NOT NULL DEFAULT 0, -- maintained by triggers, for word statistics
  words INTEGER NOT NULL DEFAULT 0,
  UNIQUE (tenant_id, scope_id),
  -- A scope's id contains its kind, and its parent has a wider kind: walking over parents always ends.
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
  edited INTEGER NOT NULL,           -- 1 when a person changed it: no rule may change it
  conversation TEXT,                 -- position in a conversation, all four or none
  position INTEGER,
  speaker TEXT,
  said_at_ms INTEGER,
  source TEXT NOT NULL,              -- JSON: {"origin", "run_id", "step", "message", "record_id"}
  content_hash TEXT NOT NULL
);
-- Equal content in the same scope is one record.
CREATE UNIQUE INDEX memory_records_by_content ON memory_records (tenant_id, scope_id, content_hash);
CREATE INDEX memory_records_by_number ON memory_records (tenant_id, number);
CREATE INDEX memory_records_by_fact ON memory_records (tenant_id, scope_id, subject, predicate, valid_from_ms)
  WHERE subject IS NOT NULL AND predicate IS NOT NULL;
CREATE INDEX memory_records_by_subject ON memory_records (tenant_id, subject) WHERE subject IS NOT NULL;
CREATE INDEX memory_records_by_expiry ON memory_records (expires_at_ms) WHERE expires_at_ms IS NOT NULL;

-- The learning stream: append-only; a record is the fold of its events.
CREATE TABLE memory_events (
  event_id TEXT PRIMARY KEY,
  tenant_id TEXT NOT NULL,
  record_id TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('stored', 'edited', 'superseded', 'invalidated', 'restored', 'deleted')),
  data TEXT NOT NULL,                -- JSON
  source TEXT NOT NULL,              -- JSON, as in memory_records
  nonce TEXT NOT NULL,               -- so that the digest reveals nothing about erased data
  digest TEXT NOT NULL,              -- as in world_history
  at_ms INTEGER NOT NULL
);
CREATE INDEX memory_events_by_record ON memory_events (record_id, event_id);
CREATE INDEX memory_events_by_tenant ON memory_events (tenant_id, event_id);

-- World history: all mutations of a tenant's records, each entry chained to the previous one by its hash.
CREATE TABLE world_history (
  tenant_id TEXT NOT NULL,
  seq INTEGER NOT NULL,
  kind TEXT NOT NULL,
  subject_id TEXT NOT NULL,          -- what was changed: a record, a job, an erasure
  digest TEXT NOT NULL,              -- SHA-256 over nonce and data of the event
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

-- Index: full text. Every token is its scope's tag and a Porter stem, so that a search costs only what its scopes hold.
CREATE VIRTUAL TABLE memory_text USING fts5 (content, tokenize = 'unicode61');
CREATE VIRTUAL TABLE memory_vocabulary USING fts5vocab ('memory_text', 'row');
CREATE VIRTUAL TABLE memory_occurrences USING fts5vocab ('memory_text', 'instance');

-- What the vector index is owed ('owed'), and what it was sent so recently that it may not show it yet ('sent'): recall
-- ranks both by their signatures.
CREATE TABLE memory_outbox (
  record_id TEXT PRIMARY KEY,
  tenant_id TEXT NOT NULL,
  scope_id TEXT NOT NULL,
  parts INTEGER NOT NULL,            -- the most vectors that the record may have in the index
  state TEXT NOT NULL CHECK (state IN ('owed', 'sent')),
  changed INTEGER NOT NULL DEFAULT 0, -- 1: the index may still show an earlier version of the record
  writers INTEGER NOT NULL DEFAULT 1, -- writers that have not settled it: the row stays while there are any
  attempts INTEGER NOT NULL DEFAULT 0,
  last_error TEXT,
  at_ms INTEGER NOT NULL,
  due_at_ms INTEGER NOT NULL         -- when the reconciler may take it: later after each failure
);
CREATE INDEX memory_outbox_by_age ON memory_outbox (state, at_ms);
CREATE INDEX memory_outbox_by_turn ON memory_outbox (due_at_ms) WHERE state = 'owed';
CREATE INDEX memory_outbox_fresh ON memory_outbox (tenant_id, state, at_ms);
