"""Scheduled work where there are several databases: on each of them, except while tenants come to it or leave it."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence

from retain.errors import RetainError, TenantMoving
from retain.ledgers.errors import Trouble, park
from retain.limits.d1_calls import shared_among
from retain.ports import Clock
from retain.shards.fence import working
from retain.shards.place import HOME, OnShard, at
from retain.shards.ranges import is_prepared
from retain.shards.shards import Shards

_log = logging.getLogger(__name__)


async def on_each_database(
    shards: Shards, work: Callable[[], Awaitable[None]], clock: Clock, owed: Sequence[str] = ()
) -> None:
    """Do the work on each database; what fails on one does not stop that on the others.

    A database waits while a tenant comes or goes: then the work is left out, and the steps of the brief in `owed` are noted
    in its error ledger, so that they are repeated within minutes. The calls of D1 that work may make are divided.
    Raises: the last failure, when all had their turn.
    """
    failure: Exception | None = None
    with shared_among(len(shards.databases)):
        for place in shards.works():
            sql = shards.databases[place.shard]
            try:
                await sql.batch([working()])
                if place.shard != HOME and not await is_prepared(sql):
                    continue
                with at(place):
                    await work()
            except TenantMoving as error:
                _log.info("work waits for the move of a tenant", extra={"shard": place.shard})
                with at(OnShard(place.shard)):
                    await park(sql, *(Trouble("cron", step, error.code, clock()) for step in owed))
            except Exception as error:  # noqa: BLE001 -- whatever one database has, the others are not its fault
                code = error.code if isinstance(error, RetainError) else "internal"
                _log.error("work on a database failed", extra={"shard": place.shard, "code": code})
                failure = error
    if failure is not None:
        raise failure
