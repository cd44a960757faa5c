"""Heads of world histories, kept outside D1: they reveal a history whose last entries were removed or rewritten.

A head is kept each day. A newer head replaces it only if the history still contains it, so a broken history stays broken.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from retain.json_text import read_own_json
from retain.lifecycle.stores import Stores
from retain.ports import Objects, Sql
from retain.shards.place import HOME, shard_here
from retain.tenants.history import ChainVerdict
from retain.tenants.mutation_log import MutationLog, seals_cursor, with_log

LATEST = "history_heads/latest.json"
PAGE = 1000

_HEADS = """
SELECT k.tenant_id, h.seq, h.hash FROM (
  SELECT DISTINCT tenant_id FROM world_history WHERE tenant_id > ? ORDER BY tenant_id LIMIT ?
) k JOIN world_history h ON h.tenant_id = k.tenant_id
  AND h.seq = (SELECT MAX(seq) FROM world_history m WHERE m.tenant_id = k.tenant_id)
ORDER BY k.tenant_id
"""
_LOST = """
SELECT k.value ->> 0 AS tenant_id FROM json_each(?) k
LEFT JOIN world_history h ON h.tenant_id = k.value ->> 0 AND h.seq = k.value ->> 1
WHERE h.hash IS NOT k.value ->> 2 AND COALESCE((SELECT p.state FROM tenant_places p WHERE p.tenant_id = k.value ->> 0),
  CASE ? WHEN 1 THEN 'here' ELSE 'gone' END) IN ('here', 'leaving', 'frozen')
"""
_AT = "SELECT hash FROM world_history WHERE tenant_id = ? AND seq = ?"

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Head:
    """The last entry of a history at the time it was kept: its number and hash."""

    seq: int
    hash: str


async def keep_heads(stores: Stores) -> list[str]:
    """Keep every tenant's head, for the day and as the latest; return the tenants whose history lost the previous head.

    For those, the previous head is kept. Idempotent.
    """
    kept = await _read(stores.objects)
    lost = await _lost(stores.sql, kept)
    heads = {**kept, **{tenant: head for tenant, head in (await _heads(stores.sql)).items() if tenant not in lost}}
    content = json.dumps({tenant: [head.seq, head.hash] for tenant, head in sorted(heads.items())}).encode()
    for key in (f"history_heads/{stores.clock() // 86_400_000}.json", LATEST):
        await stores.objects.put(key, content, content_type="application/json")
    for tenant in lost:
        _log.error("a history lost the head that was kept", extra={"tenant_id": tenant})
    return lost


async def verified(
    stores: Stores, tenant_id: str, kept: Head | None = None, *, cursor: str | None = None
) -> ChainVerdict:
    """Verify a tenant's history: the chain, the stored head and, if given, one that the caller kept; then the mutations.

    cursor: from the verdict of the call before, None for the first. Raises: InvalidInput (code `invalid_cursor`).
    """
    log, sealed = MutationLog(stores.sql, stores.clock), seals_cursor(cursor)
    if sealed is not None:
        return await with_log(log, tenant_id, sealed[1], sealed[0])
    verdict = await stores.history().verify(tenant_id, cursor)
    if verdict.problem is not None or verdict.cursor is not None:
        return verdict
    known = (await _read(stores.objects)).get(tenant_id)
    for head in (known, kept):
        if head is None:
            continue
        rows = (await stores.sql.run(_AT, tenant_id, head.seq)).rows
        if not rows or rows[0]["hash"] != head.hash:
            return ChainVerdict(verdict.entries, verdict.head, "head_differs", head.seq)
    return await with_log(log, tenant_id, verdict)


async def _heads(sql: Sql) -> dict[str, Head]:
    found: dict[str, Head] = {}
    after = ""
    while rows := (await sql.run(_HEADS, after, PAGE)).rows:
        found |= {row["tenant_id"]: Head(int(row["seq"]), row["hash"]) for row in rows}
        after = rows[-1]["tenant_id"]
    return found


async def _lost(sql: Sql, kept: Mapping[str, Head]) -> list[str]:
    tenants = sorted(kept)
    lost: list[str] = []
    for start in range(0, len(tenants), PAGE):
        page = [[tenant, kept[tenant].seq, kept[tenant].hash] for tenant in tenants[start : start + PAGE]]
        lost += [row["tenant_id"] for row in (await sql.run(_LOST, json.dumps(page), int(shard_here() == HOME))).rows]
    return lost


async def _read(objects: Objects) -> dict[str, Head]:
    content = await objects.get(LATEST)
    stored: dict[str, Any] = {} if content is None else read_own_json(content)
    return {tenant: Head(int(seq), digest) for tenant, (seq, digest) in stored.items()}
