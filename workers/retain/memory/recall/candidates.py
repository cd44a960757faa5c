"""Sources of candidates in D1: word statistics, full text, exact terms, fresh vectors and neighbours.

Every query names the tenant and the visible scopes, and asks only for records that are valid at the time in question.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from retain.errors import LimitExceeded
from retain.memory.filters import FIELDS
from retain.memory.recall.preparation import SPAN
from retain.memory.recall.query import Query
from retain.memory.recall.ranking import BM25_B, BM25_K1, inverse_frequency
from retain.memory.recall.words import USERS, scope_tag
from retain.memory.records.record import Record
from retain.memory.records.rows import outside_gaps
from retain.memory.scope import BELOW, CHAIN, Reach, Scope, View, reach_of
from retain.ports import Sql, SqlValue, Statement

_TEXT_COLUMNS = ("length", "terms", "names_time", "asking", "signature")
"""What ranking reads of a text."""
_PLACE_FIELDS = ("conversation", "speaker")
TEXT_CANDIDATES = 200
"""The most candidates found by words."""
CANDIDATES = 100
"""The most candidates found by vectors: Vectorize's limit for topK.

Source: https://developers.cloudflare.com/vectorize/platform/limits/
"""
TERM_LIMIT = 64
"""Words that are looked up in full text, rarest first …"""
POSTINGS_LIMIT = 3000
"""… as long as they occur together in at most this many records; the three rarest always."""
FRESH_LIMIT = 500
"""The most recently written records, whose vectors the index may not show yet, that are ranked by their signatures."""
EARLIER_LIMIT = 1000
"""The most texts that were known at a time in the past, and edited since, that are ranked by their signatures."""
MAX_SCOPES = 32
"""The most scopes that one recall searches."""
_COUNTS = f"""
SELECT scope_id, records, words FROM scopes WHERE tenant_id = ?1 AND scope_id IN (SELECT value FROM json_each(?2))
UNION ALL
SELECT '{USERS}', SUM(records), SUM(words) FROM scopes
WHERE tenant_id = ?1 AND user_id IS NOT NULL AND EXISTS (SELECT 1 FROM json_each(?2) WHERE value = '{USERS}')
HAVING SUM(records) > 0
"""

_SAME_CONVERSATION = "p.tenant_id = {0}.tenant_id AND p.scope_id = {0}.scope_id AND p.conversation = {0}.conversation"


@dataclass(frozen=True, slots=True)
class TextIndex:
    """Where texts are indexed: full text, occurrences of its tokens, search rows `s`, and how a number leads to a record."""

    full_text: str
    occurrences: str
    rows: str
    records: str


PRESENT = TextIndex(
    "memory_text", "memory_occurrences", "memory_search", "JOIN memory_records r ON r.number = {number}"
)
"""The texts that records have now."""
EARLIER = TextIndex(
    "memory_earlier_text",
    "memory_earlier_occurrences",
    "memory_earlier",
    "JOIN memory_earlier e ON e.number = {number} JOIN memory_records r ON r.id = e.record_id",
)
"""The texts that records had earlier (`retain.memory.earlier_texts`)."""


@dataclass(frozen=True, slots=True)
class Visible:
    """What may be seen: the scopes within reach, the time for which it is valid, and a condition on `memory_records r`.

    known_at_ms: a time in the past, to see what was known then; None for what is known now. Records that changed since then
    pass `where`, and are filtered later, in the state that their events give for that time: `meeting` asks whether it meets
    the condition.
    """

    reach: Reach
    at_ms: int
    known_at_ms: int | None
    condition: str
    condition_values: tuple[SqlValue, ...]

    @property
    def tenant_id(self) -> str:
        """The tenant."""
        return self.reach.tenant_id

    @property
    def scope_ids(self) -> tuple[str, ...]:
        """The scopes within reach."""
        return self.reach.scope_ids

    @property
    def texts(self) -> tuple[TextIndex, ...]:
        """Where the texts are found that may be seen."""
        return (PRESENT,) if self.known_at_ms is None else (PRESENT, EARLIER)

    def where(self, texts: TextIndex | None = None) -> tuple[str, tuple[SqlValue, ...]]:
        """Return the condition that a row of `memory_records r` must meet, and its values.

        texts: where the row's text was found; then it must be the one that was known.
        """
        within, scopes = self.reach.predicate("r")
        valid = (
            "(r.valid_to_ms IS NULL OR r.valid_to_ms > ?) AND (r.expires_at_ms IS NULL OR r.expires_at_ms > ?)"
            f" AND r.valid_from_ms <= ? AND {outside_gaps(str(self.at_ms))} AND {self.condition}"
        )
        values = (*[self.at_ms] * 3, *self.condition_values)
        known = self.known_at_ms
        if known is None:
            return f"{within} AND {valid}", (*scopes, *values)
        then = earlier_then("e", known)
        was_known = f" AND {then}" if texts is EARLIER else ""
        if texts is PRESENT:
            was_known = f" AND NOT EXISTS (SELECT 1 FROM memory_earlier e WHERE e.record_id = r.id AND {then})"
        return (
            f"{within} AND r.recorded_at_ms <= ? AND (({valid}) OR r.updated_at_ms > ?){was_known}",
            (*scopes, known, *values, known),
        )

    def meeting(self, records: Sequence[Record]) -> Statement:
        """Return the statement for the ids of the given records that meet the condition, in the state that is given.

        D1 evaluates them like its rows, so a filter means the same for the past as for the present.
        """
        columns = ", ".join(f"value ->> '{name}' AS {name}" for name in ("id", *FIELDS))
        given = [
            {name: getattr(record, name) for name in ("id", "metadata", *FIELDS) if hasattr(record, name)}
            | ({} if record.utterance is None else {name: getattr(record.utterance, name) for name in _PLACE_FIELDS})
            for record in records
        ]
        return (
            f"SELECT r.id FROM (SELECT {columns}, value -> 'metadata' AS metadata FROM json_each(?)) r"
            f" WHERE {self.condition}",
            (json.dumps(given), *self.condition_values),
        )


def earlier_then(table: str, at_ms: int) -> str:
    """Return the condition that a row of `memory_earlier` has the text that was known at a time."""
    return f"{table}.from_ms <= {at_ms:d} AND {table}.until_ms > {at_ms:d}"


@dataclass(frozen=True, slots=True)
class Statistics:
    """Word statistics of the scopes within reach: how many records and words, and how many records have a stem.

    tags: under which the words of those scopes are indexed.
    """

    reach: Reach
    tags: tuple[str, ...]
    records: int
    words: int
    having: Mapping[str, int]

    def idf(self, query: Query) -> dict[str, float]:
        """Return the inverse document frequency of each of the query's stems."""
        return {stem: inverse_frequency(self.records, self.having.get(stem, 0)) for stem in query.stems}

    def sought(self, query: Query) -> list[str]:
        """Return the stems to look up in full text: those that occur somewhere, rarest first, within the limits."""
        found: list[str] = []
        postings = 0
        present = [stem for stem in query.stems if self.having.get(stem, 0)]
        for stem in sorted(present, key=lambda stem: (self.having[stem], stem))[:TERM_LIMIT]:
            postings += self.having[stem]
            if len(found) >= 3 and postings > POSTINGS_LIMIT:
                break
            found.append(stem)
        return found


