"""Records in the order in which they were stored, page by page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from retain.errors import InvalidInput
from retain.limits.pages import cut, light, sized
from retain.memory.filters import UNCONDITIONAL, compile_filter
from retain.memory.records.examined import EXAMINED, Stretch, first_of_tenant, several
from retain.memory.records.limits import END_OF_NUMBERS
from retain.memory.records.narrowing import single
from retain.memory.records.record import Record
from retain.memory.records.rows import RECORD_COLUMNS, outside_gaps, record_of
from retain.memory.scope import Scope, UserPlace, holding, scopes_of
from retain.ports import Row, Sql, SqlValue, Statement

MAX_LIMIT = 200
_TEXTS = ("r.content", "r.metadata")
_AFTER = "r.number > ?3"
_HELD = (
    "r.valid_from_ms <= ?4 AND (r.valid_to_ms IS NULL OR r.valid_to_ms > ?4)"
    f" AND (r.expires_at_ms IS NULL OR r.expires_at_ms > ?4) AND {outside_gaps('?4')}"
)
FEW_SCOPES, MANY_SCOPES = 8, 1000
"""A list is read scope by scope where a house or an agent has at most so many with records, and a user."""
_OF_SCOPES = """
FROM (
  WITH few (ids) AS MATERIALIZED (
    SELECT CASE WHEN COUNT(*) <= {few} THEN json_group_array(scope_id) END FROM (
      SELECT b.scope_id FROM ({scopes}) b CROSS JOIN scopes s ON s.tenant_id = ?1 AND s.scope_id = b.scope_id
      WHERE s.records > 0 LIMIT {few} + 1)
  )
  SELECT each.value AS number FROM few CROSS JOIN json_each(few.ids) place CROSS JOIN json_each((
    SELECT json_group_array(number) FROM (
      SELECT r.number FROM memory_records r INDEXED BY memory_records_by_scope
      WHERE r.tenant_id = ?1 AND r.scope_id = place.value AND {where} ORDER BY r.number LIMIT {limit}))) each
  UNION ALL
  SELECT number FROM (
    SELECT r.number FROM few CROSS JOIN memory_records r INDEXED BY memory_records_by_number
    WHERE few.ids IS NULL AND r.tenant_id = ?1 AND {within} AND {where} ORDER BY r.number LIMIT {limit})
) n CROSS JOIN memory_records r ON r.number = n.number ORDER BY n.number LIMIT ?
"""
"""The first records of each scope, or of all at once where there are more scopes."""
_UNPOSTED = "SELECT 1 FROM memory_postings WHERE tenant_id = ? AND field = '' LIMIT 1"
"""Whether a tenant has a record with more values than are posted."""
_LIGHT = ", ".join(f"r.{name}" for name in ("number", *RECORD_COLUMNS) if f"r.{name}" not in _TEXTS)


@dataclass(frozen=True, slots=True)
class Listing:
    """What to list.

    filter: as in recall. held_at_ms: only records that are valid at this time; None lists closed and expired ones as well.
    known_at_ms: also those that changed after this time, and none that was recorded after it; as they were known is for
    `retain.memory.recall.as_of` to find out. cursor: from the previous page. limit: 1 to 200.

    Raises: InvalidInput.
    """

    filter: Mapping[str, object] = field(default_factory=dict)
    held_at_ms: int | None = None
    cursor: str | None = None
    limit: int = 50
    known_at_ms: int | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.limit <= MAX_LIMIT:
            raise InvalidInput(f"limit must be 1 to {MAX_LIMIT}", code="invalid_limit")
        if self.held_at_ms is not None and not 0 <= self.held_at_ms < END_OF_NUMBERS:
            raise InvalidInput("valid_at_ms must be epoch milliseconds", code="invalid_valid_at")
        if self.known_at_ms is not None and not 0 <= self.known_at_ms < END_OF_NUMBERS:
            raise InvalidInput("as_of_ms must be epoch milliseconds", code="invalid_as_of")
        number_after(self.cursor)


def number_after(cursor: str | None) -> int:
    """Return the number of the record after which a page begins: 0 without a cursor.

    Raises: InvalidInput (code `invalid_cursor`) for what is not the number of a record.
    """
    if cursor is None:
        return 0
    if cursor.isascii() and cursor.isdecimal() and len(cursor) < 17 and int(cursor) < END_OF_NUMBERS:
        return int(cursor)
    raise InvalidInput("the cursor is not valid", code="invalid_cursor")


async def list_records(sql: Sql, place: Scope | UserPlace, wanted: Listing) -> tuple[list[Record], str | None]:
    """Return a page of the records at or below the place, oldest first, and the next page's cursor, None after the last.

    It reads the place's own records where it has few scopes, else those that an index finds for the filter, else the
    tenant's in order. Of a tenant, and of what an index finds by several values, it looks at a few records, and at about
    `EXAMINED` more if none of these meets the filter: so a page may have fewer than the limit, or none, before the last. A
    page of large records has fewer as well, and is read by a second query.

    Raises: InvalidInput, LimitExceeded for the filter; Unavailable.
    """
    condition, values = compile_filter(wanted.filter)
    within, names = holding(place, "r.scope_id")
    bound: list[SqlValue] = [*names, number_after(wanted.cursor)]
    where = condition
    if wanted.held_at_ms is not None:
        where = f"{_HELD} AND {condition}"
        bound.append(wanted.held_at_ms)
    if wanted.known_at_ms is not None:
        bound += [wanted.known_at_ms] if wanted.held_at_ms is not None else [0, wanted.known_at_ms]
        where = f"r.recorded_at_ms <= ?5 AND (({where}) OR r.updated_at_ms > ?5)"
    where = f"{_AFTER} AND {where}"
    met = f"r.tenant_id = ?1 AND {within} AND {where}"
    indexed = not _of_user(place) and wanted.known_at_ms is None
    found = single(wanted.filter) if indexed else None
    if found is not None:
        of_name = f"p.tenant_id = ?1 AND {found.condition} AND {found.value} = ?"
        joined = f"FROM {found.source} CROSS JOIN memory_records r ON r.number = p.number"
        ordered = f"{joined} WHERE {met.replace(_AFTER, 'p.number > ?3')} AND {of_name} ORDER BY p.number LIMIT ?"
        unposted: Statement = (_UNPOSTED, (place.tenant_id,))
        one = await _page(sql, ordered, [*bound, *values, *found.values], wanted.limit, unposted)
        if one is not None:
            return one.records, one.cursor
    asked = several(wanted.filter) if indexed and found is None else None
    if asked is not None:
        page = await _examined(sql, asked.part, met, bound, values, wanted.limit, lacking=asked.of_metadata)
        if page is not None:
            return page
    whole = isinstance(place, Scope) and place.kind == "tenant"
    if whole and condition != UNCONDITIONAL:
        page = await _examined(sql, lambda most, _: first_of_tenant(most), met, bound, values, wanted.limit)
        assert page is not None
        return page
    if whole:
        source = f"FROM memory_records r WHERE {met} ORDER BY r.number LIMIT ?"
    else:
        few = MANY_SCOPES if _of_user(place) else FEW_SCOPES
        of = {"scopes": scopes_of(place), "within": within, "where": where}
        source = _OF_SCOPES.format(**of, few=few, limit=wanted.limit + 1)
        values = [*values, *values]
    one = await _page(sql, source, [*bound, *values], wanted.limit)
    assert one is not None
    return one.records, one.cursor


async def _examined(
    sql: Sql,
    part: Callable[[int, int], Stretch],
    where: str,
    bound: Sequence[SqlValue],
    values: Sequence[SqlValue],
    limit: int,
    *,
    lacking: bool = False,
) -> tuple[list[Record], str | None] | None:
    """Return a page of what meets a condition among the first records: of a few, then of many if none of those does.

    Only then, so that the page is the answer of one query, whose size is bounded.

    part: makes it from about how many there are, and the number of its first own parameter. bound: values of the parameters
    with a number. values: of those without. lacking: whether records that an index may lack make it answer None.
    """
    after = bound[2]
    for most in (4 * limit, EXAMINED):
        looked = part(most, len(bound) + 1)
        own = (*bound[:2], after, *bound[3:], *looked.values)
        last: Statement = (looked.last, own if looked.values else own[:3])
        unposted: Statement | None = (_UNPOSTED, (bound[0],)) if lacking else None
        source = f"{looked.source} AND {where} ORDER BY r.number LIMIT ?"
        page = await _page(sql, source, [*own, *values], limit, unposted, last)
        if page is None:
            return None
        after = page.last
        if page.records or after is None:
            return page.records, page.cursor or (None if after is None else str(after))
    return [], str(after)


def _of_user(place: Scope | UserPlace) -> bool:
    """Return whether a place is a user's, which has far fewer records than the tenant."""
    return isinstance(place, UserPlace) or place.kind in ("user", "instance")


