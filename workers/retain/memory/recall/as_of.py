"""Records as they were known at an earlier time: folded from the events until then, and filtered in that state."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from retain.memory.filters import Compiled, compile_filter
from retain.memory.recall.candidates import Visible, meeting
from retain.memory.recall.evidence import SearchRow
from retain.memory.records.events import LearningEvent, fold
from retain.memory.records.listing import Listing, list_records
from retain.memory.records.record import Record
from retain.memory.records.rows import event_of, record_of
from retain.memory.scope import Scope, UserPlace
from retain.ports import Sql

JUDGED_AT_ONCE = 100
"""Records of which it is decided together whether they were known and valid. Each further group is twice as large …"""
MAX_JUDGED = 3000
"""… up to this many records in one recall."""
_RECORDS = "SELECT r.* FROM json_each(?) c CROSS JOIN memory_records r ON r.id = c.value"
_EVENTS = """
SELECT * FROM memory_events WHERE record_id IN (SELECT value FROM json_each(?)) AND at_ms <= ? ORDER BY event_id
"""


async def read_records(sql: Sql, ids: Sequence[str], visible: Visible) -> dict[str, Record]:
    """Return those of the records that may be seen, by id, in the state that was known."""
    where, values = visible.where()
    rows = (await sql.run(f"{_RECORDS} WHERE {where}", json.dumps(list(ids)), *values)).rows
    records = {row["id"]: record_of(row) for row in rows}
    known_at_ms = visible.known_at_ms
    if known_at_ms is None:
        return records
    condition = (visible.condition, list(visible.condition_values))
    return await _as_known(sql, records, visible.at_ms, condition, known_at_ms)


async def best_known(sql: Sql, ids: Sequence[str], visible: Visible, count: int) -> dict[str, Record]:
    """Return the first `count` of the records that were known and valid, by id. ids: best first."""
    found: dict[str, Record] = {}
    start, size = 0, JUDGED_AT_ONCE
    while start < min(len(ids), MAX_JUDGED) and len(found) < count:
        group = ids[start : start + size]
        judged = await read_records(sql, group, visible)
        found |= {record_id: judged[record_id] for record_id in group if record_id in judged}
        start, size = start + size, 2 * size
    return dict(list(found.items())[:count])


def as_then(row: SearchRow, record: Record) -> SearchRow:
    """Return a search row with the values that its record had. record: as it was known."""
    place = record.utterance
    uttered_ms = None if place is None else place.at_ms
    return row._replace(
        content_hash=record.content_hash,
        importance=record.importance,
        confidence=record.confidence,
        at_ms=record.valid_from_ms if uttered_ms is None else uttered_ms,
    )


async def list_known(sql: Sql, place: Scope | UserPlace, wanted: Listing) -> tuple[list[Record], str | None]:
    """Return a page as `list_records` does; with `known_at_ms` of what was known then, in the state that it had.

    Such a page may have fewer records than the limit, or none, before the last.
    """
    found, cursor = await list_records(sql, place, wanted)
    if wanted.known_at_ms is None:
        return found, cursor
    condition = compile_filter(wanted.filter)
    records = {record.id: record for record in found}
    known = await _as_known(sql, records, wanted.held_at_ms, condition, wanted.known_at_ms)
    return [known[record_id] for record_id in records if record_id in known], cursor


async def _as_known(
    sql: Sql, records: Mapping[str, Record], at_ms: int | None, condition: Compiled, known_at_ms: int
) -> dict[str, Record]:
    """Return the records, by id, as they were known at a time.

    Leaves out those that were not known then, that were not valid at `at_ms` as far as known (None: at any time), or did not
    meet the condition.
    """
    changed = [record.id for record in records.values() if record.updated_at_ms > known_at_ms]
    earlier = await _earlier(sql, changed, known_at_ms)
    valid = {
        record_id: record
        for record_id, record in {**records, **earlier}.items()
        if record is not None and record.recorded_at_ms <= known_at_ms and (at_ms is None or record.is_valid_at(at_ms))
    }
    judged = [valid[record_id] for record_id in changed if record_id in valid]
    if not judged:
        return valid
    statement, values = meeting(*condition, judged)
    refused = {record.id for record in judged} - {row["id"] for row in (await sql.run(statement, *values)).rows}
    return {record_id: record for record_id, record in valid.items() if record_id not in refused}


async def _earlier(sql: Sql, record_ids: Sequence[str], at_ms: int) -> dict[str, Record | None]:
    """Return the fold of each record's events until a time; None for one that did not exist then."""
    if not record_ids:
        return {}
    events: dict[str, list[LearningEvent]] = {record_id: [] for record_id in record_ids}
    for row in (await sql.run(_EVENTS, json.dumps(record_ids), at_ms)).rows:
        events[row["record_id"]].append(event_of(row))
    return {record_id: fold(own) for record_id, own in events.items()}
