-- When facts are valid follows from what was stated of them: retain/memory/records/claims.py.

ALTER TABLE memory_records ADD COLUMN gaps TEXT;   -- JSON: spans in which it was not valid; NULL for none
ALTER TABLE memory_records ADD COLUMN claims TEXT; -- JSON: the spans for which it was stated; NULL for the one it shows