@dataclass(frozen=True, slots=True)
class _Page:
    """Records and the next page's cursor. last: the number after which a query did not look, None if it looked at all."""

    records: list[Record]
    cursor: str | None
    last: SqlValue = None


async def _page(
    sql: Sql,
    source: str,
    bound: Sequence[SqlValue],
    limit: int,
    unless: Statement | None = None,
    last: Statement | None = None,
) -> _Page | None:
    """Return the page that a query finds; None if the statement `unless` finds anything.

    source: the query from FROM on, which ends with its limit. last: the query for the last number of which it finds all.
    """
    values = (*bound, limit + 1)
    light_page: Statement = (f"SELECT {_LIGHT}, {light(limit, *_TEXTS)} {source}", values)
    asked = [statement for statement in (last, unless) if statement is not None]
    first, *others = await sql.batch([light_page, *asked])
    end = None if last is None else others.pop(0).rows[0]["last"]
    if any(one.rows for one in others):
        return None
    rows: Sequence[Row] = _until(end, first.rows)
    if all(row["page_light"] for row in rows):
        rows, more = rows[:limit], len(rows) > limit
    else:
        large = sized(f"SELECT r.* {source}", "number", "content", "metadata")
        rows, more = cut(_until(end, (await sql.run(large, *values)).rows), limit)
    return _Page([record_of(row) for row in rows], str(rows[-1]["number"]) if more else None, end)


def _until(end: SqlValue, rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if end is None or row["number"] <= end]
