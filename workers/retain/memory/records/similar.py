"""Records that look alike but that no rule may merge: for a person to decide."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from retain.errors import InvalidInput
from retain.json_text import read_own_json
from retain.limits.pages import PAGE_BYTES
from retain.memory.records.record import Record
from retain.memory.records.rows import record_of
from retain.ports import Sql

MAX_GROUPS = 50
PER_GROUP = 20
"""The most records that are shown of one group."""

_GROUPS = """
SELECT l.similar, json_group_array(json_array(l.record_id,
  length(CAST(r.content AS BLOB)) + COALESCE(length(CAST(r.metadata AS BLOB)), 0))) AS ids
FROM memory_likeness l JOIN memory_records r ON r.id = l.record_id
WHERE l.tenant_id = ?1 AND l.similar > ?2 AND r.superseded_by IS NULL
  AND (r.valid_to_ms IS NULL OR r.valid_to_ms > ?3) AND (r.expires_at_ms IS NULL OR r.expires_at_ms > ?3)
GROUP BY l.similar HAVING COUNT(*) > 1 ORDER BY l.similar LIMIT ?4
"""
_RECORDS = (
    "SELECT * FROM memory_records WHERE +tenant_id = ? AND id IN (SELECT value FROM json_each(?)) ORDER BY number"
)


@dataclass(frozen=True, slots=True)
class SimilarRecords:
    """Groups of valid records of equal scope whose words have equal stems, each oldest first. cursor: None at the end."""

    groups: Sequence[Sequence[Record]]
    cursor: str | None

    def to_json(self) -> dict[str, object]:
        """Return the groups as JSON."""
        return {"groups": [[record.to_json() for record in group] for group in self.groups], "cursor": self.cursor}


async def similar_records(sql: Sql, tenant_id: str, *, at_ms: int, limit: int, cursor: str | None) -> SimilarRecords:
    """Return a page of groups of similar records, as the last consolidation found them. Two round trips.

    A page ends with the group that passes `PAGE_BYTES`. Raises: InvalidInput (code `invalid_limit`, `invalid_cursor`);
        Unavailable.
    """
    if not 1 <= limit <= MAX_GROUPS:
        raise InvalidInput(f"limit must be 1 to {MAX_GROUPS}", code="invalid_limit")
    if cursor is not None and (len(cursor) != 64 or not set(cursor) <= set("0123456789abcdef")):
        raise InvalidInput("the cursor is not valid", code="invalid_cursor")
    found = (await sql.run(_GROUPS, tenant_id, cursor or "", at_ms, limit + 1)).rows
    listed = [sorted(read_own_json(row["ids"]))[:PER_GROUP] for row in found[:limit]]
    shown = _that_fit([sum(size for _, size in group) for group in listed])
    wanted = [[one for one, _ in group] for group in listed[:shown]]
    rows = (await sql.run(_RECORDS, tenant_id, json.dumps([one for ids in wanted for one in ids]))).rows
    records = {row["id"]: record_of(row) for row in rows}
    groups = [[records[one] for one in ids if one in records] for ids in wanted]
    following = str(found[shown - 1]["similar"]) if len(found) > shown else None
    return SimilarRecords([group for group in groups if len(group) > 1], following)


def _that_fit(sizes: Sequence[int]) -> int:
    """Return how many of the first groups are on a page. sizes: of each, in bytes."""
    before = 0
    for number, size in enumerate(sizes):
        if before >= PAGE_BYTES:
            return number
        before += size
    return len(sizes)
