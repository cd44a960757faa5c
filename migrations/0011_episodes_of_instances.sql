-- The newest episodes of one instance are read at the start of each of its runs.
CREATE INDEX memory_episodes_of_instance
  ON memory_episodes (tenant_id, agent_type, instance_id, created_at_ms DESC, episode_id DESC);
