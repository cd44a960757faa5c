-- The outcome of learning from a run: JSON, NULL when nothing is to be learned from it.
ALTER TABLE agent_runs ADD COLUMN learning TEXT;
