"""The summary of a profile: sections of Markdown with a share of the room each, made by rule.

Source: https://developers.cloudflare.com/agent-memory/api/get-summary/ (sections and their shares)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from retain.agent_memory.memories import summary_of
from retain.agent_memory.sessions import SESSION
from retain.memory.records.rows import outside_gaps
from retain.memory.scope import Scope
from retain.ports import Clock, Sql, Statement

CHARACTERS = 4_000
"""How long a summary is at most, about 1,000 tokens."""
RECENT_MS = 30 * 86_400_000
"""How old an event is at most that is recent."""
_READ = 100
_SHARES: Mapping[str, float] = {
    "Key Facts": 0.25,
    "Recent Events": 0.25,
    "Active Tasks": 0.15,
    "Last Session": 0.15,
    "Instructions": 0.20,
}
"""The sections in their order, and how much of the room each has."""
_KINDS = {"Key Facts": "fact", "Recent Events": "event", "Active Tasks": "task", "Instructions": "instruction"}
_VALID = f"""
r.valid_from_ms <= ?3 AND (r.valid_to_ms IS NULL OR r.valid_to_ms > ?3)
  AND (r.expires_at_ms IS NULL OR r.expires_at_ms > ?3) AND {outside_gaps("?3")}
"""
_MEMORIES = f"""
SELECT r.kind, substr(r.content, 1, 2000) AS content FROM memory_records r
WHERE r.tenant_id = ?1 AND r.scope_id = ?2 AND r.conversation IS NULL AND r.kind = ?4 AND r.valid_from_ms >= ?5 AND {_VALID}
  AND (r.kind <> 'task' OR ?6 IS NULL OR COALESCE({SESSION}, ?6) = ?6)
ORDER BY r.importance DESC, r.valid_from_ms DESC, r.number DESC LIMIT {_READ}
"""
_MESSAGES = f"""
SELECT r.speaker, substr(r.content, 1, 2000) AS content
FROM memory_search s INDEXED BY memory_search_by_place CROSS JOIN memory_records r ON r.number = s.number
WHERE s.tenant_id = ?1 AND s.scope_id = ?2 AND {_VALID} AND s.conversation = COALESCE(?4, (
  SELECT l.conversation FROM memory_search l INDEXED BY memory_search_by_place
  WHERE l.tenant_id = ?1 AND l.scope_id = ?2 AND l.conversation IS NOT NULL ORDER BY l.number DESC LIMIT 1))
ORDER BY s.position DESC LIMIT {_READ}
"""


async def summary_of_profile(sql: Sql, clock: Clock, scope: Scope, session: str | None) -> str:
    """Return the summary, "" of a profile without memories. In one round trip.

    session: only this one's tasks, and tasks of none; and its messages instead of the last session's.
    """
    now = clock()
    here = (scope.tenant_id, scope.scope_id, now)
    asked: list[Statement] = [
        (_MEMORIES, (*here, kind, now - RECENT_MS if kind == "event" else 0, session)) for kind in _KINDS.values()
    ]
    *found, messages = await sql.batch([*asked, (_MESSAGES, (*here, session))])
    lines = {title: [str(row["content"]) for row in read.rows] for title, read in zip(_KINDS, found, strict=True)}
    lines["Last Session"] = [f"{row['speaker']}: {row['content']}" for row in messages.rows]
    sections = [_section(title, lines[title], int(CHARACTERS * share)) for title, share in _SHARES.items()]
    return "\n\n".join(section for section in sections if section)


def _section(title: str, texts: Sequence[str], room: int) -> str:
    """Return a section with the first of the texts that fit, those of a session in their order; "" without any."""
    kept: list[str] = []
    left = room - len(title) - 4
    for text in texts:
        line = f"- {summary_of(text)}"
        if len(line) + 1 > left:
            break
        left -= len(line) + 1
        kept.append(line)
    if title == "Last Session":
        kept.reverse()  # the last messages were read first
    return "\n".join([f"## {title}", *kept]) if kept else ""
