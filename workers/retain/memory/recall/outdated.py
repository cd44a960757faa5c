"""Outdated records: messages whose facts are over, and statements that a later one corrects.

A message is never closed, since it was said. But once all or some of its facts are over, recall must not put it before what
replaced them: "I live in Paris." comes after "Bea lives in Berlin".

A fact without subject and predicate is never closed either. "Ravi sits in room 214." comes after a later "Ravi moved and
sits in room 309.", by their words: the later one says that something changed, and has half of what the earlier one tells. So
does one that denies what the earlier one states: "The delivery is on Saturday, not Friday."
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from retain.memory.recall.languages.detection import COMMON
from retain.memory.recall.languages.kinds import KINDS
from retain.memory.recall.languages.reading import comparable, denials, seen_by_patterns, signs_in, statement_terms
from retain.memory.recall.query import Query
from retain.memory.recall.ranking import Candidate
from retain.memory.recall.words import fold
from retain.memory.records.record import Record
from retain.memory.records.rows import outside_gaps
from retain.ports import Statement

CONTRASTED = 10
"""How many hits, at least, are compared with each other."""
_SHORT = 400
"""Characters of a statement: a longer text is about more than what it corrects."""
_SHARED = 2
"""The least words that a correction shares with what it corrects …"""
_SHARE = 0.5
"""… and the least share of the earlier statement's words."""
_OPPOSED = 1.0
"""How much better at most what says the opposite of a query scores than what says the same, if both have the same words."""
_NAME = re.compile(r"(?<=\w[\s(])[A-Z]\w+")
"""A word with a capital letter inside a sentence."""
_STEP = 0.001
"""How far below what replaced it a message is ranked, and below the message before it."""
_VALID = (
    "{r}.valid_from_ms <= ?3 AND ({r}.valid_to_ms IS NULL OR {r}.valid_to_ms > ?3)"
    " AND ({r}.expires_at_ms IS NULL OR {r}.expires_at_ms > ?3)"
)


@dataclass(frozen=True, slots=True)
class StatedFact:
    """A fact that a message stated.

    valid: whether it is so at the time of the recall. instead: the fact that is valid instead of it, and what closed it: a
    fact or a message. Empty for a valid one.
    """

    message_id: str
    fact_id: str
    valid: bool
    instead: tuple[str, ...]


def facts_of_messages(tenant_id: str, ids: Sequence[str], at_ms: int, known_at_ms: int | None) -> Statement:
    """Return the statement for the facts that these records stated, as `read_facts` reads them: one JSON array.

    known_at_ms: leaves out facts that changed after that time, None for none.
    """
    current = outside_gaps("?3").replace("r.gaps", "g.gaps")
    return (
        f"""
        SELECT json_group_array(json_array(message_id, fact_id, valid, current, closer)) AS found FROM (
          SELECT DISTINCT m.id AS message_id, r.id AS fact_id,
            {_VALID.format(r="r")} AND {outside_gaps("?3")} AS valid,
            (SELECT g.id FROM memory_records g INDEXED BY memory_records_by_fact
             WHERE g.tenant_id = r.tenant_id AND g.scope_id = r.scope_id AND g.subject = r.subject
               AND g.predicate = r.predicate AND g.id <> r.id AND {_VALID.format(r="g")} AND {current} LIMIT 1) AS current,
            (SELECT json_extract(x.source, '$.record_id') FROM memory_events x
             WHERE x.record_id = r.id AND x.kind IN ('invalidated', 'superseded')
             ORDER BY x.event_id DESC LIMIT 1) AS closer
          FROM json_each(?2) wanted
          CROSS JOIN memory_records m ON m.id = wanted.value AND m.conversation IS NOT NULL
          CROSS JOIN memory_events e INDEXED BY memory_events_derived ON json_extract(e.source, '$.record_id') = wanted.value
          CROSS JOIN memory_records r ON r.id = e.record_id
          WHERE e.tenant_id = ?1 AND r.tenant_id = ?1 AND r.subject IS NOT NULL AND r.predicate IS NOT NULL
            AND e.kind IN ('stored', 'edited', 'restored') AND (?4 IS NULL OR r.updated_at_ms <= ?4)
        )
        """,
        (tenant_id, json.dumps(list(ids)), at_ms, known_at_ms),
    )


def read_facts(rows: Sequence[Sequence[Any]]) -> list[StatedFact]:
    """Return the facts that `facts_of_messages` found."""
    return [
        StatedFact(message, fact, bool(valid), () if valid else tuple(one for one in (current, closer) if one))
        for message, fact, valid, current, closer in rows
    ]


def demote(ranked: Sequence[Candidate], facts: Sequence[StatedFact], weight: float) -> list[Candidate]:
    """Return the candidates in order, after each outdated message lost score: the component `outdated`.

    It loses `weight` times the share of its facts that are over, and is ranked below what is so instead, unless a fact of
    the message that is still valid comes before that: then the query is about this one.
    """
    stated: dict[str, list[StatedFact]] = defaultdict(list)
    for fact in facts:
        stated[fact.message_id].append(fact)
    if all(fact.valid for fact in facts):
        return list(ranked)
    score = {one.id: one.score for one in ranked}
    lowered = 0
    for candidate in ranked:
        own = stated.get(candidate.id, [])
        over = [fact for fact in own if not fact.valid]
        if not over:
            continue
        loss = weight * len(over) / len(own)
        limit = _limit(own, stated, score)
        if limit is not None:
            lowered += 1
            loss = min(loss, limit - _STEP * lowered - candidate.score)
        candidate.components["outdated"] = loss
        candidate.score += loss
    return sorted(ranked, key=lambda one: (-one.score, one.id))


