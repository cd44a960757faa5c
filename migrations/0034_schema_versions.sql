-- Which schema this database has. Each migration from here on appends a row: its own number, and the oldest schema whose
-- Worker can still use the database after it (docs/deployment.md, "Migrations").
CREATE TABLE schema_versions (
  version INTEGER PRIMARY KEY,
  usable_from INTEGER NOT NULL CHECK (usable_from <= version)
);
INSERT INTO schema_versions (version, usable_from) VALUES (34, 34);
