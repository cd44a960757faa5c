"""Forget that a conversation was ingested, so that the same messages can come again."""

from __future__ import annotations

from retain.errors import Unavailable
from retain.memory.scope import Scope
from retain.ports import Sql

_HERE = "tenant_id = ?1 AND scope_id = ?2 AND (?3 IS NULL OR conversation = ?3)"
_WORKED_ON = f"SELECT 1 FROM ingest_jobs WHERE {_HERE} AND state = 'running' AND lease_until_ms > ?4 LIMIT 1"
_MESSAGES = f"DELETE FROM ingest_messages WHERE {_HERE}"
_JOBS = f"DELETE FROM ingest_jobs WHERE {_HERE}"


async def forget_conversation(sql: Sql, scope: Scope, conversation: str | None, now_ms: int) -> None:
    """Delete the jobs and the positions of a conversation of the scope; of every one for None. Idempotent.

    What was stored of it stays. Raises: Unavailable (code `contended`) while somebody works on one of its jobs.
    """
    here = (scope.tenant_id, scope.scope_id, conversation)
    if (await sql.run(_WORKED_ON, *here, now_ms)).rows:
        raise Unavailable("an ingest of the conversation is under way; try again", code="contended")
    await sql.batch([(_MESSAGES, here), (_JOBS, here)])