def _limit(
    own: Sequence[StatedFact], stated: Mapping[str, Sequence[StatedFact]], score: Mapping[str, float]
) -> float | None:
    """Return the score of the best fact that is so instead of what a message stated, or else of the message that ended it.

    None if neither is a candidate, or if the query is about what is still so.
    """
    closing = {one for fact in own if not fact.valid for one in fact.instead}
    facts = closing - stated.keys() | {fact.fact_id for one in closing for fact in stated.get(one, ()) if fact.valid}
    found = [score[one] for one in facts if one in score] or [score[one] for one in closing if one in score]
    valid = [score[fact.fact_id] for fact in own if fact.valid and fact.fact_id in score]
    return None if not found or max(valid, default=float("-inf")) > max(found) else max(found)


@dataclass(frozen=True)
class _Statement:
    """What a record states. text: empty if it is not compared. changed: it says that something is not as it was.

    parts: those that it contrasts with the truth. negated: it has a word that negates, outside these parts.
    """

    text: str
    language: str
    changed: bool
    parts: Sequence[str]
    negated: bool
    since_ms: int

    @cached_property
    def stems(self) -> frozenset[str]:
        """The stems of its telling words. Most statements are never asked for them: nothing contradicts them."""
        return statement_terms(self.text, self.language) if self.text else frozenset()

    @cached_property
    def denied(self) -> tuple[frozenset[str], ...]:
        """The stems of each part that it contrasts with the truth."""
        return tuple(statement_terms(part, self.language) for part in self.parts)


def contrasted(query: Query, found: Sequence[tuple[Record, float]]) -> list[float]:
    """Return the scores of what was found, those of contradicted records below the scores of what contradicts them.

    A statement is contradicted by a later one that corrects it: that says what changed, or denies what this one states. One
    that says the opposite of the query is contradicted by one in the same words that does not, if both have two of the
    query's. Only short records outside conversations are compared; for a query that asks for a time or for what was, none
    is corrected.
    """
    language = query.language
    kinds, seen = KINDS[language], seen_by_patterns(query.text, language)
    signs = kinds.changed - signs_in(query.text, language, kinds.changed)
    statements = [_statement(record, language, signs) for record, _ in found]
    scores = [score for _, score in found]
    if not query.times and query.positions is None and not kinds.past.search(seen):
        _correct(query, statements, scores)
    negated, asked = bool(signs_in(query.text, language, kinds.negating)), comparable(query.stems, language)
    for place, own in enumerate(statements):
        if own.negated == negated or own.changed:
            continue
        same = [
            scores[other]
            for other, one in enumerate(statements)
            if one.negated == negated and _is_alike(own, one) and len(asked & own.stems & one.stems) >= _SHARED
        ]
        if same and 0 <= scores[place] - max(same) <= _OPPOSED:
            scores[place] = max(same) - _STEP
    return scores


def _correct(query: Query, statements: Sequence[_Statement], scores: list[float]) -> None:
    correcting = [(place, one) for place, one in enumerate(statements) if one.changed or one.parts]
    if not correcting:
        return
    asked = comparable(query.stems, query.language)
    titles = COMMON.get(query.language, ())
    names = [one for one in _NAME.findall(query.text) if fold(one) not in titles]
    named = statement_terms(" ".join(names), query.language)
    for place in sorted(range(len(statements)), key=lambda one: -statements[one].since_ms):
        own = statements[place]
        later = [
            scores[other]
            for other, one in correcting
            if (one.changed or _denies(one, own)) and _corrects(one, own, own.stems & asked, own.stems & named)
        ]
        if later and scores[place] > max(later) - _STEP:
            scores[place] = max(later) - _STEP


def _statement(record: Record, language: str, signs: frozenset[str]) -> _Statement:
    """Return what a record states in a language. signs: words that say that something changed."""
    text = record.content
    if record.utterance is not None or len(text) > _SHORT:
        return _Statement("", language, changed=False, parts=(), negated=False, since_ms=record.valid_from_ms)
    parts, rest = denials(text, language)
    negating = KINDS[language].negating
    seen = signs_in(text, language, signs | negating)
    return _Statement(
        text,
        language,
        changed=not signs.isdisjoint(seen),
        parts=parts,
        negated=bool(signs_in(rest, language, negating)) if parts else not negating.isdisjoint(seen),
        since_ms=record.valid_from_ms,
    )


def _denies(later: _Statement, own: _Statement) -> bool:
    """Return whether a statement denies all of something that another one states."""
    return not own.negated and any(part and part <= own.stems for part in later.denied)


def _corrects(later: _Statement, own: _Statement, asked: frozenset[str], named: frozenset[str]) -> bool:
    """Return whether a statement corrects an earlier one. asked, named: what this one has of the query's words and names."""
    if later.since_ms <= own.since_ms or not named <= later.stems or 2 * len(asked & later.stems) <= len(asked):
        return False
    return _is_alike(own, later)


def _is_alike(own: _Statement, other: _Statement) -> bool:
    """Return whether the other statement has so many of a statement's words that both are about the same."""
    return len(own.stems & other.stems) >= max(_SHARED, _SHARE * len(own.stems))
