"""The rows of one user in D1, in the tables that declare how a user's rows are found (`retain.tenants.tables`).

Rows that do not name the user are found through those that do, so they are erased first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from retain.lifecycle.erasure.receipts import ErasureJob
from retain.lifecycle.erasure.slices import Slice, union_of
from retain.lifecycle.stores import Stores
from retain.lifecycle.transfer.kinds import ROW_KINDS
from retain.memory.scope import OF_USER
from retain.ports import Statement
from retain.tenants.tables import TenantTable

ROWS = 500
OWNERS = 10
"""Rows with parts per slice: a run has thousands of events."""
ARRIVING_MS = 3_600_000
"""After how long a request whose text is arriving has ended."""

_NAMING = "CASE WHEN json_valid(parameters) THEN EXISTS (SELECT 1 FROM json_each(parameters) WHERE value = {user}) END"
_OF_KEY = f"""
SELECT substr(instance_key, 1, instr(instance_key, ':') - 1),
  substr(instance_key, instr(instance_key, ':') + length({{tenant}}) + 2)
FROM {{table}} WHERE tenant_id = {{tenant}} AND {_NAMING}
"""
_NAMED = "SELECT agent_type, instance_id FROM {table} WHERE tenant_id = {tenant} AND user_id = {user}"
_DATED = {kind.table: kind.at_ms for kind in ROW_KINDS.values() if kind.at_ms} | {"users": "t.created_at_ms"}
"""SQL for the time by which an import knows whether a row is from before its user's erasure."""


@dataclass(frozen=True, slots=True)
class _Part:
    """Rows of one table. condition: on a row, besides the tenant, with the places `{tenant}` and `{user}`."""

    table: TenantTable
    condition: str

    def where(self, first: int = 1) -> str:
        """Return the condition with the tenant and the user as the parameters from this number on."""
        return f"tenant_id = ?{first} AND " + self.condition.format(tenant=f"?{first}", user=f"?{first + 1}")


def serving(tables: Sequence[TenantTable]) -> str:
    """Return the query for `agent_type` and `instance_id` of the user's instances; ?1 is the tenant, ?2 the user."""
    return union_of(_serving(tables)).format(tenant="?1", user="?2")


def naming(tables: Sequence[TenantTable]) -> str:
    """Return the query for the instances that may hold something of the user, whether they serve them or not; as `serving`.

    A schedule names a user whom its instance serves when its first time has come, and a queued run one when it begins; so do
    writes of either that were put aside.
    """
    named = [table for table in tables if table.instances and (table.users == "served" or table.begun is not None)]
    more = [_NAMED.replace("{table}", table.name) for table in named]
    owed = [_OF_KEY.replace("{table}", table.name) for table in tables if table.users == "owed"]
    return union_of([*_serving(tables), *more, *owed]).format(tenant="?1", user="?2")


async def erase_rows_of_user(stores: Stores, job: ErasureJob) -> Slice:
    """Erase some of the rows that are left of the user, after waiting for the workers that have one."""
    left = await _left(stores, job)
    if left is None:
        return Slice.DONE
    table, key = left.table, ", ".join(left.table.keys)
    free = "" if table.lease is None else f" AND {table.lease} <= {stores.clock():d}"
    limit = OWNERS if table.parts else ROWS
    values = (job.tenant_id, job.request["user"])

    def page(first: int) -> str:
        return f"SELECT {key} FROM {table.name} WHERE {left.where(first)}{free} ORDER BY {key} LIMIT {limit}"

    if not (await stores.sql.run(page(1), *values)).rows:
        return Slice.WAIT
    statements: list[Statement] = []
    for name in (*table.parts, table.name):
        if name in _DATED:
            latest = f"SELECT MAX({_DATED[name]}) FROM {name} t WHERE ({key}) IN ({page(1)})"
            statements.append(job.not_before(latest))
        statements.append(
            job.counted(f"d1.{name}", f"SELECT COUNT(*) FROM {name} WHERE ({key}) IN ({page(3)})", *values)
        )
        statements.append((f"DELETE FROM {name} WHERE ({key}) IN ({page(1)})", values))
    await stores.sql.batch([*job.moved(stores.clock(), {}), *statements])
    return Slice.MORE


async def await_arriving(stores: Stores, job: ErasureJob) -> Slice:
    """Wait for texts that were arriving when the erasure began: they may be the user's. Erase those of no request."""
    for table in stores.tables:
        if table.users != "arriving":
            continue
        older = f"FROM {table.name} WHERE tenant_id = ? AND created_at_ms <= ?"
        values = (job.tenant_id, min(job.receipt.started_at_ms, stores.clock() - ARRIVING_MS))
        await stores.sql.run(f"DELETE {older}", *values)
        if (await stores.sql.run(f"SELECT 1 {older} LIMIT 1", job.tenant_id, job.receipt.started_at_ms)).rows:
            return Slice.WAIT
    return Slice.DONE


async def is_clear(stores: Stores, job: ErasureJob) -> bool:
    """Return whether D1 has no row of the user in the tables whose rows are erased here."""
    return await _left(stores, job) is None


async def _left(stores: Stores, job: ErasureJob) -> _Part | None:
    """Return the first part that has a row."""
    parts = [*_nameless(stores.tables), *_named(stores.tables)]
    looks: list[Statement] = [
        (f"SELECT 1 FROM {part.table.name} WHERE {part.where()} LIMIT 1", (job.tenant_id, job.request["user"]))
        for part in parts
    ]
    found = await stores.sql.batch(looks)
    return next((part for part, result in zip(parts, found, strict=True) if result.rows), None)


def _nameless(tables: Sequence[TenantTable]) -> Iterator[_Part]:
    """Yield the rows that do not name the user, those that a worker may have first."""
    instances = union_of(_serving(tables))
    for table in tables:
        if table.unnamed is not None:
            yield _Part(table, table.unnamed.replace("{theirs}", instances))
    theirs = f"(agent_type, instance_id) IN ({instances})"
    for table in sorted(tables, key=lambda table: table.lease is None):
        match table.users:
            case "instance":
                yield _Part(table, theirs)
            case "instance and user" | "served":
                yield _Part(table, f"user_id IS NULL AND {theirs}")
            case "scope":
                yield _Part(table, f"scope_id IN ({OF_USER.replace('?1', '{tenant}').replace('?2', '{user}')})")
            case "owed":
                keys = f"SELECT agent_type || ':' || {{tenant}} || ':' || instance_id FROM ({instances})"
                yield _Part(table, f"NOT COALESCE({_NAMING}, 0) AND instance_key IN ({keys})")


def _named(tables: Sequence[TenantTable]) -> Iterator[_Part]:
    for table in tables:
        match table.users:
            case "user" | "instance and user" | "served":
                yield _Part(table, "user_id = {user}")
            case "owed":
                yield _Part(table, _NAMING)


def _serving(tables: Sequence[TenantTable]) -> list[str]:
    serving = [table for table in tables if table.users == "instance and user"]
    by_name = [f"{_NAMED.replace('{table}', table.name)} AND {table.begun or 'true'}" for table in serving]
    owed = [table for table in tables if table.users == "owed"]
    by_key = [f"{_OF_KEY.replace('{table}', table.name)} AND {table.begun or 'true'}" for table in owed]
    return [*by_name, *by_key]
