"""The sessions of a fact: the conversations that state it, as conditions of SQL on the record `r`.

The events of a fact name the message that stated it, and each that stated it again. A message has its conversation in
the event that stored it, which outlasts a deletion of the message; an erasure removes it.
"""

from __future__ import annotations

_STATEMENTS = """
FROM memory_events e INDEXED BY memory_events_by_record
CROSS JOIN memory_events o INDEXED BY memory_events_by_record ON o.record_id = e.source ->> '$.record_id'
WHERE e.record_id = r.id AND e.tenant_id = r.tenant_id AND e.kind IN ('stored', 'edited', 'restored')
  AND e.source ->> '$.origin' = 'extraction' AND o.tenant_id = r.tenant_id AND o.kind = 'stored'
  AND o.data ->> '$.utterance.conversation'
"""
_IS_LEFT = "EXISTS (SELECT 1 FROM memory_records m WHERE m.id = o.record_id)"
_EXTRACTED = "r.source ->> '$.origin' = 'extraction'"
_STATED = f"({_EXTRACTED} AND EXISTS (SELECT 1 {_STATEMENTS} = ?3))"
_CONVERSATION = f"SELECT o.data ->> '$.utterance.conversation' {_STATEMENTS} IS NOT NULL"

SESSION = f"""
COALESCE(r.metadata ->> '$.session', CASE WHEN {_EXTRACTED} THEN COALESCE(
  ({_CONVERSATION} AND {_IS_LEFT} ORDER BY e.event_id LIMIT 1), ({_CONVERSATION} ORDER BY e.event_id LIMIT 1)) END)
"""
"""A memory's session: in which it was remembered, or the first one that states it, if possible with a message left."""
OF_SESSION = f"(r.metadata ->> '$.session' = ?3 OR {_STATED})"
"""Whether a memory was remembered in the session `?3`, or is stated in it."""
OF_NO_OTHER = f"""
(r.metadata ->> '$.session' = ?3 OR ({_STATED} AND NOT EXISTS (SELECT 1 {_STATEMENTS} <> ?3 AND {_IS_LEFT})))
"""
"""Whether a memory goes with the session `?3`: no message of another one states it."""
