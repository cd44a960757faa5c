"""Export: what a tenant has, page by page, as JSON lines for import.

First come scopes, records with all their events, and users; then the rows of `transfer/kinds.py`, and items. One import
accepts one page. The events of deleted records come first, since a later one may have their contents; then the records in
the order in which they were stored, with scopes that are newer than the export; then what changed meanwhile, in the order of
world history. A record that changes during the export appears in one consistent state, or in several, each on its page;
importing a later export adds what is new.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from urllib.parse import quote, unquote

from retain.errors import InvalidInput
from retain.identifiers import USER
from retain.lifecycle.stores import Stores
from retain.lifecycle.transfer.items import item_page
from retain.lifecycle.transfer.kinds import ROW_KINDS
from retain.lifecycle.transfer.lines import MAX_LINES, VERSION
from retain.lifecycle.transfer.rows import RowPlace, row_page
from retain.memory.records.events import LearningEvent, fold
from retain.memory.records.listing import number_after
from retain.memory.records.rows import event_of
from retain.memory.scope import OF_USER
from retain.ports import Row, Sql, Statement

PAGE_BYTES = 400_000
"""Bytes of events after which a page ends: with the records in addition, a page stays below an import's limit.

An event counts as the size of its data and source plus 150 bytes for its ids and names.
"""
USERS_PER_PAGE = 100
"""Most users on a page."""
_CURSOR = re.compile(
    r"(scopes|deleted|records|changed)\.([0-9A-Z]{1,26})(?:\.([0-9A-Z]{26}))?(?:\.h([0-9]{1,15})-([0-9]{1,15}))?"
)
_ITEMS_CURSOR = re.compile(r"items\.([^\s]{0,1600})")
_USERS_CURSOR = re.compile(rf"users\.({USER.pattern})?")

_WITH_ANCESTORS = f"""
WITH RECURSIVE up (scope_id) AS (
  SELECT scope_id FROM ({OF_USER})
  UNION
  SELECT s.parent_id FROM up u JOIN scopes s ON s.tenant_id = ?1 AND s.scope_id = u.scope_id WHERE s.parent_id IS NOT NULL
)
SELECT scope_id FROM up
"""
_SCOPES = """
SELECT number AS place, scope_id, parent_id, kind, user_id FROM scopes
WHERE tenant_id = ?1 AND number > ?3 {within} ORDER BY number LIMIT ?4
"""
_SCOPES_OF = """
WITH RECURSIVE up (scope_id) AS (
  SELECT s.scope_id FROM json_each(?2) c CROSS JOIN scopes s ON s.tenant_id = ?1 AND s.scope_id = c.value AND s.number > ?3
  UNION
  SELECT s.parent_id FROM up u JOIN scopes s ON s.tenant_id = ?1 AND s.scope_id = u.scope_id WHERE s.parent_id IS NOT NULL
)
SELECT s.scope_id, s.parent_id, s.kind, s.user_id FROM up u JOIN scopes s ON s.tenant_id = ?1 AND s.scope_id = u.scope_id
"""
_HEAD = "SELECT COALESCE(MAX(seq), 0) AS seq FROM world_history WHERE tenant_id = ?"
_RECORDS = """
SELECT r.number AS place, r.id, r.scope_id,
  (SELECT SUM(length(e.data) + length(e.source) + 150) FROM memory_events e WHERE e.record_id = r.id) AS size
FROM memory_records r WHERE r.tenant_id = ?1 AND r.number > ?3 {within} ORDER BY r.number LIMIT ?4
"""
_DELETED = """
SELECT d.event_id AS place, d.record_id AS id, NULL AS scope_id,
  (SELECT SUM(length(e.data) + length(e.source) + 150) FROM memory_events e WHERE e.record_id = d.record_id) AS size
FROM memory_events d {by_record} WHERE d.tenant_id = ?1 AND d.event_id > ?3 AND d.kind = 'deleted' {within}
  AND NOT EXISTS (SELECT 1 FROM memory_records r WHERE r.id = d.record_id) ORDER BY d.event_id LIMIT ?4
"""
_CHANGED = """
SELECT h.seq AS place, h.subject_id AS id, (SELECT r.scope_id FROM memory_records r WHERE r.id = h.subject_id) AS scope_id,
  (SELECT SUM(length(e.data) + length(e.source) + 150) FROM memory_events e WHERE e.record_id = h.subject_id) AS size
