"""Messages of a conversation as they come in: checked one by one, so that a bad one does not cost the others."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from retain.errors import InvalidInput, LimitExceeded, RetainError
from retain.memory.recalled import without_recalled
from retain.memory.records.record import MAX_PART_BYTES, check_content, content_hash

MAX_MESSAGES = 500
"""Messages of one request."""
MAX_MESSAGE_BYTES = 32 * 1024
"""Largest content of one message, in bytes of UTF-8."""
MAX_AT_MS = 253_402_300_799_999
"""The end of the year 9999: later times have no date."""
FIELDS = ("id", "speaker", "content", "at_ms")


@dataclass(frozen=True, slots=True)
class Message:
    """One message that can be stored.

    index: its place in the request, from 0. id: the sender's, None when there is none. content: without recalled text.
    at_ms: when it was said, None when unknown.
    """

    index: int
    id: str | None
    speaker: str
    content: str
    at_ms: int | None

    @property
    def key(self) -> str:
        """What makes two messages without ids equal, but for their times: speaker and content."""
        return message_key(self.speaker, self.content)


@dataclass(frozen=True, slots=True)
class Rejection:
    """One message that is not stored, and why."""

    index: int
    code: str
    message: str

    def to_json(self) -> dict[str, Any]:
        """Return the rejection as the interface shows it."""
        return asdict(self)


def message_key(speaker: str, content: str) -> str:
    """Return SHA-256 over speaker and content, in hexadecimal."""
    return hashlib.sha256(json.dumps([speaker, content_hash(content, None)]).encode()).hexdigest()


def read_messages(raw: Sequence[object]) -> tuple[list[Message], list[Rejection]]:
    """Return the messages that can be stored and the others, each in order.

    Raises: InvalidInput (code `no_messages`) for none at all; LimitExceeded (code `too_many_messages`).
    """
    if not raw:
        raise InvalidInput("there are no messages", code="no_messages")
    if len(raw) > MAX_MESSAGES:
        raise LimitExceeded("there are too many messages in one request", code="too_many_messages", limit=MAX_MESSAGES)
    accepted: list[Message] = []
    rejected: list[Rejection] = []
    for index, message in enumerate(raw):
        try:
            accepted.append(_read(index, message))
        except RetainError as error:
            rejected.append(Rejection(index, error.code, error.message))
    return accepted, rejected


def check_conversation(conversation: str) -> str:
    """Return a conversation's id of at most 512 bytes. Raises: InvalidInput (code `invalid_conversation`)."""
    return _name("conversation", conversation)


def _read(index: int, raw: object) -> Message:
    if not isinstance(raw, Mapping) or not set(raw) <= set(FIELDS):
        raise InvalidInput(f"a message is an object of {', '.join(FIELDS)}", code="invalid_message")
    content = raw.get("content")
    if not isinstance(content, str):
        raise InvalidInput("a message needs content, which is text", code="invalid_content")
    check_content(content)
    if len(content.encode()) > MAX_MESSAGE_BYTES:
        raise LimitExceeded("the content is too long", code="content_too_large", limit_bytes=MAX_MESSAGE_BYTES)
    own = without_recalled(content)
    if not own.strip():
        raise InvalidInput("the message is recalled text and nothing else", code="recalled_text")
    message_id, at_ms = raw.get("id"), raw.get("at_ms")
    if at_ms is not None and (isinstance(at_ms, bool) or not isinstance(at_ms, int) or not 0 <= at_ms <= MAX_AT_MS):
        raise InvalidInput("at_ms must be epoch milliseconds", code="invalid_at_ms")
    return Message(
        index, None if message_id is None else _name("id", message_id), _name("speaker", raw.get("speaker")), own, at_ms
    )


def _name(what: str, value: object) -> str:
    """Return a name of 1 to 512 bytes of text without control characters."""
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise InvalidInput(f"{what} must be text without control characters", code=f"invalid_{what}")
    if len(value.encode("utf-8", "surrogatepass")) > MAX_PART_BYTES:
        raise InvalidInput(f"{what} has at most {MAX_PART_BYTES} bytes", code=f"invalid_{what}")
    return value
