"""Records as values: what is remembered, what a caller asks to remember, and where it came from.

The fields of a record are listed only here: the columns of D1, the bodies of requests and the shapes of an export are
derived from these classes, with the limits in their annotations.
"""

from __future__ import annotations

import hashlib
import json
import unicodedata
from dataclasses import asdict, dataclass, field, fields
from typing import Annotated, Literal, get_args

from retain.errors import InvalidInput
from retain.json_text import JsonObject
from retain.memory.records.claims import Spans, covers
from retain.memory.records.limits import (
    END_OF_DATES_MS,
    END_OF_NUMBERS,
    ContentLimit,
    MetadataLimit,
    OneOf,
    PartLimit,
    ShareLimit,
    SpansLimit,
    WholeLimit,
    check,
)

Kind = Literal["fact", "event", "instruction", "task"]
Origin = Literal["agent", "person", "ingest", "extraction", "import"]
Attributes = JsonObject
"""A JSON object that callers define: stored, filterable and otherwise opaque."""


@dataclass(frozen=True, slots=True)
class RecordSource:
    """Where a record came from.

    origin: who wrote it. run_id, step: the run and its step, if any. message: id of the message that contains it.
    record_id: the record it was derived from. by: the person, as Cloudflare Access names them.
    """

    origin: Origin
    run_id: str | None = None
    step: int | None = None
    message: str | None = None
    record_id: str | None = None
    by: str | None = None

    def to_json(self) -> JsonObject:
        """Return the source as it is stored, without absent fields."""
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True, slots=True)
class Utterance:
    """The position of a record in a conversation, with its speaker and time.

    conversation: its id. position: orders the records there. The first request's begin with 0; numbers may be missing, and
    those of an earlier part that was stored later may be negative.
    speaker: who said it. at_ms: when, None if unknown.
    """

    conversation: Annotated[str, PartLimit("invalid_conversation")]
    position: Annotated[int, WholeLimit("invalid_position", first=1 - END_OF_NUMBERS)]
    speaker: Annotated[str, PartLimit("invalid_speaker")]
    at_ms: Annotated[int, WholeLimit("invalid_at_ms", end=END_OF_DATES_MS)] | None = None


@dataclass(frozen=True, slots=True)
class EditableFields:
    """The fields of a record that a caller chooses, and that an edit may change.

    content: text of at most 64 KiB. metadata: JSON object of at most 10 KiB, filterable and otherwise opaque.
    subject, predicate, object: the parts of a fact, None for other content; the subject in Unicode's NFC, so that it is one
    text. confidence, importance: in [0, 1].
    expires_at_ms: from when it is no longer recalled, None for never.
    """

    content: Annotated[str, ContentLimit()]
    metadata: Annotated[Attributes, MetadataLimit()] = field(default_factory=dict)
    kind: Annotated[Kind, OneOf("invalid_kind", get_args(Kind))] = "fact"
    subject: Annotated[str, PartLimit("invalid_subject")] | None = None
    predicate: Annotated[str, PartLimit("invalid_predicate")] | None = None
    object: Annotated[str, PartLimit("invalid_object")] | None = None
    confidence: Annotated[float, ShareLimit("invalid_confidence")] = 1.0
    importance: Annotated[float, ShareLimit("invalid_importance")] = 0.5
    expires_at_ms: Annotated[int, WholeLimit("invalid_expires_at_ms")] | None = None


EDITABLE = tuple(one.name for one in fields(EditableFields))
"""The names of the fields that an edit may change."""


@dataclass(frozen=True, slots=True)
class NewRecord(EditableFields):
    """What a caller asks to remember.

    valid_from_ms: when it becomes valid, None for now. utterance: its position in a conversation, None outside one.

    Raises: InvalidInput (code `invalid_expires_at_ms` also for a record that expires before it becomes valid);
        LimitExceeded.
    """

    valid_from_ms: Annotated[int, WholeLimit("invalid_valid_from_ms")] | None = None
    utterance: Utterance | None = None

    def __post_init__(self) -> None:
        if isinstance(self.subject, str):
            object.__setattr__(self, "subject", composed(self.subject))
        check(self)
        if (
            self.valid_from_ms is not None
            and self.expires_at_ms is not None
            and self.expires_at_ms <= self.valid_from_ms
        ):
            raise InvalidInput("a memory must expire after it becomes valid", code="invalid_expires_at_ms")


@dataclass(frozen=True, slots=True, kw_only=True)
class Record(EditableFields):
    """A stored record. Times are epoch milliseconds; `valid_to_ms` is None until something closes it.

    gaps: spans between both in which it was not valid. claims: the spans for which it was stated, from which its validity
    follows (`retain.memory.records.claims`); empty when that is the one span from `valid_from_ms` to its own end.

    recorded_at_ms: when it was stored. updated_at_ms: when it last changed. superseded_by: the record that replaced it.
    edited: a person changed it, so rules must not. source: as `RecordSource.to_json`.
    """

    id: str
    tenant_id: str
    scope_id: str
    valid_from_ms: Annotated[int, WholeLimit("invalid_valid_from_ms")]
    valid_to_ms: Annotated[int, WholeLimit()] | None
    recorded_at_ms: Annotated[int, WholeLimit()]
    updated_at_ms: Annotated[int, WholeLimit()]
    superseded_by: str | None
    edited: bool
    utterance: Utterance | None
    source: Attributes
    gaps: Annotated[Spans, SpansLimit()] = ()
    claims: Annotated[Spans, SpansLimit()] = ()

    @property
    def content_hash(self) -> str:
        """The hash by which two records of a scope are equal, see `content_hash`."""
        return content_hash(self.content, self.utterance)

    def to_json(self) -> dict[str, object]:
        """Return the record as HTTP answers and exports have it."""
        shown = {name: getattr(self, name) for name in RECORD_FIELDS}
        shown["utterance"] = None if self.utterance is None else asdict(self.utterance)
        shown |= {"gaps": [[*span] for span in self.gaps], "claims": [[*span] for span in self.claims]}
        return shown

    def holds_at(self, at_ms: int) -> bool:
        """Return whether the record is valid at a time, not expired by then, and not recorded later."""
        return self.recorded_at_ms <= at_ms and self.is_valid_at(at_ms)

    def is_valid_at(self, at_ms: int) -> bool:
        """Return whether the record is valid at a time and not expired by then, whenever it was recorded."""
        return (
            self.valid_from_ms <= at_ms
            and (self.valid_to_ms is None or at_ms < self.valid_to_ms)
            and (self.expires_at_ms is None or at_ms < self.expires_at_ms)
            and not covers(self.gaps, at_ms)
        )


RECORD_FIELDS = (
    "id", "tenant_id", "scope_id", "kind", "content", "metadata", "subject", "predicate", "object", "confidence",
    "importance", "valid_from_ms", "valid_to_ms", "expires_at_ms", "recorded_at_ms", "updated_at_ms", "superseded_by",
    "edited", "utterance", "source", "gaps", "claims",
)  # fmt: skip
"""The order in which the fields of a record are shown, exported and stored."""


def composed(text: str) -> str:
    """Return the text in Unicode's NFC, in which letters with their signs are one character where there is one."""
    return unicodedata.normalize("NFC", text)


def content_hash(content: str, utterance: Utterance | None) -> str:
    """Return the SHA-256 of the content in Unicode's NFC without outer white space, in hexadecimal.

    The same words at another position of a conversation are another record: the position is part of the hash.
    """
    text = composed(content).strip()
    if utterance is not None:
        text = json.dumps([utterance.conversation, utterance.position, utterance.speaker, text])
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
