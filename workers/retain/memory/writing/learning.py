"""Learn a fact that somebody stated, as a part of a mutation: once, and with rules for what it closes.

A known fact keeps its words and its confidence; that it was stated at this time, too, is kept as a claim
(`retain.memory.records.claims`), so it outlasts whatever else was valid before. A fact that was valid before, and no longer
is, becomes valid again when stated again, unless a person closed it. What ended, or was denied, closes the fact of the same
object at the time of the statement, in whatever order both arrive. What a person wrote is closed by no statement.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from retain.memory.records.claims import covers
from retain.memory.records.derived import about
from retain.memory.records.events import KnownRecord
from retain.memory.records.object_keys import key_of
from retain.memory.records.record import Record
from retain.memory.records.supersession import Foreseen, Supersession
from retain.memory.writing.calls import LearnedFact


@dataclass(frozen=True, slots=True)
class FactStatement:
    """A fact as a new record, and how it is learned."""

    record: Record
    fact: LearnedFact


@dataclass(frozen=True, slots=True)
class Met:
    """What a statement meets. ignored: a person decided otherwise. valid: the record that says the same at that time."""

    ignored: bool
    valid: KnownRecord | None


def met(record: Record, same: Iterable[KnownRecord], foreseen: Foreseen) -> Met:
    """Return what a stated fact meets among the facts of equal scope, subject and predicate."""
    at_ms = record.valid_from_ms
    equal = [one for one in same if _of_object(one.record, record)]
    valid = next((one for one in equal if _is_valid(one.record, at_ms)), None)
    if valid is not None:
        return Met(valid.record.edited, valid)
    over = [one.record for one in equal if one.record.valid_to_ms is not None and one.record.valid_to_ms <= at_ms]
    return Met(any(foreseen.closed_by_person(one.id) for one in over), None)


async def close_opposites(supersession: Supersession, stated: FactStatement) -> None:
    """Let what the fact contradicts end when it was stated, and let it end itself where that was stated later."""
    record, opposites = stated.record, stated.fact.opposites
    if not opposites:
        return
    at_ms, source = record.valid_from_ms, record.source
    abouts = [about(record), *((record.scope_id, record.subject, name) for name in opposites)]
    facts = await supersession.about(abouts, record.tenant_id)
    same = [one for one in facts if not one.record.edited and _of_object(one.record, record)]
    others = [one for one in same if one.record.predicate != record.predicate]
    for one in others:
        if _is_valid(one.record, at_ms) and not any(begin > at_ms for begin in _begins(one.record)):
            await supersession.close(one, at_ms, source)
    later = [begin for one in others for begin in _begins(one.record) if begin > at_ms]
    if not later:
        return
    end_ms = min(later)
    for one in same:
        own = one.record.predicate == record.predicate
        if own and _is_valid(one.record, end_ms) and max(_begins(one.record)) < end_ms:
            await supersession.close(one, end_ms, source)


def _of_object(one: Record, other: Record) -> bool:
    return one.object is not None and other.object is not None and key_of(one.object) == key_of(other.object)


def _is_valid(record: Record, at_ms: int) -> bool:
    """Return whether the record is valid at a time, expired or not."""
    ended = record.valid_to_ms is not None and record.valid_to_ms <= at_ms
    return record.valid_from_ms <= at_ms and not ended and not covers(record.gaps, at_ms)


def _begins(record: Record) -> Sequence[int]:
    """Return when the record's claims begin."""
    return [begin for begin, _ in record.claims] or [record.valid_from_ms]