async def read_statistics(sql: Sql, view: View, query: Query, *, below: bool, past: bool = False) -> Statistics:
    """Return the statistics of what is visible in a view. One round trip, two when `below`.

    past: with the words of earlier texts.

    Visible are the chains of the view's scopes, walked over `parent_id` in the same round trip. The words are looked up
    under the tags of the paths that the runtime made; the chains that D1 has must equal them. below: the scopes at and
    below the view's scope instead; of the whole tenant, all users' scopes count as one.
    Raises: NotFound (code `unknown_scope`), as `reach_of`; LimitExceeded (code `too_many_scopes`) when more than 32
        scopes are visible, or have records at and below.
    """
    path = await _below(sql, view.scope) if below else [node.scope_id for node in view.nodes]
    if not below and len(path) > MAX_SCOPES:
        raise _too_many()
    tags = {scope_tag(view.tenant_id, scope_id): scope_id for scope_id in path}
    terms = [tag + stem for tag in tags for stem in query.stems]
    vocabularies = ("memory_vocabulary", "memory_earlier_vocabulary") if past else ("memory_vocabulary",)
    scopes, *found = await sql.batch(
        [
            (_COUNTS if below else CHAIN, (view.tenant_id, json.dumps(path))),
            *(
                (f"SELECT term, doc FROM {name} WHERE term IN (SELECT value FROM json_each(?))", (json.dumps(terms),))
                for name in vocabularies
            ),
        ]
    )
    known = {str(row["scope_id"]): row for row in scopes.rows}
    whole = below and view.scope.kind == "tenant"
    reach = Reach(view.tenant_id, tuple(known), whole=whole) if below else reach_of(view, scopes.rows)
    having: dict[str, int] = {}
    for row in (row for vocabulary in found for row in vocabulary.rows):
        tag, stem = row["term"][:8], row["term"][8:]
        if tags[tag] in known:
            having[stem] = having.get(stem, 0) + int(row["doc"])
    return Statistics(
        reach,
        tuple(scope_tag(view.tenant_id, scope_id) for scope_id in reach.scope_ids),
        max([sum(int(row["records"]) for row in known.values()), *having.values()]),
        sum(int(row["words"]) for row in known.values()),
        having,
    )