FROM world_history h WHERE h.tenant_id = ?1 AND h.seq > ?3 {within}
  AND EXISTS (SELECT 1 FROM memory_events c WHERE c.record_id = h.subject_id) ORDER BY h.seq LIMIT ?4
"""
_LEARNED = f"""
SELECT s.record_id FROM ({OF_USER}) u CROSS JOIN memory_events s ON s.tenant_id = ?1 AND s.kind = 'stored'
  AND json_extract(s.data, '$.scope_id') = +u.scope_id
"""
"""A user's records. Without the plus, which takes away the column's affinity, no index of an expression is used."""
_RECORDS_OF_USER = f"""
r.number IN (SELECT m.number FROM ({OF_USER}) u CROSS JOIN memory_records m ON m.tenant_id = ?1
  AND m.scope_id = u.scope_id AND m.number > ?3)
"""
_USERS = """
SELECT user_id AS id, name, locale, timezone, created_at_ms, last_run_at_ms FROM users
WHERE tenant_id = ?1 AND user_id > ?3 {within} ORDER BY user_id LIMIT ?4
"""
_SIZES = """
SELECT event_id, length(data) + length(source) + 150 AS size FROM memory_events WHERE record_id = ? ORDER BY event_id
"""
_EVENTS = """
SELECT * FROM memory_events INDEXED BY memory_events_by_record
WHERE record_id IN (SELECT value FROM json_each(?)) AND tenant_id = ? ORDER BY event_id
"""
"""Without the index's name SQLite reads all events of the tenant for each page, as they are in this order."""
_SOME_EVENTS = """
SELECT * FROM memory_events WHERE event_id IN (SELECT value FROM json_each(?)) AND tenant_id = ? ORDER BY event_id
"""


@dataclass(frozen=True, slots=True)
class Page:
    """One page. lines: at most `MAX_LINES`, the last of kind `page`. cursor: of the next page, None at the end."""

    lines: Sequence[str]
    cursor: str | None

    @property
    def text(self) -> str:
        """The page as JSON lines."""
        return "".join(f"{line}\n" for line in self.lines)


@dataclass(frozen=True, slots=True)
class Extent:
    """What is exported: a tenant, or what is one user's."""

    tenant_id: str
    user_id: str | None = None

    def select(self, sql: str, within: str) -> str:
        """Return a query with the condition that keeps it to the user, if there is one, and the index that it needs then."""
        if self.user_id is None:
            return sql.format(within="", by_record="")
        return sql.format(within=f"AND {within}", by_record="INDEXED BY memory_events_by_record")


@dataclass(frozen=True, slots=True)
class _Place:
    """The position of an export: after this scope, record, deletion, change or user, and in the next one after this event.

    head: the newest entry of world history when the scopes had been listed. scopes: the last scope that was listed. Both are
    None in a cursor of an earlier version, whose exports had deletions at the end and no newer scopes.
    """

    phase: str
    after: str
    event: str | None = None
    head: str | None = None
    scopes: str | None = None

    def __str__(self) -> str:
        known = None if self.head is None else f"h{self.head}-{self.scopes}"
        return ".".join(part for part in (self.phase, self.after, self.event, known) if part is not None)

    @property
    def next_phase(self) -> _Place | None:
        """The beginning of the next phase of records; None after the last one."""
        match self.phase, self.head:
            case ("records", None):
                return _Place("deleted", "0")
            case ("deleted", str()):
                return replace(self, phase="records", after="0", event=None)
            case ("records", str(head)):
                return replace(self, phase="changed", after=head, event=None)
            case _:
                return None


async def export_page(stores: Stores, tenant_id: str, cursor: str | None) -> Page:
    """Return the page at the cursor, or the first page.

    Keeps at most one page, or the longest record's events, in memory. Raises: InvalidInput (code `invalid_cursor`).
    """
    place = None if cursor is None else RowPlace.parse(cursor)
    of_items = None if cursor is None else _ITEMS_CURSOR.fullmatch(cursor)
    if place is not None:
        lines, following = await _rows_from(stores, tenant_id, place)
    elif of_items is not None:
        lines, following = await _items_from(stores, tenant_id, unquote(of_items[1]))
    else:
        lines, following = await export_lines(stores.sql, Extent(tenant_id), cursor)
        following = str(RowPlace(next(iter(ROW_KINDS)))) if following is None else following
    return Page([*lines, export_line("page", tenant_id, {"cursor": following})], following)


