"""Writes of instances that were put aside: a replay writes what is still owed, and nothing that was deleted meanwhile.

What follows from a write, a message to a webhook, follows from its replay.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import closing

import pytest

from retain.admin.maintenance import keep_up_step
from retain.admin.overdue_deliveries import LATE_MS
from retain.errors import Conflict, Unavailable
from retain.ledgers.errors import ParkedError, list_errors
from retain.outbox import MAX_REFUSALS
from tests.agents.stepped_chat import says
from tests.agents.test_schedules import HOURLY, changed, runs, scheduled, stored, until
from tests.agents.test_webhooks import deliveries, webhook
from tests.ledgers.test_errors import Desk
from tests.lifecycle.world import MINUTE_MS
from tests.support.faults import Fault
from tests.support.instances import HOUR_MS


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    with closing(Desk(*[says("done") for _ in range(9)])) as desk:
        yield desk


async def put_aside(desk: Desk) -> ParkedError:
    """Fire alarms until D1 has refused what is owed often enough; return the newest error of the outbox."""
    for _ in range(3 * MAX_REFUSALS):
        desk.clock.advance(6 * MINUTE_MS)
        await desk.fire_alarms()
    await desk.settled()
    return (await list_errors(desk.sql, stage="outbox")).entries[0]


def refuse_schedules(desk: Desk) -> None:
    for change in ("INSERT", "UPDATE"):
        desk.sql_now(
            f"CREATE TRIGGER full_{change} BEFORE {change} ON schedules BEGIN SELECT RAISE(ABORT, 'full'); END"
        )


def take_schedules(desk: Desk) -> None:
    for change in ("INSERT", "UPDATE"):
        desk.sql_now(f"DROP TRIGGER full_{change}")


async def test_a_deleted_schedule_takes_its_parked_writes_along_and_is_not_replayed(desk: Desk) -> None:
    refuse_schedules(desk)
    made = await scheduled(desk, "send the invoices", at_ms=desk.clock() + 300 * HOUR_MS)
    entry = await put_aside(desk)
    await desk.ask("clerk", "delete_schedule", schedule_id=made["schedule_id"])
    await desk.settled()
    take_schedules(desk)
    assert desk.sql_now("SELECT * FROM outbox_failures") == []
    assert (await list_errors(desk.sql, stage="outbox")).entries == []
    assert entry.state == "parked"
    desk.clock.advance(301 * HOUR_MS)
    assert await keep_up_step("overdue_schedules", desk.stores()) == {"asked": 0, "failed": 0}
    await until(desk, desk.clock() + HOUR_MS)
    assert (await runs(desk), desk.sql_now("SELECT * FROM schedules")) == ([], [])


async def test_a_write_that_is_dropped_while_it_is_replayed_is_not_written(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_schedules(desk)
    made = await scheduled(desk, at_ms=desk.clock() + 300 * HOUR_MS)
    entry = await put_aside(desk)
    take_schedules(desk)
    replaying = desk.replaying()
    batch = replaying._sql.batch

    async def deleted_before(statements: object) -> object:
        monkeypatch.undo()
        await desk.ask("clerk", "delete_schedule", schedule_id=made["schedule_id"])
        await desk.settled()
        return await batch(statements)  # type: ignore[arg-type]

    monkeypatch.setattr(replaying._sql, "batch", deleted_before)
    with pytest.raises(Conflict) as refused:
        await replaying.replay(entry.error_id, "ops@example.com")
    assert refused.value.code == "not_replayable"
    assert desk.sql_now("SELECT * FROM schedules") == []


async def test_a_replayed_write_of_a_schedule_does_not_replace_a_later_one(desk: Desk) -> None:
    made = await scheduled(desk, **HOURLY)
    await desk.settled()
    refuse_schedules(desk)
    await changed(desk, made["schedule_id"], "paused")
    paused = await put_aside(desk)
    take_schedules(desk)
    await changed(desk, made["schedule_id"], "active")
    await desk.settled()
    assert await desk.replay(paused) == ("replayed", {"written": "keep_schedule"})
    assert (await stored(desk, made["schedule_id"]))["state"] == "active"


async def test_a_change_of_a_schedule_is_later_than_the_one_before_by_every_clock(desk: Desk) -> None:
    made = await scheduled(desk, **HOURLY)
    desk.clock.set(desk.clock() - HOUR_MS)  # its object moved to a machine whose clock is behind
    await changed(desk, made["schedule_id"], "paused")
    await desk.settled()
    assert (await stored(desk, made["schedule_id"]))["state"] == "paused"


async def test_the_end_of_a_run_that_a_replay_writes_is_sent_to_webhooks_by_the_daily_work(desk: Desk) -> None:
    await webhook(desk)
    desk.sql_now(
        "CREATE TRIGGER full BEFORE UPDATE OF status ON agent_runs WHEN new.status = 'completed'"
        " BEGIN SELECT RAISE(ABORT, 'full'); END"
    )
    await desk.run("clerk", "hello")
    entry = await put_aside(desk)
    desk.sql_now("DROP TRIGGER full")
    assert await desk.replay(entry) == ("replayed", {"written": "close_cached_run"})
    desk.sql_now("UPDATE webhook_deliveries SET due_at_ms = ?", desk.clock() - LATE_MS)
    assert await keep_up_step("overdue_deliveries", desk.stores()) == {"asked": 0, "failed": 0}
    desk.clock.advance(1)
    assert await keep_up_step("overdue_deliveries", desk.stores()) == {"asked": 1, "failed": 0}
    await desk.settled()
    assert await deliveries(desk) == [("run.completed", "delivered", 1, 204, None)]


async def test_messages_of_an_instance_that_does_not_answer_come_after_all_others(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("retain.admin.overdue_deliveries.OVERDUE_AT_ONCE", 1)
    desk.receiver.status = 500
    await webhook(desk)
    for name in ("one", "two"):
        await desk.run("clerk", "hello", instance=name)
        await desk.settled()
        await desk.lose(f"clerk:acme:{name}")
    desk.receiver.status = 204
    desk.clock.advance(2 * LATE_MS)
    desk.faults.plan(Fault(Unavailable("down"), point="sql.run", nth=2))
    assert await keep_up_step("overdue_deliveries", desk.stores()) == {"asked": 0, "failed": 1}
    assert await keep_up_step("overdue_deliveries", desk.stores()) == {"asked": 1, "failed": 0}
    await desk.settled()
    assert sorted(status for _, status, *_ in await deliveries(desk)) == ["delivered", "pending"]


async def test_more_overdue_messages_than_are_asked_for_at_once_are_asked_for_within_minutes(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("retain.admin.overdue_deliveries.OVERDUE_AT_ONCE", 2)
    monkeypatch.setattr("retain.admin.maintenance.MESSAGES_AT_ONCE", 2)
    desk.receiver.status = 500
    await webhook(desk)
    for name in ("one", "two", "three"):
        await desk.run("clerk", "hello", instance=name)
        await desk.settled()
        await desk.lose(f"clerk:acme:{name}")
    desk.receiver.status = 204
    desk.clock.advance(2 * LATE_MS)
    for asked, left in ((2, ["overdue_deliveries"]), (1, []), (0, [])):
        assert await keep_up_step("overdue_deliveries", desk.stores()) == {"asked": asked, "failed": 0}
        assert [row["step"] for row in await desk.rows("SELECT step FROM steps_left")] == left
    await desk.settled()
    assert {status for _, status, *_ in await deliveries(desk)} == {"delivered"}
