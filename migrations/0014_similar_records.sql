-- Consolidation merges only records that say the same in the same words; those that are merely similar are shown to a person.
ALTER TABLE memory_likeness ADD COLUMN similar TEXT; -- SHA-256 over everything that similar records have in common
CREATE INDEX memory_likeness_by_similarity ON memory_likeness (tenant_id, similar, record_id) WHERE similar IS NOT NULL;
UPDATE memory_likeness SET key = NULL; -- examined again by the new rule
