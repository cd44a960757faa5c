"""What meets a filter, or is valid at all, however far it is from the query: found without words or vectors, within a bound.

Where indexes find what the filter asks for (`retain.memory.records.narrowing`), they are read. Where none does, the visible
scopes are read whole if they hold few enough records; and later, if indexes find more than one recall reads. What a filter
finds beyond these is left to words and vectors.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from retain.json_text import read_own_json
from retain.memory.recall.candidates import Visible
from retain.memory.recall.evidence import Matching
from retain.memory.records.narrowing import Lookup
from retain.ports import Row, SqlValue, Statement

MATCHING_LIMIT = 300
"""The most records that indexes find for a filter, and that are looked at."""
HELD_LIMIT = 500
"""The most records that the visible scopes hold if all of them are looked at, …"""
NEWEST = 200
"""… and the newest of them that are looked at if they hold more, where no index finds what the filter asks for."""
_UNPOSTED = Lookup("", None, (1,))
"""The records with more values than are posted."""
_GIVEN = "given (tenant, lists) AS MATERIALIZED (SELECT ?, ?)"
_TENANT = "(SELECT tenant FROM given)"
_RECORD = "CROSS JOIN memory_records r ON r.number = l.number"
_MOST_TERMS = 5
"""The most queries that D1 unites in one."""


def matching(visible: Visible, model: str) -> Statement:
    """Return the statement that `read_matching` reads: what indexes find for the filter, else what the scopes hold.

    model: whose signatures to read, "0" for another's.
    """
    asked = _asked(visible)
    if not asked:
        return held(visible, model, newest=NEWEST)
    each = _each(asked, MATCHING_LIMIT)
    condition, values = _meeting(visible, model)
    sql = f"WITH {_GIVEN} SELECT {condition} AS found, {each} AS most FROM ({_looked_up(asked, each)}) l {_RECORD}"
    return sql, (*_given(visible, asked), *values)


def held(visible: Visible, model: str, *, newest: int) -> Statement:
    """Return the statement that `read_matching` reads: what meets the condition of all that the visible scopes hold.

    newest: how many of their newest records are looked at if they hold more than `HELD_LIMIT`, of each scope as many. model:
    as for `matching`.
    """
    records = f"FROM memory_records p INDEXED BY memory_records_by_{{}} WHERE p.tenant_id = {_TENANT}"
    if visible.reach.whole:
        count = f"(SELECT COUNT(*) FROM (SELECT 1 {records.format('number')} LIMIT {HELD_LIMIT + 1}))"
        own = records.format("number")
        each = [own]
    else:
        scopes = "IN (SELECT value FROM given CROSS JOIN json_each(lists))"
        count = f"(SELECT SUM(records) FROM scopes WHERE tenant_id = {_TENANT} AND scope_id {scopes})"
        of_scope = f"{records.format('scope')} AND p.scope_id"
        own = f"{of_scope} {scopes}"
        each = [f"{of_scope} = (SELECT lists ->> '$[{at}]' FROM given)" for at in range(len(visible.scope_ids))]
    condition, values = _meeting(visible, model)
    few = "(SELECT few FROM bounds)"
    latest = f"ORDER BY p.number DESC LIMIT {newest // max(len(each), 1)} * (1 - {few})"
    rows = _united(
        [
            f"SELECT 0 AS part, number FROM (SELECT p.number {own} LIMIT {HELD_LIMIT} * {few})",
            *[f"SELECT 1 AS part, number FROM (SELECT p.number {one} {latest})" for one in (each if newest else ())],
        ]
    )
    sql = (
        f"WITH {_GIVEN}, bounds (few) AS MATERIALIZED (SELECT COALESCE({count}, 0) <= {HELD_LIMIT})"
        f" SELECT {condition} AS found, CASE WHEN {few} THEN {HELD_LIMIT + 1} ELSE 0 END AS most"
        f" FROM ({rows}) l {_RECORD}"
    )
    return sql, (visible.tenant_id, json.dumps(visible.scope_ids), *values)


def read_matching(row: Row) -> Matching:
    """Return what a statement of `matching` or `held` found. row: its result."""
    looked: list[Any] = read_own_json(row["found"])
    parts: dict[int, int] = {}
    met: dict[int, tuple[str, str, int]] = {}
    for part, *one in looked:
        parts[part] = parts.get(part, 0) + 1
        if one:
            record_id, signature, number = one
            met[number] = (record_id, signature, number)
    complete = row["most"] > max(parts.values(), default=0)
    return Matching([met[number] for number in sorted(met, reverse=True)], complete)


def newest_looked_up(visible: Visible, most: int, several: int) -> tuple[str, str, tuple[str, str]] | None:
    """Return SQL for a WITH clause, and for the numbers (`number`) of the newest records that indexes find for the filter.

    The last are the clause's values. None where no index finds what meets the filter. most, several: about how many numbers,
    if the filter asks for one value, or for several.
    """
    asked = _asked(visible)
    if not asked:
        return None
    each = _each(asked, most if len(visible.lookups) == 1 and asked[0].parts == 1 else several)
    return _GIVEN, _looked_up(asked, each), _given(visible, asked)


def _meeting(visible: Visible, model: str) -> tuple[str, tuple[SqlValue, ...]]:
    """Return the expression, and its values, for what `read_matching` reads of the records `r` that were looked at."""
    where, values = visible.where()
    signature = "(SELECT s.signature FROM memory_search s WHERE s.number = r.number AND s.embedding_model = ?)"
    met = f"json_array(l.part, r.id, COALESCE({signature}, '0'), r.number)"
    return f"json_group_array(CASE WHEN {where} THEN {met} ELSE json_array(l.part) END)", (*values, model)


def _asked(visible: Visible) -> tuple[Lookup, ...]:
    """Return the look-ups for the condition. The past has other values than the indexes, so then there are none."""
    if visible.known_at_ms is not None or not visible.lookups:
        return ()
    return (*visible.lookups, *([_UNPOSTED] if any(one.index is None for one in visible.lookups) else []))


def _each(asked: Sequence[Lookup], most: int) -> int:
    """Return how many records each part has at most, so that all have about `most`."""
    return max(most // sum(one.parts for one in asked if one is not _UNPOSTED), 2)


def _given(visible: Visible, asked: Sequence[Lookup]) -> tuple[str, str]:
    return visible.tenant_id, json.dumps([one.values for one in asked])


def _looked_up(asked: Sequence[Lookup], each: int) -> str:
    """Return SQL for what the indexes find: rows of `part` and `number`."""
    queries, part = [], 0
    for place, one in enumerate(asked):
        queries.append(one.rows(_TENANT, f"(SELECT lists -> '$[{place}]' FROM given)", each, part))
        part += one.parts
    return _united(queries)


def _united(queries: Sequence[str]) -> str:
    """Return SQL for the rows of all queries."""
    while len(queries) > 1:
        groups = [queries[at : at + _MOST_TERMS] for at in range(0, len(queries), _MOST_TERMS)]
        queries = [f"SELECT * FROM ({' UNION ALL '.join(group)})" for group in groups]
    return queries[0]