async def _below(sql: Sql, scope: Scope) -> list[str]:
    """Return the scopes with records at and below a scope; below the tenant, `USERS` instead of its users' scopes."""
    whole = scope.kind == "tenant"
    within = "?2 = 'tenant' AND kind <> 'user'" if whole else f"scope_id IN ({BELOW})"
    rows = (
        await sql.run(
            f"SELECT scope_id FROM scopes WHERE tenant_id = ?1 AND records > 0 AND ({within}) LIMIT ?3",
            scope.tenant_id,
            scope.scope_id,
            MAX_SCOPES + 1,
        )
    ).rows
    if len(rows) > MAX_SCOPES:
        raise _too_many()
    return [*(row["scope_id"] for row in rows), *([USERS] if whole else [])]


def _too_many() -> LimitExceeded:
    return LimitExceeded("too many scopes to search at once; name an agent, a house or a user", code="too_many_scopes")


def full_text(visible: Visible, statistics: Statistics, query: Query, texts: TextIndex) -> Statement:
    """Return the statement for [id, bm25] of the best records by BM25 over the visible scopes' own statistics, as JSON.

    FTS5's `bm25()` would count every tenant's records; here another tenant's writes change nothing.
    Source: https://doi.org/10.1561/1500000019
    """
    idf = statistics.idf(query)
    sought = statistics.sought(query)
    weighed = [[tag + stem, idf[stem]] for tag in statistics.tags for stem in sought]
    average = max(statistics.words / max(statistics.records, 1), 1.0)
    where, values = visible.where(texts)
    return (
        f"""
        WITH wanted (term, idf) AS (
          SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]') FROM json_each(?)
        ), found (number, term, idf, frequency) AS (
          SELECT o.doc, o.term, w.idf, COUNT(*) FROM wanted w CROSS JOIN {texts.occurrences} o ON o.term = w.term
          GROUP BY o.doc, o.term
        ), scored (number, bm25) AS (
          SELECT f.number,
                 SUM(f.idf * f.frequency * {BM25_K1 + 1}
                     / (f.frequency + {BM25_K1} * ({1 - BM25_B} + {BM25_B} * s.words / ?)))
          FROM found f JOIN {texts.rows} s ON s.number = f.number GROUP BY f.number
        )
        SELECT json_group_array(json_array(id, bm25)) AS found FROM (
          SELECT r.id, c.bm25 FROM scored c {texts.records.format(number="c.number")}
          WHERE {where} ORDER BY c.bm25 DESC, r.id LIMIT {TEXT_CANDIDATES}
        )
        """,
        (json.dumps(weighed), average, *values),
    )


def exact_term(visible: Visible, statistics: Statistics, phrase: Sequence[str], texts: TextIndex) -> Statement:
    """Return the statement for the ids of records that contain a phrase word for word."""
    where, values = visible.where(texts)
    match = " OR ".join(f'"{" ".join(tag + stem for stem in phrase)}"' for tag in statistics.tags) or '""'
    return (
        f"SELECT r.id FROM {texts.full_text} t {texts.records.format(number='t.rowid')}"
        f" WHERE t.{texts.full_text} MATCH ? AND {where} ORDER BY r.id LIMIT 50",
        (match, *values),
    )


def fresh(visible: Visible, since_ms: int, model: str) -> Statement:
    """Return the statement for [id, signature, changed] of records that the index may not show yet, as one JSON array.

    changed: the index may show the record's old vectors, so the signature counts. model: whose signatures to read.
    """
    return (
        "SELECT json_group_array(json_array(id, signature, changed)) AS found FROM ("
        "SELECT r.id, s.signature, o.changed FROM memory_outbox o"
        " CROSS JOIN memory_records r ON r.id = o.record_id CROSS JOIN memory_search s ON s.number = r.number"
        " WHERE o.tenant_id = ? AND o.state IN ('sent', 'owed') AND (o.state = 'owed' OR o.at_ms >= ?)"
        " AND (? OR o.scope_id IN (SELECT value FROM json_each(?))) AND s.parts > 0 AND s.embedding_model = ?"
        " ORDER BY o.at_ms DESC, r.id LIMIT ?)",
        (
            visible.tenant_id,
            since_ms,
            int(visible.reach.whole),
            json.dumps(visible.scope_ids),
            model,
            FRESH_LIMIT,
        ),
    )


