"""A busy instance queues: in order, once each, within bounds, and what a caller sees of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress

import pytest

from retain.agents.catalogue import AgentCatalogue
from retain.agents.identity import instance_of
from retain.errors import Conflict, InvalidInput, QuotaExceeded, RateLimited
from retain.tenants.quotas import set_numbers
from tests.agents.queues import ANN, BEN, BY_ANN, LIMITS, NAME, NOBODY, asked, busy, followed, queued, written
from tests.agents.remembered import check_d1_agrees
from tests.agents.stepped_chat import SteppedChat, calls, says
from tests.support.faults import Crash
from tests.support.instances import Deployment, Upstream

Deploy = Callable[..., Deployment]
Agents = Callable[..., AgentCatalogue]


@pytest.fixture
def chat() -> SteppedChat:
    """A model that answers "done" as soon as it may."""
    return SteppedChat(hold=True)


@pytest.fixture
def desk(deploy: Deploy, agents: Agents, chat: SteppedChat) -> Deployment:
    """A deployment whose clerk queues three runs at most."""
    return deploy(agents(clerk={"limits": LIMITS}), chat=chat)


async def test_runs_for_a_busy_instance_are_queued_and_run_in_the_order_of_their_arrival(
    desk: Deployment, chat: SteppedChat
) -> None:
    async with busy(desk, chat) as first:
        reports = [await desk.run("clerk", text) for text in ("second", "third", "fourth")]
        assert [(report["status"], report["queue_position"]) for report in reports] == [
            ("queued", 1),
            ("queued", 2),
            ("queued", 3),
        ]
        ids = [report["run_id"] for report in reports]
        assert [first, *ids] == sorted([first, *ids])
        assert asked(chat) == ["first"]
    assert asked(chat) == ["first", "second", "third", "fourth"]
    for run_id in ids:
        assert (await desk.ask("clerk", "show", run_id=run_id))["output"] == "done"
    await check_d1_agrees(desk)
    assert desk.local(NAME, "SELECT 1 FROM queued_runs") == []
    assert await desk.rows("SELECT 1 FROM parked_runs") == []


async def test_a_queued_run_reads_the_conversation_as_the_run_before_it_left_it(
    desk: Deployment, chat: SteppedChat
) -> None:
    async with busy(desk, chat):
        await queued(desk, "second", "third")
    read = [[message.content for message in request.messages if message.role != "system"] for request in chat.requests]
    assert read[1][:2] == ["first", "done"]
    assert [text for text in read[2] if text in ("first", "second", "third", "done")] == [
        "first",
        "done",
        "second",
        "done",
        "third",
    ]


async def test_an_agent_that_says_nothing_of_it_refuses(deploy: Deploy, agents: Agents, chat: SteppedChat) -> None:
    desk = deploy(agents(clerk={}), chat=chat)
    async with busy(desk, chat):
        with pytest.raises(Conflict) as refused:
            await desk.run("clerk", "second")
        assert refused.value.code == "instance_busy"
    assert await desk.rows("SELECT COUNT(*) AS runs FROM agent_runs") == [{"runs": 1}]


@pytest.mark.parametrize("waiting", [0, 1, 2, 3, 4])
async def test_the_queue_has_a_bound(desk: Deployment, chat: SteppedChat, waiting: int) -> None:
    async with busy(desk, chat):
        for number in range(min(waiting, 3)):
            assert (await desk.run("clerk", "hello"))["queue_position"] == number + 1
        if waiting > 3:
            with pytest.raises(RateLimited) as refused:
                await desk.run("clerk", "hello", key="k")
            assert (refused.value.code, refused.value.details["limit"]) == ("queue_full", 3)
            assert refused.value.details["retry_after_ms"] == 1_000
    assert len(chat.requests) == 1 + min(waiting, 3)
    assert (await desk.run("clerk", "hello", key="k"))["status"] == "completed"


@pytest.mark.parametrize(("took_ms", "expected_ms"), [(500, 1_000), (1_500, 1_500), (59_999, 59_999), (90_000, 60_000)])
async def test_a_full_queue_asks_callers_to_wait_as_long_as_the_last_run_took(
    desk: Deployment, chat: SteppedChat, took_ms: int, expected_ms: int
) -> None:
    async with busy(desk, chat):
        desk.clock.advance(took_ms)
    chat.hold()
    async with busy(desk, chat):
        [one, *_] = await queued(desk, "a", "b", "c")
        await desk.ask("clerk", "cancel", run_id=one, **BY_ANN)
        await queued(desk, "d")
        with pytest.raises(RateLimited) as refused:
            await desk.run("clerk", "e")
        assert refused.value.details["retry_after_ms"] == expected_ms


async def test_the_same_key_is_the_same_queued_run(desk: Deployment, chat: SteppedChat) -> None:
    async with busy(desk, chat):
        [run_id] = await queued(desk, "second", key="k")
        again = await desk.run("clerk", "second", key="k")
        assert again == {"run_id": run_id, "instance_id": "main", "status": "queued", "queue_position": 1}
        assert len(desk.naps) == 100, "a repeated request waits for the run"
        assert (await desk.ask("clerk", "start", input="second", metadata={}, idempotency_key="k")) == again
        with pytest.raises(Conflict) as refused:
            await desk.run("clerk", "something else", key="k")
        assert refused.value.code == "idempotency_key_reused"
    assert (await desk.run("clerk", "second", key="k"))["run_id"] == run_id
    assert asked(chat) == ["first", "second"]


async def test_two_requests_at_once_with_one_key_are_one_run(desk: Deployment, chat: SteppedChat) -> None:
    chat.let_go()
    reports = await asyncio.gather(*(desk.run("clerk", "hello", key="k") for _ in range(5)))
    await desk.settled()
    assert len({report["run_id"] for report in reports}) == 1
    assert asked(chat) == ["hello"]


@pytest.mark.parametrize("method", ["run", "start"])
async def test_requests_at_once_are_one_run_each(desk: Deployment, chat: SteppedChat, method: str) -> None:
    chat.let_go()
    asking = (desk.ask("clerk", method, input=f"run {number}", metadata={}) for number in range(4))
    reports = await asyncio.gather(*asking)
    await desk.settled()
    assert len({report["run_id"] for report in reports}) == 4
    by_id = sorted(zip((report["run_id"] for report in reports), range(4), strict=True))
    assert asked(chat) == [f"run {number}" for _, number in by_id]
    await check_d1_agrees(desk)


async def test_a_started_run_is_queued_as_well_and_can_be_followed_from_then_on(
    desk: Deployment, chat: SteppedChat
) -> None:
    async with busy(desk, chat):
        ids = [(await desk.ask("clerk", "start", input=text, metadata={}))["run_id"] for text in ("second", "third")]
        following = asyncio.create_task(followed(desk, ids[1]))
        await asyncio.sleep(0)
    assert await following == [
        ("run.queued", 2),
        ("run.queued", 1),
        ("run.started", None),
        ("text.completed", None),
        ("run.completed", None),
    ]


async def test_a_follower_that_knows_the_place_waits(desk: Deployment, chat: SteppedChat) -> None:
    async with busy(desk, chat):
        [run_id] = await queued(desk, "second")
        news = await desk.ask("clerk", "follow", run_id=run_id, after=-1, turn=0, offset=1, wait_s=0.01)
        assert (news["events"], news["status"]) == ([], "queued")


async def test_a_queued_run_that_is_cancelled_leaves_a_cancelled_run_behind_and_the_others_in_order(
    desk: Deployment, chat: SteppedChat
) -> None:
    async with busy(desk, chat):
        second, third, fourth = await queued(desk, "second", "third", "fourth")
        following = asyncio.create_task(followed(desk, third))
        report = await desk.ask("clerk", "cancel", run_id=third, **BY_ANN)
        assert (report["status"], report["error"]["by"], report["done"]) == ("cancelled", "ann", [])
        assert await desk.ask("clerk", "cancel", run_id=third, **BY_ANN) == report
        assert (await desk.ask("clerk", "show", run_id=fourth))["queue_position"] == 2
        assert [name for name, _ in await following][-2:] == ["run.cancelling", "run.cancelled"]
    assert asked(chat) == ["first", "second", "fourth"]
    rows = await desk.rows("SELECT status FROM agent_runs ORDER BY run_id")
    assert [row["status"] for row in rows] == ["completed", "completed", "cancelled", "completed"]
    assert await desk.rows("SELECT 1 FROM conversation_messages WHERE run_id = ?", third) == []
    assert [second, third] == sorted([second, third])


async def test_a_queued_run_is_cancelled_by_its_key(desk: Deployment, chat: SteppedChat) -> None:
    async with busy(desk, chat):
        await queued(desk, "second", key="k")
        report = await desk.ask("clerk", "cancel_call", idempotency_key="k", **BY_ANN)
        assert report["status"] == "cancelled"
        assert await desk.run("clerk", "second", key="k") == report


async def test_a_queued_run_cannot_be_answered(desk: Deployment, chat: SteppedChat) -> None:
    async with busy(desk, chat):
        [run_id] = await queued(desk, "second")
        with pytest.raises(Conflict) as refused:
            await desk.ask("clerk", "answer", run_id=run_id, call="1.0", approved=True, **BY_ANN)
        assert refused.value.code == "not_waiting"


@pytest.mark.parametrize(("minutes", "status"), [(9.99, "queued"), (10, "failed")])
async def test_a_run_is_in_the_queue_for_so_long_at_most(
    desk: Deployment, chat: SteppedChat, minutes: float, status: str
) -> None:
    async with busy(desk, chat):
        [run_id] = await queued(desk, "second", key="k")
        desk.clock.advance(int(minutes * 60_000))
        assert await desk.fire_alarms() == 1
        report = await desk.ask("clerk", "show", run_id=run_id)
        assert report["status"] == status
        if status == "failed":
            assert report["error"] == {"code": "queue_deadline", "message": "the run did not begin within 10 minutes"}
    assert await desk.rows("SELECT 1 FROM error_ledger") == []


async def test_the_time_in_the_queue_does_not_count_against_the_deadline_of_the_run(
    deploy: Deploy, agents: Agents, chat: SteppedChat
) -> None:
    desk = deploy(agents(clerk={"limits": {**LIMITS, "run_minutes": 8}}), chat=chat)
    async with busy(desk, chat):
        [run_id] = await queued(desk, "second")
        desk.clock.advance(7 * 60_000)
        chat.let_go()
        chat.hold()
        await chat.asked.wait()
        desk.clock.advance(7 * 60_000)
        await desk.living(NAME, instance_of("acme", "clerk", "main")).on_alarm()
    assert (await desk.ask("clerk", "show", run_id=run_id))["status"] == "completed"


async def test_a_run_that_cannot_begin_ends_as_failed_and_does_not_block_the_others(
    deploy: Deploy, agents: Agents, chat: SteppedChat
) -> None:
    desk = deploy(agents(clerk={"limits": {**LIMITS, "context_tokens": 1_100}}), chat=chat)
    async with busy(desk, chat):
        second, third = await queued(desk, "x" * 4_000, "third")
    failed = await desk.ask("clerk", "show", run_id=second)
    assert (failed["status"], failed["error"]["code"]) == ("failed", "input_too_large")
    assert (await desk.ask("clerk", "show", run_id=third))["status"] == "completed"
    assert [name for name, _ in await followed(desk, second)] == ["run.failed"]
    await check_d1_agrees(desk)


async def test_what_is_known_to_be_wrong_is_refused_at_once(desk: Deployment, chat: SteppedChat) -> None:
    async with busy(desk, chat, user={"id": "ann"}):
        for more in (BEN, NOBODY):
            with pytest.raises(Conflict) as refused:
                await desk.run("clerk", "second", **more)
            assert refused.value.code == "wrong_user"
        with pytest.raises(InvalidInput) as invalid:
            await desk.run("clerk", "second", user={"id": "ann", "timezone": "Nowhere/Atall"})
        assert invalid.value.code == "unknown_time_zone"
        assert (await desk.run("clerk", "second", **ANN))["status"] == "queued"


async def test_a_queued_run_claims_the_instance_for_its_user_before_those_after_it(
    desk: Deployment, chat: SteppedChat
) -> None:
    async with busy(desk, chat):
        await desk.run("clerk", "second")
        await desk.run("clerk", "third", **ANN)
        for more in (BEN, NOBODY):
            with pytest.raises(Conflict) as refused:
                await desk.run("clerk", "fourth", **more)
            assert refused.value.code == "wrong_user"
    assert asked(chat) == ["first", "second", "third"]


async def test_queued_runs_count_against_the_quota_when_they_arrive_and_only_once(
    desk: Deployment, chat: SteppedChat
) -> None:
    await set_numbers(desk.sql, "acme", {"runs_a_day": 3})
    async with busy(desk, chat):
        for text in ("second", "third"):
            await desk.run("clerk", text)
            await written(desk)
        with pytest.raises(QuotaExceeded) as refused:
            await desk.run("clerk", "fourth")
        assert refused.value.code == "run_quota"
    assert asked(chat) == ["first", "second", "third"]
    rows = await desk.rows("SELECT runs FROM tenant_use WHERE tenant_id = 'acme'")
    assert rows == [{"runs": 3}]


async def test_a_waiting_run_does_not_hold_up_the_queue_and_resumes_before_it(
    deploy: Deploy, agents: Agents, chat: SteppedChat
) -> None:
    chat = SteppedChat(calls(("pay", {"order": "AB-1"})), says("done"), hold=True)
    clerk = {"limits": LIMITS, "tools": ["pay"], "approval": ["pay"]}
    desk = deploy(agents(clerk=clerk), upstreams=[Upstream("pay", idempotent=False)], chat=chat)
    first = asyncio.create_task(desk.run("clerk", "first"))
    await chat.asked.wait()
    await queued(desk, "second", "third")
    chat.let_go()
    chat.hold()
    assert (await first)["status"] == "waiting"
    await chat.asked.wait()
    assert asked(chat) == ["first", "second"]
    await desk.ask("clerk", "answer", run_id=(await first)["run_id"], call="1.0", approved=True, **BY_ANN)
    chat.let_go()
    await desk.settled()
    assert [text for text in asked(chat) if text in ("second", "third")] == ["second", "third"]
    assert asked(chat)[-1] == "third", "the answered run resumed before the third one began"
    await check_d1_agrees(desk)


async def test_d1_being_away_when_a_run_begins_leaves_it_the_first_in_the_queue(
    desk: Deployment, chat: SteppedChat
) -> None:
    async with busy(desk, chat):
        second, third = await queued(desk, "second", "third")
        desk.faults.down.add("sql")
    assert (await desk.ask("clerk", "describe"))["queue"] == [
        {"run_id": run_id, "by": None, "queue_position": number, "queued_at_ms": desk.clock()}
        for number, run_id in enumerate((second, third), start=1)
    ]
    desk.faults.down.clear()
    await desk.recover()
    assert asked(chat) == ["first", "second", "third"]
    await check_d1_agrees(desk)


async def test_a_new_run_does_not_overtake_the_queue_of_an_instance_that_is_free(
    desk: Deployment, chat: SteppedChat
) -> None:
    async with busy(desk, chat):
        await queued(desk, "second")
        desk.faults.down.add("sql")
    desk.faults.down.clear()
    third = await desk.run("clerk", "third")
    assert third["status"] == "queued"
    await desk.settled()
    assert asked(chat) == ["first", "second", "third"]


async def test_the_next_run_begins_although_the_one_before_it_fails_in_an_unexpected_way(
    deploy: Deploy, agents: Agents
) -> None:
    chat = SteppedChat(says("one"), ValueError("a defect"), says("three"), hold=True)
    desk = deploy(agents(clerk={"limits": LIMITS}), chat=chat)
    async with busy(desk, chat):
        await queued(desk, "second", "third")
    await desk.recover()
    assert {row["status"] for row in desk.local(NAME, "SELECT status FROM turn_state")} == {"completed"}
    assert asked(chat)[-1] == "third"


async def test_a_delegate_queues_where_its_definition_says_so(deploy: Deploy, agents: Agents) -> None:
    boss = SteppedChat(calls(("delegate", {"agent": "clerk", "input": "help"})), says("all done"), hold=True)
    clerk = SteppedChat(hold=True)
    catalogue = agents(boss={"delegates": ["clerk"]}, clerk={"limits": LIMITS})
    desk = deploy(catalogue, chat={"boss": boss, "clerk": clerk})
    asking = asyncio.create_task(desk.run("boss", "do it"))
    await boss.asked.wait()
    [row] = desk.local("boss:acme:main", "SELECT run_id FROM turn_state")
    place = f"{row['run_id']}.clerk"
    other = asyncio.create_task(desk.run("clerk", "something else", instance=place))
    await clerk.asked.wait()
    boss.let_go()
    while not (await desk.describe("clerk", instance=place))["queue"]:
        await asyncio.sleep(0)
    clerk.let_go()
    assert ((await asking)["output"], (await other)["output"]) == ("all done", "done")
    assert asked(clerk) == ["something else", "help"]
    await desk.settled()


async def test_a_queued_delegate_is_cancelled_with_its_caller(deploy: Deploy, agents: Agents) -> None:
    boss = SteppedChat(calls(("delegate", {"agent": "clerk", "input": "help"})), hold=True)
    clerk = SteppedChat(hold=True)
    catalogue = agents(boss={"delegates": ["clerk"]}, clerk={"limits": LIMITS})
    desk = deploy(catalogue, chat={"boss": boss, "clerk": clerk})
    asking = asyncio.create_task(desk.run("boss", "do it"))
    await boss.asked.wait()
    [row] = desk.local("boss:acme:main", "SELECT run_id FROM turn_state")
    place = f"{row['run_id']}.clerk"
    other = asyncio.create_task(desk.run("clerk", "something else", instance=place))
    await clerk.asked.wait()
    boss.let_go()
    while not (await desk.describe("clerk", instance=place))["queue"]:
        await asyncio.sleep(0)
    await desk.ask("boss", "cancel", run_id=row["run_id"], **BY_ANN)
    assert (await asking)["status"] == "cancelled"
    assert (await desk.describe("clerk", instance=place))["queue"] == []
    clerk.let_go()
    await other
    await desk.settled()
    assert asked(clerk) == ["something else"]


async def test_a_definition_that_was_removed_ends_what_is_queued(
    deploy: Deploy, agents: Agents, chat: SteppedChat
) -> None:
    desk = deploy(agents(clerk={"limits": LIMITS}), chat=chat)
    first = asyncio.create_task(desk.run("clerk", "first"))
    await chat.asked.wait()
    [run_id] = await queued(desk, "second")
    await written(desk)
    desk.faults.kill()
    desk.catalogue = agents()
    chat.let_go()
    with suppress(Crash):
        await first
    await desk.recover()
    report = await desk.ask("clerk", "show", run_id=run_id)
    assert (report["status"], report["error"]["code"]) == ("failed", "unknown_agent")


async def test_a_definition_that_no_longer_queues_lets_the_queue_end_and_refuses_others(
    deploy: Deploy, agents: Agents, chat: SteppedChat
) -> None:
    desk = deploy(agents(clerk={"limits": LIMITS}), chat=chat)
    async with busy(desk, chat):
        [run_id] = await queued(desk, "second")
        desk.faults.down.add("sql")
    desk.catalogue = agents(clerk={})
    await desk.evict()
    desk.faults.down.clear()
    with pytest.raises(Conflict) as refused:
        await desk.run("clerk", "third")
    assert refused.value.code == "instance_busy"
    await desk.recover()
    assert (await desk.ask("clerk", "show", run_id=run_id))["status"] == "completed"


async def test_an_error_that_nobody_expects_reaches_whoever_starts_a_run(deploy: Deploy, agents: Agents) -> None:
    class Broken(SteppedChat):
        @property
        def name(self) -> str:  # type: ignore[override]
            raise ValueError("a defect")

    desk = deploy(agents(clerk={"limits": LIMITS}), chat=Broken())
    with pytest.raises(ValueError, match="a defect"):
        await asyncio.wait_for(desk.ask("clerk", "start", input="hello", metadata={}), 5)


async def test_d1_has_a_queued_run(desk: Deployment, chat: SteppedChat) -> None:
    async with busy(desk, chat):
        [run_id] = await queued(desk, "second", metadata={"channel": "mail"}, **ANN)
        await written(desk)
        [row] = await desk.rows("SELECT * FROM agent_runs WHERE run_id = ?", run_id)
        assert (row["status"], json.loads(row["waiting_for"]), row["user_id"]) == ("waiting", {"kind": "queue"}, "ann")
        assert json.loads(row["input"]) == {"input": "second", "metadata": {"channel": "mail"}}
        queued_at_ms = row["created_at_ms"]
        desk.clock.advance(1_000)
    [row] = await desk.rows("SELECT * FROM agent_runs WHERE run_id = ?", run_id)
    assert (row["status"], row["waiting_for"], row["model"]) == ("completed", None, "stepped")
    assert (row["created_at_ms"], row["completed_at_ms"]) == (queued_at_ms, queued_at_ms + 1_000)
    assert "episodes" in json.loads(row["input"])
