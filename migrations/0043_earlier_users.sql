-- Items that were given to another user: a copy of the earlier user's value may be left in KV, under the item's key, if the
-- put ended after its row was written. The note is written with the row, and removed when the copy certainly is.
CREATE TABLE memory_item_earlier_users (
  tenant_id TEXT NOT NULL,
  user_id TEXT NOT NULL,             -- the earlier user
  key TEXT NOT NULL,                 -- as in memory_items
  noted_at_ms INTEGER NOT NULL,      -- when the item was given to another user, or an erasure removed the copy
  erased_by TEXT,                    -- receipt of the erasure that removed the copy, until it does so again
  PRIMARY KEY (tenant_id, user_id, key)
) WITHOUT ROWID;
CREATE INDEX memory_item_earlier_users_by_age ON memory_item_earlier_users (noted_at_ms) WHERE erased_by IS NULL;
CREATE INDEX memory_item_earlier_users_erased ON memory_item_earlier_users (tenant_id, erased_by, user_id, key)
  WHERE erased_by IS NOT NULL;

CREATE TRIGGER items_given_to_another AFTER UPDATE OF user_id ON memory_items
WHEN old.user_id IS NOT NULL AND new.user_id IS NOT old.user_id BEGIN
  INSERT INTO memory_item_earlier_users (tenant_id, user_id, key, noted_at_ms)
    VALUES (old.tenant_id, old.user_id, old.key, new.updated_at_ms)
    ON CONFLICT (tenant_id, user_id, key) DO UPDATE SET noted_at_ms = excluded.noted_at_ms;
END;

INSERT INTO schema_versions (version, usable_from) VALUES (43, 42);
