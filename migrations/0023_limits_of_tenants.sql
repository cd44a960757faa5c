-- What a tenant may hold, where its administrator limits it.
ALTER TABLE tenants ADD COLUMN max_memories_per_user INTEGER CHECK (max_memories_per_user >= 0); -- NULL: as many as there are
