"""The shapes of an export's lines and of the events in them. They check types only."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from retain.dataclass_models import with_fields_of
from retain.memory.records.events import EventKind
from retain.memory.records.limits import END_OF_NUMBERS
from retain.memory.records.record import EditableFields, Record, Utterance
from retain.memory.scope import ScopeKind

_Time = Annotated[int, Field(ge=0, lt=END_OF_NUMBERS)]
"""A time in an event. The times of a record are checked with the fold of its events."""


_Span = Annotated[list[_Time | None], Field(min_length=2, max_length=2)]
"""From when, and until when, if it ends."""


class NothingShape(BaseModel):
    """An object without fields, and the configuration of all shapes."""

    model_config = ConfigDict(extra="forbid", strict=True)


class EventShape(NothingShape):
    """One learning event."""

    event_id: str
    kind: EventKind
    data: dict[str, JsonValue]
    source: dict[str, object]
    at_ms: _Time


class RecordLineShape(NothingShape):
    """A line of kind `record`. record: absent in a part of a long record."""

    kind: Literal["record"]
    version: Literal[1]
    tenant: str
    id: str
    events: list[EventShape] = Field(min_length=1)
    record: dict[str, object] | None = None


class DatedLineShape(NothingShape):
    """What lines of rows and of items have in common. owner: the user whose it is. at_ms: when the content was written."""

    version: Literal[1]
    tenant: str
    owner: str | None
    at_ms: _Time


class ScopeShape(NothingShape):
    """One scope. user_id: of a user's scope, otherwise absent or None."""

    scope_id: str
    parent_id: str | None
    kind: ScopeKind
    user_id: str | None = None


class ScopeLineShape(NothingShape):
    """A line of kind `scope`."""

    kind: Literal["scope"]
    version: Literal[1]
    tenant: str
    scope: ScopeShape


class ProfileShape(NothingShape):
    """What is known of a user."""

    id: str
    name: str | None
    locale: str | None
    timezone: str | None
    created_at_ms: _Time
    last_run_at_ms: _Time


class UserLineShape(NothingShape):
    """A line of kind `user`."""

    kind: Literal["user"]
    version: Literal[1]
    tenant: str
    user: ProfileShape


class PageLineShape(NothingShape):
    """A line of kind `page`: the last of an export's page."""

    kind: Literal["page"]
    version: Literal[1]
    tenant: str
    cursor: str | None


@with_fields_of(Utterance)
class PlaceShape(NothingShape):
    """A position in a conversation."""


class _SpansShape(NothingShape):
    """What an event may have besides: the spans of a record."""

    gaps: list[_Span] = Field(default_factory=list)
    claims: list[_Span] = Field(default_factory=list)


@with_fields_of(Record, omit=("kind", "utterance", "gaps", "claims"), presence="required")
class StoredShape(_SpansShape):
    """The data of a `stored` event: every field of a record. kind: the record's own check knows which are valid."""

    kind: str
    utterance: PlaceShape | None


@with_fields_of(EditableFields, omit=("kind",), presence="optional")
class EditedShape(NothingShape):
    """The data of an `edited` event: the fields that it changed. kind: as in `StoredShape`."""

    kind: str = ""


class SupersededShape(_SpansShape):
    """The data of a `superseded` event."""

    by: str
    valid_from_ms: _Time = 0
    valid_to_ms: _Time


class InvalidatedShape(_SpansShape):
    """The data of an `invalidated` event."""

    valid_from_ms: _Time = 0
    valid_to_ms: _Time
    superseded_by: str | None = None


class RestoredShape(_SpansShape):
    """The data of a `restored` event: when the record became valid again, and its new expiry if it had expired."""

    valid_from_ms: _Time = 0
    valid_to_ms: _Time | None = None
    superseded_by: str | None = None
    expires_at_ms: _Time | None = None
