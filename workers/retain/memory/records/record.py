"""Records as values: a durable memory, what a caller asks to remember, and where it came from."""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, get_args

from retain.codes import InvalidInputCode
from retain.errors import InvalidInput, LimitExceeded

Kind = Literal["fact", "event", "instruction", "task"]
Origin = Literal["agent", "person", "ingest", "extraction", "import"]

MAX_CONTENT_BYTES = 64 * 1024
"""Largest content of one record, in bytes of UTF-8."""
MAX_METADATA_BYTES = 10 * 1024
"""Largest metadata of one record as JSON, in bytes.

Source: https://developers.cloudflare.com/vectorize/platform/limits/
"""
MAX_PART_BYTES = 512
"""Largest subject, predicate, object, conversation or speaker, in bytes."""
_ENDLESS = 2**53
_YEAR_10000 = 253_402_300_800_000
"""Times are written out as dates, which end with the year 9999. In epoch milliseconds."""


@dataclass(frozen=True, slots=True)
class RecordSource:
    """Where a memory came from.

    origin: who wrote it. run_id, step: the run and its step, when there was one. message: id of the message it was said
    in. record_id: the record it was drawn from.
    """

    origin: Origin
    run_id: str | None = None
    step: int | None = None
    message: str | None = None
    record_id: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the source as stored, without what is absent."""
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True, slots=True)
class Utterance:
    """The place of a record in a conversation.

    conversation: its id. position: its number there, from 0. speaker: who said it. at_ms: when, None when unknown.
    """

    conversation: str
    position: int
    speaker: str
    at_ms: int | None = None


@dataclass(frozen=True, slots=True)
class NewRecord:
    """What a caller asks to remember.

    content: text of at most 64 KiB. metadata: JSON object of at most 10 KiB, filterable and otherwise opaque.
    subject, predicate, object: the fact in parts, when it is one. confidence, importance: in [0, 1].
    valid_from_ms: since when it holds, None for now. expires_at_ms: when it is to be forgotten, None for never.

    Raises: InvalidInput, LimitExceeded.
    """

    content: str
    metadata: Mapping[str, Any] = field(default_factory=dict)
    kind: Kind = "fact"
    subject: str | None = None
    predicate: str | None = None
    object: str | None = None
    confidence: float = 1.0
    importance: float = 0.5
    valid_from_ms: int | None = None
    expires_at_ms: int | None = None
    utterance: Utterance | None = None

    def __post_init__(self) -> None:
        check_content(self.content)
        check_metadata(self.metadata)
        if self.kind not in get_args(Kind):
            raise InvalidInput(f"kind must be one of {', '.join(get_args(Kind))}", code="invalid_kind")
        check_share("confidence", self.confidence, "invalid_confidence")
        check_share("importance", self.importance, "invalid_importance")
        if self.subject is not None:
            check_part("subject", self.subject, "invalid_subject")
        if self.predicate is not None:
            check_part("predicate", self.predicate, "invalid_predicate")
        if self.object is not None:
            check_part("object", self.object, "invalid_object")
        if self.valid_from_ms is not None:
            check_whole("valid_from_ms", self.valid_from_ms, "invalid_valid_from_ms", _ENDLESS)
        if self.expires_at_ms is not None:
            check_whole("expires_at_ms", self.expires_at_ms, "invalid_expires_at_ms", _ENDLESS)
        if self.utterance is not None:
            check_place(self.utterance)


@dataclass(frozen=True, slots=True)
class Record:
    """A stored memory. Times are epoch milliseconds; `valid_to_ms` is None while it holds.

    recorded_at_ms: when it was stored. updated_at_ms: when it last changed. superseded_by: the record that took its
    place. edited: a person changed it, so no rule may.
    """

    id: str
    tenant_id: str
    scope_id: str
    kind: Kind
    content: str
    metadata: Mapping[str, Any]
    subject: str | None
    predicate: str | None
    object: str | None
    confidence: float
    importance: float
    valid_from_ms: int
    valid_to_ms: int | None
    expires_at_ms: int | None
    recorded_at_ms: int
    updated_at_ms: int
    superseded_by: str | None
    edited: bool
    utterance: Utterance | None
    source: Mapping[str, Any]

    @property
    def content_hash(self) -> str:
        """What makes two records of a scope equal, see `content_hash`."""
        return content_hash(self.content, self.utterance)

    def to_json(self) -> dict[str, Any]:
        """Return the record as the interface shows it and as an export holds it."""
        shown = {name: getattr(self, name) for name in self.__slots__}
        shown["utterance"] = None if self.utterance is None else asdict(self.utterance)
        return shown

    def holds_at(self, at_ms: int) -> bool:
        """Tell whether the record is valid at a time, and neither expired nor recorded later."""
        return (
            self.recorded_at_ms <= at_ms
            and self.valid_from_ms <= at_ms
            and (self.valid_to_ms is None or at_ms < self.valid_to_ms)
            and (self.expires_at_ms is None or at_ms < self.expires_at_ms)
        )


def content_hash(content: str, utterance: Utterance | None) -> str:
    """Return SHA-256 of the content in Unicode's NFC without outer white space, in hexadecimal.

    The same words said again at another place of a conversation are another memory: the place is part of the hash.
    """
    text = unicodedata.normalize("NFC", content).strip()
    if utterance is not None:
        text = json.dumps([utterance.conversation, utterance.position, utterance.speaker, text])
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def check_content(content: str) -> None:
    """Raise InvalidInput or LimitExceeded for content that cannot be remembered."""
    if not content.strip():
        raise InvalidInput("a memory needs content", code="empty_content")
    try:
        size = len(content.encode())
    except UnicodeEncodeError as error:
        raise InvalidInput("content must be valid Unicode", code="invalid_content") from error
    if "\x00" in content:
        raise InvalidInput("content must not hold the character NUL", code="invalid_content")
    if size > MAX_CONTENT_BYTES:
        raise LimitExceeded("the content is too long", code="content_too_large", limit_bytes=MAX_CONTENT_BYTES)


def check_metadata(metadata: Mapping[str, Any]) -> None:
    """Raise InvalidInput or LimitExceeded for metadata that is not a JSON object of at most 10 KiB."""
    try:
        size = len(json.dumps(dict(metadata), allow_nan=False).encode())
    except (TypeError, ValueError) as error:
        raise InvalidInput("metadata must be a JSON object", code="invalid_metadata") from error
    if size > MAX_METADATA_BYTES:
        raise LimitExceeded("the metadata is too large", code="metadata_too_large", limit_bytes=MAX_METADATA_BYTES)


def check_place(place: Utterance) -> None:
    """Raise InvalidInput for a place in a conversation that cannot be kept, or whose time has no date."""
    check_part("conversation", place.conversation, "invalid_conversation")
    check_part("speaker", place.speaker, "invalid_speaker")
    first = 1 - _ENDLESS  # an earlier part of a conversation may be stored after the rest
    check_whole("position", place.position, "invalid_position", _ENDLESS, first=first)
    if place.at_ms is not None:
        check_whole("at_ms", place.at_ms, "invalid_at_ms", _YEAR_10000)


def check_part(name: str, value: object, code: InvalidInputCode) -> None:
    """Raise InvalidInput for anything but a text of 1 to `MAX_PART_BYTES` bytes."""
    if not isinstance(value, str) or not 1 <= len(value.encode("utf-8", "surrogatepass")) <= MAX_PART_BYTES:
        raise InvalidInput(f"{name} must be a text of 1 to {MAX_PART_BYTES} bytes", code=code)


def check_whole(name: str, value: object, code: InvalidInputCode, end: int, *, first: int = 0) -> None:
    """Raise InvalidInput for anything but a whole number from `first` to before `end`."""
    if not isinstance(value, int) or isinstance(value, bool) or not first <= value < end:
        raise InvalidInput(f"{name} must be a whole number from {first} to before {end}", code=code)


def check_share(name: str, value: object, code: InvalidInputCode) -> None:
    """Raise InvalidInput for anything but a number in [0, 1]."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0.0 <= value <= 1.0:
        raise InvalidInput(f"{name} must be in [0, 1]", code=code)
