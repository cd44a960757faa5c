"""Candidates by words: which records to look at, within a bound, and their BM25 by the visible scopes' own statistics.

FTS5's `bm25()` would count every tenant's records; here another tenant's writes change nothing. A word's records are those
that have it after a visible scope's tag. They are read in groups, of which the first four have no record in common:

1. of the rarest words, all records, as long as there are at most `RARE` of them together,
2. of the next three words, the newest records that have all three,
3. the newest that have two of them,
4. the newest that have one,
5. where an index finds what a filter asks for, its newest records: others do not hide them.

So a recall reads a bounded number of rows, however much the scopes hold and however common the words are. Rare words find
all their records; of common words alone, records that have several of them come before newer ones that have one.
docs/decisions/0038-bounded-recall.md says what else was considered.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Any

from retain.json_text import read_own_json
from retain.memory.recall.candidates import KEPT_STATEMENTS, TextIndex, Visible, tags_of
from retain.memory.recall.query import Query
from retain.memory.recall.ranking import BM25_B, BM25_K1, BM25_LONGEST, by_origin
from retain.memory.recall.sources.matching import newest_looked_up
from retain.ports import Row, Statement

TEXT_CANDIDATES = 200
"""The most candidates found by words."""
TERM_LIMIT = 64
"""Words of a query that are looked up, and counted in what is found."""
RARE = 200
"""Records of the rarest words together, all of which are read …"""
COMMON_ALL, COMMON_TWO, COMMON_ONE = 60, 90, 50
"""… and the newest records that have all, two or one of the next three words."""
NARROW, NARROW_EACH = 200, 100
"""The newest records that an index finds for a filter by one value, and by several: read whatever words they have."""
_GROUP = 30
"""Counts per JSON array: a function of D1 takes 32 arguments."""


@dataclass(frozen=True, slots=True)
class FoundWords:
    """What full text found.

    having: how many records have each stem. counts: of each stem, by record, after its words. at_ms: when each was
    uttered, or became valid.
    """

    having: Mapping[str, int]
    counts: Sequence[tuple[str, int, Sequence[int]]]
    at_ms: Mapping[str, int]


def full_text(visible: Visible, query: Query, texts: TextIndex) -> Statement:
    """Return the statement that `found_words` reads."""
    stems = _counted(query)
    forms = [query.terms(stem) for stem in stems]
    terms = list(chain.from_iterable(forms))
    wanted = [
        [stem, tag + term, stem in query.stems]
        for tag in tags_of(visible)
        for stem, own in zip(stems, forms, strict=True)
        for term in own
    ]
    asked = {"terms": [f"{_MARK}{term} " for term in terms], "wanted": wanted}
    where, values = visible.where(texts)
    met = newest_looked_up(visible, NARROW, NARROW_EACH)
    looked, numbers, narrow_values = ("", "", ()) if met is None else met
    narrow = _OF_NUMBERS.format(numbers=numbers, table=texts.full_text) if met else ""
    sql = _sql(texts, tuple(map(len, forms)), looked, narrow, where)
    return sql, (json.dumps(asked), *narrow_values, *values)


@lru_cache(maxsize=KEPT_STATEMENTS)
def _sql(texts: TextIndex, forms: tuple[int, ...], looked: str, narrow: str, where: str) -> str:
    """Return the text of the statement. forms: how many terms each stem has."""
    places = iter(range(sum(forms)))
    counts = [_most([_COUNT.format(place=next(places)) for _ in range(own)]) for own in forms]
    groups = [f", json_array({', '.join(counts[at : at + _GROUP])})" for at in range(0, len(counts), _GROUP)]
    return f"""
        WITH {_WANTED.format(vocabulary=texts.vocabulary)}{looked and f", {looked}"}, found (number, content) AS (
          {_FOUND.format(table=texts.full_text)}
          {narrow}
        )
        SELECT (SELECT json_group_object(stem, records) FROM known) AS known,
               json_group_array(json_array(r.id, {_WORDS}, {_AT}{"".join(groups)})) AS found
        FROM ({_UNTAGGED}) f {texts.records.format(number="f.number")} WHERE {where}
        """


_WANTED = f"""
wanted (stem, term, sought) AS MATERIALIZED (
  SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_each(?1, '$.wanted')
),
present (stem, term, tag, records, sought) AS MATERIALIZED (
  SELECT w.stem, w.term, substr(w.term, 1, 8), v.doc, w.sought
  FROM wanted w CROSS JOIN {{vocabulary}} v ON v.term = w.term
),
known (stem, records, every, sought) AS MATERIALIZED (
  SELECT stem, SUM(most), SUM(every), sought
  FROM (SELECT stem, MAX(records) AS most, SUM(records) AS every, sought FROM present GROUP BY stem, tag) GROUP BY stem
),
ordered (stem, total) AS MATERIALIZED (
  SELECT stem, SUM(every) OVER (ORDER BY every, stem) FROM known WHERE sought
),
common (term, tag, place) AS MATERIALIZED (
  SELECT p.term, p.tag, o.place
  FROM (
    SELECT stem, ROW_NUMBER() OVER (ORDER BY total) AS place FROM ordered WHERE total > {RARE} ORDER BY total LIMIT 3
  ) o
  JOIN present p ON p.stem = o.stem
),
expressions (rare, ones, twos, threes) AS MATERIALIZED (
  SELECT
    (SELECT group_concat('"' || p.term || '"', ' OR ')
     FROM ordered o JOIN present p ON p.stem = o.stem WHERE o.total <= {RARE}),
    (SELECT group_concat('"' || term || '"', ' OR ') FROM common),
    (SELECT group_concat('("' || a.term || '" AND "' || b.term || '")', ' OR ')
     FROM common a JOIN common b ON b.tag = a.tag AND b.place > a.place),
    (SELECT group_concat('("' || a.term || '" AND "' || b.term || '" AND "' || c.term || '")', ' OR ')
     FROM common a JOIN common b ON b.tag = a.tag AND b.place > a.place JOIN common c ON c.tag = a.tag AND c.place > b.place)
)"""
"""?1: JSON with the terms, and each stem with each term that stands for it in the index, and whether to search for it.

