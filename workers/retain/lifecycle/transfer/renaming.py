"""Ids of records that move to another tenant.

Ids are unique in a deployment, and recall orders ties by them. So an import into the exported tenant, in this deployment
or another, keeps them; for any other tenant every id is moved by the same distance, which depends only on that tenant: the
same line always gives the same ids, and their order stays.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256

from retain.errors import InvalidInput
from retain.identifiers import check_id
from retain.memory.records.events import LearningEvent

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_RANDOM_BITS = 80
"""Random bits among a ULID's 128; the others are its time, which moves by at most a millisecond.

Source: https://github.com/ulid/spec
"""


def renamed_id(old_id: object, source_tenant: str, tenant_id: str) -> str:
    """Return the id that a record or event of one tenant has in another. Raises: InvalidInput."""
    if source_tenant == tenant_id:
        return check_id(old_id)
    number = 0
    for letter in check_id(old_id):
        number = number * 32 + _ALPHABET.index(letter)
    number += int.from_bytes(sha256(f"import into {tenant_id}".encode()).digest()[: _RANDOM_BITS // 8], "big")
    if number >= 2**128:
        raise InvalidInput("the id is too large to be moved", code="invalid_id")
    letters = [_ALPHABET[number >> shift & 31] for shift in range(125, -1, -5)]
    return "".join(letters)


def renamed_event(event: LearningEvent, source_tenant: str, tenant_id: str) -> LearningEvent:
    """Return the event for the other tenant: its own ids and those it names are moved, and its source is kept.

    The source gains `imported_from`, the tenant that it was exported from.
    """

    def moved(old_id: object) -> str:
        return renamed_id(old_id, source_tenant, tenant_id)

    def source_of(source: Mapping[str, object]) -> dict[str, object]:
        drawn = source.get("record_id")
        kept = {**source, "imported_from": source_tenant}
        return {**kept, "record_id": moved(drawn)} if drawn is not None else kept

    data = dict(event.data)
    if event.kind == "stored":
        later = data["superseded_by"]
        data |= {
            "id": moved(data["id"]),
            "tenant_id": tenant_id,
            "superseded_by": None if later is None else moved(later),
            "source": source_of(data["source"]),
        }
    elif event.kind == "superseded":
        data["by"] = moved(data["by"])
    elif data.get("superseded_by") is not None:
        data["superseded_by"] = moved(data["superseded_by"])
    return replace(
        event,
        event_id=moved(event.event_id),
        record_id=moved(event.record_id),
        data=data,
        source=source_of(event.source),
    )


def without_import(event: LearningEvent) -> LearningEvent:
    """Return the event without `imported_from`, so that two copies of it are equal."""

    def plain(source: Mapping[str, object]) -> dict[str, object]:
        return {name: value for name, value in source.items() if name != "imported_from"}

    data = dict(event.data)
    if event.kind == "stored":
        data["source"] = plain(data["source"])
    return replace(event, data=data, source=plain(event.source))
