"""Conversations as the interface sends them, for Retain's ingest: roles as speakers, and a session from the content."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator, Mapping

from retain.agent_memory.context import AgentMemoryContext
from retain.agent_memory.memories import at_ms_of
from retain.agent_memory.names import check_session
from retain.errors import InvalidInput, LimitExceeded
from retain.ingest.answering import ingested
from retain.ingest.ingestion import Ingestion
from retain.ingest.intake import Intake
from retain.ingest.jobs import IngestJob
from retain.ingest.messages import MAX_AT_MS, MAX_MESSAGE_BYTES
from retain.ingest.request import Oversized, read_members
from retain.memory.scope import Scope

ROLES = ("system", "user", "assistant")
_FIELDS = frozenset({"role", "content", "timestamp"})
_BODY = frozenset({"messages", "sessionId"})
_QUIET = ("recalled_text",)
"""Why ingest refuses a message without any fault of its sender: it has only what was recalled."""


async def receive(pieces: AsyncIterator[bytes], intake: Intake) -> str:
    """Give the messages to the intake as they arrive, and return the session: as sent, or made from roles and contents.

    A message is the same as another of its session if role and content are equal: the time does not count.
    Raises: InvalidInput (code `malformed_json`, `invalid_body`, `invalid_message`, `invalid_session`, `no_messages`), with
        the `pointer` of what is wrong; LimitExceeded (code `too_many_messages`, `content_too_large`); Unavailable.
    """
    seen = hashlib.sha256()
    fields: dict[str, object] = {}
    try:
        async for member in read_members(pieces, "messages"):
            if member.item:
                message = _ingested(intake.received, member.value)
                seen.update(f"{message['id']}\n".encode())
                await _add(intake, message)
            elif member.name in _BODY:
                fields[member.name] = member.value
            else:  # at once: there may be millions of them
                why = f"the body has no field {member.name}"
                raise InvalidInput(why, code="invalid_body", pointer=f"/{member.name}")
    except ValueError as error:
        raise InvalidInput("the body is not valid JSON", code="malformed_json") from error
    if not isinstance(fields.get("messages"), list):
        raise InvalidInput("messages must be a list", code="invalid_body", pointer="/messages")
    await intake.finish()
    given = fields.get("sessionId")
    return f"auto-{seen.hexdigest()[:32]}" if given is None else check_session(given)


async def ingest(context: AgentMemoryContext, scope: Scope, pieces: AsyncIterator[bytes]) -> IngestJob:
    """Store a conversation, and the facts in it; return the job. Raises: as `receive` and `ingested`."""
    intake = Intake(context.sql, scope.tenant_id, context.clock)
    job, _ = await ingested(intake, _read(context.ingestion(scope), pieces, intake), context.background)
    return job


async def _read(ingestion: Ingestion, pieces: AsyncIterator[bytes], intake: Intake) -> tuple[Ingestion, str]:
    return ingestion, await receive(pieces, intake)


async def _add(intake: Intake, message: Mapping[str, object]) -> None:
    """Raises: InvalidInput (code `invalid_message`) for a message that ingest refuses; as `Intake.add`."""
    index = intake.received
    await intake.add(message)
    if intake.rejected and intake.rejected[-1].index == index and intake.rejected[-1].code not in _QUIET:
        refused = intake.rejected[-1]
        pointer = f"/messages/{index}/content"
        if refused.code == "content_too_large":
            raise LimitExceeded(
                refused.message, code="content_too_large", limit_bytes=MAX_MESSAGE_BYTES, pointer=pointer
            )
        raise InvalidInput(refused.message, code="invalid_message", pointer=pointer)


def _ingested(index: int, raw: object) -> dict[str, object]:
    """Return a message as Retain's ingest takes it. Raises: InvalidInput (code `invalid_message`); LimitExceeded."""
    here = f"/messages/{index}"
    if isinstance(raw, Oversized):
        raise LimitExceeded(
            "the content is too long", code="content_too_large", limit_bytes=MAX_MESSAGE_BYTES, pointer=here
        )
    if not isinstance(raw, Mapping) or raw.keys() - _FIELDS:
        raise _invalid("a message is an object with role, content and perhaps timestamp", here)
    role, content, written = raw.get("role"), raw.get("content"), raw.get("timestamp")
    if role not in ROLES:
        raise _invalid(f"role must be one of {', '.join(ROLES)}", f"{here}/role")
    if not isinstance(content, str) or not content.strip():
        raise _invalid("content must be text", f"{here}/content")
    key = json.dumps([role, content.strip()])
    return {
        "id": hashlib.sha256(key.encode()).hexdigest()[:32],
        "speaker": role,
        "role": role,
        "content": content,
        "at_ms": None if written is None else _time(written, f"{here}/timestamp"),
    }


def _time(written: object, here: str) -> int:
    try:
        found = at_ms_of(written) if isinstance(written, str) else -1
    except (ValueError, OverflowError) as error:
        raise _invalid("timestamp must be a date and time in ISO 8601", here) from error
    if not 0 <= found <= MAX_AT_MS:
        raise _invalid("timestamp must be a date and time in ISO 8601, from 1970 to 9999 in UTC", here)
    return found


def _invalid(message: str, pointer: str) -> InvalidInput:
    return InvalidInput(message, code="invalid_message", pointer=pointer)
