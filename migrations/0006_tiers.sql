-- Tiered memory: the warm tier, which is also the catalogue of the hot and the cold tier. Times are epoch milliseconds.

-- One row per item, whichever tier has its value. A put, delete or change of tier raises the version in one statement.
CREATE TABLE memory_items (
  tenant_id TEXT NOT NULL,
  key TEXT NOT NULL,                 -- canonical `<namespaceKey>:<memoryKind>:<entityId>`, or an unchanged legacy key
  namespace_key TEXT NOT NULL DEFAULT '', -- `<service>:<tenantId>:<sessionId>`; '' only under a legacy key whose namespace
                                     -- is not known yet: the backfill fills it in
  kind TEXT NOT NULL DEFAULT '',     -- the data type, which is the key's memory kind; '' under a legacy key
  user_id TEXT,                      -- whose data it is: for erasure by user
  tier TEXT NOT NULL DEFAULT 'warm' CHECK (tier IN ('hot', 'warm', 'cold')), -- the authoritative tier
  value TEXT,                        -- in 'warm' the value; in 'cold' NULL or a copy promoted by a read; in 'hot' NULL
  object_key TEXT,                   -- in 'cold': the object that holds the value of this version
  version INTEGER NOT NULL,          -- grows with every write: the time of the write, or one more than the old version
  deleted INTEGER NOT NULL DEFAULT 0, -- 1: a tombstone, kept until no hot copy can be left
  erased_by TEXT,                    -- receipt of the erasure that deleted it, until its row goes
  key_id TEXT,                       -- of the key that seals the value's PII fields; NULL when it has none
  size_bytes INTEGER NOT NULL DEFAULT 0,
  expires_at_ms INTEGER,             -- hidden from then on, and removed by the daily work
  read_at_ms INTEGER NOT NULL DEFAULT 0, -- last read that reached this tier, noted at most once an hour
  read_hours INTEGER NOT NULL DEFAULT 0, -- number of hours in which it was read here
  looked_at_ms INTEGER NOT NULL DEFAULT 0, -- when demotion last examined it
  created_at_ms INTEGER NOT NULL DEFAULT 0,
  updated_at_ms INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (tenant_id, key),
  CHECK (key_id IS NULL OR tier = 'warm') -- PII stays in the warm tier
);
CREATE INDEX memory_items_by_namespace ON memory_items (namespace_key, key);
CREATE INDEX memory_items_by_user ON memory_items (tenant_id, user_id, key) WHERE user_id IS NOT NULL;
CREATE INDEX memory_items_by_look ON memory_items (looked_at_ms, tenant_id, key);
CREATE INDEX memory_items_expiring ON memory_items (expires_at_ms) WHERE expires_at_ms IS NOT NULL;
CREATE INDEX memory_items_erased ON memory_items (tenant_id, erased_by, key) WHERE erased_by IS NOT NULL;
CREATE INDEX memory_items_sealed ON memory_items (tenant_id, key_id) WHERE key_id IS NOT NULL;

-- Every object of the cold tier, recorded before it is written, so that one that no item points to can be found and removed.
CREATE TABLE memory_item_objects (
  object_key TEXT PRIMARY KEY,
  tenant_id TEXT NOT NULL,
  key TEXT NOT NULL,
  noted_at_ms INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX memory_item_objects_by_item ON memory_item_objects (tenant_id, key);
CREATE INDEX memory_item_objects_by_age ON memory_item_objects (noted_at_ms);

CREATE TRIGGER erased_tenants_keep_no_items BEFORE INSERT ON memory_items
WHEN EXISTS (SELECT 1 FROM erased_tenants WHERE tenant_id = new.tenant_id AND closed) BEGIN
  SELECT RAISE(ABORT, 'the tenant was erased');
END;
