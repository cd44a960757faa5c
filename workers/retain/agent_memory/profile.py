"""The memories of one profile: remember, recall, list, show and delete."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from retain.agent_memory.context import AgentMemoryContext
from retain.agent_memory.memories import SESSION_FIELD, ShownMemory, kind_of, memory_of, message_of
from retain.agent_memory.names import scope_of
from retain.agent_memory.sessions import OF_NO_OTHER, OF_SESSION, SESSION
from retain.errors import LimitExceeded, NotFound, Unavailable, UnknownScope
from retain.identifiers import check_id
from retain.ingest.forgetting import forget_conversation
from retain.ingest.messages import MAX_MESSAGE_BYTES
from retain.lifecycle.erasure.eraser import SLICES_TO_COMPLETE, Erasure
from retain.memory.records.listing import number_after
from retain.memory.records.record import Kind, NewRecord, Record, RecordSource
from retain.memory.records.rows import outside_gaps
from retain.memory.semantic import Hit, RecallQuery, RecallResult
from retain.ports import SqlValue

MAX_QUERY_BYTES = 1024
"""Longest query of a recall, in bytes of UTF-8.

Source: https://developers.cloudflare.com/agent-memory/platform/limits/
"""
WIDTHS = {"low": 10, "medium": 25, "high": 50}
"""How many candidates a recall answers with, by its `thinkingLevel`."""
PAGE = 100
"""Records that are deleted in one change."""
MAX_PAGES = 100
"""Changes of one request to delete. The request that follows continues."""
ThinkingLevel = Literal["low", "medium", "high"]

_SESSIONS = f"""
SELECT r.id, {SESSION} AS session FROM memory_records r WHERE +r.tenant_id = ? AND r.id IN (SELECT value FROM json_each(?))
"""
_LIST = f"""
SELECT r.number, r.id, r.kind, substr(r.content, 1, 2000) AS content, r.recorded_at_ms, r.updated_at_ms,
  {SESSION} AS session
FROM memory_search s INDEXED BY memory_search_by_number CROSS JOIN memory_records r ON r.number = s.number
WHERE s.tenant_id = ?1 AND s.scope_id = ?2 AND s.conversation IS NULL AND s.number > ?5
  AND (?3 IS NULL OR {OF_SESSION}) AND (?4 IS NULL OR r.kind = ?4)
  AND r.valid_from_ms <= ?6 AND (r.valid_to_ms IS NULL OR r.valid_to_ms > ?6)
  AND (r.expires_at_ms IS NULL OR r.expires_at_ms > ?6) AND {outside_gaps("?6")}
ORDER BY s.number LIMIT ?7
"""
# What was extracted comes before the messages, by which it is found. In an order, every blob comes after every text.
_IDS = f"""
SELECT * FROM (
  SELECT r.id FROM memory_search s INDEXED BY memory_search_by_number CROSS JOIN memory_records r ON r.number = s.number
  WHERE s.tenant_id = ?1 AND s.scope_id = ?2 AND s.conversation IS NULL AND (?3 IS NULL OR {OF_NO_OTHER})
  ORDER BY s.number LIMIT {PAGE})
UNION ALL
SELECT * FROM (
  SELECT r.id FROM memory_search s INDEXED BY memory_search_by_place CROSS JOIN memory_records r ON r.number = s.number
  WHERE s.tenant_id = ?1 AND s.scope_id = ?2 AND s.conversation BETWEEN COALESCE(?3, '') AND COALESCE(?3, x'')
  ORDER BY s.conversation, s.position LIMIT {PAGE})
LIMIT {PAGE}
"""


@dataclass(frozen=True, slots=True)
class MemoryPage:
    """Memories in the order in which they were stored, and the next page's cursor, None on the last."""

    memories: Sequence[ShownMemory]
    cursor: str | None


@dataclass(frozen=True, slots=True)
class Candidates:
    """What a recall found, best first, each with its session; and what it did without."""

    hits: Sequence[tuple[Hit, ShownMemory]]
    result: RecallResult


