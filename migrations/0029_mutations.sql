-- World history of what is not a record: one row for each mutation, written by triggers in the mutation's own transaction.
-- The rows name things by numbers, which mean nothing once the thing is gone. The daily work seals them into world_history.
CREATE TABLE mutation_log (
  tenant_id TEXT NOT NULL,
  number INTEGER NOT NULL,           -- of the tenant, from 1, without gaps
  kind TEXT NOT NULL,
  subject INTEGER,                   -- what was changed: a number in mutation_subjects; NULL for the tenant itself
  version INTEGER,                   -- of an item or a document; the position of a message
  detail TEXT,                       -- an item's tier, the kind of a scope
  at_ms INTEGER NOT NULL,            -- by the database's clock
  PRIMARY KEY (tenant_id, number)
) WITHOUT ROWID;

-- What the numbers mean. A row is removed together with what it names.
CREATE TABLE mutation_subjects (
  number INTEGER PRIMARY KEY AUTOINCREMENT, -- never reused
  tenant_id TEXT NOT NULL,
  thing TEXT NOT NULL,
  key TEXT NOT NULL,
  UNIQUE (tenant_id, thing, key)
);
CREATE INDEX world_history_seals ON world_history (tenant_id, seq) WHERE kind = 'mutations_sealed';

CREATE VIEW mutations (tenant_id, kind, thing, key, version, detail) AS SELECT '', '', '', '', 0, '' WHERE false;
CREATE TRIGGER mutations_are_logged INSTEAD OF INSERT ON mutations BEGIN
  INSERT INTO mutation_subjects (tenant_id, thing, key)
    SELECT new.tenant_id, new.thing, new.key WHERE new.key IS NOT NULL AND NOT EXISTS
      (SELECT 1 FROM mutation_subjects WHERE tenant_id = new.tenant_id AND thing = new.thing AND key = new.key);
  INSERT INTO mutation_log (tenant_id, number, kind, subject, version, detail, at_ms) VALUES (
    new.tenant_id,
    COALESCE((SELECT MAX(number) FROM mutation_log WHERE tenant_id = new.tenant_id), 0) + 1,
    new.kind,
    (SELECT number FROM mutation_subjects WHERE tenant_id = new.tenant_id AND thing = new.thing AND key = new.key),
    new.version, new.detail, CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER));
END;

CREATE TRIGGER items_written_first AFTER INSERT ON memory_items BEGIN
  INSERT INTO mutations VALUES
    (new.tenant_id, CASE WHEN new.deleted THEN 'item_deleted' ELSE 'item_written' END, 'item', new.key, new.version,
     new.tier);
END;
CREATE TRIGGER items_written AFTER UPDATE OF version, deleted, tier ON memory_items
WHEN new.version <> old.version OR new.deleted <> old.deleted OR new.tier <> old.tier BEGIN
  INSERT INTO mutations VALUES (
    new.tenant_id,
    CASE WHEN new.deleted THEN 'item_deleted' WHEN new.version <> old.version OR old.deleted THEN 'item_written'
      ELSE 'item_moved' END,
    'item', new.key, new.version, new.tier);
END;
CREATE TRIGGER items_removed AFTER DELETE ON memory_items BEGIN
  INSERT INTO mutations VALUES (old.tenant_id, 'item_removed', 'item', old.key, old.version, old.tier);
  DELETE FROM mutation_subjects WHERE tenant_id = old.tenant_id AND thing = 'item' AND key = old.key;
END;

CREATE TRIGGER chat_messages_added AFTER INSERT ON chat_messages BEGIN
  INSERT INTO mutations VALUES (new.tenant_id, 'chat_message_written', 'chat', new.namespace_key, new.position, NULL);
END;
CREATE TRIGGER chat_messages_changed AFTER UPDATE OF message ON chat_messages WHEN new.message <> old.message BEGIN
  INSERT INTO mutations VALUES (new.tenant_id, 'chat_message_written', 'chat', new.namespace_key, new.position, NULL);