def earlier(visible: Visible, model: str) -> Statement:
    """Return the statement for [id, signature] of the texts that were known and are no longer, as one JSON array.

    Those that were replaced first come first. They have no vectors in the index. model: whose signatures to read.
    """
    return (
        "SELECT json_group_array(json_array(record_id, signature)) AS found FROM ("
        "SELECT e.record_id, e.signature FROM memory_earlier e WHERE e.tenant_id = ?"
        f" AND {earlier_then('e', visible.known_at_ms or 0)} AND (? OR e.scope_id IN (SELECT value FROM json_each(?)))"
        " AND e.embedding_model = ? AND e.signature <> '0' ORDER BY e.until_ms, e.number LIMIT ?)",
        (visible.tenant_id, int(visible.reach.whole), json.dumps(visible.scope_ids), model, EARLIER_LIMIT),
    )


def matching(visible: Visible) -> Statement:
    """Return the statement for the newest records that meet the condition, so that a narrow filter finds any at all."""
    where, values = visible.where()
    return (
        f"SELECT r.id FROM memory_records r WHERE r.tenant_id = ? AND {where} ORDER BY r.number DESC LIMIT {CANDIDATES}",
        (visible.tenant_id, *values),
    )


def _nearby(side: str, order: str) -> str:
    """Return the position of the farthest turn on one side of `memory_search i` that is context; its own if there is none.

    Positions order the turns of a conversation, and numbers may be missing between them.
    """
    return (
        f"COALESCE((SELECT p.position FROM memory_search p WHERE {_SAME_CONVERSATION.format('i')} AND i.span > 0"
        f" AND p.position {side} i.position ORDER BY p.position {order} LIMIT 1 OFFSET {SPAN - 1}),"
        f" (SELECT {'MIN' if side == '<' else 'MAX'}(p.position) FROM memory_search p"
        f" WHERE {_SAME_CONVERSATION.format('i')} AND i.span > 0), i.position)"
    )


def with_neighbours(visible: Visible, ids: Sequence[str]) -> Statement:
    """Return the statement for the search rows of these records and of the turns around them, as one JSON array.

    The Worker gets one text instead of some hundred rows: converting each value costs more than finding it.
    """
    where, values = visible.where()
    known = visible.known_at_ms
    then = "" if known is None else f"LEFT JOIN memory_earlier e ON e.record_id = r.id AND {earlier_then('e', known)}"
    text = {name: f"n.{name}" if known is None else f"COALESCE(e.{name}, n.{name})" for name in _TEXT_COLUMNS}
    # The condition applies to neighbours as well: a record that is not visible or is filtered out lends no words.
    return (
        f"""
        WITH chosen (number) AS (
          SELECT r.number FROM json_each(?) c CROSS JOIN memory_records r ON r.id = c.value WHERE {where}
        ), around (number) AS (
          SELECT number FROM chosen
          UNION
          SELECT n.number FROM chosen c JOIN memory_search i ON i.number = c.number
          JOIN memory_search n ON n.tenant_id = i.tenant_id AND n.scope_id = i.scope_id
            AND n.conversation = i.conversation AND n.position BETWEEN {_nearby("<", "DESC")} AND {_nearby(">", "ASC")}
          WHERE i.conversation IS NOT NULL
        )
        SELECT json_group_array(json_object(
          'id', r.id, 'content_hash', r.content_hash, 'number', r.number, 'importance', r.importance,
          'confidence', r.confidence, 'speaker', r.speaker, 'at_ms', COALESCE(r.said_at_ms, r.valid_from_ms),
          'scope_id', n.scope_id, 'conversation', n.conversation,
          'positions', json_array(n.position, (SELECT MAX(p.position) FROM memory_search p
                                               WHERE {_SAME_CONVERSATION.format("n")} AND p.position < n.position)),
          {", ".join(f"'{name}', {column}" for name, column in text.items())},
          'earlier', {"0" if known is None else "e.number IS NOT NULL"}
        )) AS found
        FROM around a JOIN memory_search n ON n.number = a.number JOIN memory_records r ON r.number = a.number {then}
        WHERE {where}
        """,
        (json.dumps(ids), *values, *values),
    )
