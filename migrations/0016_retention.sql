-- How long texts are kept, how many episodes a tenant may have, and indexes that find what is old without asking each tenant.

-- 'copied': version 0.1.0 wrote the row, with the texts of the episodes in the run's context; the daily brief makes them
-- references. 'kept': only the run's own texts. 'removed': none. An existing row needs no rewriting here.
ALTER TABLE agent_runs ADD COLUMN texts TEXT NOT NULL DEFAULT 'copied' CHECK (texts IN ('copied', 'kept', 'removed'));
CREATE INDEX agent_runs_by_age ON agent_runs (texts, created_at_ms);

DROP INDEX memory_episodes_by_age;
CREATE INDEX memory_episodes_by_age ON memory_episodes (created_at_ms);
DROP INDEX conversation_messages_by_age;
CREATE INDEX conversation_messages_by_age ON conversation_messages (at_ms);
CREATE INDEX run_events_old ON run_events (at_ms);
CREATE INDEX outbox_failures_by_age ON outbox_failures (failed_at_ms);

-- Episodes that did not fit: ids, no text.
CREATE TABLE refused_episodes (
  episode_id TEXT PRIMARY KEY,
  tenant_id TEXT NOT NULL,
  at_ms INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX refused_episodes_by_tenant ON refused_episodes (tenant_id);
CREATE INDEX refused_episodes_by_age ON refused_episodes (at_ms);

-- A run is refused when it begins and its tenant has 100,000 episodes. Runs that had begun before still end, and their
-- episodes meet the limit here. RAISE(IGNORE) keeps what the trigger wrote before it, and the statement succeeds, so that an
-- instance's outbox continues with the next entry.
CREATE TRIGGER memory_episodes_limited BEFORE INSERT ON memory_episodes
WHEN (SELECT episodes FROM episode_counts WHERE tenant_id = new.tenant_id) >= 100000
  AND NOT EXISTS (SELECT 1 FROM memory_episodes WHERE episode_id = new.episode_id) BEGIN
  INSERT OR IGNORE INTO refused_episodes VALUES (new.episode_id, new.tenant_id, new.created_at_ms);
  SELECT RAISE(IGNORE);
END;