END;
CREATE TRIGGER chat_messages_removed AFTER DELETE ON chat_messages BEGIN
  INSERT INTO mutations VALUES (old.tenant_id, 'chat_message_removed', 'chat', old.namespace_key, old.position, NULL);
  DELETE FROM mutation_subjects WHERE tenant_id = old.tenant_id AND thing = 'chat' AND key = old.namespace_key
    AND NOT EXISTS (SELECT 1 FROM chat_messages WHERE namespace_key = old.namespace_key);
END;

CREATE TRIGGER documents_added AFTER INSERT ON vector_documents BEGIN
  INSERT INTO mutations VALUES
    (new.tenant_id, 'document_written', 'document', new.namespace_key || ' ' || new.document_id, new.version, NULL);
END;
CREATE TRIGGER documents_changed AFTER UPDATE OF version ON vector_documents WHEN new.version <> old.version BEGIN
  INSERT INTO mutations VALUES
    (new.tenant_id, 'document_written', 'document', new.namespace_key || ' ' || new.document_id, new.version, NULL);
END;
CREATE TRIGGER documents_removed AFTER DELETE ON vector_documents BEGIN
  INSERT INTO mutations VALUES
    (old.tenant_id, 'document_removed', 'document', old.namespace_key || ' ' || old.document_id, old.version, NULL);
  DELETE FROM mutation_subjects
    WHERE tenant_id = old.tenant_id AND thing = 'document' AND key = old.namespace_key || ' ' || old.document_id;
END;

CREATE TRIGGER tenants_registered AFTER INSERT ON tenants BEGIN
  INSERT INTO mutations VALUES (new.tenant_id, 'tenant_registered', 'tenant', NULL, NULL, NULL);
END;
CREATE TRIGGER tenants_limited AFTER UPDATE OF max_memories_per_user ON tenants
WHEN new.max_memories_per_user IS NOT old.max_memories_per_user BEGIN
  INSERT INTO mutations VALUES (new.tenant_id, 'tenant_limited', 'tenant', NULL, new.max_memories_per_user, NULL);
END;
CREATE TRIGGER tenants_unregistered AFTER DELETE ON tenants BEGIN
  INSERT INTO mutations VALUES (old.tenant_id, 'tenant_unregistered', 'tenant', NULL, NULL, NULL);
END;

CREATE TRIGGER scopes_opened AFTER INSERT ON scopes BEGIN
  INSERT INTO mutations VALUES (new.tenant_id, 'scope_opened', 'scope', new.scope_id, NULL, new.kind);
END;
CREATE TRIGGER scopes_removed AFTER DELETE ON scopes BEGIN
  INSERT INTO mutations VALUES (old.tenant_id, 'scope_removed', 'scope', old.scope_id, NULL, old.kind);
  DELETE FROM mutation_subjects WHERE tenant_id = old.tenant_id AND thing = 'scope' AND key = old.scope_id;
END;

CREATE TRIGGER users_met AFTER INSERT ON users BEGIN
  INSERT INTO mutations VALUES (new.tenant_id, 'user_met', 'user', new.user_id, NULL, NULL);
END;
CREATE TRIGGER users_changed AFTER UPDATE OF name, locale, timezone ON users
WHEN new.name IS NOT old.name OR new.locale IS NOT old.locale OR new.timezone IS NOT old.timezone BEGIN
  INSERT INTO mutations VALUES (new.tenant_id, 'user_changed', 'user', new.user_id, NULL, NULL);
END;
CREATE TRIGGER users_removed AFTER DELETE ON users BEGIN
  INSERT INTO mutations VALUES (old.tenant_id, 'user_removed', 'user', old.user_id, NULL, NULL);
  DELETE FROM mutation_subjects WHERE tenant_id = old.tenant_id AND thing = 'user' AND key = old.user_id;
END;

