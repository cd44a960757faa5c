"""Moves a tenant, in steps that any later call continues.

prepare: the target learns that the tenant arrives, and the source notes what changes from now on. copy: every table, page by
page, and the vectors. catch_up: what changed meanwhile, until little is left. switch: the tenant is not written for a
moment; the last changes are copied, the two are compared, and the tenant lives at the target. remove: the source is emptied.
Until the switch, `cancel` leads to undo: the target is emptied, and the tenant stays.

A freeze ends at its time by the database's own clock, even if the one who froze dies, and the switch is refused after it. So
writes are refused for no more than `FREEZE_MS` at a time, and no write is lost: the database takes it before the freeze, and
it is copied; or after it, and the switch begins again; or refuses it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import repeat

from retain.errors import Conflict, ConstraintViolated, NotFound, RetainError, TenantMoving, Unavailable
from retain.json_text import read_own_json
from retain.lifecycle.moving.copying import Side, TenantCopy
from retain.lifecycle.moving.moves import LEASES, Move, Moves, still_moves
from retain.lifecycle.moving.relations import AT_LAST, COUNTED, DERIVED, LAST, TEXTS, Relation, relations_of
from retain.lifecycle.moving.vectors import DELETED, vectors_of
from retain.lifecycle.surplus import purge_words
from retain.limits.d1_calls import budget, fewer_than, part
from retain.ports import Clock, Sql
from retain.shards.fence import MOVING
from retain.shards.place import HOME
from retain.shards.ranges import Numbering, keep_numbers
from retain.shards.shards import Shards
from retain.tenants.tables import TenantTable

PAGE = 200
"""Rows of one page of the copy."""
PAGES_PER_CALL = 40
"""Pages, of the copy, of changes or of the removal, that one call does at most."""
CALLS = 900
"""Calls of D1 that one call may make, of the 1,000 of an invocation …"""
PAGE_CALLS = 400
"""… and those that have to be left for another page: one of changes may be of every table."""
CHANGES = 200
"""Changes that one page of catching up takes; with no more than this left, the tenant is frozen."""
FREEZE_MS = 10_000
"""How long a tenant is not written, at most, before it is written again."""
KEPT_MS = 60_000
"""How long the rows and vectors stay where they were after the switch: longer than an isolate asks an index without having
asked the database (`retain.shards.directory.SURE_MS`)."""

FAILURES = "failures"
"""The count of a move's calls that failed since the last that did not."""
GIVEN_UP = 288
"""Failures after which the scheduled work undoes a move: those of a day, with one call every five minutes. Also so many
freezes that ended before the switch."""
_BEFORE_SWITCH = ("prepare", "copy", "catch_up", "switch")

