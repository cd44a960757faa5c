"""Incoming messages of a conversation: checked one by one, so that an invalid one does not affect the others."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from retain.errors import InvalidInput, LimitExceeded
from retain.errors.codes import Code, ForeignCode, InvalidInputCode
from retain.ingest.request import Oversized
from retain.ingest.speech.speakers import ROLES, Role
from retain.memory.recalled import without_recalled
from retain.memory.records.limits import MAX_PART_BYTES, check_content
from retain.memory.records.record import content_hash

MAX_MESSAGES = 500
"""Messages per request."""
MAX_MESSAGE_BYTES = 32 * 1024
"""Largest content of one message, in bytes of UTF-8."""
MAX_AT_MS = 253_402_300_799_999
"""The end of the year 9999: later times have no date."""
FIELDS = ("id", "speaker", "content", "at_ms", "role")


@dataclass(frozen=True, slots=True)
class IncomingMessage:
    """One message that can be stored.

    index: its number in the request, from 0. id: the sender's, None without one. content: without recalled text.
    at_ms: when it was uttered, None if unknown. role: the speaker's, None if unknown.
    """

    index: int
    id: str | None
    speaker: str
    content: str
    at_ms: int | None
    role: Role | None = None

    @property
    def length(self) -> int:
        """Characters of the content."""
        return len(self.content)

    @property
    def key(self) -> str:
        """The digest by which messages without ids are equal, apart from their times: of speaker and content."""
        return message_key(self.speaker, self.content)


@dataclass(frozen=True, slots=True)
class Outline:
    """The parts of a message that decide its position. length: characters of its content."""

    index: int
    id: str | None
    key: str
    at_ms: int | None
    length: int


@dataclass(frozen=True, slots=True)
class Rejection:
    """A message that is not stored, and the reason."""

    index: int
    code: Code | ForeignCode
    message: str

    def to_json(self) -> dict[str, object]:
        """Return the rejection as HTTP answers have it."""
        return asdict(self)


def message_key(speaker: str, content: str) -> str:
    """Return the SHA-256 of speaker and content, in hexadecimal."""
    return hashlib.sha256(json.dumps([speaker, content_hash(content, None)]).encode()).hexdigest()


def check_conversation(conversation: str) -> str:
    """Return a conversation's id, at most 512 bytes, unchanged. Raises: InvalidInput (code `invalid_conversation`)."""
    return _name("conversation", conversation, "invalid_conversation")


def read_message(index: int, raw: object) -> IncomingMessage:
    """Return the raw message checked and without recalled text. Raises: InvalidInput, LimitExceeded."""
    if isinstance(raw, Oversized):
        raise _too_large()
    if not isinstance(raw, Mapping) or not set(raw) <= set(FIELDS):
        raise InvalidInput(f"a message must be an object with only {', '.join(FIELDS)}", code="invalid_message")
    content = raw.get("content")
    if not isinstance(content, str):
        raise InvalidInput("a message needs content, as text", code="invalid_content")
    check_content(content)
    if len(content.encode()) > MAX_MESSAGE_BYTES:
        raise _too_large()
    own = without_recalled(content)
    if not own.strip():
        raise InvalidInput("the message is only recalled text", code="recalled_text")
    message_id, at_ms = raw.get("id"), raw.get("at_ms")
    if at_ms is not None and (isinstance(at_ms, bool) or not isinstance(at_ms, int) or not 0 <= at_ms <= MAX_AT_MS):
        raise InvalidInput("at_ms must be epoch milliseconds", code="invalid_at_ms")
    if message_id is not None:
        message_id = _name("id", message_id, "invalid_id")
    role, speaker = _role(raw.get("role")), raw.get("speaker")
    if speaker is None:  # a message as chat models have it
        speaker = role
    return IncomingMessage(index, message_id, _name("speaker", speaker, "invalid_speaker"), own, at_ms, role)


def _role(value: object) -> Role | None:
    if value is None:
        return None
    for role in ROLES:
        if value == role:
            return role
    raise InvalidInput(f"role must be one of {', '.join(ROLES)}", code="invalid_role")


def _too_large() -> LimitExceeded:
    return LimitExceeded("the content is too long", code="content_too_large", limit_bytes=MAX_MESSAGE_BYTES)


def _name(what: str, value: object, code: InvalidInputCode) -> str:
    """Return a name of 1 to 512 bytes of text without control characters."""
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise InvalidInput(f"{what} must be text without control characters", code=code)
    if len(value.encode("utf-8", "surrogatepass")) > MAX_PART_BYTES:
        raise InvalidInput(f"{what} must have at most {MAX_PART_BYTES} bytes", code=code)
    return value
