"""What was said in the times of a query that asks for nothing else, and recorded later, as by an import.

The vector index only knows when it was recorded. A query with other words finds such records by these, and by its meaning.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from retain.memory.recall.candidates import Visible
from retain.memory.recall.times.dates import Interval
from retain.ports import Statement

UTTERED_LIMIT = 200
"""The first records of each time and scope that are looked at for their times alone."""
LATER_MS = 3_600_000
"""Records of which it is known that they were said so long before they were recorded, or longer: see migration 61."""
_UTTERED_MS = "COALESCE(said_at_ms, valid_from_ms)"


def uttered_then(visible: Visible, times: Sequence[Interval], model: str) -> Statement:
    """Return the statement for [id, signature] of what was said in these times, as one JSON array. model: of signatures."""
    where, values = visible.where()
    numbers = (
        "SELECT json_group_array(number) FROM (SELECT number FROM memory_records WHERE tenant_id = ?1"
        f" AND scope_id = v.value AND {_UTTERED_MS} >= t.value ->> 0 AND {_UTTERED_MS} < t.value ->> 1"
        f" AND {_UTTERED_MS} < recorded_at_ms - {LATER_MS} LIMIT {UTTERED_LIMIT})"
    )
    return (
        "SELECT json_group_array(json_array(r.id, s.signature)) AS found FROM json_each(?2) v CROSS JOIN json_each(?3) t"
        f" CROSS JOIN json_each(({numbers})) n CROSS JOIN memory_records r ON r.number = n.value"
        f" CROSS JOIN memory_search s ON s.number = r.number WHERE s.embedding_model = ?4 AND {where}",
        (
            visible.tenant_id,
            json.dumps(visible.scope_ids),
            json.dumps([[one.from_ms, one.to_ms] for one in times]),
            model,
            *values,
        ),
    )
