-- The writer of a schedule's deletion: with its row go writes of it that were put aside, or a replay would bring it back, and
-- what the error ledger has of them.
CREATE VIEW dropped_schedules (schedule_id) AS SELECT '' WHERE false;
CREATE TRIGGER schedules_dropped INSTEAD OF INSERT ON dropped_schedules BEGIN
  DELETE FROM schedules WHERE schedule_id = new.schedule_id;
  DELETE FROM error_ledger WHERE error_id IN (
    SELECT e.error_id FROM outbox_failures f CROSS JOIN error_ledger e ON e.tenant_id = f.tenant_id AND e.stage = 'outbox'
      AND e.concerns = f.instance_key || '#' || f.entry_id
    WHERE f.statement = 'keep_schedule' AND f.parameters ->> 0 = new.schedule_id);
  DELETE FROM outbox_failures WHERE statement = 'keep_schedule' AND parameters ->> 0 = new.schedule_id;
END;
CREATE INDEX outbox_failures_of_schedules ON outbox_failures (parameters ->> 0) WHERE statement = 'keep_schedule';

-- What was due to be sent to webhooks, and was not.
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (due_at_ms) WHERE status = 'pending';

-- How long a key was to live before another one replaced it; -1: for ever; NULL: it was not replaced. A rotation that is
-- repeated gives the next one the same life.
ALTER TABLE application_keys ADD COLUMN lives_ms INTEGER;

INSERT INTO schema_versions (version, usable_from) VALUES (63, 42);
