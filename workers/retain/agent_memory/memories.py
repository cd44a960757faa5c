"""Records as the interface shows memories, and what kind of memory a text is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from retain.memory.records.record import Kind, Record

SESSION_FIELD = "session"
"""The field of a record's metadata with the session of a memory that was stored outside a conversation."""
SUMMARY_CHARACTERS = 200
"""Longest summary of one memory."""
_SENTENCE = re.compile(r"[.!?](?=\s|$)|[\u3002\uff01\uff1f]")
_INSTRUCTION = re.compile(
    r"(always|never|please|do not|don't|make sure|avoid|address (me|the user)|call me|reply|answer|respond|speak)\b",
    re.IGNORECASE,
)
_TASK = re.compile(r"(todo|to do|task|remind|remember to|need(s)? to|follow up|has to|have to|must)\b", re.IGNORECASE)
_DATED = re.compile(
    r"\b(\d{4}-\d{2}-\d{2}|yesterday|today|tonight|tomorrow|last (week|month|year|night)|next (week|month|year)"
    r"|on (mon|tues|wednes|thurs|fri|satur|sun)day)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class ShownMemory:
    """One memory. session: in which it came to be, None outside one. Times: epoch milliseconds."""

    id: str
    kind: Kind
    content: str
    session: str | None
    created_at_ms: int
    updated_at_ms: int

    def to_json(self) -> dict[str, object]:
        """Return it as the interface shows it, with its content."""
        return {**self.listed(), "content": self.content}

    def listed(self) -> dict[str, object]:
        """Return it as the interface lists it, without its content."""
        return {
            "id": self.id,
            "type": self.kind,
            "summary": summary_of(self.content),
            "sessionId": self.session,
            "createdAt": timestamp(self.created_at_ms),
            "updatedAt": timestamp(self.updated_at_ms),
        }


def memory_of(record: Record, sessions: Mapping[str, str]) -> ShownMemory:
    """Return a record as a memory. sessions: of memories outside conversations, by id."""
    return ShownMemory(
        record.id,
        record.kind,
        record.content,
        session_of(record, sessions),
        record.recorded_at_ms,
        record.updated_at_ms,
    )


def session_of(record: Record, sessions: Mapping[str, str]) -> str | None:
    """Return a record's session: its conversation, or as `sessions` has it."""
    return sessions.get(record.id) if record.utterance is None else record.utterance.conversation


def message_of(record: Record) -> str | None:
    """Return the id of the record of the message from which a fact was extracted, None for any other record."""
    found = record.source.get("record_id")
    return found if isinstance(found, str) and record.source.get("origin") == "extraction" else None


def summary_of(content: str, most: int = SUMMARY_CHARACTERS) -> str:
    """Return the beginning of a text on one line: as many whole sentences as fit, else as many whole words."""
    text = " ".join(content.split())
    if len(text) <= most:
        return text
    ends = [found.end() for found in _SENTENCE.finditer(text[:most])]
    if ends:
        return text[: ends[-1]]
    cut = text[: most - 1]
    return f"{cut.rpartition(' ')[0] or cut}…"


def kind_of(content: str) -> Kind:
    """Return what kind of memory an English text is, by the words that it begins with and the dates in it; else a fact."""
    text = content.strip()
    if _INSTRUCTION.match(text):
        return "instruction"
    if _TASK.match(text):
        return "task"
    return "event" if _DATED.search(text) else "fact"


def timestamp(at_ms: int) -> str:
    """Return a time as ISO 8601 in UTC with milliseconds."""
    whole = datetime.fromtimestamp(at_ms // 1000, UTC)
    return f"{whole:%Y-%m-%dT%H:%M:%S}.{at_ms % 1000:03d}Z"


def at_ms_of(text: str) -> int:
    """Return a date or time in ISO 8601 as epoch milliseconds; UTC where it names no zone. Raises: ValueError."""
    found = datetime.fromisoformat(text)
    known = found if found.tzinfo is not None else found.replace(tzinfo=UTC)
    return int(known.timestamp() * 1000)
