-- Ingest of conversations: jobs, and the position of every message. Times are epoch milliseconds.

CREATE TABLE ingest_jobs (
  job_id TEXT PRIMARY KEY,           -- digest of tenant, scope and request: the same request is the same job
  tenant_id TEXT NOT NULL,
  scope_id TEXT NOT NULL,
  agent_type TEXT,
  house TEXT,
  conversation TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('running', 'completed', 'failed')),
  received INTEGER NOT NULL,         -- messages in the request
  duplicate INTEGER NOT NULL,
  rejections TEXT NOT NULL,          -- JSON: [{"index", "code", "message"}]
  stored INTEGER NOT NULL DEFAULT 0,
  extracted INTEGER NOT NULL DEFAULT 0,
  error TEXT,                        -- JSON: {"stage", "code", "message"}
  attempts INTEGER NOT NULL DEFAULT 0, -- since the last progress
  lease_until_ms INTEGER NOT NULL DEFAULT 0, -- until then a worker has it
  created_at_ms INTEGER NOT NULL,
  updated_at_ms INTEGER NOT NULL,
  completed_at_ms INTEGER
);
CREATE INDEX ingest_jobs_by_tenant ON ingest_jobs (tenant_id, created_at_ms);
CREATE INDEX ingest_jobs_done ON ingest_jobs (completed_at_ms) WHERE completed_at_ms IS NOT NULL;
CREATE INDEX ingest_jobs_open ON ingest_jobs (lease_until_ms) WHERE state <> 'completed';

-- One row per message: it keeps the message's position for ever, its text only until the record has it.
CREATE TABLE ingest_messages (
  tenant_id TEXT NOT NULL,
  scope_id TEXT NOT NULL,
  conversation TEXT NOT NULL,
  position INTEGER NOT NULL,
  message TEXT,                      -- the sender's id of the message
  message_key TEXT NOT NULL,         -- digest of speaker and text; '' when it was erased
  at_ms INTEGER,
  state TEXT NOT NULL CHECK (state IN ('received', 'stored', 'extracted', 'learned')),
  speaker TEXT,                      -- while 'received'
  content TEXT,                      -- while 'received'
  facts TEXT,                        -- JSON, while 'extracted'
  fact_count INTEGER NOT NULL DEFAULT 0,
  record_id TEXT,                    -- since 'stored'
  job_id TEXT,                       -- NULL for what the conversation held before its first ingest
  message_index INTEGER,             -- position in the job's request
  PRIMARY KEY (tenant_id, scope_id, conversation, position)
);
CREATE UNIQUE INDEX ingest_messages_by_job ON ingest_messages (job_id, message_index);
CREATE INDEX ingest_messages_by_key ON ingest_messages (tenant_id, scope_id, conversation, message_key);
CREATE INDEX ingest_messages_by_id ON ingest_messages (tenant_id, scope_id, conversation, message)
  WHERE message IS NOT NULL;
CREATE INDEX ingest_messages_by_record ON ingest_messages (record_id);

-- The text of a large request while it arrives, until the transaction that opens its job takes it from here.
CREATE TABLE ingest_uploads (
  upload_id TEXT NOT NULL,
  message_index INTEGER NOT NULL,    -- position in the request
  tenant_id TEXT NOT NULL,
  message TEXT,                      -- as in ingest_messages
  message_key TEXT NOT NULL,
  at_ms INTEGER,
  speaker TEXT NOT NULL,
  content TEXT NOT NULL,
  created_at_ms INTEGER NOT NULL,
  PRIMARY KEY (upload_id, message_index)
);
CREATE INDEX ingest_uploads_by_tenant ON ingest_uploads (tenant_id);
CREATE INDEX ingest_uploads_by_age ON ingest_uploads (created_at_ms);

-- Only an erasure deletes learning events: then the message's row keeps its position and forgets the rest.
CREATE TRIGGER ingest_messages_erased AFTER DELETE ON memory_events BEGIN
  UPDATE ingest_messages SET message = NULL, message_key = '', at_ms = NULL, facts = NULL
  WHERE record_id = old.record_id;
END;

CREATE TRIGGER erased_tenants_ingest_nothing BEFORE INSERT ON ingest_jobs
WHEN EXISTS (SELECT 1 FROM erased_tenants WHERE tenant_id = new.tenant_id AND closed) BEGIN
  SELECT RAISE(ABORT, 'the tenant was erased');
END;
CREATE TRIGGER erased_tenants_upload_nothing BEFORE INSERT ON ingest_uploads
WHEN EXISTS (SELECT 1 FROM erased_tenants WHERE tenant_id = new.tenant_id AND closed) BEGIN
  SELECT RAISE(ABORT, 'the tenant was erased');
END;
