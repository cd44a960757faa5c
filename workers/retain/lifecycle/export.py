"""Export: what a tenant has, page by page, as JSON lines for import.

First come scopes, records with all their events, and users; then the rows of `transfer/kinds.py`, and items. One import
accepts one page. Records come in the order in which they were stored, then the events of deleted ones. A record that changes
during the export appears in one consistent state; importing a later export adds what is new.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote, unquote

from retain.errors import InvalidInput
from retain.identifiers import USER
from retain.lifecycle.stores import Stores
from retain.lifecycle.transfer.items import item_page
from retain.lifecycle.transfer.kinds import ROW_KINDS
from retain.lifecycle.transfer.lines import MAX_LINES, VERSION
from retain.lifecycle.transfer.rows import RowPlace, row_page
from retain.memory.records.events import LearningEvent, fold
from retain.memory.records.rows import event_of
from retain.memory.scope import OF_USER
from retain.ports import Row, Sql

PAGE_BYTES = 400_000
"""Bytes of events after which a page ends: with the records in addition, a page stays below an import's limit.

An event counts as the size of its data and source plus 150 bytes for its ids and names.
"""
USERS_PER_PAGE = 100
"""Most users on a page."""
_CURSOR = re.compile(r"(scopes|records|deleted)\.([0-9A-Z]{1,26})(?:\.([0-9A-Z]{26}))?")
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
_RECORDS = """
SELECT r.number AS place, r.id,
  (SELECT SUM(length(e.data) + length(e.source) + 150) FROM memory_events e WHERE e.record_id = r.id) AS size
FROM memory_records r WHERE r.tenant_id = ?1 AND r.number > ?3 {within} ORDER BY r.number LIMIT ?4
"""
_DELETED = """
SELECT d.event_id AS place, d.record_id AS id, (SELECT SUM(length(e.data) + length(e.source) + 150) FROM memory_events e
  WHERE e.record_id = d.record_id) AS size
FROM memory_events d WHERE d.tenant_id = ?1 AND d.event_id > ?3 AND d.kind = 'deleted' {within}
  AND NOT EXISTS (SELECT 1 FROM memory_records r WHERE r.id = d.record_id) ORDER BY d.event_id LIMIT ?4
"""
_LEARNED = f"""
SELECT s.record_id FROM memory_events s WHERE s.tenant_id = ?1 AND s.kind = 'stored'
  AND json_extract(s.data, '$.scope_id') IN ({OF_USER})
"""
_USERS = """
SELECT user_id AS id, name, locale, timezone, created_at_ms, last_run_at_ms FROM users
WHERE tenant_id = ?1 AND user_id > ?3 {within} ORDER BY user_id LIMIT ?4
"""
_SIZES = """
SELECT event_id, length(data) + length(source) + 150 AS size FROM memory_events WHERE record_id = ? ORDER BY event_id
"""
_EVENTS = """
SELECT * FROM memory_events WHERE record_id IN (SELECT value FROM json_each(?)) AND tenant_id = ? ORDER BY event_id
"""
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
        """Return a query with the condition that keeps it to the user, if there is one."""
        return sql.format(within="" if self.user_id is None else f"AND {within}")


@dataclass(frozen=True, slots=True)
class _Place:
    """The position of an export: after this scope, record, deletion or user, and in the next record after this event."""

    phase: str
    after: str
    event: str | None = None

    def __str__(self) -> str:
        return ".".join(part for part in (self.phase, self.after, self.event) if part is not None)


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
        scopes = [{name: row[name] for name in ("scope_id", "parent_id", "kind", "user_id")} for row in rows]
        lines = [export_line("scope", extent.tenant_id, {"scope": scope}) for scope in scopes]
        full = len(rows) == MAX_LINES - 1
        following = _Place("scopes", str(rows[-1]["place"])) if full else _Place("records", "0")
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
    deleted, tenant_id = place.phase == "deleted", extent.tenant_id
    if deleted:
        rows = await _rows(sql, extent, _DELETED, f"d.record_id IN ({_LEARNED})", place.after, MAX_LINES - 1)
    else:
        rows = await _rows(sql, extent, _RECORDS, f"r.scope_id IN ({OF_USER})", int(place.after), MAX_LINES - 1)
    if rows and int(rows[0]["size"] or 0) > PAGE_BYTES:
        line, event = await _part(sql, tenant_id, rows[0]["id"], place.event)
        if event is not None:
            return [line], _Place(place.phase, place.after, event)
        return [line], _Place(place.phase, str(rows[0]["place"]))
    chosen: list[Row] = []
    size = 0
    for row in rows:
        size += int(row["size"] or 0)
        if size > PAGE_BYTES:
            break
        chosen.append(row)
    found = (await sql.run(_EVENTS, json.dumps([row["id"] for row in chosen]), tenant_id)).rows
    events: dict[str, list[LearningEvent]] = {}
    for row in found:
        events.setdefault(row["record_id"], []).append(event_of(row))
    lines = [_record_line(tenant_id, row["id"], events[row["id"]]) for row in chosen if row["id"] in events]
    if len(chosen) == MAX_LINES - 1 or len(chosen) < len(rows):
        return lines, _Place(place.phase, str(chosen[-1]["place"]))
    return lines, None if deleted else _Place("deleted", "0")


async def _part(sql: Sql, tenant_id: str, record_id: str, after: str | None) -> tuple[str, str | None]:
    """Return the next part of a record whose events exceed a page, and its last event's id, or None for the last part.

    Each part begins with the event that stored the record, so that it can be imported on its own.
    """
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
    events = [event_of(row) for row in (await sql.run(_SOME_EVENTS, json.dumps(chosen), tenant_id)).rows]
    line = export_line("record", tenant_id, {"id": record_id, "events": [_shown(event) for event in events]})
    return line, None if len(chosen) == len(rest) + 1 else chosen[-1]


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
    if found is None or (found[1] != "deleted" and not found[2].isdecimal()):
        raise InvalidInput("the cursor is not valid", code="invalid_cursor")
    return _Place(found[1], found[2], found[3])
