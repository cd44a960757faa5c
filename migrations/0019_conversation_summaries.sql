-- Summaries of conversations are pruned by the age of their oldest line, and keep nothing of an answer that may repeat
-- what was recalled. It is unknown which of the answers so far do.
ALTER TABLE conversations ADD COLUMN summary_since_ms INTEGER; -- the time of the summary's oldest line
CREATE INDEX conversations_by_summary ON conversations (summary_since_ms) WHERE summary_since_ms IS NOT NULL;
ALTER TABLE conversation_messages ADD COLUMN recalled INTEGER NOT NULL DEFAULT 0; -- 1: its run had remembered text in its context
UPDATE conversation_messages SET recalled = 1 WHERE role = 'assistant';
