"""What the alarm of an instance is set to, and what it does when it fires."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable

import pytest

from retain.agents.catalogue import AgentCatalogue
from retain.agents.execution.control import EXPIRY
from retain.agents.identity import InstanceIdentity
from retain.memory.scope import Scope
from tests.agents.queues import NAME, written
from tests.agents.remembered import check_d1_agrees
from tests.agents.stepped_chat import SteppedChat, calls, says
from tests.agents.test_cancel import SlowTool
from tests.support.faults import Crash
from tests.support.instances import HOUR_MS, Deployment, Upstream

Agents = Callable[..., AgentCatalogue]
Deploy = Callable[..., Deployment]
DESK = "sdr:acme:main"
LEASE_MS = 30_000
DAY_MS = 24 * HOUR_MS


async def test_after_a_run_the_alarm_waits_for_a_day_of_idleness(deploy: Deploy) -> None:
    deployment = deploy(chat=SteppedChat())
    await deployment.run("sdr", "hello")
    await deployment.settled()
    assert await deployment.next_alarm_ms() == deployment.clock() + DAY_MS


async def test_a_run_under_way_keeps_its_lease_and_is_not_disturbed_by_the_alarm(deploy: Deploy) -> None:
    chat = SteppedChat(hold=True)
    deployment = deploy(chat=chat)
    run = asyncio.create_task(deployment.run("sdr", "hello"))
    await chat.asked.wait()
    for _ in range(3):
        at_ms = await deployment.next_alarm_ms()
        assert at_ms == deployment.clock() + LEASE_MS
        deployment.clock.set(at_ms)
        assert await deployment.fire_alarms() == 1
    chat.let_go()
    assert (await run)["status"] == "completed"
    await deployment.settled()
    assert len(chat.requests) == 1
    assert await deployment.next_alarm_ms() == deployment.clock() + DAY_MS


async def test_the_alarm_of_a_run_under_way_writes_to_d1_what_has_happened(deploy: Deploy, agents: Agents) -> None:
    slow, chat = SlowTool("slow"), SteppedChat(calls(("slow", {})), hold=True)
    deployment = deploy(agents(clerk={"tools": ["slow"]}), upstreams=[slow], chat=chat)
    await deployment.ask("clerk", "start", input="hello", metadata={}, idempotency_key=None)
    await chat.asked.wait()
    await written(deployment)
    chat.let_go()
    await slow.called.wait()
    owed = (await deployment.describe("clerk"))["owed"]["entries"]
    assert owed == len(deployment.local(NAME, "SELECT 1 FROM outbox")) == 2
    assert await deployment.next_alarm_ms() == deployment.clock() + LEASE_MS
    deployment.clock.advance(LEASE_MS)
    await deployment.living(NAME, InstanceIdentity(Scope("acme", "clerk"), "main")).on_alarm()
    known = await deployment.rows("SELECT kind FROM run_events ORDER BY seq")
    assert [row["kind"] for row in known] == ["model_asked", "model_answered", "tool_called"]
    assert deployment.local(NAME, "SELECT 1 FROM outbox") == []
    slow.end.set()
    await deployment.settled()
    await check_d1_agrees(deployment)


async def test_a_resumed_run_that_takes_long_holds_up_no_other_alarm_of_its_instance(
    deploy: Deploy, agents: Agents
) -> None:
    chat = SteppedChat(calls(("pay", {"order": "A"})))
    clerk = {"tools": ["pay"], "approval": ["pay"], "limits": {"approval_hours": 1, "run_minutes": 120}}
    deployment = deploy(agents(clerk=clerk), upstreams=[Upstream("pay", True)], chat=chat)
    assert (await deployment.run("clerk", "pay"))["status"] == "waiting"
    chat.hold()
    long = asyncio.create_task(deployment.run("clerk", "a long one"))
    await chat.asked.wait()
    deployment.faults.kill()
    chat.let_go()
    with pytest.raises(Crash):
        await long
    await deployment.restart()
    chat.hold()
    name, identity = "clerk:acme:main", InstanceIdentity(Scope("acme", "clerk"), "main")

    async def alarm(after_ms: int) -> None:
        """Let the alarm fire, and return when its handler has returned; the model answers nothing meanwhile."""
        deployment.clock.advance(after_ms)
        handled = asyncio.create_task(deployment.living(name, identity).on_alarm())
        for _ in range(1000):
            await asyncio.sleep(0)
        assert handled.done(), "a handler that waits for a run holds up the next alarm"
        await handled

    await alarm(LEASE_MS)
    assert chat.asked.is_set(), "the run was resumed"
    await alarm(HOUR_MS)
    answered = deployment.local(name, "SELECT data FROM run_log WHERE kind = 'approval_answered'")
    assert [json.loads(row["data"])["by"] for row in answered] == [EXPIRY], "its question expired meanwhile"
    chat.let_go()
    await deployment.settled()
    rows = deployment.local(name, "SELECT status FROM turn_state")
    assert [row["status"] for row in rows] == ["completed"] * 2, "what was resumed meanwhile follows at once"
    await check_d1_agrees(deployment)


async def test_while_d1_is_down_the_alarm_retries_after_doubling_waits_of_at_most_five_minutes(
    deploy: Deploy,
) -> None:
    chat = SteppedChat(hold=True)
    deployment = deploy(chat=chat)
    run = asyncio.create_task(deployment.run("sdr", "hello"))
    await chat.asked.wait()
    deployment.faults.down.add("sql")
    chat.let_go()
    await run
    await deployment.settled()
    waits: list[int] = []
    for _ in range(12):
        at_ms = await deployment.next_alarm_ms()
        assert at_ms is not None
        waits.append(at_ms - deployment.clock())
        deployment.clock.set(at_ms)
        await deployment.fire_alarms()
    assert waits[0] >= 1000
    assert waits[1:] == [min(2 * before, 300_000) for before in waits[:-1]]
    assert waits[-1] == 300_000
    deployment.faults.down.clear()
    await deployment.recover()
    await check_d1_agrees(deployment)
    assert deployment.alarm_failures == []


async def test_invariant_5_after_a_day_without_a_run_the_object_forgets_and_d1_does_not(deploy: Deploy) -> None:
    chat = SteppedChat(calls(("set_working_memory", {"key": "k", "value": 1})), says("bye"))
    deployment = deploy(chat=chat)
    await deployment.run("sdr", "hello", key="k")
    await deployment.settled()
    deployment.clock.advance(DAY_MS - 1)
    assert await deployment.fire_alarms() == 0
    assert len(deployment.local(DESK, "SELECT 1 FROM turn_state")) == 1
    deployment.clock.advance(1)
    assert await deployment.fire_alarms() == 1
    for table in ("turn_state", "run_log", "working_memory", "outbox"):
        assert deployment.local(DESK, f"SELECT 1 FROM {table}") == [], table
    assert await deployment.next_alarm_ms() is None
    assert len(await deployment.rows("SELECT 1 FROM agent_runs")) == 1
    again = await deployment.run("sdr", "hello again")
    assert again["memory"] == {"messages_used": 2, "episodes_used": 1, "records_used": 0}


async def test_another_run_postpones_the_clearing(deploy: Deploy) -> None:
    deployment = deploy(chat=SteppedChat())
    await deployment.run("sdr", "hello")
    await deployment.settled()
    deployment.clock.advance(DAY_MS - 1)
    await deployment.run("sdr", "hello again")
    await deployment.settled()
    deployment.clock.advance(DAY_MS - 1)
    assert await deployment.fire_alarms() == 0
    assert len(deployment.local(DESK, "SELECT 1 FROM turn_state")) == 2
    deployment.clock.advance(1)
    await deployment.fire_alarms()
    assert deployment.local(DESK, "SELECT 1 FROM turn_state") == []


async def test_an_instance_that_is_never_idle_forgets_its_runs_as_well(deploy: Deploy) -> None:
    deployment = deploy(chat=SteppedChat())
    for number in range(20):  # every six hours
        await deployment.run("sdr", f"hello {number}")
        await deployment.settled()
        deployment.clock.advance(6 * HOUR_MS)
        await deployment.fire_alarms()
    for table, time in (("turn_state", "updated_at_ms"), ("run_log", "at_ms")):
        [kept] = deployment.local(DESK, f"SELECT MIN({time}) AS oldest, COUNT(DISTINCT run_id) AS runs FROM {table}")
        assert kept["oldest"] >= deployment.clock() - 2 * DAY_MS, table
        assert kept["runs"] >= 4, "those of the last day are kept"
    assert len(await deployment.rows("SELECT 1 FROM agent_runs")) == 20


async def test_nothing_is_cleared_before_d1_has_it(deploy: Deploy) -> None:
    chat = SteppedChat(hold=True)
    deployment = deploy(chat=chat)
    run = asyncio.create_task(deployment.run("sdr", "hello"))
    await chat.asked.wait()
    deployment.faults.down.add("sql")
    chat.let_go()
    await run
    await deployment.settled()
    deployment.clock.advance(3 * DAY_MS)
    await deployment.fire_alarms()
    assert len(deployment.local(DESK, "SELECT 1 FROM turn_state")) == 1
    log = deployment.local(DESK, "SELECT * FROM run_log")
    deployment.faults.down.clear()
    deployment.clock.advance(HOUR_MS)
    await deployment.fire_alarms()
    assert len(await deployment.rows("SELECT 1 FROM run_events")) == len(log) > 0
    assert deployment.local(DESK, "SELECT 1 FROM turn_state") == []


async def test_while_d1_is_down_for_days_the_alarm_keeps_waiting_as_long_as_at_first(deploy: Deploy) -> None:
    chat = SteppedChat(hold=True)
    deployment = deploy(chat=chat)
    run = asyncio.create_task(deployment.run("sdr", "hello"))
    await chat.asked.wait()
    deployment.faults.down.add("sql")
    chat.let_go()
    await run
    await deployment.settled()
    deployment.clock.advance(3 * DAY_MS)
    waits: list[int] = []
    for _ in range(10):
        await deployment.fire_alarms()
        at_ms = await deployment.next_alarm_ms()
        assert at_ms is not None
        waits.append(at_ms - deployment.clock())
        deployment.clock.set(at_ms)
    assert waits == [min(2 * before, 300_000) for before in [waits[0] // 2, *waits[:-1]]]
    assert waits[-1] == 300_000


async def test_a_working_value_that_kv_did_not_take_is_copied_by_the_alarm(deploy: Deploy) -> None:
    noted = calls(("set_working_memory", {"key": "order", "value": "AB-1"}))
    deployment = deploy(chat=SteppedChat(noted, says("done")))
    deployment.faults.down.add("kv")
    assert (await deployment.run("sdr", "hello"))["status"] == "completed"
    await deployment.settled()
    due = await deployment.next_alarm_ms()
    assert due is not None
    assert due - deployment.clock() <= 2000
    deployment.clock.set(due)
    await deployment.fire_alarms()
    assert deployment.alarm_failures == [], "an alarm does not fail because KV does"
    deployment.faults.down.clear()
    due = await deployment.next_alarm_ms()
    assert due is not None
    deployment.clock.set(due)
    await deployment.fire_alarms()
    assert await deployment.kv.get("agent_working:acme:main:sdr.order") == '"AB-1"'
    assert await deployment.next_alarm_ms() == deployment.clock() + DAY_MS - 6000


async def test_what_is_owed_after_a_run_is_due_with_its_lease_until_it_was_tried(deploy: Deploy) -> None:
    deployment = deploy(chat=SteppedChat())
    await deployment.run("sdr", "hello")
    assert len(deployment.local(DESK, "SELECT 1 FROM outbox")) > 0, "it is written in the background"
    assert await deployment.next_alarm_ms() == deployment.clock() + LEASE_MS
    await deployment.settled()
    assert await deployment.next_alarm_ms() == deployment.clock() + DAY_MS


async def test_an_alarm_is_never_set_to_a_time_that_has_passed(deploy: Deploy, agents: Agents) -> None:
    asks = {"tools": ["pay"], "approval": ["pay"], "limits": {"approval_hours": 1}}
    chat = SteppedChat(calls(("pay", {"order": "AB-1"})))
    deployment = deploy(agents(clerk=asks), upstreams=[Upstream("pay", idempotent=False)], chat=chat)
    waits = await deployment.run("clerk", "pay")
    await deployment.settled()
    assert await deployment.next_alarm_ms() == waits["waiting_for"]["expires_at_ms"]
    deployment.clock.advance(2 * HOUR_MS)  # the platform is late
    await deployment.run("clerk", "hello")
    await deployment.settled()
    assert await deployment.next_alarm_ms() == deployment.clock() + 1000


async def test_the_first_run_is_forgotten_two_days_after_it_ended_though_others_follow(deploy: Deploy) -> None:
    deployment = deploy(chat=SteppedChat())
    began = deployment.clock()
    for at_ms, alarm in (
        (0, began + DAY_MS),
        (DAY_MS - 1, began + 2 * DAY_MS - 1),
        (2 * DAY_MS - 2000, began + 2 * DAY_MS),
        (2 * DAY_MS - 999, began + 2 * DAY_MS + 1),
        (3 * DAY_MS, began + 3 * DAY_MS + 1000),
    ):
        deployment.clock.set(began + at_ms)  # the platform fires no alarm meanwhile
        await deployment.run("sdr", "hello")
        await deployment.settled()
        assert await deployment.next_alarm_ms() == alarm
