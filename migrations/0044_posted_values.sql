-- What is posted of a record, and what is removed of it, is written once each, and used by the triggers of memory_records.
-- Nothing is stored in these views: a row that is inserted into one is a record's metadata, which is posted or removed.
DROP TRIGGER memory_postings_added;
DROP TRIGGER memory_postings_removed;
DROP TRIGGER memory_postings_changed;

-- At most 32 values of a record are posted; one that has more is found by the field ''.
CREATE VIEW postings_added (tenant_id, number, metadata) AS SELECT '', 0, '' WHERE false;
CREATE TRIGGER postings_are_added INSTEAD OF INSERT ON postings_added WHEN new.metadata <> '{}' BEGIN
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

-- The record's own fields and values lead to its rows: a list of pairs would make SQLite read the whole tenant's.
CREATE VIEW postings_removed (tenant_id, number, metadata) AS SELECT '', 0, '' WHERE false;
CREATE TRIGGER postings_are_removed INSTEAD OF INSERT ON postings_removed WHEN new.metadata <> '{}' BEGIN
  DELETE FROM memory_postings WHERE tenant_id = new.tenant_id AND number = new.number
    AND field IN (SELECT f.key FROM json_each(new.metadata) f WHERE 32 >= (SELECT COUNT(*) FROM json_each(new.metadata) c,
      json_each(CASE c.type WHEN 'array' THEN c.value ELSE json_array(c.atom) END))
      UNION ALL SELECT '')
    AND value IN (SELECT CASE e.type WHEN 'text' THEN substr(e.atom, 1, 100) ELSE e.atom END
      FROM json_each(new.metadata) f, json_each(CASE f.type WHEN 'array' THEN f.value ELSE json_array(f.atom) END) e
      WHERE f.type NOT IN ('object', 'null') AND e.type NOT IN ('object', 'array', 'null') AND 32 >= (SELECT COUNT(*)
        FROM json_each(new.metadata) c, json_each(CASE c.type WHEN 'array' THEN c.value ELSE json_array(c.atom) END))
      UNION ALL SELECT 1);
END;

CREATE TRIGGER memory_postings_added AFTER INSERT ON memory_records WHEN new.metadata <> '{}' BEGIN
  INSERT INTO postings_added VALUES (new.tenant_id, new.number, new.metadata);
END;
CREATE TRIGGER memory_postings_removed AFTER DELETE ON memory_records WHEN old.metadata <> '{}' BEGIN
  INSERT INTO postings_removed VALUES (old.tenant_id, old.number, old.metadata);
END;
CREATE TRIGGER memory_postings_changed AFTER UPDATE OF metadata ON memory_records WHEN new.metadata <> old.metadata BEGIN
  INSERT INTO postings_removed VALUES (old.tenant_id, old.number, old.metadata);
  INSERT INTO postings_added VALUES (new.tenant_id, new.number, new.metadata);
END;

INSERT INTO schema_versions (version, usable_from) VALUES (44, 42);
