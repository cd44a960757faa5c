-- History says who made a change. A transaction of somebody's request names them in `acting` first and removes the name last,
-- so that no other transaction ever sees it.
CREATE TABLE acting (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  name TEXT NOT NULL                 -- 'person:' and the name from Cloudflare Access
);
ALTER TABLE mutation_log ADD COLUMN changed_by TEXT; -- NULL: Retain itself, for an agent's run or in its daily work

DROP TRIGGER mutations_are_logged;
CREATE TRIGGER mutations_are_logged INSTEAD OF INSERT ON mutations BEGIN
  INSERT INTO mutation_subjects (tenant_id, thing, key)
    SELECT new.tenant_id, new.thing, new.key WHERE new.key IS NOT NULL AND NOT EXISTS
      (SELECT 1 FROM mutation_subjects WHERE tenant_id = new.tenant_id AND thing = new.thing AND key = new.key);
  INSERT INTO mutation_log (tenant_id, number, kind, subject, version, detail, at_ms, changed_by) VALUES (
    new.tenant_id,
    COALESCE((SELECT MAX(number) FROM mutation_log WHERE tenant_id = new.tenant_id), 0) + 1,
    new.kind,
    (SELECT number FROM mutation_subjects WHERE tenant_id = new.tenant_id AND thing = new.thing AND key = new.key),
    new.version, new.detail, CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER),
    (SELECT name FROM acting));
END;

-- What is asked for and done over many transactions: who asked.
CREATE TRIGGER erasures_started AFTER INSERT ON erasure_receipts BEGIN
  INSERT INTO mutations VALUES (new.tenant_id, 'erasure_started', 'tenant', NULL, NULL, new.receipt_id);
END;
CREATE TRIGGER reindexings_started AFTER INSERT ON index_jobs BEGIN
  INSERT INTO mutations VALUES (new.tenant_id, 'reindex_started', 'tenant', NULL, NULL, new.job_id);
END;
CREATE TRIGGER ingests_started AFTER INSERT ON ingest_jobs BEGIN
  INSERT INTO mutations VALUES (new.tenant_id, 'ingest_started', 'tenant', NULL, NULL, NULL);
END;
CREATE TRIGGER backups_started AFTER INSERT ON backup_jobs BEGIN
  INSERT INTO mutations VALUES (new.tenant_id, new.kind || '_started', 'tenant', NULL, NULL, new.job_id);
END;

-- A Worker that does not know the names would seal entries without them, and they would no longer verify.
INSERT INTO schema_versions (version, usable_from) VALUES (36, 36);
