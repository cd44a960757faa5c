"""Moves as rows of the first database: what was asked for, and how far it has got."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from retain.errors import Conflict, NotFound
from retain.identifiers import new_id
from retain.jobs import Leases
from retain.json_text import read_own_json
from retain.ports import Row, Sql, Statement
from retain.retention import TEXT_KEPT_MS

Step = Literal["prepare", "copy", "catch_up", "switch", "remove", "undo"]
MoveState = Literal["running", "completed", "cancelled"]
LEASES = Leases("tenant_moves", "move_id", ms=60_000)

_INSERT = """
INSERT INTO tenant_moves (move_id, tenant_id, source, target, state, step, started_by, started_at_ms, updated_at_ms)
VALUES (?, ?, ?, ?, 'running', 'prepare', ?, ?, ?) ON CONFLICT DO NOTHING
"""
_OPEN = "SELECT * FROM tenant_moves WHERE tenant_id = ? AND state = 'running'"
_ONE = "SELECT * FROM tenant_moves WHERE tenant_id = ? AND move_id = ?"
_PAGE = "SELECT * FROM tenant_moves WHERE move_id < ? ORDER BY move_id DESC LIMIT ?"
_ALL_OPEN = "SELECT * FROM tenant_moves WHERE state = 'running' ORDER BY updated_at_ms, move_id LIMIT ?"
_SAVE = """
UPDATE tenant_moves SET state = ?, step = ?, cursor = ?, counts = ?, error = ?, lease_until_ms = 0, updated_at_ms = ?,
  completed_at_ms = ? WHERE move_id = ? AND state = 'running' AND lease_until_ms = ?
"""
# Another state than those of the table violates a check.
_STILL_MOVES = "UPDATE tenant_places SET state = 'overtaken' WHERE tenant_id = ? AND move_id IS NOT ?"
_OLD = """
DELETE FROM tenant_moves WHERE move_id IN
  (SELECT move_id FROM tenant_moves WHERE started_at_ms < ? AND state <> 'running' ORDER BY started_at_ms LIMIT ?)
"""
_REMOVED = 1000
"""How many moves that ended long ago are removed when one begins."""


@dataclass(frozen=True, slots=True)
class Move:
    """A move. cursor: where its step continues. counts: rows, vectors, changes, freezes, and milliseconds frozen."""

    move_id: str
    tenant_id: str
    source: str
    target: str
    state: MoveState
    step: Step
    cursor: Any
    counts: Mapping[str, int]
    error: str | None
    lease_until_ms: int
    started_by: str
    started_at_ms: int
    updated_at_ms: int
    completed_at_ms: int | None

    def to_json(self) -> dict[str, object]:
        """Return the move as HTTP answers have it."""
        hidden = ("cursor", "lease_until_ms", "tenant_id")
        return {
            "tenant": self.tenant_id,
            **{name: getattr(self, name) for name in self.__slots__ if name not in hidden},
        }


class Moves:
    """The moves of a deployment. home: the first database."""

    def __init__(self, home: Sql) -> None:
        self.home = home

    async def open(self, tenant_id: str, source: str, target: str, by: str, now_ms: int) -> Move:
        """Note a move that is to be made, or return the one to this target that is open.

        Moves that ended and began 90 days ago are removed with it: pruning has no statement left for what is so rare.
        Raises: Conflict (code `other_move`) while another one is open.
        """
        values = (new_id(), tenant_id, source, target, by, now_ms, now_ms)
        await self.home.batch([(_OLD, (now_ms - TEXT_KEPT_MS, _REMOVED)), (_INSERT, values)])
        [row] = (await self.home.run(_OPEN, tenant_id)).rows
        move = _move(row)
        if move.target != target:
            raise Conflict("another move of the tenant is open: cancel it first", code="other_move")
        return move

    async def find(self, tenant_id: str) -> Move | None:
        """Return the open move of a tenant, None without one."""
        rows = (await self.home.run(_OPEN, tenant_id)).rows
        return _move(rows[0]) if rows else None

    async def get(self, tenant_id: str, move_id: str) -> Move:
        """Return a move. Raises: NotFound (code `no_such_move`)."""
        rows = (await self.home.run(_ONE, tenant_id, move_id)).rows
        if not rows:
            raise NotFound("the tenant has no such move", code="no_such_move")
        return _move(rows[0])

    async def page(self, *, before: str | None, limit: int) -> tuple[Sequence[Move], str | None]:
        """Return moves, the newest first, and the cursor of the next page."""
        rows = (await self.home.run(_PAGE, before or "~", limit + 1)).rows
        moves = [_move(row) for row in rows[:limit]]
        return moves, moves[-1].move_id if len(rows) > limit else None

    async def all_open(self, limit: int) -> Sequence[Move]:
        """Return open moves, the one first that has waited for longest: one that fails does not hold up others."""
        return [_move(row) for row in (await self.home.run(_ALL_OPEN, limit)).rows]

    async def save(self, move: Move, now_ms: int) -> bool:
        """Note how far a move has got, and release its lease; return False if another worker has the lease by now."""
        ended = None if move.state == "running" else now_ms
        cursor, counts = json.dumps(move.cursor), json.dumps(dict(move.counts))
        values = (move.state, move.step, cursor, counts, move.error, now_ms, ended, move.move_id, move.lease_until_ms)
        return bool((await self.home.run(_SAVE, *values)).changes)


def still_moves(tenant_id: str, move_id: str) -> Statement:
    """Return the statement that fails its batch on a database where another worker has ended this move."""
    return _STILL_MOVES, (tenant_id, move_id)


def _move(row: Row) -> Move:
    content = {name: row[name] for name in Move.__slots__}
    content["cursor"] = None if row["cursor"] is None else read_own_json(row["cursor"])
    content["counts"] = read_own_json(row["counts"])
    return Move(**content)