async def _rows_from(stores: Stores, tenant_id: str, begin: RowPlace) -> tuple[list[str], str | None]:
    """Return a page of rows, of as many kinds as fit, and the next page's cursor."""
    lines: list[str] = []
    size, place = 0, begin
    while len(lines) < MAX_LINES - 1 and size < PAGE_BYTES:
        rows, limit = MAX_LINES - 1 - len(lines), PAGE_BYTES - size
        found, rest = await row_page(stores.sql, tenant_id, place, stores.clock(), rows=rows, limit_bytes=limit)
        made = [export_line(place.kind, tenant_id, content) for content in found]
        lines += made
        size += sum(len(line.encode()) for line in made)
        following = rest or place.next_kind
        if following is None:
            return lines, "items."
        place = following
    return lines, str(place)


async def _items_from(stores: Stores, tenant_id: str, after: str) -> tuple[list[str], str | None]:
    found, rest = await item_page(stores, tenant_id, after, PAGE_BYTES)
    lines = [export_line("item", tenant_id, content) for content in found]
    return lines, None if rest is None else f"items.{quote(rest, safe='')}"


async def export_lines(sql: Sql, extent: Extent, cursor: str | None) -> tuple[list[str], str | None]:
    """Return the lines of a page without the last, and the next page's cursor, None at the end. Raises: as `export_page`."""
    place = _place(cursor)
    following: _Place | None
    if place.phase == "scopes":
        rows = await _rows(sql, extent, _SCOPES, f"scope_id IN ({_WITH_ANCESTORS})", int(place.after), MAX_LINES - 1)
        lines = [_scope_line(extent.tenant_id, row) for row in rows]
        following = _Place("scopes", str(rows[-1]["place"])) if len(rows) == MAX_LINES - 1 else None
        if following is None:
            head = (await sql.run(_HEAD, extent.tenant_id)).rows[0]["seq"]
            last = str(rows[-1]["place"]) if rows else place.after
            following = _Place("deleted", "0", head=str(head), scopes=last)
    elif place.phase == "users":
        rows = await _rows(sql, extent, _USERS, "user_id = ?2", place.after, USERS_PER_PAGE)
        lines = [export_line("user", extent.tenant_id, {"user": dict(row)}) for row in rows]
        following = _Place("users", str(rows[-1]["id"])) if len(rows) == USERS_PER_PAGE else None
    else:
        lines, following = await _record_lines(sql, extent, place)
        if following is None and await _rows(sql, extent, _USERS, "user_id = ?2", "", 1):
            following = _Place("users", "")
    return lines, None if following is None else str(following)


async def _rows(sql: Sql, extent: Extent, query: str, within: str, after: str | int, limit: int) -> Sequence[Row]:
    return (await sql.run(extent.select(query, within), extent.tenant_id, extent.user_id or "", after, limit)).rows


async def _record_lines(sql: Sql, extent: Extent, place: _Place) -> tuple[list[str], _Place | None]:
    tenant_id, limit = extent.tenant_id, MAX_LINES - 1
    if place.phase == "deleted":
        rows = await _rows(sql, extent, _DELETED, f"d.record_id IN ({_LEARNED})", place.after, limit)
    elif place.phase == "changed":
        rows = await _rows(sql, extent, _CHANGED, f"h.subject_id IN ({_LEARNED})", int(place.after), limit)
    else:
        rows = await _rows(sql, extent, _RECORDS, _RECORDS_OF_USER, int(place.after), limit)
    if not rows and place.phase == "deleted" and place.next_phase is not None:
        return await _record_lines(sql, extent, place.next_phase)
    if rows and int(rows[0]["size"] or 0) > PAGE_BYTES:
        lines, event = await _part(sql, tenant_id, rows[0], place)
        after = place.after if event is not None else str(rows[0]["place"])
        return lines, replace(place, after=after, event=event)
    chosen: list[Row] = []
    size = 0
    for row in rows:
        size += int(row["size"] or 0)
        if size > PAGE_BYTES:
            break
        chosen.append(row)
    lines, taken = await _lines_of(sql, tenant_id, chosen, place.scopes)
    if taken == limit or taken < len(rows):
        return lines, replace(place, after=str(chosen[taken - 1]["place"]), event=None)
    return lines, place.next_phase


