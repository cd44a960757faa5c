-- Which records have a value in a field of their metadata, so that a filter reads these alone. Triggers keep it: a record's
-- rows are written, changed and deleted with it, whoever does that. At most 32 rows for each record: one that has more values
-- has a single row with the field '' instead, and filters of its tenant read all records, as they did before.
CREATE TABLE memory_postings (
  tenant_id TEXT NOT NULL,
  field TEXT NOT NULL,               -- a key of the metadata
  value NOT NULL,                    -- its value, or an element of its list; of a text the first 100 characters
  number INTEGER NOT NULL,           -- as in memory_records
  PRIMARY KEY (tenant_id, field, value, number)
) WITHOUT ROWID;

CREATE TRIGGER memory_postings_added AFTER INSERT ON memory_records WHEN new.metadata <> '{}' BEGIN
  INSERT OR IGNORE INTO memory_postings (tenant_id, field, value, number)
    SELECT DISTINCT new.tenant_id, f.key, CASE e.type WHEN 'text' THEN substr(e.atom, 1, 100) ELSE e.atom END, new.number
    FROM json_each(new.metadata) f, json_each(CASE f.type WHEN 'array' THEN f.value ELSE json_array(f.atom) END) e
    WHERE f.type NOT IN ('object', 'null') AND e.type NOT IN ('object', 'array', 'null') AND f.key <> ''
      AND 32 >= (SELECT COUNT(*) FROM json_each(new.metadata) c, json_each(
        CASE c.type WHEN 'array' THEN c.value ELSE json_array(c.atom) END));
  INSERT OR IGNORE INTO memory_postings (tenant_id, field, value, number)
    SELECT new.tenant_id, '', 1, new.number WHERE 32 < (SELECT COUNT(*) FROM json_each(new.metadata) c, json_each(
      CASE c.type WHEN 'array' THEN c.value ELSE json_array(c.atom) END));
END;
CREATE TRIGGER memory_postings_removed AFTER DELETE ON memory_records WHEN old.metadata <> '{}' BEGIN
  DELETE FROM memory_postings WHERE tenant_id = old.tenant_id AND number = old.number AND (field, value) IN (
    SELECT f.key, CASE e.type WHEN 'text' THEN substr(e.atom, 1, 100) ELSE e.atom END
    FROM json_each(old.metadata) f, json_each(CASE f.type WHEN 'array' THEN f.value ELSE json_array(f.atom) END) e
    WHERE f.type NOT IN ('object', 'null') AND e.type NOT IN ('object', 'array', 'null')
    UNION ALL SELECT '', 1);
END;
CREATE TRIGGER memory_postings_changed AFTER UPDATE OF metadata ON memory_records WHEN new.metadata <> old.metadata BEGIN
  DELETE FROM memory_postings WHERE tenant_id = old.tenant_id AND number = old.number AND (field, value) IN (
    SELECT f.key, CASE e.type WHEN 'text' THEN substr(e.atom, 1, 100) ELSE e.atom END
    FROM json_each(old.metadata) f, json_each(CASE f.type WHEN 'array' THEN f.value ELSE json_array(f.atom) END) e
    WHERE f.type NOT IN ('object', 'null') AND e.type NOT IN ('object', 'array', 'null')
    UNION ALL SELECT '', 1);
  INSERT OR IGNORE INTO memory_postings (tenant_id, field, value, number)
    SELECT DISTINCT new.tenant_id, f.key, CASE e.type WHEN 'text' THEN substr(e.atom, 1, 100) ELSE e.atom END, new.number
    FROM json_each(new.metadata) f, json_each(CASE f.type WHEN 'array' THEN f.value ELSE json_array(f.atom) END) e
    WHERE f.type NOT IN ('object', 'null') AND e.type NOT IN ('object', 'array', 'null') AND f.key <> ''
      AND 32 >= (SELECT COUNT(*) FROM json_each(new.metadata) c, json_each(
        CASE c.type WHEN 'array' THEN c.value ELSE json_array(c.atom) END));
  INSERT OR IGNORE INTO memory_postings (tenant_id, field, value, number)
    SELECT new.tenant_id, '', 1, new.number WHERE 32 < (SELECT COUNT(*) FROM json_each(new.metadata) c, json_each(
      CASE c.type WHEN 'array' THEN c.value ELSE json_array(c.atom) END));
END;

-- The records that there are.
INSERT OR IGNORE INTO memory_postings (tenant_id, field, value, number)
  SELECT r.tenant_id, f.key, CASE e.type WHEN 'text' THEN substr(e.atom, 1, 100) ELSE e.atom END, r.number
  FROM memory_records r, json_each(r.metadata) f,
    json_each(CASE f.type WHEN 'array' THEN f.value ELSE json_array(f.atom) END) e
  WHERE r.metadata <> '{}' AND f.type NOT IN ('object', 'null') AND e.type NOT IN ('object', 'array', 'null') AND f.key <> ''
    AND 32 >= (SELECT COUNT(*) FROM json_each(r.metadata) c, json_each(
      CASE c.type WHEN 'array' THEN c.value ELSE json_array(c.atom) END));
INSERT OR IGNORE INTO memory_postings (tenant_id, field, value, number)
  SELECT r.tenant_id, '', 1, r.number FROM memory_records r WHERE r.metadata <> '{}' AND 32 < (
    SELECT COUNT(*) FROM json_each(r.metadata) c, json_each(
      CASE c.type WHEN 'array' THEN c.value ELSE json_array(c.atom) END));

-- The fields of records that a filter asks for by a value of which there are few.
CREATE INDEX memory_records_by_predicate ON memory_records (tenant_id, predicate) WHERE predicate IS NOT NULL;
CREATE INDEX memory_records_by_object ON memory_records (tenant_id, object) WHERE object IS NOT NULL;
CREATE INDEX memory_records_by_conversation ON memory_records (tenant_id, conversation) WHERE conversation IS NOT NULL;
CREATE INDEX memory_records_by_rare_kind ON memory_records (tenant_id, kind) WHERE kind IN ('task', 'instruction');

INSERT INTO schema_versions (version, usable_from) VALUES (40, 36);
