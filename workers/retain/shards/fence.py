"""What a database knows of where a tenant is (migrations/0053_shards.sql), and the statements that ask it.

Every transaction for a tenant begins with one of them, in the same request: a database that a tenant has left refuses,
whatever an isolate or KV remember.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from retain.ports import Row, Sql, Statement
from retain.shards.place import HOME

PlaceState = Literal["here", "leaving", "frozen", "removing", "gone", "arriving", "ready"]
"""here: it lives here. leaving: it does, and is being copied. frozen: it is read here, not written, for seconds. removing:
it has gone, and its rows are being removed. gone: it has gone. arriving: it is being copied to here. ready: the copy is
complete; it becomes `here` as soon as the other database says that it has gone."""
LIVING: frozenset[str] = frozenset({"here", "leaving", "frozen"})
GONE: frozenset[str] = frozenset({"removing", "gone"})

MOVING = "state IN ('leaving', 'frozen', 'removing', 'arriving', 'ready')"
"""The condition of the index `tenant_places_between`: who asks for some of these states has it as well."""
ASK = "SELECT state, shard, move_id FROM tenant_places WHERE tenant_id = ?"
_WRITE = "INSERT INTO tenant_writes (tenant_id, home) VALUES (?, ?)"
_WORK = "INSERT INTO shard_works (one) VALUES (1)"
_AWAY = f"""
SELECT tenant_id FROM tenant_places WHERE {MOVING} AND state IN ('arriving', 'ready', 'removing')
UNION ALL SELECT 'default' WHERE ? = 0 AND NOT EXISTS (SELECT 1 FROM tenant_places WHERE tenant_id = 'default')
"""  # noqa: S608
_FINISH = """
UPDATE tenant_places SET state = 'here', shard = NULL, move_id = NULL WHERE tenant_id = ? AND move_id = ? AND state = 'ready'
"""


@dataclass(frozen=True, slots=True)
class PlaceRow:
    """What one database says of a tenant. shard: the other one."""

    state: PlaceState
    shard: str | None
    move_id: str | None


def asking(tenant_id: str) -> Statement:
    """Return the statement whose rows `place_row` takes."""
    return ASK, (tenant_id,)


def place_row(rows: Sequence[Row], shard: str) -> PlaceRow | None:
    """Return what a database says of a tenant, None if it knows nothing of it and is not the first one."""
    if rows:
        return PlaceRow(rows[0]["state"], rows[0]["shard"], rows[0]["move_id"])
    return PlaceRow("here", None, None) if shard == HOME else None


def writing(tenant_id: str, shard: str) -> Statement:
    """Return the statement that refuses a transaction which writes for a tenant that is not here, or is frozen."""
    return _WRITE, (tenant_id, int(shard == HOME))


def working() -> Statement:
    """Return the statement that refuses a transaction on all tenants of a database while one comes or goes."""
    return _WORK, ()


def away(shard: str) -> Statement:
    """Return the statement for the tenants of which a database has rows that do not count."""
    return _AWAY, (int(shard == HOME),)


async def finish(sql: Sql, tenant_id: str, move_id: str) -> None:
    """Let a tenant whose copy is complete live here. The caller has seen that the other database says it has gone."""
    await sql.run(_FINISH, tenant_id, move_id)
