"""Learning events: how a record came to be and changed. A record is the fold of its events and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from retain.identifiers import id_after
from retain.memory.records.claims import spans_of
from retain.memory.records.record import Record, Utterance

EventKind = Literal["stored", "edited", "superseded", "invalidated", "restored", "deleted"]
EventData = Mapping[str, Any]
"""An event's data, as `LearningEvent` lists by kind: written by Retain, or checked against its shape by an import."""


@dataclass(frozen=True, slots=True)
class LearningEvent:
    """One entry of the learning stream.

    data: by kind. `stored`: every field of the record. `edited`: the changed fields. `superseded`: {"by", "valid_to_ms"}.
    `invalidated`: {"valid_to_ms", "superseded_by"}. `restored`: {"valid_to_ms", "superseded_by"}, both absent or None for a
    record that stays valid, and {"expires_at_ms"} when it had expired. Each of these three has {"valid_from_ms", "gaps",
    "claims"} as far as they changed. `deleted`: nothing.
    source: who caused it, as `RecordSource.to_json`.
    """

    event_id: str
    record_id: str
    kind: EventKind
    data: EventData
    source: Mapping[str, object]
    at_ms: int


@dataclass(frozen=True, slots=True)
class KnownRecord:
    """A record and the id of its last event, which the next one follows."""

    record: Record
    last_event_id: str

    def follow(self, event: LearningEvent) -> LearningEvent:
        """Return the event as the record's next one: its id is greater than the last one's, its time not earlier.

        So the order of ids is the order in which things happened, even if the clocks of two isolates differ.
        """
        return replace(
            event,
            event_id=id_after(event.event_id, self.last_event_id),
            at_ms=max(event.at_ms, self.record.updated_at_ms),
        )

    def after(self, event: LearningEvent) -> tuple[Record, LearningEvent]:
        """Return the record after the event, and the event as the record's next one (see `follow`)."""
        following = self.follow(event)
        return changed(self.record, following), following


def apply(record: Record | None, event: LearningEvent) -> Record | None:
    """Return the record after the event, None if it does not exist (any more)."""
    if event.kind == "stored":
        return stored(event.data)
    if record is None or event.kind == "deleted":
        return None
    return changed(record, event)


def changed(record: Record, event: LearningEvent) -> Record:
    """Return the record after an event that changes it: neither `stored` nor `deleted`, which raise ValueError."""
    data = event.data
    match event.kind:
        case "edited":
            person = event.source.get("origin") == "person"
            return replace(record, **data, updated_at_ms=event.at_ms, edited=record.edited or person)
        case "superseded":
            after = replace(
                record, superseded_by=data["by"], valid_to_ms=data["valid_to_ms"], updated_at_ms=event.at_ms
            )
        case "invalidated":
            by = data.get("superseded_by", record.superseded_by)
            after = replace(record, superseded_by=by, valid_to_ms=data["valid_to_ms"], updated_at_ms=event.at_ms)
        case "restored":
            after = replace(
                record,
                valid_to_ms=data.get("valid_to_ms"),
                expires_at_ms=data.get("expires_at_ms", record.expires_at_ms),
                superseded_by=data.get("superseded_by"),
                updated_at_ms=event.at_ms,
            )
        case "stored" | "deleted":
            raise ValueError(f"an event of kind {event.kind} does not change a record")
    return replace(
        after,
        valid_from_ms=data.get("valid_from_ms", record.valid_from_ms),
        gaps=spans_of(data["gaps"]) if "gaps" in data else record.gaps,
        claims=spans_of(data["claims"]) if "claims" in data else record.claims,
    )


def fold(events: Iterable[LearningEvent]) -> Record | None:
    """Return the fold of the events, oldest first: the record, None if it does not exist."""
    record: Record | None = None
    for event in events:
        record = apply(record, event)
    return record


def stored(data: EventData) -> Record:
    """Return the record in the data of a `stored` event: the inverse of `Record.to_json`."""
    utterance = data["utterance"]
    spans = {name: spans_of(data.get(name, ())) for name in ("gaps", "claims")}
    return Record(**{**data, **spans, "utterance": None if utterance is None else Utterance(**utterance)})
