"""Store facts as records: once, in the order in which they were stated, with rules for what they close."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from retain.ingest.extraction import DENIED, ENDED, ExtractedFact, ending_of, is_functional, key_of
from retain.json_text import read_own_json
from retain.memory.records.claims import covers, spans_of
from retain.memory.records.record import NewRecord, RecordSource, content_hash
from retain.memory.semantic import SemanticMemory
from retain.ports import Row, Sql

OPPOSITES = {"likes": "dislikes", "dislikes": "likes"}
"""Predicates that close each other for the same object."""

_SAME = """
SELECT r.subject, r.predicate, r.object, r.content, r.edited, r.valid_from_ms, r.valid_to_ms, r.gaps, (
  SELECT json_extract(e.source, '$.origin') FROM memory_events e
  WHERE e.record_id = r.id AND e.kind IN ('invalidated', 'superseded') ORDER BY e.event_id DESC LIMIT 1) AS closed_by
FROM json_each(?3) wanted CROSS JOIN memory_records r INDEXED BY memory_records_by_fact
  ON r.tenant_id = ?1 AND r.scope_id = ?2 AND r.subject = wanted.value ->> 0 AND r.predicate = wanted.value ->> 1
  AND r.subject IS NOT NULL AND r.predicate IS NOT NULL
