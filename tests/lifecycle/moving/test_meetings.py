"""Moves that meet everything else a tenant does: nothing differs from a tenant that did the same and never moved."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine, Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retain.items.rekeying import backfill, phases
from retain.limits.room import Room
from retain.shards.place import HOME
from retain.tenant_tables import TENANT_TABLES
from retain.tenants.tenant_tables import OF_MOVES
from tests.lifecycle.moving.features import ADMIN, KEPT_MS, OF_THE_DEPLOYMENT, Features, Meeting, shown
from tests.lifecycle.moving.more_features import ALL_DOINGS, VARIABLES, AllFeatures, Market, all_agents
from tests.shell.test_webhooks import Shop
from tests.shell.worker import Worker, serving
from tests.support.mcp_server import shop as market_of

Part = tuple[str, int | None]
"""What is done, and at which call of D1 of a step of a move; None for between steps."""
FURNITURE = (
    *(
        "subscribe",
        "store",
        "store_long",
        "store_of_ann",
        "run",
        "run_for_ann",
        "begin_waiting",
        "define_agent",
        "upload",
    ),
    *("schedule_runs", "put_item", "ingest", "put_plain_item", "run_with_files", "score", "make_key", "evaluate"),
)
Around = tuple[Shop, Market]
EXAMPLES = int(os.environ.get("MEETINGS", "4"))
"""How many random programs are tried."""
SHARDS = (HOME, "DB_1", "DB_2")
ERASING = ("erase_ann", "erase_cranes")
RESTORING = ("back_up", "restore", "bring_back")
"""Refused while something is erased, which takes longer while the tenant moves."""


class Moving:
    """Moves the tenant round, a step at a time; with one database it only lets the same time pass."""

    def __init__(self, features: Features) -> None:
        self._worker = features.worker
        self._several = len(features.worker.shards) > 1
        self.moves = 0

    async def step(self) -> None:
        """Take a step of the move that is open, or of a new one to the next database."""
        self._worker.clock.advance(KEPT_MS)
        if self._several:
            where = (await self._worker.request("GET", f"{ADMIN}/shard")).content
            target = where["move"]["target"] if (where["move"] or {}).get("state") == "running" else self._next(where)
            answer = await self._worker.request("POST", f"{ADMIN}/shard", {"shard": target})
            assert answer.status in (200, 202) or answer.content["code"] == "tenant_busy", answer.body
            self.moves += answer.status == 200

    def _next(self, where: Any) -> str:
        return SHARDS[(SHARDS.index(where["shard"]) + 1) % len(self._worker.shards)]

    async def end(self) -> None:
        """Let the move that is open end; with one database, let as much time pass."""
        for _ in range(12):
            if self._several:
                where = (await self._worker.request("GET", f"{ADMIN}/shard")).content
                if (where["move"] or {}).get("state") == "running":
                    await self.step()
                    continue
            self._worker.clock.advance(KEPT_MS)


AFTER_MIDNIGHT_MS = 3 * 3_600_000
"""The clock of a test begins in the evening."""


async def boundless(_: Room, size_bytes: int) -> None:
    """Take no room."""


async def done(parts: Sequence[Part], around: Around, shards: int) -> tuple[dict[str, Any], Features, Moving]:
    with pytest.MonkeyPatch.context() as patch:
        # What meets a step is awaited in it, so the step may not hold the room that it needs.
        patch.setattr(Room, "take", boundless)
        patch.setattr(phases, "MIN_READS", 3)
        patch.setattr(backfill, "PAGE_KEYS", 1)
        return await _done(parts, around, shards)


async def _done(parts: Sequence[Part], around: Around, shards: int) -> tuple[dict[str, Any], Features, Moving]:
    async with serving(agents=all_agents(), shards=str(shards), **VARIABLES) as worker:
        # An evaluation waits for a move. Its runs count on the day on which they end, which has to be the same one.
        worker.clock.advance(AFTER_MIDNIGHT_MS)
        await worker.tenant("acme")
        features = AllFeatures(worker, *around)
        await features.furnish()
        meeting, moving = Meeting(features), Moving(features)
        for name in FURNITURE:
            await features.do(name)
        for name, nth in parts:
            if nth is None and name in OF_THE_DEPLOYMENT:
                await OF_THE_DEPLOYMENT[name](features)
            elif nth is None:
                await features.do(name)
            else:
                await meeting.during(moving.step, name, nth)
        await moving.end()
        await features.do("evaluate_on")
        for _ in range(3):
            await features.pass_an_hour()
            await features.work()
        for name in ("erase_ann", "erase_cranes"):
            if any(part[0] == name for part in parts):
                for _ in range(8):  # one that waited for items or for a move begins its last steps again
                    await features.do(name)
                    if features.erased:
                        break
                    worker.clock.advance(KEPT_MS)
                await features.work()
        if shards > 1:
            await alone(worker)
        return {**await shown(features), **await features.more_shown()}, features, moving


async def alone(worker: Worker) -> None:
    """Check that one database and its index have something of the tenant, the others nothing."""
    rows: dict[str, set[str]] = {}
    vectors: dict[str, int] = {}
    for shard, database in worker.shards.items():
        names = [table.name for table in TENANT_TABLES if table.name not in OF_MOVES]
        found = [
            (await database.store.run(f"SELECT 1 FROM {name} WHERE tenant_id = 'acme' LIMIT 1")).rows for name in names
        ]
        rows[shard] = {name for name, some in zip(names, found, strict=True) if some}
        vectors[shard] = await worker.indexes[shard].store.count()
        left = await database.store.run("SELECT name FROM sqlite_master WHERE name LIKE 'moving_%'")
        assert left.rows == []
    [home] = [shard for shard, some in rows.items() if some]
    wanted = (
        await worker.shards[home].store.run(
            "SELECT COALESCE(SUM(parts), 0) AS n FROM memory_search WHERE tenant_id = 'acme'"
        )
    ).rows[0]["n"]
    assert vectors == {shard: wanted if shard == home else 0 for shard in worker.shards}


@pytest.fixture(scope="module")
def shop() -> Iterator[Around]:
    """What hears the webhooks and takes orders, and an MCP server."""
    served = Shop()
    with market_of(json_response=True, stateless=True) as market:
        yield served, market
    served.close()


def both(parts: Sequence[Part], shop: Around, shards: int = 3) -> Moving:
    """Do the same with one database and with several, between which the tenant moves, and compare."""

    def run(work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run(work)

    expected, _, _ = run(done(parts, shop, 1))
    found, _, moving = run(done(parts, shop, shards))
    assert found == expected
    assert found["verified"]["problem"] is None
    assert isinstance(moving, Moving)
    return moving


CALLS = (3, 40, 12, 12, 2)
"""At which call of D1 something meets each step of a move, from `prepare` to `remove`: that of `switch` is in the freeze."""


@pytest.mark.parametrize("first", range(5))
def test_what_meets_each_step_of_a_move_leaves_what_it_leaves_without_one(shop: Around, first: int) -> None:
    names = ["grant"] * first + sorted({*ALL_DOINGS} - {*ERASING})
    assert both([(name, CALLS[place % 5]) for place, name in enumerate(names)], shop).moves >= 3


@pytest.mark.parametrize("steps", range(6))
def test_an_erasure_that_begins_after_each_step_is_complete_when_nothing_is_left_on_any_database(
    shop: Around, steps: int
) -> None:
    parts: list[Part] = [("grant", 3)] * steps + [("erase_ann", None), ("pass_an_hour", None)] * 3
    both([*parts, ("erase_cranes", None)], shop)


def programs(without: tuple[str, ...]) -> st.SearchStrategy[list[Part]]:
    """Return programs of what is done, in any order."""
    doings = sorted({*ALL_DOINGS} - {*without})
    part = st.one_of(
        st.tuples(st.sampled_from(doings), st.integers(0, 60)),
        st.tuples(st.sampled_from([*doings, *OF_THE_DEPLOYMENT]), st.none()),
    )
    return st.lists(part, min_size=4, max_size=14)


@given(parts=programs(ERASING) | programs(RESTORING), shards=st.sampled_from((2, 3)))
@settings(max_examples=EXAMPLES, deadline=None)
def test_a_tenant_that_moves_round_has_what_one_has_that_never_moved(
    shop: Around, parts: list[Part], shards: int
) -> None:
    both(parts, shop, shards)


def test_two_moves_there_and_back_leave_what_was_done_within_both(shop: Around) -> None:
    """With two databases the second move begins where the first left a redirection."""
    names = (
        "buy_in_vain",
        "rekey",
        "evaluate",
        "run_with_files",
        "rekey",
        "score",
        "replay_error",
        "pass_an_hour",
        "rekey",
        "score",
        "backfill",
    )
    assert both([(name, CALLS[place % 5]) for place, name in enumerate(names)], shop, 2).moves >= 2
