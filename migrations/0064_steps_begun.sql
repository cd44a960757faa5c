-- When a step of the daily brief began of which is not noted yet that it ended: NULL while it is not under way. Where the platform
-- ended its invocation, this is all that is known.
ALTER TABLE steps_left ADD COLUMN begun_at_ms INTEGER;

INSERT INTO schema_versions (version, usable_from) VALUES (64, 42);
