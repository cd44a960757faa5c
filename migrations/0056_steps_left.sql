-- Steps of the daily brief that their bound stopped: the work of every five minutes continues them. since_ms: of the first stop.
CREATE TABLE steps_left (
  step TEXT PRIMARY KEY,
  since_ms INTEGER NOT NULL
) WITHOUT ROWID;

INSERT INTO schema_versions (version, usable_from) VALUES (56, 42);
