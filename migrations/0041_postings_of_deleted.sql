-- A record's postings are found by its own values when they are deleted: a list of pairs made SQLite read the whole tenant's.
DROP TRIGGER memory_postings_removed;
DROP TRIGGER memory_postings_changed;
CREATE TRIGGER memory_postings_removed AFTER DELETE ON memory_records WHEN old.metadata <> '{}' BEGIN
  DELETE FROM memory_postings WHERE tenant_id = old.tenant_id AND number = old.number
    AND field IN (SELECT f.key FROM json_each(old.metadata) f WHERE 32 >= (SELECT COUNT(*) FROM json_each(old.metadata) c, json_each(
      CASE c.type WHEN 'array' THEN c.value ELSE json_array(c.atom) END))
      UNION ALL SELECT '')
    AND value IN (SELECT CASE e.type WHEN 'text' THEN substr(e.atom, 1, 100) ELSE e.atom END
      FROM json_each(old.metadata) f, json_each(CASE f.type WHEN 'array' THEN f.value ELSE json_array(f.atom) END) e
      WHERE f.type NOT IN ('object', 'null') AND e.type NOT IN ('object', 'array', 'null') AND 32 >= (SELECT COUNT(*) FROM json_each(old.metadata) c, json_each(
      CASE c.type WHEN 'array' THEN c.value ELSE json_array(c.atom) END))
      UNION ALL SELECT 1);
END;
CREATE TRIGGER memory_postings_changed AFTER UPDATE OF metadata ON memory_records WHEN new.metadata <> old.metadata BEGIN
  DELETE FROM memory_postings WHERE tenant_id = old.tenant_id AND number = old.number
    AND field IN (SELECT f.key FROM json_each(old.metadata) f WHERE 32 >= (SELECT COUNT(*) FROM json_each(old.metadata) c, json_each(
      CASE c.type WHEN 'array' THEN c.value ELSE json_array(c.atom) END))
      UNION ALL SELECT '')
    AND value IN (SELECT CASE e.type WHEN 'text' THEN substr(e.atom, 1, 100) ELSE e.atom END
      FROM json_each(old.metadata) f, json_each(CASE f.type WHEN 'array' THEN f.value ELSE json_array(f.atom) END) e
      WHERE f.type NOT IN ('object', 'null') AND e.type NOT IN ('object', 'array', 'null') AND 32 >= (SELECT COUNT(*) FROM json_each(old.metadata) c, json_each(
      CASE c.type WHEN 'array' THEN c.value ELSE json_array(c.atom) END))
      UNION ALL SELECT 1);
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

INSERT INTO schema_versions (version, usable_from) VALUES (41, 36);
