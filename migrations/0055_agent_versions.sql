-- The agents that tenants define themselves: rows are only added. The current version of an agent is its greatest. Times are
-- epoch milliseconds.
CREATE TABLE agent_versions (
  tenant_id TEXT NOT NULL,
  agent_type TEXT NOT NULL,
  version INTEGER NOT NULL,          -- from 1
  definition TEXT,                   -- JSON, with every default; NULL: the agent was deleted
  digest TEXT NOT NULL,              -- of the definition, as decision_log.agent_version; '' for a deletion
  restored_from INTEGER,             -- the version whose definition it has again
  created_by TEXT NOT NULL,          -- as in mutation_log.changed_by
  created_at_ms INTEGER NOT NULL,
  PRIMARY KEY (tenant_id, agent_type, version)
);

CREATE TRIGGER agent_versions_added AFTER INSERT ON agent_versions BEGIN
  INSERT INTO mutations VALUES (
    new.tenant_id, CASE WHEN new.definition IS NULL THEN 'agent_deleted' ELSE 'agent_defined' END, 'agent', new.agent_type,
    new.version, NULL);
END;
CREATE TRIGGER agent_versions_removed AFTER DELETE ON agent_versions BEGIN
  INSERT INTO mutations VALUES (old.tenant_id, 'agent_version_removed', 'agent', old.agent_type, old.version, NULL);
  DELETE FROM mutation_subjects WHERE tenant_id = old.tenant_id AND thing = 'agent' AND key = old.agent_type
    AND NOT EXISTS (SELECT 1 FROM agent_versions WHERE tenant_id = old.tenant_id AND agent_type = old.agent_type);
END;
CREATE TRIGGER erased_tenants_get_no_agent_versions BEFORE INSERT ON agent_versions
WHEN EXISTS (SELECT 1 FROM erased_tenants WHERE tenant_id = new.tenant_id AND closed) BEGIN
  SELECT RAISE(ABORT, 'the tenant was erased');
END;

ALTER TABLE agent_runs ADD COLUMN agent_version INTEGER; -- with which it began; NULL: the agent was one of the repository

INSERT INTO schema_versions (version, usable_from) VALUES (55, 42);
