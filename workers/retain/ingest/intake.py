"""A request's messages as they arrive: checked one by one, and never all in memory.

The text of a large request is spilled to D1 as it arrives (`ingest_uploads`), where the transaction that opens the job
finds it. Until then no job owns it: the daily cron deletes what a crash leaves, and the sender got no answer.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from retain.errors import InvalidInput, LimitExceeded, RetainError
from retain.identifiers import new_id
from retain.ingest.messages import MAX_MESSAGES, IncomingMessage, Outline, Rejection, read_message
from retain.ingest.request import Oversized
from retain.ports import Clock, Sql, Statement

HELD_BYTES = 250_000
"""Most text of messages that is held in memory and spilled by one statement: as JSON it stays below D1's 2 MB for one
value, even if every character is escaped."""
ABANDONED_MS = 3_600_000
"""After how long an upload that no job took is deleted."""

_SPILL = """
INSERT INTO ingest_uploads
  (tenant_id, upload_id, created_at_ms, message_index, message, message_key, at_ms, speaker, content, role)
SELECT ?1, ?2, ?3, value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6
FROM json_each(?4)
"""
_DISCARD = "DELETE FROM ingest_uploads WHERE upload_id = ?"


class Intake:
    """The messages of one request. outlines: of the valid ones. rejected: the others. received: how many arrived."""

    def __init__(self, sql: Sql, tenant_id: str, clock: Clock) -> None:
        self.outlines: list[Outline] = []
        self.rejected: list[Rejection] = []
        self.received = 0
        self.upload_id: str | None = None
        self._sql = sql
        self._tenant_id = tenant_id
        self._clock = clock
        self._digest = hashlib.sha256()
        self._held: list[IncomingMessage] = []
        self._held_bytes = 0

    @property
    def digest(self) -> str:
        """The SHA-256 of the messages as they arrived, in hexadecimal: equal for equal requests."""
        return self._digest.hexdigest()

    @property
    def held(self) -> Mapping[int, IncomingMessage]:
        """The messages in memory by index: all of them, as long as nothing was spilled."""
        return {message.index: message for message in self._held}

    async def add(self, raw: object) -> None:
        """Add the next message. Raises: LimitExceeded (code `too_many_messages`); Unavailable."""
        if self.received == MAX_MESSAGES:
            raise LimitExceeded("the request has too many messages", code="too_many_messages", limit=MAX_MESSAGES)
        index, self.received = self.received, self.received + 1
        text = f"oversized {raw.digest}" if isinstance(raw, Oversized) else json.dumps(raw, sort_keys=True)
        self._digest.update(f"{text}\n".encode())
        try:
            message = read_message(index, raw)
        except RetainError as error:
            self.rejected.append(Rejection(index, error.code, error.message))
            return
        size = len(message.content.encode())
        if self._held_bytes + size > HELD_BYTES:
            await self._spill()
        self._held.append(message)
        self._held_bytes += size
        self.outlines.append(Outline(index, message.id, message.key, message.at_ms, len(message.content)))

    async def finish(self) -> None:
        """End the intake after the last message. Raises: InvalidInput (code `no_messages`); Unavailable."""
        if not self.received:
            raise InvalidInput("the request has no messages", code="no_messages")
        if self.upload_id is not None:
            await self._spill()

    async def discard(self) -> None:
        """Delete what was spilled, unless a job took it. Idempotent. Raises: Unavailable."""
        if self.upload_id is not None:
            await self._sql.run(_DISCARD, self.upload_id)

    async def _spill(self) -> None:
        """Move the held messages to D1."""
        self.upload_id = self.upload_id or new_id()
        rows = [(one.index, one.id, one.key, one.at_ms, one.speaker, one.content, one.role) for one in self._held]
        listed = json.dumps(rows, ensure_ascii=False)
        self._held, self._held_bytes = [], 0
        await self._sql.run(_SPILL, self._tenant_id, self.upload_id, self._clock(), listed)


def discarding(upload_id: str) -> Statement:
    """Return the statement that deletes an upload."""
    return _DISCARD, (upload_id,)


async def forget_abandoned(sql: Sql, now_ms: int) -> int:
    """Delete uploads that no job took; return how many messages they had. Idempotent."""
    return (await sql.run("DELETE FROM ingest_uploads WHERE created_at_ms < ?", now_ms - ABANDONED_MS)).changes
