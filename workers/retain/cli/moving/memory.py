"""A memory of another product, and the lines with which an import stores it: with its own times, under one id."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from ulid import ULID

from retain.errors import InvalidInput, RetainError
from retain.errors.codes import ForeignCode
from retain.memory.records.claims import MAX_CLAIMS, Span
from retain.memory.records.derived import claims_of, derived_with
from retain.memory.records.limits import MAX_PART_BYTES, check
from retain.memory.records.record import Record, RecordSource, composed
from retain.memory.scope import Scope

_SHOWN_PROBLEMS = 20
_DRAWN_BYTES = 10
"""The part of a ULID that is not its time."""


@dataclass(frozen=True, slots=True)
class ForeignMemory:
    """A memory as another product has it.

    number: its entry in the file, from 1. source_id: its id there. user_id: whose it is, None for the whole tenant.
    fact: subject, predicate and object. recorded_at_ms: None when the product does not say. valid_from_ms: None for then.
    """

    number: int
    source_id: str
    content: str
    metadata: Mapping[str, Any] = field(default_factory=dict)
    user_id: str | None = None
    fact: tuple[str, str, str] | None = None
    recorded_at_ms: int | None = None
    valid_from_ms: int | None = None
    valid_to_ms: int | None = None
    expires_at_ms: int | None = None


@dataclass(frozen=True, slots=True)
class ImportTarget:
    """Where memories go.

    agent_type: the agent that alone may know them, if any. user_id: whose those are that name no user, None for the whole
    tenant's. undated_ms: when those without a time count as recorded.
    """

    tenant_id: str
    product: str
    agent_type: str | None
    user_id: str | None
    undated_ms: int


def lines(memories: Iterable[ForeignMemory], to: ImportTarget) -> Iterator[str]:
    """Yield the lines of an import: each scope before its first record. Of equal contents of a scope the first is kept.

    If their product says when they hold, it holds for as long as all of them together.
    Raises: InvalidInput, after all were read, that names each entry which cannot be stored.
    """
    records: dict[tuple[str, str], tuple[Scope, Record]] = {}
    problems: list[str] = []
    for memory in memories:
        try:
            scope = Scope(to.tenant_id, to.agent_type, user_id=memory.user_id or to.user_id)
            record = _record(memory, scope, to)
            check(record)
        except RetainError as error:
            problems.append(f"entry {memory.number}: {error.message}")
            continue
        place = record.scope_id, record.content_hash
        _, known = records.setdefault(place, (scope, record))
        if known is not record and (memory.valid_from_ms, memory.valid_to_ms) != (None, None):
            records[place] = scope, _together(known, record)
    if problems:
        more = len(problems) - _SHOWN_PROBLEMS
        shown = [*problems[:_SHOWN_PROBLEMS], *([f"and {more} more"] if more > 0 else [])]
        raise InvalidInput("\n".join(shown), code=ForeignCode("invalid_export"))
    scopes: set[str] = set()
    for scope, record in records.values():
        for one in reversed(scope.path()):
            if one.scope_id not in scopes:
                scopes.add(one.scope_id)
                yield _scope_line(one)
        yield _record_line(record)


def _together(known: Record, other: Record) -> Record:
    """Return the record, valid for as long as either is."""
    claims: list[Span] = []
    for begin, end in sorted((*claims_of(known), *claims_of(other)), key=lambda span: span[0]):
        last = claims[-1] if claims else None
        if last is None or (last[1] is not None and last[1] < begin):
            claims.append((begin, end))
        else:
            claims[-1] = last[0], None if last[1] is None or end is None else max(last[1], end)
    lasting = [span for span in claims if span[0] != span[1]]
    return derived_with(known, tuple(lasting[-MAX_CLAIMS:] or claims[:1]), (), 0)[known.id]


def _record(memory: ForeignMemory, scope: Scope, to: ImportTarget) -> Record:
    recorded = to.undated_ms if memory.recorded_at_ms is None else memory.recorded_at_ms
    valid_from = recorded if memory.valid_from_ms is None else memory.valid_from_ms
    valid_to = memory.valid_to_ms
    subject, predicate, about = memory.fact if memory.fact is not None and _fits(memory.fact) else (None, None, None)
    return Record(
        id=_id(recorded, f"{to.tenant_id}:{to.product}:{scope.scope_id}:{memory.source_id}"),
        tenant_id=to.tenant_id,
        scope_id=scope.scope_id,
        content=memory.content,
        metadata=dict(memory.metadata),
        subject=None if subject is None else composed(subject),
        predicate=predicate,
        object=about,
        valid_from_ms=valid_from,
        valid_to_ms=None if valid_to is None else max(valid_to, valid_from),
        expires_at_ms=memory.expires_at_ms,
        recorded_at_ms=recorded,
        updated_at_ms=recorded,
        superseded_by=None,
        edited=False,
        utterance=None,
        source=RecordSource("import", by=to.product).to_json(),
    )


def _fits(parts: tuple[str, str, str]) -> bool:
    return all(len(part.encode()) <= MAX_PART_BYTES for part in parts)


def _id(at_ms: int, name: str) -> str:
    return str(ULID.from_bytes(at_ms.to_bytes(6) + sha256(name.encode()).digest()[:_DRAWN_BYTES]))


def _scope_line(scope: Scope) -> str:
    parent = scope.parent
    described = {
        "scope_id": scope.scope_id,
        "parent_id": None if parent is None else parent.scope_id,
        "kind": scope.kind,
        "user_id": scope.user_id,
    }
    return json.dumps({"kind": "scope", "version": 1, "tenant": scope.tenant_id, "scope": described})


def _record_line(record: Record) -> str:
    shown = record.to_json()
    stored = {
        "event_id": record.id,
        "kind": "stored",
        "data": shown,
        "source": record.source,
        "at_ms": record.recorded_at_ms,
    }
    line = {"kind": "record", "version": 1, "tenant": record.tenant_id, "id": record.id, "events": [stored]}
    return json.dumps({**line, "record": shown})
