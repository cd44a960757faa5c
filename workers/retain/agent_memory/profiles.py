"""Which profiles a namespace has: the users and the houses of the tenant that the interface can name."""

from __future__ import annotations

from collections.abc import Sequence

from retain.agent_memory.memories import timestamp
from retain.agent_memory.names import HOUSE_PREFIX
from retain.ports import Row, Sql

_PAGE = f"""
SELECT name, at_ms FROM (
  SELECT user_id AS name, created_at_ms AS at_ms FROM users
  WHERE tenant_id = ?1 AND user_id > ?2 AND length(user_id) <= 100 AND user_id NOT GLOB '*[^a-z0-9-]*'
    AND user_id GLOB '[a-z0-9]*' AND user_id GLOB '*[a-z0-9]' AND user_id NOT GLOB '{HOUSE_PREFIX}*'
  UNION ALL
  SELECT '{HOUSE_PREFIX}' || replace(substr(scope_id, 7), '_', '-') AS name, COALESCE((SELECT MIN(r.recorded_at_ms)
    FROM memory_records r WHERE r.tenant_id = s.tenant_id AND r.scope_id = s.scope_id), 0) AS at_ms
  FROM scopes s WHERE tenant_id = ?1 AND kind = 'house' AND scope_id GLOB '*[a-z0-9]'
) WHERE name > ?2 ORDER BY name LIMIT ?3
"""


async def profiles_of(sql: Sql, tenant_id: str, *, after: str | None, limit: int) -> tuple[Sequence[Row], str | None]:
    """Return the profiles of a tenant by name, and the next page's cursor.

    A user is among them who has a memory, a run or a name; a house that has a memory, or an agent that has run.
    """
    rows = (await sql.run(_PAGE, tenant_id, after or "", limit + 1)).rows
    return rows[:limit], str(rows[limit - 1]["name"]) if len(rows) > limit else None


def profile_json(row: Row) -> dict[str, object]:
    """Return a profile as the interface lists it."""
    return {"name": row["name"], "createdAt": timestamp(int(row["at_ms"]))}
