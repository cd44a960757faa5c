"""Facts as the memory learns them: with the predicates of what they contradict."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from retain.ingest.extraction import DENIED, ENDED, ExtractedFact, ending_of
from retain.memory.records.limits import MAX_PART_BYTES
from retain.memory.records.object_keys import key_of
from retain.memory.records.record import NewRecord, RecordSource
from retain.memory.writing.calls import LearnedFact

OPPOSITES = {"likes": "dislikes", "dislikes": "likes"}
"""Predicates that close each other for the same object."""


@dataclass(frozen=True, slots=True)
class SourcedFact:
    """A fact with its source. at_ms: when it was stated, from which it is valid.

    stated_by: which of the contents that are stored with it states it, as in `LearnedFact`.
    """

    fact: ExtractedFact
    source: RecordSource
    at_ms: int
    stated_by: int | None = None


def learned(facts: Iterable[SourcedFact]) -> Sequence[LearnedFact]:
    """Return the facts as the memory learns them, in the order in which they were stated."""
    return [
        LearnedFact(_record_of(one), one.source, tuple(opposites_of(one.fact)), not one.fact.is_stored, one.stated_by)
        for one in sorted(facts, key=lambda one: one.at_ms)
    ]


def opposites_of(fact: ExtractedFact) -> list[str]:
    """Return the predicates of the facts about the same object that cannot be valid together with this one."""
    for prefix in (ENDED, DENIED):
        if fact.predicate.startswith(prefix):
            relation = fact.predicate.removeprefix(prefix)
            return [relation, relation.partition(":")[0]]
    name = fact.predicate.partition(":")[0]
    key = key_of(fact.object)
    return [ending_of(ENDED, name, fact.object), *([f"{OPPOSITES[name]}:{key}"] if name in OPPOSITES else [])]


def _record_of(one: SourcedFact) -> NewRecord:
    fact = one.fact
    return NewRecord(
        fact.content,
        kind=fact.kind,
        subject=fact.subject,
        predicate=fact.predicate,
        object=fact.object.encode()[:MAX_PART_BYTES].decode(errors="ignore"),  # the content has all of it
        confidence=fact.confidence,
        importance=fact.importance,
        valid_from_ms=one.at_ms,
    )
