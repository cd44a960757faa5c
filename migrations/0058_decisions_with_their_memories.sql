-- A decision that is removed takes what it rested on with it: one statement of pruning instead of two.
CREATE TRIGGER decision_memories_removed AFTER DELETE ON decision_log BEGIN
  DELETE FROM decision_memories WHERE decision_id = old.decision_id;
END;

INSERT INTO schema_versions (version, usable_from) VALUES (58, 42);