class Profile:
    """One profile. by: who asks, in the source of each change."""

    def __init__(self, context: AgentMemoryContext, tenant_id: str, name: str, by: str = "") -> None:
        """Raises: InvalidInput (code `invalid_house`) for a house that cannot be named so."""
        self.scope = scope_of(tenant_id, name)
        self._context = context
        self._sql = context.sql
        self._memory = context.semantic(self.scope)
        self._source = RecordSource("agent", by=by or None)

    async def remember(self, content: str, session: str | None) -> ShownMemory:
        """Store one memory and return it. Idempotent by content. Raises: LimitExceeded; as `SemanticMemory.store`."""
        if len(content.encode("utf-8", "surrogatepass")) > MAX_MESSAGE_BYTES:
            raise LimitExceeded("the content is too long", code="content_too_large", limit_bytes=MAX_MESSAGE_BYTES)
        metadata = {} if session is None else {SESSION_FIELD: session}
        stored = await self._memory.store(NewRecord(content, metadata, kind_of(content)), self._source)
        return await self.get(stored.id)

    async def get(self, memory_id: str) -> ShownMemory:
        """Return a memory of the profile, or one that its recall finds. Raises: NotFound (code `no_such_memory`)."""
        record = await self._record(memory_id)
        return memory_of(record, await self._sessions([record]))

    async def delete(self, memory_id: str) -> ShownMemory:
        """Delete a memory, and the message from which it was extracted; return it. Raises: NotFound."""
        record = await self._record(memory_id)
        if record.scope_id != self.scope.scope_id:
            raise NotFound("there is no such memory", code="no_such_memory")
        deleted = memory_of(record, await self._sessions([record]))
        message = message_of(record)
        await self._memory.delete_all([record.id, *([] if message is None else [message])], self._source)
        return deleted

    async def page(self, *, limit: int, cursor: str | None, session: str | None, kind: Kind | None) -> MemoryPage:
        """Return valid memories, oldest first. Messages are not among them: a recall finds them.

        Raises: InvalidInput (code `invalid_cursor`).
        """
        values: tuple[SqlValue, ...] = (session, kind, number_after(cursor), self._context.clock(), limit + 1)
        rows = (await self._sql.run(_LIST, *self._here(), *values)).rows
        names = ("id", "kind", "content", "session", "recorded_at_ms", "updated_at_ms")
        memories = [ShownMemory(*(row[name] for name in names)) for row in rows[:limit]]
        return MemoryPage(memories, str(rows[limit - 1]["number"]) if len(rows) > limit else None)

    async def recall(self, query: str, level: ThinkingLevel, today_ms: int | None) -> Candidates:
        """Return what answers a query, of the profile and of what the tenant itself remembers. No language model is asked.

        today_ms: what relative dates in the query refer to, None for now. Raises: LimitExceeded (code `query_too_large`).
        """
        if len(query.encode("utf-8", "surrogatepass")) > MAX_QUERY_BYTES:
            raise LimitExceeded("the query is too long", code="query_too_large", limit_bytes=MAX_QUERY_BYTES)
        wanted = RecallQuery(query, top_k=WIDTHS[level], today_ms=today_ms)
        try:
            result = await self._memory.recall(wanted, register=self.scope.kind == "user")
        except UnknownScope:  # nothing was stored in the house: it has no scope yet
            result = RecallResult([])
        sessions = await self._sessions([hit.record for hit in result.hits])
        return Candidates([(hit, memory_of(hit.record, sessions)) for hit in result.hits], result)

    async def delete_session(self, session: str | None) -> None:
        """Delete what came from a session, its messages too; everything of the profile for None. Idempotent.

        A fact that a message of another session states stays.

        Raises: Unavailable (code `contended`) while an ingest of it is under way, or when there is more to delete than one
            request can: then ask again.
        """
        await forget_conversation(self._sql, self.scope, session, self._context.clock())
        for _ in range(MAX_PAGES):
            rows = (await self._sql.run(_IDS, *self._here(), session)).rows
            if not rows:
                return
            await self._memory.delete_all([str(row["id"]) for row in rows], self._source)
        raise Unavailable("there is more to delete; try again", code="contended")

    async def erase(self) -> bool:
        """Erase a user, or delete everything in a house; return whether it is complete."""
        user_id = self.scope.user_id
        if user_id is None:
            await self.delete_session(None)
            return True
        erasure = Erasure(self._context.stores, slices=SLICES_TO_COMPLETE)
        outcome = await erasure.erase_user(self.scope.tenant_id, user_id)
        return outcome.retry_after_ms is None

    async def _record(self, memory_id: str) -> Record:
        known, _, _ = await self._memory.page_of(check_id(memory_id), limit=1)
        return known.record

    async def _sessions(self, records: Sequence[Record]) -> dict[str, str]:
        """Return the sessions of these memories, messages apart, by id."""
        ids = json.dumps(sorted({record.id for record in records if record.utterance is None}))
        rows = (await self._sql.run(_SESSIONS, self.scope.tenant_id, ids)).rows
        return {str(row["id"]): str(row["session"]) for row in rows if row["session"] is not None}

    def _here(self) -> tuple[str, str]:
        return self.scope.tenant_id, self.scope.scope_id