async def _lines_of(sql: Sql, tenant_id: str, rows: Sequence[Row], after: str | None) -> tuple[list[str], int]:
    """Return the lines of records, each after those of its scope, and of how many rows: of as many as fit on a page.

    after: the last scope that was listed before.
    """
    listed = json.dumps([row["id"] for row in rows])
    found, scopes = await sql.batch([(_EVENTS, (listed, tenant_id)), _scopes_of(tenant_id, rows, after)])
    events: dict[str, list[LearningEvent]] = {}
    for row in found.rows:
        events.setdefault(row["record_id"], []).append(event_of(row))
    left = {row["scope_id"]: row for row in scopes.rows}
    lines: list[str] = []
    for number, row in enumerate(rows):
        own = events.pop(row["id"], None)  # a record that changed twice is on the page once
        if own is None:
            continue
        before = _scopes_left(left, row["scope_id"])
        if len(lines) + len(before) >= MAX_LINES - 1:
            return lines, number
        lines += [_scope_line(tenant_id, left.pop(scope["scope_id"])) for scope in before]
        lines.append(_record_line(tenant_id, row["id"], own))
    return lines, len(rows)


def _scopes_of(tenant_id: str, rows: Sequence[Row], after: str | None) -> Statement:
    """Return the statement for those scopes of records that came after the last one listed, and their ancestors."""
    ids = [] if after is None else sorted({row["scope_id"] for row in rows} - {None})
    return _SCOPES_OF, (tenant_id, json.dumps(ids), int(after or 0))


def _scopes_left(left: Mapping[str, Row], scope_id: str | None) -> list[Row]:
    """Return a scope and its ancestors, the outermost first, as far as the page does not have them."""
    path: list[Row] = []
    while scope_id is not None and scope_id in left:
        path.insert(0, left[scope_id])
        scope_id = left[scope_id]["parent_id"]
    return path


def _scope_line(tenant_id: str, row: Row) -> str:
    scope = {name: row[name] for name in ("scope_id", "parent_id", "kind", "user_id")}
    return export_line("scope", tenant_id, {"scope": scope})


async def _part(sql: Sql, tenant_id: str, record: Row, place: _Place) -> tuple[list[str], str | None]:
    """Return the next part of a record whose events exceed a page, and its last event's id, or None for the last part.

    Each part begins with the event that stored the record, so that it can be imported on its own.
    """
    record_id, after = record["id"], place.event
    sizes = (await sql.run(_SIZES, record_id)).rows
    chosen = [sizes[0]["event_id"]]
    size = int(sizes[0]["size"])
    known = {row["event_id"] for row in sizes}  # the record may have been deleted: then the next one is here
    rest = [row for row in sizes[1:] if after not in known or row["event_id"] > str(after)]
    for number, row in enumerate(rest):
        size += int(row["size"])
        if size > PAGE_BYTES and number:
            break
        chosen.append(row["event_id"])
    some: Statement = (_SOME_EVENTS, (json.dumps(chosen), tenant_id))
    found, scopes = await sql.batch([some, _scopes_of(tenant_id, [record], place.scopes)])
    path = _scopes_left({row["scope_id"]: row for row in scopes.rows}, record["scope_id"])
    events = [_shown(event_of(row)) for row in found.rows]
    line = export_line("record", tenant_id, {"id": record_id, "events": events})
    return [*(_scope_line(tenant_id, row) for row in path), line], None if len(chosen) == len(rest) + 1 else chosen[-1]


def _record_line(tenant_id: str, record_id: str, events: Sequence[LearningEvent]) -> str:
    record = fold(events)
    shown = {
        "id": record_id,
        "events": [_shown(event) for event in events],
        "record": None if record is None else record.to_json(),
    }
    return export_line("record", tenant_id, shown)


def _shown(event: LearningEvent) -> Mapping[str, object]:
    return {
        "event_id": event.event_id,
        "kind": event.kind,
        "data": event.data,
        "source": event.source,
        "at_ms": event.at_ms,
    }


def export_line(kind: str, tenant_id: str, content: Mapping[str, object]) -> str:
    """Return one line."""
    line = {"kind": kind, "version": VERSION, "tenant": tenant_id, **content}
    return json.dumps(line, ensure_ascii=False, separators=(",", ":"))


def _place(cursor: str | None) -> _Place:
    if cursor is None:
        return _Place("scopes", "0")
    of_users = _USERS_CURSOR.fullmatch(cursor)
    if of_users is not None:
        return _Place("users", of_users[1] or "")
    found = _CURSOR.fullmatch(cursor)
    if found is None:
        raise InvalidInput("the cursor is not valid", code="invalid_cursor")
    if found[1] != "deleted":
        number_after(found[2])
    return _Place(*found.groups())
