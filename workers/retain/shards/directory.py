"""The directory: which database a tenant lives on.

The truth is in the databases: the first one says where the tenants are that do not live on it, and each says where those
went that have left it. KV has a copy for isolates that have not met the tenant, and an isolate remembers what it has seen.
Both may be old: the database that is asked first says so, in the same request (`retain.shards.fence`).
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Mapping

from retain.errors import RetainError, TenantMoving, Unavailable
from retain.ports import Clock, Kv, Sql
from retain.shards.fence import GONE, LIVING, PlaceRow, asking, finish, place_row
from retain.shards.place import HOME

_log = logging.getLogger(__name__)

REMEMBERED = 20_000
"""Tenants whose database an isolate remembers."""
SURE_MS = 30_000
"""How long an isolate asks a vector index, which cannot refuse, without having asked the tenant's database again. The rows
and vectors of a tenant that has moved stay longer than that where they were (`retain.lifecycle.moving`)."""
_STEPS = 8
"""Databases that are asked for a tenant, one after the other, before the caller has to ask again."""


ADMIT = "INSERT INTO tenant_places (tenant_id, state) VALUES (?, 'here') ON CONFLICT DO NOTHING"
"""Lets a new tenant live on a database other than the first."""


class TenantDirectory:
    """The directory of one isolate. shards: every database by its binding's name, the first one is `HOME`."""

    def __init__(self, shards: Mapping[str, Sql], kv: Kv, clock: Clock) -> None:
        self.shards = shards
        self._kv = kv
        self._clock = clock
        self._known: OrderedDict[str, tuple[str, int]] = OrderedDict()

    async def shard_of(self, tenant_id: str) -> str:
        """Return the database that the tenant is thought to live on; it is to be asked with `retain.shards.fence`."""
        known = self._known.get(tenant_id)
        if known is not None:
            return known[0]
        named = await self._kv.get(kv_key(tenant_id))
        shard = named if named is not None and named in self.shards else HOME
        self._remember(tenant_id, shard, 0)
        return shard

    async def surely_shard_of(self, tenant_id: str) -> str:
        """Return the database that the tenant lives on, as it said itself within the last 30 seconds.

        Raises: TenantMoving; Unavailable.
        """
        shard = await self.shard_of(tenant_id)
        if self._known[tenant_id][1] + SURE_MS > self._clock():
            return shard
        return await self.follow(tenant_id, shard)

    def seen(self, tenant_id: str, shard: str) -> None:
        """Remember that a database has just said that the tenant lives there."""
        self._remember(tenant_id, shard, self._clock())

    async def follow(self, tenant_id: str, shard: str) -> str:
        """Return the database that the tenant lives on, looking from this one on.

        Raises: TenantMoving; Unavailable, also (code `shard_not_bound`) where the deployment lacks that database.

        A move whose last step was interrupted is completed: where the old database says that the tenant has gone with this
        move, and the copy at the new one is complete, the tenant lives there.
        """
        for _ in range(_STEPS):
            row = await self._ask(tenant_id, shard)
            if row is None:
                shard = HOME
            elif row.state in LIVING:
                known = self._known.get(tenant_id)
                self.seen(tenant_id, shard)
                if known is None or known[0] != shard:
                    await self.note(tenant_id, shard)
                return shard
            elif row.shard is None:
                break
            elif row.shard not in self.shards:
                raise Unavailable(
                    f"the tenant lives on {row.shard}, which the deployment has not bound", code="shard_not_bound"
                )
            else:
                following = row.shard
                if row.state in GONE and row.move_id is not None:
                    await finish(self.shards[following], tenant_id, row.move_id)
                if row.state in GONE and shard == HOME and row.move_id is None:
                    await self._admit(tenant_id, following)
                shard = following
        raise TenantMoving("the tenant moves to another database; ask again", retry_after_s=1)

    async def note(self, tenant_id: str, shard: str) -> None:
        """Write to KV where a tenant is, for isolates that have not met it. A failure is logged: KV only saves a request."""
        try:
            await self._kv.put(kv_key(tenant_id), shard)
        except RetainError as error:
            _log.warning("KV does not know where a tenant is", extra={"tenant_id": tenant_id, "code": error.code})

    def forget(self, tenant_id: str) -> None:
        """Forget where a tenant is."""
        self._known.pop(tenant_id, None)

    async def _ask(self, tenant_id: str, shard: str) -> PlaceRow | None:
        text, values = asking(tenant_id)
        return place_row((await self.shards[shard].run(text, *values)).rows, shard)

    async def _admit(self, tenant_id: str, shard: str) -> None:
        """Complete a placement that was interrupted: the directory names a database that has not heard of the tenant."""
        await self.shards[shard].run(ADMIT, tenant_id)

    def _remember(self, tenant_id: str, shard: str, at_ms: int) -> None:
        self._known[tenant_id] = (shard, at_ms)
        self._known.move_to_end(tenant_id)
        if len(self._known) > REMEMBERED:
            self._known.popitem(last=False)


def kv_key(tenant_id: str) -> str:
    """Return the key under which KV says where a tenant is."""
    return f"tenant_shard:{tenant_id}"