CREATE TRIGGER conversations_opened AFTER INSERT ON conversations BEGIN
  INSERT INTO mutations VALUES
    (new.tenant_id, 'conversation_opened', 'conversation', new.agent_type || ':' || new.instance_id, NULL, NULL);
END;
CREATE TRIGGER conversations_renamed AFTER UPDATE OF title ON conversations WHEN new.title IS NOT old.title BEGIN
  INSERT INTO mutations VALUES
    (new.tenant_id, 'conversation_renamed', 'conversation', new.agent_type || ':' || new.instance_id, NULL, NULL);
END;
CREATE TRIGGER conversations_removed AFTER DELETE ON conversations BEGIN
  INSERT INTO mutations VALUES
    (old.tenant_id, 'conversation_removed', 'conversation', old.agent_type || ':' || old.instance_id, NULL, NULL);
  DELETE FROM mutation_subjects
    WHERE tenant_id = old.tenant_id AND thing = 'conversation' AND key = old.agent_type || ':' || old.instance_id;
END;

CREATE TRIGGER outcomes_reported AFTER INSERT ON procedure_outcomes BEGIN
  INSERT INTO mutations VALUES (new.tenant_id, 'outcome_reported', 'outcome', new.run_id, NULL, NULL);
END;
CREATE TRIGGER outcomes_changed AFTER UPDATE OF score ON procedure_outcomes WHEN new.score <> old.score BEGIN
  INSERT INTO mutations VALUES (new.tenant_id, 'outcome_reported', 'outcome', new.run_id, NULL, NULL);
END;
CREATE TRIGGER outcomes_removed AFTER DELETE ON procedure_outcomes BEGIN
  INSERT INTO mutations VALUES (old.tenant_id, 'outcome_removed', 'outcome', old.run_id, NULL, NULL);
  DELETE FROM mutation_subjects WHERE tenant_id = old.tenant_id AND thing = 'outcome' AND key = old.run_id;
END;

CREATE TRIGGER datasets_stored AFTER INSERT ON eval_datasets BEGIN
  INSERT INTO mutations VALUES
    (new.tenant_id, 'dataset_stored', 'dataset', new.name || ' ' || new.version, NULL, NULL);
END;
CREATE TRIGGER datasets_changed AFTER UPDATE OF current ON eval_datasets WHEN new.current <> old.current BEGIN
  INSERT INTO mutations VALUES (
    new.tenant_id, CASE WHEN new.current THEN 'dataset_stored' ELSE 'dataset_superseded' END, 'dataset',
    new.name || ' ' || new.version,
    NULL, NULL);
END;
CREATE TRIGGER datasets_removed AFTER DELETE ON eval_datasets BEGIN
  INSERT INTO mutations VALUES
    (old.tenant_id, 'dataset_removed', 'dataset', old.name || ' ' || old.version, NULL, NULL);
  DELETE FROM mutation_subjects
    WHERE tenant_id = old.tenant_id AND thing = 'dataset' AND key = old.name || ' ' || old.version;
END;

CREATE TRIGGER evaluations_started AFTER INSERT ON eval_runs BEGIN
  INSERT INTO mutations VALUES (new.tenant_id, 'evaluation_started', 'evaluation', new.run_id, NULL, NULL);
END;
CREATE TRIGGER evaluations_moved AFTER UPDATE OF state ON eval_runs WHEN new.state <> old.state BEGIN
  INSERT INTO mutations VALUES (new.tenant_id, 'evaluation_' || new.state, 'evaluation', new.run_id, NULL, NULL);
END;
CREATE TRIGGER evaluations_removed AFTER DELETE ON eval_runs BEGIN
  INSERT INTO mutations VALUES (old.tenant_id, 'evaluation_removed', 'evaluation', old.run_id, NULL, NULL);
  DELETE FROM mutation_subjects WHERE tenant_id = old.tenant_id AND thing = 'evaluation' AND key = old.run_id;
END;
