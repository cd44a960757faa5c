"""Records of the kind `instruction`: candidates for a request, like those in the words of a standing instruction."""

from __future__ import annotations

import json

from retain.memory.recall.candidates import STANDING_CANDIDATES, Visible
from retain.ports import SqlValue, Statement

_NEWEST = "ORDER BY number DESC LIMIT {limit}"
_OF_TENANT = f"""
SELECT number FROM memory_records INDEXED BY memory_records_by_rare_kind
WHERE tenant_id = ? AND kind = 'instruction' AND kind IN ('task', 'instruction') {_NEWEST}
"""
_OF_SCOPE = f"""
SELECT number FROM memory_records INDEXED BY memory_records_of_instructions
WHERE tenant_id = ? AND scope_id = s.value AND kind = 'instruction' {_NEWEST}
"""


def instructed(visible: Visible) -> Statement:
    """Return the statement for the ids of the newest instructions of each visible scope, or of the whole tenant."""
    where, values = visible.where()
    tenant: tuple[SqlValue, ...] = (visible.tenant_id,)
    if visible.reach.whole:
        found, given = f"json_each('[0]') s CROSS JOIN memory_records r ON r.number IN ({_OF_TENANT})", tenant
    else:
        found = f"json_each(?) s CROSS JOIN memory_records r ON r.number IN ({_OF_SCOPE})"
        given = (json.dumps(visible.scope_ids), *tenant)
    return f"SELECT r.id FROM {found.format(limit=STANDING_CANDIDATES)} WHERE {where}", (*given, *values)
