"""How many records and words the visible scopes hold, and which scopes those are."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from retain.errors import LimitExceeded
from retain.memory.recall.query import Query
from retain.memory.recall.words import USERS
from retain.memory.scope import BELOW, CHAIN, Reach, View, reach_of
from retain.ports import Row, Sql, Statement

CONTEXT_SHARE = 0.5
"""How much a word of the turns before a query counts, compared with one of the query."""
MAX_SCOPES = 32
"""The most scopes that one recall searches."""
_USERS = f"""
SELECT '{USERS}' AS scope_id, SUM(records) AS records, SUM(words) AS words FROM scopes
WHERE tenant_id = ?1 AND user_id IS NOT NULL HAVING SUM(records) > 0
"""


def inverse_frequency(total: int, having: int) -> float:
    """Return the inverse document frequency of a word that `having` of `total` records have.

    Source: https://doi.org/10.1561/1500000019
    """
    return math.log(1 + (total - having + 0.5) / (having + 0.5))


@dataclass(frozen=True, slots=True)
class Statistics:
    """Word statistics of the visible scopes: how many records and words, and how many records have a stem."""

    records: int
    words: int
    having: Mapping[str, int]

    @property
    def average(self) -> float:
        """Words of a record."""
        return max(self.words / max(self.records, 1), 1.0)

    def idf(self, query: Query) -> dict[str, float]:
        """Return the inverse document frequency of each of the query's stems; a share of it for those of its context."""
        share = {**dict.fromkeys(query.context_stems, CONTEXT_SHARE), **dict.fromkeys(query.stems, 1.0)}
        return {
            stem: share[stem] * inverse_frequency(self.records, self.having.get(stem, 0))
            for stem in query.counted_stems
        }


@dataclass(frozen=True, slots=True)
class Counted:
    """Visible scopes, with how many records and words they hold."""

    reach: Reach
    records: int
    words: int

    @classmethod
    def of(cls, reach: Reach, rows: Sequence[Row]) -> Counted:
        """Return the scopes of rows with `scope_id`, `records` and `words`."""
        return cls(reach, sum(int(row["records"]) for row in rows), sum(int(row["words"]) for row in rows))

    def with_words(self, found: Iterable[Mapping[str, int]]) -> Statistics:
        """Return the statistics. found: how many records have each stem, by the places where texts are found."""
        having: dict[str, int] = {}
        for one in found:
            for stem, records in one.items():
                having[stem] = having.get(stem, 0) + records
        return Statistics(max([self.records, *having.values()]), self.words, having)


def visible_from(view: View) -> Reach:
    """Return what is visible in a view if D1 agrees, which `counted_chain` checks.

    Raises: LimitExceeded (code `too_many_scopes`).
    """
    reach = Reach(view.tenant_id, tuple(node.scope_id for node in view.nodes))
    if len(reach.scope_ids) > MAX_SCOPES:
        raise _too_many()
    return reach


def chain(reach: Reach) -> Statement:
    """Return the statement for the visible scopes and their ancestors as D1 has them."""
    return CHAIN, (reach.tenant_id, json.dumps(reach.scope_ids))


def counted_chain(view: View, rows: Sequence[Row]) -> Counted:
    """Return the visible scopes from the result of `chain`. Raises: NotFound (code `unknown_scope`), as `reach_of`."""
    return Counted.of(reach_of(view, rows), rows)


async def read_below(sql: Sql, view: View) -> Counted:
    """Return the scopes with records at and below the view's scope; all users' scopes of a whole tenant count as one.

    One round trip. Raises: LimitExceeded (code `too_many_scopes`).
    """
    scope = view.scope
    whole = scope.kind == "tenant"
    within = "?2 = 'tenant' AND kind <> 'user'" if whole else f"scope_id IN ({BELOW})"
    below = (
        "SELECT scope_id, records, words FROM scopes"
        f" WHERE tenant_id = ?1 AND records > 0 AND ({within}) LIMIT {MAX_SCOPES + 1}"
    )
    read = await sql.batch(
        [(below, (scope.tenant_id, scope.scope_id)), *([(_USERS, (scope.tenant_id,))] if whole else [])]
    )
    if len(read[0].rows) > MAX_SCOPES:
        raise _too_many()
    rows = [row for result in read for row in result.rows]
    reach = Reach(scope.tenant_id, tuple(str(row["scope_id"]) for row in rows), whole=whole)
    return Counted.of(reach, rows)


def _too_many() -> LimitExceeded:
    return LimitExceeded("too many scopes to search at once; name an agent, a house or a user", code="too_many_scopes")
