-- The role of a message's speaker, until its facts are extracted: user, assistant, system, developer, tool or function.
ALTER TABLE ingest_messages ADD COLUMN role TEXT;
ALTER TABLE ingest_uploads ADD COLUMN role TEXT;
