"""What storing known content again does to the record's other fields: it fills gaps and replaces nothing.

Fields that the record lacks are merged. In every other field the record keeps its own value, and the result names the field;
only an edit replaces a value. So a call that is repeated, even after other calls, changes nothing: of two calls that
contradict each other the first one counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from retain.memory.records.limits import MAX_METADATA_BYTES, json_bytes
from retain.memory.records.record import Record

FACT_PARTS = ("subject", "predicate", "object")


@dataclass(frozen=True, slots=True)
class Retold:
    """The outcome for each field of content that was stored again, by name; a key of the metadata as `metadata.<key>`.

    merged: the record has the given value now, and had not before. kept: the record keeps another value.
    """

    merged: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()


def additions(record: Record, stated: Record, now_ms: int) -> dict[str, object]:
    """Return the fields that the statement adds to the record, with their new values, as an `edited` event has them.

    - metadata: keys that the record lacks, all of them or none if they exceed the limit.
    - subject, predicate, object: those that the record lacks, if the others do not differ.
    - expires_at_ms: a later expiry, if the record has one and has not expired.
    - kind, confidence, importance: never. Repetition does not raise trust.

    What a person wrote or edited only a person changes. stated: the content as a new record.
    """
    if record.edited and stated.source.get("origin") != "person":
        return {}
    added: dict[str, object] = {}
    metadata = {**stated.metadata, **record.metadata}
    if metadata != record.metadata and json_bytes(metadata) <= MAX_METADATA_BYTES:
        added["metadata"] = metadata
    parts = {name: (getattr(record, name), getattr(stated, name)) for name in FACT_PARTS}
    if all(None in pair or pair[0] == pair[1] for pair in parts.values()):
        added |= {name: new for name, (own, new) in parts.items() if own is None and new is not None}
    own_ms, new_ms = record.expires_at_ms, stated.expires_at_ms
    if own_ms is not None and new_ms is not None and now_ms < own_ms < new_ms:
        added["expires_at_ms"] = new_ms
    return added


def outcome(before: Record, after: Record, stated: Record, since_ms: int | None) -> Retold:
    """Return the outcome for the statement's fields. since_ms: when the caller said that it became valid, None if not said.

    A part of a fact that the statement does not have is not asked for. An absent expiry is: it asks for none.
    """
    merged, kept = [], []
    for name, old, new, wanted in _compared(before, after, stated, since_ms):
        if new != wanted:
            kept.append(name)
        elif new != old:
            merged.append(name)
    return Retold(tuple(merged), tuple(kept))


def _compared(
    before: Record, after: Record, stated: Record, since_ms: int | None
) -> list[tuple[str, object, object, object]]:
    """Return each field that the statement asks for: its name, its old and its new value, and the wanted one."""
    wanted: Mapping[str, object] = {
        "kind": stated.kind,
        **{name: getattr(stated, name) for name in FACT_PARTS if getattr(stated, name) is not None},
        "confidence": stated.confidence,
        "importance": stated.importance,
        "expires_at_ms": stated.expires_at_ms,
        **({} if since_ms is None else {"valid_from_ms": since_ms}),
        "valid_to_ms": None,
    }
    missing = object()
    return [
        *(
            (f"metadata.{key}", before.metadata.get(key, missing), after.metadata.get(key, missing), value)
            for key, value in stated.metadata.items()
        ),
        *((name, getattr(before, name), getattr(after, name), value) for name, value in wanted.items()),
    ]
