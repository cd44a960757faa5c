"""What the daily brief does for the lifecycle of memory."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from retain.admin.maintenance import brief, keep_up, keep_up_step
from retain.errors import Conflict, Unavailable
from retain.lifecycle.erasure.eraser import Erasure
from retain.lifecycle.reindexing import Reindexing
from retain.memory.records.record import NewRecord
from tests.lifecycle.other_models import OtherModel
from tests.lifecycle.world import MINUTE_MS, World, living
from tests.support.faults import Fault


@pytest.fixture
def world() -> Iterator[World]:
    with living() as world:
        yield world


async def test_a_brief_reports_the_maintenance(world: World) -> None:
    await world.store("Bob likes tea.")
    await world.store("Bob likes tea!")
    stores = world.stores()
    done = await keep_up(stores)
    report = await brief(stores.sql, stores.objects, stores.indexer(), world.clock, done)
    assert report["consolidation"] == {"closed": 0, "deleted": 0, "superseded": 1, "compared": 2, "failed": 0}
    assert (report["erasures"], report["reindexings"], report["histories_that_lost_their_head"]) == ({}, {}, [])
    assert (await world.objects_store.list("history_heads/")).keys != []


async def test_open_jobs_continue_and_one_that_fails_does_not_stop_the_others(world: World) -> None:
    for tenant in ("acme", "other"):
        await world.sql.run("INSERT INTO tenants (tenant_id, created_at_ms) VALUES (?, 0)", tenant)
        await world.store_all([NewRecord(f"{tenant} has lamp {n}.", subject="lamps") for n in range(30)], tenant=tenant)
    await world.rest()
    world.embedder = OtherModel()
    for tenant in ("acme", "other"):
        world.faults.plan(Fault(Unavailable("down"), point="index.upsert"))
        with pytest.raises(Unavailable):
            await Reindexing(world.stores()).advance(tenant)
    for tenant in ("acme", "other"):
        world.faults.plan(Fault(Unavailable("down"), point="sql.batch", nth=3))
        with pytest.raises(Unavailable):
            await Erasure(world.stores()).erase_subject(tenant, "lamps", "mention")
        world.faults.cancel()
    world.clock.advance(2 * MINUTE_MS)  # otherwise the reindexings' debts may be writes under way
    world.faults.plan(Fault(Unavailable("down"), point="index.delete_by_ids"))
    done = await keep_up(world.stores())
    assert done["erasures"] == {"stopped": 1, "completed": 1}
    assert done["reindexings"] == {"completed": 2}
    assert (await keep_up(world.stores()))["erasures"] == {"completed": 1}
    assert world.sql_now("SELECT * FROM memory_records") == []


async def test_a_store_that_is_down_is_named_and_does_not_stop_the_rest(world: World) -> None:
    await world.store("Bob likes tea.")
    world.faults.down = {"objects"}
    done = await keep_up(world.stores())
    assert done["histories_that_lost_their_head"] == {"error": "objects_unavailable"}
    assert isinstance(done["consolidation"], dict)
    assert done["consolidation"]["compared"] == 1


def left(world: World) -> list[str]:
    return [row["step"] for row in world.sql_now("SELECT step FROM steps_left")]


async def test_many_open_erasures_continue_within_minutes_until_none_is_left(world: World) -> None:
    stores = world.stores()
    for number in range(25):
        await world.store(f"Lamp {number} is lit.", subject=f"lamp {number}")
    await world.rest()
    for number in range(25):
        await Erasure(stores, slices=1).erase_subject("acme", f"lamp {number}", "subject")
    world.clock.advance(2 * MINUTE_MS)
    for completed, more in ((10, ["erasures"]), (10, ["erasures"]), (5, []), (0, [])):
        states = await keep_up_step("erasures", stores)
        assert states == ({"completed": completed} if completed else {})
        assert left(world) == more
    assert world.sql_now("SELECT * FROM memory_records") == []


async def test_erasures_that_all_fail_wait_for_the_next_day_except_those_that_were_not_tried(world: World) -> None:
    stores = world.stores()
    for number in range(12):
        await Erasure(stores, slices=1).erase_subject("acme", f"lamp {number}", "mention")
    world.faults.down = {"kv"}
    world.clock.advance(MINUTE_MS)
    for stopped, more in ((10, ["erasures"]), (10, [])):
        assert await keep_up_step("erasures", stores) == {"stopped": stopped}
        assert left(world) == more
        world.clock.advance(MINUTE_MS)


async def test_erasures_that_wait_for_a_run_do_not_hold_up_those_of_others(world: World) -> None:
    stores = world.stores()
    await world.run("sdr", "Lamps.")
    await world.settled()
    for number in range(10):
        await Erasure(stores, slices=1).erase_subject("acme", f"lamp {number}", "mention")
    await world.sql.run("INSERT INTO tenants (tenant_id, created_at_ms) VALUES ('other', 0)")
    await world.store("Bob likes tea.", tenant="other", subject="bob")
    world.clock.advance(2 * MINUTE_MS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("retain.agents.duties.forgetting.Forgetting.of", _busy)
        assert await keep_up_step("erasures", stores) == {"running": 10}
        world.clock.advance(MINUTE_MS)
        await Erasure(stores, slices=1).erase_subject("other", "bob", "subject")
        for states in ({"running": 10}, {"completed": 1, "running": 9}):
            world.clock.advance(5 * MINUTE_MS)
            assert await keep_up_step("erasures", stores) == states
    assert world.sql_now("SELECT * FROM memory_records WHERE tenant_id = 'other'") == []
    assert left(world) == ["erasures"]


async def _busy(*_: object) -> object:
    raise Conflict("the instance is busy with a run; try again", code="instance_busy")


async def test_a_reindexing_that_five_calls_do_not_complete_continues_within_minutes(world: World) -> None:
    await world.store_all([NewRecord(f"Lamp {number} is lit.") for number in range(12)])
    await world.rest()
    world.embedder = OtherModel()
    stores = world.stores()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("retain.lifecycle.reindexing.SLICE_RECORDS", 1)
        patch.setattr("retain.lifecycle.reindexing.SLICES_PER_CALL", 1)
        await Reindexing(stores).advance("acme")
        assert await keep_up_step("reindexings", stores) == {"running": 1}
        assert left(world) == ["reindexings"]
        while "reindexings" in left(world):
            states = await keep_up_step("reindexings", stores)
    assert states == {"completed": 1}
