"""Memories, ingest jobs and items."""

from __future__ import annotations

from typing import Literal, NotRequired

from typing_extensions import TypedDict

from retain.errors.codes import Code, ForeignCode
from retain.items.tiers.item_list import ListedItem
from retain.json_text import JsonObject
from retain.memory.recall.evidence import Origin
from retain.memory.records.events import EventKind


class UtteranceJson(TypedDict):
    """Where a memory was said, for those from a conversation."""

    conversation: str
    position: int
    speaker: str
    at_ms: int | None


class MemoryJson(TypedDict):
    """A memory. gaps: when it was not valid. claims: for which times it was stated. Both: pairs of epoch milliseconds."""

    id: str
    tenant_id: str
    scope_id: str
    kind: str
    content: str
    metadata: JsonObject
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
    utterance: UtteranceJson | None
    source: JsonObject
    gaps: list[list[int | None]]
    claims: list[list[int | None]]


class MemoriesJson(TypedDict):
    """A page of memories, oldest first."""

    memories: list[MemoryJson]
    cursor: str | None


class SimilarMemoriesJson(TypedDict):
    """A page of groups of memories that may say the same."""

    groups: list[list[MemoryJson]]
    cursor: str | None


class LearningEventJson(TypedDict):
    """One entry of a memory's history. source: who caused it."""

    event_id: str
    record_id: str
    kind: EventKind
    data: JsonObject
    source: JsonObject
    at_ms: int


class MemoryWithEventsJson(MemoryJson):
    """A memory with a page of its learning events, oldest first. last_event_id: of all of them, which `if-match` takes."""

    last_event_id: str
    events: list[LearningEventJson]
    cursor: str | None


class RecalledMemoryJson(MemoryJson):
    """A memory that a recall found. components: of the score; found_by: what found it; both when asked to explain."""

    score: float
    relevance: float
    components: NotRequired[dict[str, float]]
    found_by: NotRequired[list[Origin]]


class RunnerUpJson(RecalledMemoryJson):
    """A candidate that a recall left out. left_out: since others rank higher, or since it is less relevant than wanted."""

    left_out: Literal["rank", "min_score"]


class RecallJson(TypedDict):
    """What a recall found, best first. degraded: what it did without. runners_up: what follows, when it was asked for."""

    memories: list[RecalledMemoryJson]
    degraded: list[str]
    runners_up: NotRequired[list[RunnerUpJson]]


class StoredMemoryJson(TypedDict):
    """What storing a content did. degraded: `vectors`, if the vector index is owed it."""

    id: str
    created: bool
    merged: list[str]
    kept: list[str]
    degraded: NotRequired[list[Literal["vectors"]]]


class StoredMemoriesJson(TypedDict):
    """What storing several contents did, in their order. created: how many are new."""

    ids: list[str]
    created: int
    results: list[StoredMemoryJson]


class RejectionJson(TypedDict):
    """A message that is not stored, and why."""

    index: int
    code: Code | ForeignCode
    message: str


class IngestJobJson(TypedDict):
    """An ingest: how many messages it received, stored and found again, and how many facts it extracted."""

    job_id: str
    state: str
    conversation: str
    agent_type: str | None
    house: str | None
    user_id: str | None
    received: int
    stored: int
    duplicate: int
    rejected: int
    extracted: int
    rejections: list[RejectionJson]
    error: JsonObject | None
    created_at_ms: int
    updated_at_ms: int
    completed_at_ms: int | None


class ItemsJson(TypedDict):
    """A page of items, without their values."""

    items: list[ListedItem]
    cursor: str | None


class DeletedJson(TypedDict):
    """Whether there was something to delete."""

    deleted: bool