A record may have two terms of a stem, so the records that have a stem are at least as many as have the most frequent one.
"""
_MATCHING = """SELECT t.rowid AS number, t.content || ' ' AS content FROM {{table}} t
          WHERE t.{{table}} MATCH (SELECT {expression} FROM expressions) {newest}"""
_OF_NUMBERS = """UNION ALL SELECT t.rowid, t.content || ' ' FROM ({numbers}) n
          CROSS JOIN {table} t ON t.rowid = n.number"""
_NONE = "'\"\"'"
"""An expression that nothing matches."""


def _newest(expression: str, others: Sequence[str], limit: int) -> str:
    """Return the query for the newest records that match an expression and none of the others."""
    excluded = " || ' OR ' || ".join(f"COALESCE({other}, {_NONE})" for other in others)
    without = f"'(' || {expression} || ') NOT (' || {excluded} || ')'"
    matching = _MATCHING.format(
        expression=f"COALESCE({without}, {_NONE})", newest=f"ORDER BY t.rowid DESC LIMIT {limit}"
    )
    return f"UNION ALL SELECT * FROM ({matching})"


_FOUND = "\n".join(
    [
        _MATCHING.format(expression=f"COALESCE(rare, {_NONE})", newest=""),
        _newest("threes", ["rare"], COMMON_ALL),
        _newest("twos", ["rare", "threes"], COMMON_TWO),
        _newest("ones", ["rare", "twos"], COMMON_ONE),
    ]
)
_MARK = "\x1e"
_UNTAGGED = f"SELECT number, replace(content, substr(content, 1, 8), char({ord(_MARK)})) AS content FROM found LIMIT -1"
"""What was found with a mark before each word, instead of the tag of its own scope. The limit makes SQLite do it once."""
_WORDS = (
    "(length(f.content) - length(replace(f.content, ' ', ''))) / CASE WHEN r.scope_id LIKE 'user.%' THEN 2 ELSE 1 END"
)
"""How many words a text has. A user's are there twice, first under the own tag, then under that of all users."""
_AT = "COALESCE(r.said_at_ms, r.valid_from_ms)"
_TERM = "(SELECT ?1 ->> '$.terms[{place}]')"
_COUNT = (
    f"CASE instr(f.content, {_TERM}) WHEN 0 THEN 0 ELSE"
    f" (length(f.content) - length(replace(f.content, {_TERM}, ''))) / length({_TERM}) END"
)
"""How often a text has the term of a place, which is read once for all texts."""


def _most(counts: Sequence[str]) -> str:
    return counts[0] if len(counts) == 1 else f"MAX({', '.join(counts)})"


def _counted(query: Query) -> tuple[str, ...]:
    """Return the stems that are counted in what is found: the query's first, and those of its context."""
    return (*query.stems[:TERM_LIMIT], *query.context_stems)


def found_words(row: Row) -> FoundWords:
    """Return what the statement of `full_text` found. row: its result."""
    having: dict[str, int] = read_own_json(row["known"])
    listed: list[Any] = read_own_json(row["found"])
    counts = [(one[0], one[1], list(chain.from_iterable(one[3:]))) for one in listed]
    return FoundWords(having, counts, {one[0]: one[2] for one in listed})


def by_words(
    found: Sequence[FoundWords], query: Query, idf: Mapping[str, float], average: float
) -> tuple[dict[str, float], dict[str, float]]:
    """Return the BM25 of what was found for the query's words, and for those of its context. average: words of a record."""
    own, others = by_origin(query, idf)
    scores: dict[str, float] = {}
    context: dict[str, float] = {}
    for one in found:
        scores |= bm25(one, query, own, average)
        context |= bm25(one, query, others, average) if query.context_stems else {}
    return scores, context


def bm25(found: FoundWords, query: Query, idf: Mapping[str, float], average: float) -> dict[str, float]:
    """Return the BM25 of the best of the found records, by id. average: words of a record.

    Source: https://doi.org/10.1561/1500000019
    """
    weights = [idf[stem] * (BM25_K1 + 1) for stem in _counted(query)]
    scores: list[tuple[float, str]] = []
    for record_id, length, counts in found.counts:
        if not any(counts):
            continue  # found by the filter alone
        norm = BM25_K1 * (1 - BM25_B + BM25_B * min(length / average, BM25_LONGEST))
        score = sum(
            [weight * count / (count + norm) for weight, count in zip(weights, counts, strict=True) if count and weight]
        )
        scores.append((-score, record_id))
    return {record_id: -score for score, record_id in sorted(scores)[:TEXT_CANDIDATES]}
