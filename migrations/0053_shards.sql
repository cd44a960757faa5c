-- Shards: a deployment may have several databases like this one, and a tenant lives on one (docs/shards.md). Where there is one
-- database, these tables are empty, and a query of them reads no row.

-- Where tenants are, as this database knows it. A tenant without a row lives on the first database. There, a row in the state
-- 'gone' or 'removing' is the directory: its column `shard` says where the tenant is. On the others it redirects whoever still
-- asks there.
CREATE TABLE tenant_places (
  tenant_id TEXT PRIMARY KEY,
  state TEXT NOT NULL CHECK (state IN ('here', 'leaving', 'frozen', 'removing', 'gone', 'arriving', 'ready')),
  shard TEXT,                        -- where it goes, has gone, or comes from; NULL: it is here
  move_id TEXT,
  frozen_until_ms INTEGER            -- by the database's clock: after this, 'frozen' is 'leaving'
) WITHOUT ROWID;
CREATE INDEX tenant_places_between ON tenant_places (tenant_id)
  WHERE state IN ('leaving', 'frozen', 'removing', 'arriving', 'ready');

-- The first statement of each transaction that writes for a tenant, where there are shards: it refuses all of it if the tenant
-- is not here. home: 1 on the first database.
CREATE VIEW tenant_writes (tenant_id, home) AS SELECT '', 0 WHERE false;
CREATE TRIGGER tenants_are_written_where_they_are INSTEAD OF INSERT ON tenant_writes BEGIN
  SELECT RAISE(ABORT, 'tenant_frozen') FROM tenant_places
    WHERE tenant_id = new.tenant_id AND state = 'frozen' AND frozen_until_ms > (julianday('now') - 2440587.5) * 86400000;
  SELECT RAISE(ABORT, 'tenant_elsewhere') WHERE COALESCE(
    (SELECT state FROM tenant_places WHERE tenant_id = new.tenant_id), CASE new.home WHEN 1 THEN 'here' ELSE 'gone' END)
    NOT IN ('here', 'leaving', 'frozen');
END;
-- The same for work on all tenants of a database: it waits while one comes or goes.
CREATE VIEW shard_works (one) AS SELECT 1 WHERE false;
CREATE TRIGGER work_waits_for_moves INSTEAD OF INSERT ON shard_works BEGIN
  SELECT RAISE(ABORT, 'shard_moving')
    FROM (SELECT 1 FROM tenant_places WHERE state IN ('leaving', 'frozen', 'removing', 'arriving', 'ready') LIMIT 1);
END;

-- What changed of tenants that are leaving, in order: the keys of the rows. Triggers write it, which exist during moves only.
CREATE TABLE tenant_changes (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  tenant_id TEXT NOT NULL,
  relation TEXT NOT NULL,            -- the table
  key TEXT NOT NULL                  -- JSON: a list
);
CREATE INDEX tenant_changes_of ON tenant_changes (tenant_id, number);

-- Moves, on the first database.
CREATE TABLE tenant_moves (
  move_id TEXT PRIMARY KEY,
  tenant_id TEXT NOT NULL,
  source TEXT NOT NULL,
  target TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('running', 'completed', 'cancelled')),
  step TEXT NOT NULL,
  cursor TEXT,                       -- JSON: where the step continues
  counts TEXT NOT NULL DEFAULT '{}', -- JSON: rows and vectors copied, changes caught up with, freezes
  error TEXT,                        -- the code of what stopped it for now
  lease_until_ms INTEGER NOT NULL DEFAULT 0,
  started_by TEXT NOT NULL,
  started_at_ms INTEGER NOT NULL,
  updated_at_ms INTEGER NOT NULL,
  completed_at_ms INTEGER
);
CREATE UNIQUE INDEX tenant_moves_open ON tenant_moves (tenant_id) WHERE state = 'running';
CREATE INDEX tenant_moves_by_tenant ON tenant_moves (tenant_id, move_id);
CREATE INDEX tenant_moves_by_age ON tenant_moves (started_at_ms);

-- Rows keep their numbers when a tenant moves, so each database numbers its rows in a range of its own: `number` * 2^34 and on.
CREATE TABLE number_ranges (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  shard TEXT NOT NULL
);

-- Copying and removing the rows of a tenant that moves is not a mutation of it.
DROP TRIGGER mutations_are_logged;
CREATE TRIGGER mutations_are_logged INSTEAD OF INSERT ON mutations
WHEN NOT EXISTS (SELECT 1 FROM tenant_places WHERE tenant_id = new.tenant_id AND state NOT IN ('here', 'leaving', 'frozen'))
BEGIN
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

INSERT INTO schema_versions (version, usable_from) VALUES (53, 42);
