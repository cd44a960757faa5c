"""Records as they were known at an earlier time: folded from the events until then, and filtered in that state."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from retain.memory.recall.candidates import Visible
from retain.memory.records.events import fold
from retain.memory.records.record import Record
from retain.memory.records.rows import event_of
from retain.ports import Sql

_EVENTS = """
SELECT * FROM memory_events WHERE record_id IN (SELECT value FROM json_each(?)) AND at_ms <= ? ORDER BY event_id
"""


async def as_known(sql: Sql, records: Mapping[str, Record], visible: Visible) -> dict[str, Record]:
    """Return the records, by id, as they were known at the time of `visible`.

    Leaves out those that were not valid then or did not meet the condition then.
    """
    changed = [record.id for record in records.values() if record.updated_at_ms > visible.at_ms]
    earlier = await _earlier(sql, changed, visible.at_ms)
    valid = {
        record_id: record
        for record_id, record in {**records, **earlier}.items()
        if record is not None and record.holds_at(visible.at_ms)
    }
    judged = [valid[record_id] for record_id in changed if record_id in valid]
    if not judged:
        return valid
    statement, values = visible.meeting(judged)
    refused = {record.id for record in judged} - {row["id"] for row in (await sql.run(statement, *values)).rows}
    return {record_id: record for record_id, record in valid.items() if record_id not in refused}


async def _earlier(sql: Sql, record_ids: Sequence[str], at_ms: int) -> dict[str, Record | None]:
    """Return the fold of each record's events until a time; None for one that did not exist then."""
    events = [event_of(row) for row in (await sql.run(_EVENTS, json.dumps(record_ids), at_ms)).rows]
    return {record_id: fold(event for event in events if event.record_id == record_id) for record_id in record_ids}
