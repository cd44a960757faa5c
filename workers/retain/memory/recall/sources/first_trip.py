"""What a recall asks D1 first, in one round trip, while the query is embedded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from retain.json_text import read_own_json
from retain.memory.recall import candidates as sources
from retain.memory.recall.candidates import Visible
from retain.memory.recall.evidence import Matching
from retain.memory.recall.query import Query
from retain.memory.recall.sources.fresh import Fresh, FreshReading
from retain.memory.recall.sources.full_text import by_words, found_words, full_text
from retain.memory.recall.sources.instructed import instructed
from retain.memory.recall.sources.matching import matching, read_matching
from retain.memory.recall.sources.statistics import Counted, Statistics, chain, counted_chain
from retain.memory.recall.sources.uttered_then import uttered_then
from retain.memory.scope import View
from retain.ports import Sql, SqlResult, Statement


@dataclass(frozen=True, slots=True)
class Found:
    """What D1 found. fresh: the newest writes.

    earlier: [id, signature] of texts that were known in the past, and that the index does not have. matching: the newest
    records that meet the filter; None without one. uttered_then: [id, signature] of what was said in the times of a query
    that asks for nothing else, and recorded later.
    """

    bm25: Mapping[str, float]
    context: Mapping[str, float]
    exact: Mapping[str, float]
    fresh: Fresh
    earlier: Sequence[Any]
    matching: Matching | None
    dated: frozenset[str]
    uttered_then: Sequence[Any]
    standing: frozenset[str]


@dataclass(frozen=True, slots=True)
class FirstRead:
    """What D1 found by words and among the newest writes, what is visible by D1's own scopes, and what else was asked."""

    statistics: Statistics
    visible: Visible
    found: Found
    along: Sequence[SqlResult]


async def read_first(
    sql: Sql,
    view: View,
    query: Query,
    visible: Visible,
    counted: Counted | None,
    *,
    lately: FreshReading,
    model: str,
    filtered: bool,
    along: Sequence[Statement] = (),
) -> FirstRead:
    """Ask D1 once, and rarely twice (`FreshReading.read`). counted: the visible scopes, if they were read already.

    lately: reads what the index may not show yet. along: a caller's own statements.

    Raises: NotFound (code `unknown_scope`), as `counted_chain`; Unavailable.
    """
    instructions = _instructions(visible, query) if query.request else []
    asks_then = query.only_dated and bool(query.times) and visible.known_at_ms is None
    phrases = [(phrase, texts) for phrase in query.exact for texts in visible.texts]
    statements = [
        *([chain(visible.reach)] if counted is None else []),
        lately.statement(),
        *[full_text(visible, query, texts) for texts in visible.texts],
        *[sources.exact_term(visible, phrase, texts) for phrase, texts in phrases],
        *([] if visible.known_at_ms is None else [sources.earlier(visible, model)]),
        *([uttered_then(visible, query.times, model)] if asks_then else []),
        *instructions,
        *([matching(visible, model)] if filtered else []),
    ]
    answered = await sql.batch([*statements, *along])
    read, others = answered[: len(statements)], answered[len(statements) :]
    if counted is None:
        counted = counted_chain(view, read.pop(0).rows)
        visible = replace(visible, reach=counted.reach)
    fresh, *rest = read
    met = read_matching(rest.pop().rows[0]) if filtered else None
    followed = [rest.pop() for _ in instructions]
    uttered = listed(rest.pop()) if asks_then else []
    earlier = [] if visible.known_at_ms is None else listed(rest.pop())
    words = [found_words(rest.pop(0).rows[0]) for _ in visible.texts]
    statistics = counted.with_words([one.having for one in words])
    idf = statistics.idf(query)
    ranked, context = by_words(words, query, idf, statistics.average)
    times = (times for found in words for times in found.at_ms.items()) if query.times else ()
    dated = frozenset([one for one, at_ms in times if query.dates(at_ms)])
    whole = sum(query.exact.values())
    exact: dict[str, float] = {}
    for (phrase, _), result in zip(phrases, rest, strict=True):
        for row in result.rows:
            exact[row["id"]] = exact.get(row["id"], 0.0) + query.exact[phrase] ** 2 / whole
    standing = frozenset(row["id"] for result in followed for row in result.rows)
    found = Found(ranked, context, exact, await lately.read(fresh.rows[0], sql), earlier, met, dated, uttered, standing)
    return FirstRead(statistics, visible, found, others)


def _instructions(visible: Visible, query: Query) -> list[Statement]:
    return [instructed(visible), *[sources.standing(visible, query.language, texts) for texts in visible.texts]]


def listed(result: SqlResult) -> list[Any]:
    """Return the elements of the JSON array that a statement returned as `found`."""
    found: list[Any] = read_own_json(result.rows[0]["found"])
    return found
