"""Where new tenants go: to the database that has the least in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from retain.limits.storage import MAX_DATABASE_BYTES
from retain.limits.vectorize import MAX_NAMESPACES
from retain.ports import Clock, Row, Sql
from retain.shards.directory import ADMIT, TenantDirectory
from retain.shards.fence import MOVING
from retain.shards.place import HOME
from retain.shards.ranges import give_range

FRESH_MS = 60_000
"""How long an isolate uses the loads that it has read."""
FULL = 0.8
"""The part of a database, and of the namespaces of its index, above which it gets no new tenants while another has less."""

_LOAD = f"""
SELECT (SELECT COUNT(*) FROM tenants t WHERE NOT EXISTS (
    SELECT 1 FROM tenant_places p WHERE p.tenant_id = t.tenant_id AND p.state IN ('arriving', 'ready', 'removing')
  )) AS tenants,
  (SELECT COUNT(*) FROM tenant_places WHERE {MOVING}) AS moving
"""  # noqa: S608
# Only a tenant that the first database has never had: one that it has had lives there, or is in the directory.
_PLACE = """
INSERT INTO tenant_places (tenant_id, state, shard)
SELECT ?1, 'gone', ?2 WHERE NOT EXISTS (SELECT 1 FROM tenants WHERE tenant_id = ?1)
  AND NOT EXISTS (SELECT 1 FROM erased_tenants WHERE tenant_id = ?1)
ON CONFLICT DO NOTHING RETURNING 1
"""
_KEEP_OLD_WORKERS_OUT = "UPDATE schema_versions SET usable_from = 53 WHERE version = 53 AND usable_from < 53"
_QUOTAS = "SELECT memories, runs_a_day, tokens_a_day FROM quotas WHERE tenant_id = '*'"
_MOVING = "SELECT 1 FROM tenant_moves WHERE tenant_id = ? AND state = 'running'"
_SET_QUOTAS = """
INSERT INTO quotas (tenant_id, memories, runs_a_day, tokens_a_day) VALUES ('*', ?, ?, ?)
ON CONFLICT (tenant_id) DO UPDATE SET memories = excluded.memories, runs_a_day = excluded.runs_a_day,
  tokens_a_day = excluded.tokens_a_day
"""


@dataclass(frozen=True, slots=True)
class ShardLoad:
    """What is on a database. moving: tenants that come or go. bytes: its size; None where only the platform knows it."""

    shard: str
    tenants: int
    moving: int
    bytes: int | None

    def to_json(self) -> dict[str, object]:
        """Return the load as HTTP answers have it."""
        used = None if self.bytes is None else round(self.bytes / MAX_DATABASE_BYTES, 4)
        return {"shard": self.shard, "tenants": self.tenants, "moving": self.moving, "bytes": self.bytes, "used": used}


class Placement:
    """Places new tenants. One per isolate."""

    def __init__(self, shards: Mapping[str, Sql], directory: TenantDirectory, clock: Clock) -> None:
        self._shards = shards
        self._directory = directory
        self._clock = clock
        self._loads: tuple[list[ShardLoad], int] | None = None

    async def loads(self) -> list[ShardLoad]:
        """Return what is on each database. Raises: Unavailable."""
        found = []
        for name, sql in self._shards.items():
            result = await sql.run(_LOAD)
            row: Row = result.rows[0]
            found.append(ShardLoad(name, max(0, int(row["tenants"])), int(row["moving"]), result.database_bytes))
        return found

    async def place(self, tenant_id: str, shard: str | None = None) -> str:
        """Return the database of a tenant that is to be registered; one that is new goes where the least is. Idempotent.

        shard: where it is to go instead. The first database decides, so that all who ask at once agree.
        Raises: TenantMoving; Unavailable.
        """
        wanted = shard or await self._least()
        if wanted != HOME:
            await self.admit_to(wanted)
            placed = await self._shards[HOME].run(_PLACE, tenant_id, wanted)
            if placed.rows:
                await self._shards[wanted].run(ADMIT, tenant_id)
                await self._directory.note(tenant_id, wanted)
                self._directory.seen(tenant_id, wanted)
                return wanted
        return await self._directory.follow(tenant_id, HOME)

    async def place_with(self, tenant_id: str, other_id: str) -> None:
        """Place a tenant that is to be registered where another one lives. Idempotent. Raises: as `place`."""
        await self.place(tenant_id, await self._directory.surely_shard_of(other_id))

    async def moving(self, tenant_id: str) -> bool:
        """Return whether a move of the tenant is open: until it ends, the other database has something of the tenant."""
        return bool((await self._shards[HOME].run(_MOVING, tenant_id)).rows)

    async def admit_to(self, shard: str) -> None:
        """Prepare a database for its first tenants: numbers of its own, and what all databases have to know. Idempotent."""
        await self._shards[HOME].run(_KEEP_OLD_WORKERS_OUT)
        if shard != HOME:
            await give_range(self._shards[HOME], self._shards[shard], shard)
            for row in (await self._shards[HOME].run(_QUOTAS)).rows:
                await self._shards[shard].run(_SET_QUOTAS, row["memories"], row["runs_a_day"], row["tokens_a_day"])

    async def _least(self) -> str:
        now_ms = self._clock()
        if self._loads is None or now_ms >= self._loads[1] + FRESH_MS:
            self._loads = (await self.loads(), now_ms)
        loads = self._loads[0]
        least = min(loads, key=_weight)
        loads[loads.index(least)] = replace(least, tenants=least.tenants + 1)  # until they are read again
        return least.shard


def _weight(load: ShardLoad) -> tuple[bool, int, int]:
    size = load.bytes or 0
    # Databases of nearly the same size, as new ones are, are told apart by the number of their tenants.
    return size > FULL * MAX_DATABASE_BYTES or load.tenants > FULL * MAX_NAMESPACES, size // 16_000_000, load.tenants
