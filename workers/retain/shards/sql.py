"""`Sql` over several databases: each call is made where the tenant of the current place lives."""

from __future__ import annotations

from collections.abc import Sequence

from retain.errors import RetainError, TenantElsewhere, TenantMoving
from retain.ports import SqlResult, SqlValue, Statement
from retain.shards.directory import TenantDirectory
from retain.shards.fence import LIVING, asking, away, place_row, working, writing
from retain.shards.place import Everywhere, OfTenant, OnShard, current_place
from retain.tenants.attribution import reads

_TRIES = 4


class ShardedSql:
    """Implements `Sql` on several. A call costs no more requests than on one, if its isolate knows where the tenant is.

    Raises, besides what the port names: TenantMoving (code `tenant_moving`) for a write while the tenant is frozen, for
    seconds; and for one whose vectors went to the index of a database that the tenant has left meanwhile.
    """

    def __init__(self, directory: TenantDirectory) -> None:
        self._directory = directory
        self._shards = directory.shards

    async def run(self, sql: str, *values: SqlValue) -> SqlResult:
        """See the port."""
        return (await self.batch([(sql, values)]))[0]

    async def batch(self, statements: Sequence[Statement]) -> list[SqlResult]:
        """See the port."""
        place = current_place()
        if not statements:
            return []
        if isinstance(place, OfTenant):
            if all(reads(sql) for sql, _ in statements):
                return await self._read(place.tenant_id, statements)
            return await self._write(place, statements)
        if isinstance(place, OnShard):
            sql = self._shards[place.shard]
            return (await sql.batch([working(), *statements]))[1:] if place.waits else await sql.batch(statements)
        if isinstance(place, Everywhere) and all(reads(sql) for sql, _ in statements):
            return await self._read_everywhere(statements)
        raise RetainError("a statement was to run without a place: this is a fault in Retain")

    async def _read(self, tenant_id: str, statements: Sequence[Statement]) -> list[SqlResult]:
        shard = await self._directory.shard_of(tenant_id)
        for _ in range(_TRIES):
            asked, *results = await self._shards[shard].batch([asking(tenant_id), *statements])
            row = place_row(asked.rows, shard)
            if row is not None and row.state in LIVING:
                self._directory.seen(tenant_id, shard)
                return results
            shard = await self._directory.follow(tenant_id, shard)
        raise _moving()

    async def _write(self, place: OfTenant, statements: Sequence[Statement]) -> list[SqlResult]:
        tenant_id = place.tenant_id
        shard = await self._directory.shard_of(tenant_id)
        for _ in range(_TRIES):
            if place.vectors_on not in (None, shard):
                place.vectors_on = None
                raise _moving()
            try:
                _, *results = await self._shards[shard].batch([writing(tenant_id, shard), *statements])
            except TenantElsewhere:
                shard = await self._directory.follow(tenant_id, shard)
                continue
            place.vectors_on = None
            self._directory.seen(tenant_id, shard)
            return results
        raise _moving()

    async def _read_everywhere(self, statements: Sequence[Statement]) -> list[SqlResult]:
        """Return the rows of all databases, without those of tenants whose rows there do not count.

        A tenant that arrives at one when it is asked, and has left the other when that is asked, is on neither: then they
        are asked again.
        """
        merged, unseen = await self._read_each(statements)
        return (await self._read_each(statements))[0] if unseen else merged

    async def _read_each(self, statements: Sequence[Statement]) -> tuple[list[SqlResult], bool]:
        """Return the rows that count, and whether a tenant has only rows that do not."""
        merged: list[SqlResult] = []
        left_out: set[str] = set()
        for shard, sql in self._shards.items():
            moved, *results = await sql.batch([away(shard), *statements])
            without = {row["tenant_id"] for row in moved.rows}
            left_out |= without & {row.get("tenant_id") for result in results for row in result.rows}
            kept = [
                SqlResult([row for row in result.rows if row.get("tenant_id") not in without], result.changes)
                for result in results
            ]
            merged = (
                [SqlResult([*one.rows, *other.rows], 0) for one, other in zip(merged, kept, strict=True)]
                if merged
                else kept
            )
        return merged, bool(left_out - {row.get("tenant_id") for result in merged for row in result.rows})


def _moving() -> TenantMoving:
    return TenantMoving("the tenant moves to another database; ask again", retry_after_s=1)