"""
_OF_PREDICATES = """
SELECT r.id, r.predicate, r.object, r.valid_from_ms, r.valid_to_ms, r.gaps, r.claims, r.edited FROM memory_records r
WHERE r.tenant_id = ? AND r.scope_id = ? AND r.subject = ? AND r.predicate IN (SELECT value FROM json_each(?))
"""


@dataclass(frozen=True, slots=True)
class SourcedFact:
    """A fact with its source. at_ms: when it was stated, from which it is valid."""

    fact: ExtractedFact
    source: RecordSource
    at_ms: int


class Learner:
    """Stores facts in one scope."""

    def __init__(self, memory: SemanticMemory, sql: Sql) -> None:
        self._memory = memory
        self._sql = sql

    async def learn(self, facts: Sequence[SourcedFact]) -> None:
        """Store the facts, and close those that they contradict. Idempotent: the same statement again changes nothing.

        A known fact keeps its words and its confidence; that it was stated at this time, too, is kept as a claim
        (`retain.memory.records.claims`), so it outlasts whatever else was valid before. A fact that was valid before, and
        no longer is, becomes valid again when stated again, unless a person closed it. What ended, or was denied, closes
        the fact of the same object at the time of the statement, in whatever order both arrive.
        Raises: as `SemanticMemory.store_all`; then the call may be repeated.
        """
        for wave in waves(facts):
            same = await self._same(wave)
            news = [new for one in wave if (new := _as_known(one, same[_about(one)])) is not None]
            stored = [one for one in news if one.fact.is_stored]
            await self._memory.store_all([_record_of(one) for one in stored], [one.source for one in stored])
            for one in news:
                await self._close_opposites(one)

    async def _same(self, wave: Sequence[SourcedFact]) -> dict[tuple[str, str], list[Row]]:
        """Return the records with the same subject and predicate as the facts, keyed by both."""
        scope = self._memory.scope
        wanted = json.dumps([_about(one) for one in wave])
        found: dict[tuple[str, str], list[Row]] = defaultdict(list)
        for row in (await self._sql.run(_SAME, scope.tenant_id, scope.scope_id, wanted)).rows:
            found[row["subject"], row["predicate"]].append(row)
        return found

    async def _close_opposites(self, one: SourcedFact) -> None:
        """Let what the fact contradicts end when it was stated, and let it end itself where that was stated later."""
        opposites = opposites_of(one.fact)
        if not opposites:
            return
        scope, fact = self._memory.scope, one.fact
        names = json.dumps([*opposites, fact.predicate])
        rows = (await self._sql.run(_OF_PREDICATES, scope.tenant_id, scope.scope_id, fact.subject, names)).rows
        same = [row for row in rows if not row["edited"] and key_of(row["object"] or "") == key_of(fact.object)]
        others = [row for row in same if row["predicate"] != fact.predicate]
        for row in others:
            if _is_valid(row, one.at_ms) and not any(begin > one.at_ms for begin in _begins(row)):
                await self._memory.invalidate(row["id"], one.at_ms, one.source)
        later = [begin for row in others for begin in _begins(row) if begin > one.at_ms]
        for row in same:
            if (
                row["predicate"] == fact.predicate
                and later
                and _is_valid(row, min(later))
                and max(_begins(row)) < min(later)
            ):
                await self._memory.invalidate(row["id"], min(later), one.source)


def opposites_of(fact: ExtractedFact) -> list[str]:
    """Return the predicates of the facts about the same object that cannot be valid together with this one."""
    for prefix in (ENDED, DENIED):
        if fact.predicate.startswith(prefix):
            relation = fact.predicate.removeprefix(prefix)
            return [relation, relation.partition(":")[0]]
    name = fact.predicate.partition(":")[0]
    key = key_of(fact.object)
    return [ending_of(ENDED, name, fact.object), *([f"{OPPOSITES[name]}:{key}"] if name in OPPOSITES else [])]


def waves(facts: Iterable[SourcedFact]) -> list[list[SourcedFact]]:
    """Split the facts, ordered by time, into waves in which no two have the same subject and topic, or equal content.

    Equal contents stored in one call become one record, so a fact that is true again is stored after what closed it.
    """
    found: list[list[SourcedFact]] = []
    last: dict[tuple[str, str], int] = {}
    for one in sorted(facts, key=lambda one: one.at_ms):
        about = {(one.fact.subject, _topic(one.fact.predicate)), ("content", _hash(one.fact))}
        wave = max((last[key] + 1 for key in about if key in last), default=0)
        if wave == len(found):
            found.append([])
        found[wave].append(one)
        last.update(dict.fromkeys(about, wave))
    return found


def _topic(predicate: str) -> str:
    """Return the predicate, or the same text for all that contradict each other."""
    name, colon, key = predicate.removeprefix(ENDED).removeprefix(DENIED).partition(":")
    return name if is_functional(name) else min(name, OPPOSITES.get(name, name)) + colon + key


def _record_of(one: SourcedFact) -> NewRecord:
    fact = one.fact
    return NewRecord(
        fact.content,
        kind=fact.kind,
        subject=fact.subject,
        predicate=fact.predicate,
        object=fact.object,
        confidence=fact.confidence,
        valid_from_ms=one.at_ms,
    )


def _as_known(one: SourcedFact, same: Sequence[Row]) -> SourcedFact | None:
    """Return the fact as it is to be stored: in the words of the record that is valid with the same object at its time.

    None for a fact that a person closed before, and for a valid one that a person wrote.
    """
    at_ms, key = one.at_ms, key_of(one.fact.object)
    equal = [row for row in same if row["object"] is not None and key_of(row["object"]) == key]
    valid = next((row for row in equal if _is_valid(row, at_ms)), None)
    if valid is not None:
        return None if valid["edited"] else replace(one, fact=replace(one.fact, content=valid["content"]))
    over = [row for row in equal if row["valid_to_ms"] is not None and row["valid_to_ms"] <= at_ms]
    return None if any(row["closed_by"] == "person" for row in over) else one


def _is_valid(row: Row, at_ms: int) -> bool:
    return (
        row["valid_from_ms"] <= at_ms
        and (row["valid_to_ms"] or at_ms + 1) > at_ms
        and not covers(spans_of(read_own_json(row["gaps"] or "[]")), at_ms)
    )


def _begins(row: Row) -> list[int]:
    """Return when the record's claims begin."""
    return [begin for begin, _ in spans_of(read_own_json(row["claims"] or "[]"))] or [row["valid_from_ms"]]


def _about(one: SourcedFact) -> tuple[str, str]:
    return one.fact.subject, one.fact.predicate


def _hash(fact: ExtractedFact) -> str:
    return content_hash(fact.content, None)