_NOW = "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)"
# A later move replaces what one that was cancelled while the database was not bound has left; a late worker of that one
# replaces nothing of the later one.
_ARRIVING = """
INSERT INTO tenant_places (tenant_id, state, shard, move_id) VALUES (?1, 'arriving', ?2, ?3)
ON CONFLICT (tenant_id) DO UPDATE SET state = 'arriving', shard = ?2, move_id = ?3
  WHERE state = 'gone' OR (state IN ('arriving', 'ready') AND move_id <= ?3)
"""
_LEAVING = """
INSERT INTO tenant_places (tenant_id, state, shard, move_id) VALUES (?1, 'leaving', ?2, ?3)
ON CONFLICT (tenant_id) DO UPDATE SET state = 'leaving', shard = ?2, move_id = ?3 WHERE state = 'here'
"""
_FREEZE = f"UPDATE tenant_places SET state = 'frozen', frozen_until_ms = {_NOW} + ? WHERE tenant_id = ? AND move_id = ?"
_THAW = "UPDATE tenant_places SET state = 'leaving' WHERE tenant_id = ? AND move_id = ? AND state = 'frozen'"
_READY = "UPDATE tenant_places SET state = 'ready' WHERE tenant_id = ? AND move_id = ? AND state = 'arriving'"
_LEAVE = f"""
UPDATE tenant_places SET state = 'removing' WHERE tenant_id = ? AND move_id = ? AND state = 'frozen'
  AND frozen_until_ms > {_NOW} RETURNING 1
"""
_NOT_READY = "UPDATE tenant_places SET state = 'arriving' WHERE tenant_id = ? AND move_id = ? AND state = 'ready'"
_DIRECT = """
UPDATE tenant_places SET shard = ?2, move_id = ?3 WHERE tenant_id = ?1 AND state = 'gone'
"""
_STAY = "UPDATE tenant_places SET state = 'here', shard = NULL, move_id = NULL WHERE tenant_id = ? AND move_id = ?"
_EMPTIED = "UPDATE tenant_places SET state = 'gone', shard = ?, move_id = NULL WHERE tenant_id = ? AND move_id = ?"
_STATE = "SELECT state FROM tenant_places WHERE tenant_id = ? AND move_id = ?"
_CHANGES = "SELECT number, relation, key FROM tenant_changes WHERE tenant_id = ? AND number > ? ORDER BY number LIMIT ?"
_FORGET = "DELETE FROM tenant_changes WHERE tenant_id = ? AND number <= ?"
_BUSY = """
SELECT (SELECT COUNT(*) FROM eval_scratches WHERE tenant_id = ?1 OR scratch_id = ?1)
  + (SELECT COUNT(*) FROM erasure_receipts WHERE tenant_id = ?1 AND state = 'running') AS n,
  (SELECT COUNT(*) FROM tenants WHERE tenant_id = ?1) AS known
"""
_EVALUATES = "SELECT 1 FROM eval_scratches WHERE tenant_id = ?1 OR scratch_id = ?1 LIMIT 1"
_NO_QUOTA = "INSERT INTO quotas (tenant_id, memories) VALUES (?, 9007199254740991) ON CONFLICT DO NOTHING"
_SOME_GO = f"SELECT 1 FROM tenant_places WHERE {MOVING} AND state IN ('leaving', 'frozen', 'removing') LIMIT 1"

_log = logging.getLogger(__name__)


