-- What the backends of the memory contracts keep in D1: conversations, and documents with vectors.

CREATE TABLE chat_messages (
  namespace_key TEXT NOT NULL,       -- <service>:<tenantId>:<sessionId>
  position INTEGER NOT NULL,
  tenant_id TEXT NOT NULL,
  message TEXT NOT NULL,             -- JSON: {"role", "content", "tool_calls"?, "tool_call_id"?}
  PRIMARY KEY (namespace_key, position)
) WITHOUT ROWID;
CREATE INDEX chat_messages_by_tenant ON chat_messages (tenant_id);

CREATE TABLE vector_documents (
  number INTEGER PRIMARY KEY AUTOINCREMENT, -- never reused: vectors in an index are named by it
  namespace_key TEXT NOT NULL,
  document_id TEXT NOT NULL,         -- the owner's id
  tenant_id TEXT NOT NULL,
  document TEXT NOT NULL,            -- JSON: [content, metadata]
  embedding TEXT NOT NULL,           -- base64 of little-endian 32-bit floats, normalised
  indexed INTEGER NOT NULL,          -- 1 when a vector index has it or is still to get it
  version INTEGER NOT NULL DEFAULT 1,
  sent_at_ms INTEGER NOT NULL DEFAULT 9007199254740991, -- when the index was sent this version; default: never
  UNIQUE (namespace_key, document_id)
);
CREATE INDEX vector_documents_by_tenant ON vector_documents (tenant_id);
CREATE INDEX vector_documents_owed ON vector_documents (tenant_id, number) WHERE indexed = 1 AND sent_at_ms = 9007199254740991;
CREATE INDEX vector_documents_fresh ON vector_documents (namespace_key, sent_at_ms);

-- Vectors to remove from the index. They are removed repeatedly until no older write can be under way.
CREATE TABLE vector_removals (
  vector_id TEXT PRIMARY KEY,        -- document.{number}.{version}
  tenant_id TEXT NOT NULL,
  at_ms INTEGER NOT NULL             -- 0 until a process with a clock has seen it
) WITHOUT ROWID;
CREATE INDEX vector_removals_by_tenant ON vector_removals (tenant_id, vector_id);
CREATE TRIGGER vector_documents_replaced AFTER UPDATE OF version ON vector_documents WHEN old.indexed = 1 BEGIN
  INSERT OR REPLACE INTO vector_removals VALUES ('document.' || old.number || '.' || old.version, old.tenant_id, 0);
END;
CREATE TRIGGER vector_documents_removed AFTER DELETE ON vector_documents WHEN old.indexed = 1 BEGIN
  INSERT OR REPLACE INTO vector_removals VALUES ('document.' || old.number || '.' || old.version, old.tenant_id, 0);
END;

CREATE TRIGGER erased_tenants_chat_no_more BEFORE INSERT ON chat_messages
WHEN EXISTS (SELECT 1 FROM erased_tenants WHERE tenant_id = new.tenant_id AND closed) BEGIN
  SELECT RAISE(ABORT, 'the tenant was erased');
END;
CREATE TRIGGER erased_tenants_keep_no_documents BEFORE INSERT ON vector_documents
WHEN EXISTS (SELECT 1 FROM erased_tenants WHERE tenant_id = new.tenant_id AND closed) BEGIN
  SELECT RAISE(ABORT, 'the tenant was erased');
END;
