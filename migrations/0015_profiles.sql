-- What is known of a user, in the order in which a run's context takes it.
CREATE INDEX memory_records_of_users ON memory_records
  (tenant_id, scope_id, importance DESC, valid_from_ms DESC, id DESC)
  WHERE scope_id GLOB 'user.*' AND conversation IS NULL AND valid_to_ms IS NULL;