class Mover:
    """Moves tenants between the databases of a deployment. tables: every table with rows of tenants."""

    def __init__(self, shards: Shards, tables: Sequence[TenantTable], clock: Clock) -> None:
        self._shards = shards
        self._clock = clock
        self.relations = relations_of(tables)
        self._named = {relation.name: relation for relation in self.relations}
        self.moves = Moves(shards.databases[HOME])

    async def start(self, tenant_id: str, target: str, by: str) -> Move:
        """Begin to move a tenant; return the move, to be advanced. Idempotent while it is open.

        Raises: NotFound (code `unknown_shard`, `unknown_tenant`); Conflict (code `same_shard`, `tenant_busy`, `other_move`).
        """
        self._sql(target)
        known = await self.moves.find(tenant_id)
        if known is not None and known.target == target:
            return known
        source = await self._shards.directory.surely_shard_of(tenant_id)
        if source == target:
            raise Conflict("the tenant lives there", code="same_shard")
        row = (await self._shards.databases[source].run(_BUSY, tenant_id)).rows[0]
        if not row["known"]:
            raise NotFound("there is no such tenant", code="unknown_tenant")
        if row["n"]:
            raise Conflict("an evaluation or an erasure of the tenant is open: let it end first", code="tenant_busy")
        return await self.moves.open(tenant_id, source, target, by, self._clock())

    async def cancel(self, move: Move) -> Move:
        """Let a move be undone, before its switch. Raises: Conflict (code `move_switched`)."""
        if move.state != "running":
            return move
        if not await LEASES.take(self.moves.home, move.tenant_id, move.move_id, self._clock()):
            raise TenantMoving("a step of the move is being done; ask again", retry_after_s=1)
        move = await self.moves.get(move.tenant_id, move.move_id)
        if await self._state(move.source, move) in ("removing", "gone"):
            await self.moves.save(move, self._clock())
            raise Conflict("the tenant lives at the target: move it back instead", code="move_switched")
        await self.moves.save(replace(move, step="undo", cursor=None), self._clock())
        return await self.advance(move)

    async def advance(self, move: Move) -> Move:
        """Do a part of a move, bounded; return it as it is then. Another worker's move is returned as it is.

        Raises: Unavailable; what was done stays, and the next call continues.
        """
        if move.state != "running" or not await LEASES.take(
            self.moves.home, move.tenant_id, move.move_id, self._clock()
        ):
            return await self.moves.get(move.tenant_id, move.move_id)
        move = await self.moves.get(move.tenant_id, move.move_id)
        try:
            with part(CALLS):
                move = replace(await getattr(self, f"_{move.step}")(move), error=None)
        except RetainError as error:
            _log.error("a move stopped", extra={"tenant_id": move.tenant_id, "code": error.code})
            counts = {**move.counts, FAILURES: move.counts.get(FAILURES, 0) + 1}
            if await self.moves.save(replace(move, error=str(error.code), counts=counts), self._clock()):
                raise
            return await self.moves.get(move.tenant_id, move.move_id)
        counts = {name: count for name, count in move.counts.items() if name != FAILURES}
        await self.moves.save(replace(move, counts=counts), self._clock())
        return await self.moves.get(move.tenant_id, move.move_id)

    async def continue_open(self, limit: int) -> None:
        """Continue open moves, each by one call. What stops one is noted in it.

        One that has failed for about a day, and could not switch, is undone: scheduled work of both databases waits for it.
        """
        for move in await self.moves.all_open(limit):
            tried = max(move.counts.get(FAILURES, 0), move.counts.get("freezes", 0))
            try:
                if tried >= GIVEN_UP and move.step in _BEFORE_SWITCH:
                    _log.error("a move is undone, because it fails", extra={"tenant_id": move.tenant_id})
                    await self.cancel(move)
                else:
                    await self.advance(move)
            except RetainError as error:
                _log.warning("a move waits", extra={"tenant_id": move.tenant_id, "code": error.code})

    async def _prepare(self, move: Move) -> Move:
        source, target = self._sql(move.source), self._sql(move.target)
        await self._shards.placement.admit_to(move.target)
        await target.run(_ARRIVING, move.tenant_id, move.source, move.move_id)
        await source.run(_LEAVING, move.tenant_id, move.target, move.move_id)
        if await self._state(move.source, move) is None or await self._state(move.target, move) is None:
            raise Conflict("the tenant is elsewhere by now: cancel the move", code="tenant_busy")
        for relation in self.relations:  # while it leaves, the end of another move does not stop the recording
            await source.batch(relation.recording())
        await target.run(_NO_QUOTA, move.tenant_id)
        return replace(move, step="copy", cursor=[0, None])

    async def _copy(self, move: Move) -> Move:
        copy = self._copy_of(move)
        place, after = move.cursor
        for _ in _pages():
            if place == len(self.relations):
                return replace(self._counted(move, copy), step="catch_up", cursor=[0, copy.copied.last_vector])
            relation = self.relations[place]
            if relation.name in DERIVED or relation.name in AT_LAST:
                place, after = place + 1, None
                continue
            try:
                after = await copy.page(relation, after, PAGE)
            except ConstraintViolated:  # the target has a row that was deleted or changed meanwhile
                if await self._caught_up(move, copy, 0, _pages()) is None:
                    break
                after = await copy.page(relation, after, PAGE)
            if after is None:
                place += 1
        return replace(self._counted(move, copy), cursor=[place, after])

    async def _catch_up(self, move: Move) -> Move:
        copy = self._copy_of(move)
        number, last_vector = move.cursor
        for _ in _pages():
            before, left = number, await self._left(move, number)
            if left <= CHANGES:
                if last_vector is not None and not await self._side(move.target).index.get_by_ids([last_vector]):
                    return replace(self._counted(move, copy), cursor=[number, last_vector])  # not visible there yet
                return replace(self._counted(move, copy), step="switch", cursor=[number, None])
            number = await self._changes(move, copy, number)
            if number == before:
                break
        return replace(self._counted(move, copy), cursor=[number, copy.copied.last_vector or last_vector])

    async def _switch(self, move: Move) -> Move:
        source, target = self._sql(move.source), self._sql(move.target)
        state = await self._state(move.source, move)
        if state not in ("removing", "gone"):
            copy = self._copy_of(move)
            for name in (*COUNTED, "scopes"):  # most of them differ, and there may be many
                await copy.equalise(self._named[name])
            began = self._clock()
            await source.run(_FREEZE, FREEZE_MS, move.tenant_id, move.move_id)
            try:
                number = await self._caught_up(move, copy, move.cursor[0], repeat(None))
                if (await source.run(_EVALUATES, move.tenant_id)).rows:
                    raise Conflict("an evaluation of the tenant is open: let it end first", code="tenant_busy")
                for name in (*COUNTED, *AT_LAST):
                    await copy.equalise(self._named[name])
                compared = [one for one in self.relations if one.name not in ("memory_outbox", "vector_removals")]
                for name in await copy.differing(compared):
                    _log.warning("a table differs and is compared", extra={"tenant_id": move.tenant_id, "table": name})
                    await copy.equalise(self._named[name])
                if differing := await copy.differing(compared):
                    names = ", ".join(differing)
                    raise Unavailable(
                        f"the copy differs from the tenant in {names}; the tenant stays", code="copy_differs"
                    )
                await target.run(_READY, move.tenant_id, move.move_id)
                left = (await source.run(_LEAVE, move.tenant_id, move.move_id)).rows
            except BaseException:
                with budget(2):  # whatever the others were
                    await target.run(_NOT_READY, move.tenant_id, move.move_id)
                    await source.run(_THAW, move.tenant_id, move.move_id)
                raise
            move = self._counted(move, copy, freezes=1, frozen_ms=self._clock() - began)
            if not left:  # the freeze ended meanwhile: what was written since is copied first
                await target.run(_NOT_READY, move.tenant_id, move.move_id)
                await source.run(_THAW, move.tenant_id, move.move_id)
                return replace(move, step="catch_up", cursor=[number, None])
        if HOME not in (move.source, move.target):
            await self.moves.home.run(_DIRECT, move.tenant_id, move.target, move.move_id)
        await self._shards.directory.follow(move.tenant_id, move.source)
        await self._shards.directory.note(move.tenant_id, move.target)
        return replace(move, step="remove", cursor=[self._clock() + KEPT_MS, 0])

    async def _remove(self, move: Move) -> Move:
        return await self._emptied(move, move.source, move.target, "completed")

    async def _undo(self, move: Move) -> Move:
        if move.target not in self._shards.databases or await self._state(move.target, move) is None:
            await self._sql(move.source).run(_STAY, move.tenant_id, move.move_id)
            await self._stop_recording(move.source, move.tenant_id)
            return replace(move, state="cancelled")
        await self._sql(move.target).run(_NOT_READY, move.tenant_id, move.move_id)
        await self._sql(move.source).run(_STAY, move.tenant_id, move.move_id)
        return await self._emptied(replace(move, cursor=move.cursor or [0, 0]), move.target, move.source, "cancelled")

    async def _emptied(self, move: Move, shard: str, stays: str, state: str) -> Move:
        """Remove the rows and vectors of one side, page by page; then end the move."""
        since, place = move.cursor
        if self._clock() < since:
            return move
        sql, order = self._sql(shard), list(reversed(self.relations))
        if place == 0:
            await keep_numbers(self.moves.home, sql, shard)
        for _ in _pages():
            if place == len(order):
                counted = await sql.batch([relation.counting(move.tenant_id) for relation in order])
                left = [at for at, result in enumerate(counted) if result.rows[0]["n"]]
                if left:  # triggers wrote rows for those that were removed
                    place = left[0]
                    continue
                await sql.run(_EMPTIED, stays, move.tenant_id, move.move_id)
                if not (await sql.run(_SOME_GO)).rows:
                    await purge_words(sql)  # those of erased texts as well, which an erasure does not reach here
                await self._stop_recording(move.source, move.tenant_id)
                return replace(move, state="completed" if state == "completed" else "cancelled")
            if await self._removed(shard, order[place], move) < PAGE:
                place += 1
        return replace(move, cursor=[since, place])

    async def _removed(self, shard: str, relation: Relation, move: Move) -> int:
        """Remove a page of a table, with its full texts and vectors; return how many rows it had."""
        side = self._side(shard)
        ours = still_moves(move.tenant_id, move.move_id)
        picked = ", ".join(f"t.{key}" for key in relation.keys)
        rows = (await side.sql.batch([ours, relation.page(move.tenant_id, None, PAGE, picked)]))[1].rows
        if not rows:
            return 0
        keys = [relation.key(row) for row in rows]
        ids = await vectors_of(side.sql, relation, move.tenant_id, keys)
        for start in range(0, len(ids), DELETED):
            await side.sql.batch([ours])  # an index cannot refuse
            await side.index.delete_by_ids(ids[start : start + DELETED])
        statements = [relation.deleting(move.tenant_id, keys)]
        if relation.name in TEXTS:
            numbers = json.dumps([row["number"] for row in rows])
            table = TEXTS[relation.name]
            statements.append((f"DELETE FROM {table} WHERE rowid IN (SELECT value FROM json_each(?))", (numbers,)))
        await side.sql.batch([ours, *statements])
        return len(rows)

    async def _caught_up(self, move: Move, copy: TenantCopy, number: int, pages: Iterable[None]) -> int | None:
        """Apply the changes after this one; return the number of the last, None if there are more pages of them."""
        for _ in pages:
            following = await self._changes(move, copy, number)
            if following == number:
                return number
            number = following
        return None

    async def _changes(self, move: Move, copy: TenantCopy, after: int) -> int:
        """Apply a page of changes, and forget those before it; return the number of the last."""
        source = self._sql(move.source)
        rows = (await source.run(_CHANGES, move.tenant_id, after, CHANGES)).rows
        if not rows:
            return after
        by_relation: dict[str, dict[str, None]] = {}
        for row in rows:
            by_relation.setdefault(row["relation"], {})[row["key"]] = None
        names = [relation.name for relation in self.relations if relation.name in by_relation]
        for name in sorted(names, key=lambda one: one in LAST):
            if name not in DERIVED and name not in AT_LAST:
                keys = [read_own_json(key) for key in by_relation[name]]
                await copy.keys(self._named[name], keys)
        await source.run(_FORGET, move.tenant_id, after)
        return int(rows[-1]["number"])

    async def _left(self, move: Move, after: int) -> int:
        rows = await self._sql(move.source).run(
            "SELECT COUNT(*) AS n FROM (SELECT 1 FROM tenant_changes WHERE tenant_id = ? AND number > ? LIMIT ?)",
            *(move.tenant_id, after, CHANGES + 1),
        )
        return int(rows.rows[0]["n"])

    async def _stop_recording(self, shard: str, tenant_id: str) -> None:
        sql = self._sql(shard)
        await sql.run("DELETE FROM tenant_changes WHERE tenant_id = ?", tenant_id)
        with suppress(ConstraintViolated):  # another tenant leaves: its move records
            for relation in self.relations:
                await sql.batch(relation.not_recording())

    async def _state(self, shard: str, move: Move) -> str | None:
        rows = (await self._sql(shard).run(_STATE, move.tenant_id, move.move_id)).rows
        return str(rows[0]["state"]) if rows else None

    def _copy_of(self, move: Move) -> TenantCopy:
        numbering = Numbering(self.moves.home, self._sql(move.target), move.target)
        return TenantCopy(move, self._side(move.source), self._side(move.target), numbering, self._clock())

    def _counted(self, move: Move, copy: TenantCopy, **more: int) -> Move:
        done = {"rows": copy.copied.rows, "vectors": copy.copied.vectors, **more}
        copy.copied.rows = copy.copied.vectors = 0
        return replace(move, counts={**move.counts, **{n: move.counts.get(n, 0) + count for n, count in done.items()}})

    def _sql(self, shard: str) -> Sql:
        """Raises: NotFound (code `unknown_shard`) for a database that is not bound, or no longer."""
        if shard not in self._shards.databases:
            raise NotFound(f"the deployment has no database {shard[:40]}", code="unknown_shard")
        return self._shards.databases[shard]

    def _side(self, shard: str) -> Side:
        return Side(self._sql(shard), self._shards.indexes[shard])


def _pages() -> Iterator[None]:
    """Yield once for each page that a call may do: for one at least, and for no more than there are calls of D1 left."""
    for _ in range(PAGES_PER_CALL):
        yield
        if fewer_than(PAGE_CALLS):
            return
