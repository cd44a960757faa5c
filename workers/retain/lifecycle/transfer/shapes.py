"""The shapes of an export's lines and of the events in them, as far as types go."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

_TIME = Field(ge=0, lt=2**53)


class NothingShape(BaseModel):
    """An object without fields, and what all shapes share."""

    model_config = ConfigDict(extra="forbid", strict=True)


class EventShape(NothingShape):
    """One learning event."""

    event_id: str
    kind: Literal["stored", "edited", "superseded", "invalidated", "restored", "deleted"]
    data: dict[str, Any]
    source: dict[str, Any]
    at_ms: int = _TIME


class RecordLineShape(NothingShape):
    """A line of kind `record`. record: absent in a part of a long record."""

    kind: Literal["record"]
    version: Literal[1]
    tenant: str
    id: str
    events: list[EventShape] = Field(min_length=1)
    record: dict[str, Any] | None = None


class ScopeShape(NothingShape):
    """One scope."""

    scope_id: str
    parent_id: str | None
    kind: Literal["tenant", "house", "agent", "instance"]


class ScopeLineShape(NothingShape):
    """A line of kind `scope`."""

    kind: Literal["scope"]
    version: Literal[1]
    tenant: str
    scope: ScopeShape


class PageLineShape(NothingShape):
    """A line of kind `page`: the last of an export's page."""

    kind: Literal["page"]
    version: Literal[1]
    tenant: str
    cursor: str | None


class PlaceShape(NothingShape):
    """A place in a conversation."""

    conversation: str
    position: int = Field(gt=-(2**53), lt=2**53)
    speaker: str
    at_ms: int | None = Field(default=None, ge=0, lt=2**53)


class StoredShape(NothingShape):
    """What a `stored` event holds, as far as `NewRecord` does not check it."""

    id: str
    tenant_id: str
    scope_id: str
    kind: str
    content: str
    metadata: dict[str, Any]
    subject: str | None
    predicate: str | None
    object: str | None
    confidence: float
    importance: float
    valid_from_ms: int = _TIME
    valid_to_ms: int | None = Field(ge=0, lt=2**53)
    expires_at_ms: int | None
    recorded_at_ms: int = _TIME
    updated_at_ms: int = _TIME
    superseded_by: str | None
    edited: bool
    utterance: PlaceShape | None
    source: dict[str, Any]


class EditedShape(NothingShape):
    """What an `edited` event holds: the fields that it changed."""

    content: str = ""
    metadata: dict[str, Any] = Field(default_factory=dict)
    kind: str = ""
    subject: str | None = None
    predicate: str | None = None
    object: str | None = None
    confidence: float = 0.0
    importance: float = 0.0
    expires_at_ms: int | None = None


class SupersededShape(NothingShape):
    """What a `superseded` event holds."""

    by: str
    valid_to_ms: int = _TIME


class InvalidatedShape(NothingShape):
    """What an `invalidated` event holds."""

    valid_to_ms: int = _TIME


class RestoredShape(NothingShape):
    """What a `restored` event holds: since when it holds anew, and its end when it had expired."""

    valid_from_ms: int = Field(default=0, ge=0, lt=2**53)
    expires_at_ms: int | None = Field(default=None, ge=0, lt=2**53)
