-- Jobs of ingest that are not completed, by their last attempt: their messages wait for a limited time.
CREATE INDEX ingest_jobs_waiting ON ingest_jobs (updated_at_ms) WHERE state <> 'completed';
