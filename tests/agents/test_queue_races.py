"""What happens to the queue of a busy instance at the same moment: cancellations, keys, bounds, deaths, erasures."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import pytest

from retain.agents.catalogue import AgentCatalogue
from retain.errors import Conflict, NotFound, QuotaExceeded, RateLimited, RetainError, Unavailable
from retain.ports import SqlResult, SqlValue, Statement
from tests.agents.queues import ANN, BY_ANN, LIMITS, NAME, asked, busy, followed, queued, written
from tests.agents.remembered import check_d1_agrees
from tests.agents.stepped_chat import SteppedChat, calls
from tests.ports import raises
from tests.support.faults import Crash
from tests.support.instances import Deployment

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


class Reading:
    """Holds every run that reads its conversation in D1: `begun` is set then, and `go` lets it continue."""

    def __init__(self, desk: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun, self.go = asyncio.Event(), asyncio.Event()
        self._batch = desk.sql.batch
        self._error: RetainError | None = None
        monkeypatch.setattr(desk.sql, "batch", self.batch)

    def fail(self, error: RetainError | None = None) -> None:
        """Let the run resume with an error, by default that D1 is down."""
        self._error = error or Unavailable("D1 is down", code="d1_unavailable")
        self.go.set()

    async def batch(self, statements: Sequence[Statement]) -> list[SqlResult]:
        if any("conversation_messages" in sql and sql.lstrip().startswith("SELECT") for sql, _ in statements):
            self.begun.set()
            await self.go.wait()
            error, self._error = self._error, None
            if error is not None:
                raise error
        return await self._batch(statements)


async def test_a_run_that_is_cancelled_while_its_context_is_read_does_not_begin_and_the_next_one_does(
    desk: Deployment, chat: SteppedChat, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with busy(desk, chat):
        run_id, _ = await queued(desk, "second", "third")
        reading = Reading(desk, monkeypatch)
        chat.let_go()
        await reading.begun.wait()
        assert (await desk.ask("clerk", "cancel", run_id=run_id, **BY_ANN))["status"] == "cancelled"
        reading.go.set()
    assert asked(chat) == ["first", "third"]
    assert (await desk.ask("clerk", "show", run_id=run_id))["status"] == "cancelled"


@pytest.mark.parametrize("how", ["cancel", "erase"])
async def test_a_run_that_is_cancelled_or_erased_before_its_preparation_fails_stays_away(
    desk: Deployment, chat: SteppedChat, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    async with busy(desk, chat):
        run_id, *others = await queued(desk, "a secret", *(["third"] if how == "cancel" else []), **ANN)
        reading = Reading(desk, monkeypatch)
        chat.let_go()
        await reading.begun.wait()
        named = {"run_id": run_id, **BY_ANN} if how == "cancel" else {"user_id": "ann"}
        await desk.ask("clerk", how, **named)
        reading.fail(QuotaExceeded("the tokens are spent", code="token_quota"))
    [row] = await desk.rows("SELECT status FROM agent_runs WHERE run_id = ?", run_id)
    assert row["status"] == "cancelled"
    assert bool(desk.local(NAME, "SELECT 1 FROM turn_state WHERE request LIKE '%secret%'")) == (how == "cancel")
    for other in others:
        assert (await desk.ask("clerk", "show", run_id=other))["status"] == "completed"
    await check_d1_agrees(desk)


@pytest.mark.parametrize("policy", ["queue", "refuse"])
@pytest.mark.parametrize("call", ["run", "start"])
async def test_a_second_request_with_the_key_of_a_run_that_is_just_beginning_is_the_same_run(
    deploy: Deploy, agents: Agents, chat: SteppedChat, monkeypatch: pytest.MonkeyPatch, policy: str, call: str
) -> None:
    desk = deploy(agents(clerk={"limits": {"busy": policy}}), chat=chat)
    chat.let_go()
    reading = Reading(desk, monkeypatch)
    request: dict[str, Any] = {"input": "hello", "metadata": {}, "idempotency_key": "k"}
    first = asyncio.create_task(desk.ask("clerk", call, **request))
    await reading.begun.wait()
    again = asyncio.create_task(desk.ask("clerk", call, **request))
    for _ in range(20):
        await asyncio.sleep(0)
    assert not again.done()
    reading.go.set()
    assert (await first)["run_id"] == (await again)["run_id"]
    await desk.settled()
    assert asked(chat) == ["hello"]


@pytest.mark.parametrize("policy", ["queue", "refuse"])
async def test_equal_requests_at_once_start_one_run(
    deploy: Deploy, agents: Agents, chat: SteppedChat, policy: str
) -> None:
    desk = deploy(agents(clerk={"limits": {"busy": policy}}), chat=chat)
    request: dict[str, Any] = {"input": "hello", "metadata": {}, "idempotency_key": "k"}
    found = await asyncio.gather(*(desk.ask("clerk", "start", **request) for _ in range(3)))
    chat.let_go()
    await desk.settled()
    assert len({report["run_id"] for report in found}) == 1
    assert asked(chat) == ["hello"]


@pytest.mark.parametrize("policy", ["queue", "refuse"])
async def test_a_request_whose_keys_run_could_not_begin_begins_it(
    deploy: Deploy, agents: Agents, chat: SteppedChat, monkeypatch: pytest.MonkeyPatch, policy: str
) -> None:
    desk = deploy(agents(clerk={"limits": {"busy": policy}}), chat=chat)
    chat.let_go()
    reading = Reading(desk, monkeypatch)
    first = asyncio.create_task(desk.run("clerk", "hello", key="k"))
    await reading.begun.wait()
    again = asyncio.create_task(desk.run("clerk", "hello", key="k"))
    for _ in range(20):
        await asyncio.sleep(0)
    reading.fail()
    with raises(Unavailable):
        await first
    assert (await again)["status"] == "completed"
    await desk.settled()
    assert asked(chat) == ["hello"]


async def test_a_run_that_is_queued_while_another_one_is_just_beginning_outlives_the_death_of_both(
    desk: Deployment, chat: SteppedChat, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat.let_go()
    reading = Reading(desk, monkeypatch)
    first = asyncio.create_task(desk.run("clerk", "first"))
    await reading.begun.wait()
    [run_id] = await queued(desk, "second")
    desk.faults.kill()
    reading.go.set()
    with suppress(Crash):
        await first
    await desk.recover()
    assert asked(chat) == ["second"]
    assert (await desk.ask("clerk", "show", run_id=run_id))["status"] == "completed"


async def test_a_run_that_waits_until_an_interrupted_one_is_resumed_is_before_those_queued_meanwhile(
    desk: Deployment, chat: SteppedChat
) -> None:
    first = asyncio.create_task(desk.run("clerk", "first"))
    await chat.asked.wait()
    desk.faults.kill()
    chat.let_go()
    with suppress(Crash):
        await first
    await desk.restart()
    chat.hold()
    second = asyncio.create_task(desk.run("clerk", "second"))
    await chat.asked.wait()
    [run_id] = await queued(desk, "third")
    chat.let_go()
    assert (await second)["run_id"] < run_id
    await desk.settled()
    assert asked(chat) == ["first", "first", "second", "third"]
    await check_d1_agrees(desk)


async def test_requests_at_once_do_not_pass_the_bound_of_the_queue_together(
    desk: Deployment, chat: SteppedChat, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with busy(desk, chat):
        run = desk.sql.run

        async def slow(sql: str, *values: SqlValue) -> SqlResult:
            await asyncio.sleep(0)
            return await run(sql, *values)

        monkeypatch.setattr(desk.sql, "run", slow)
        answers = await asyncio.gather(*(desk.run("clerk", "hello") for _ in range(6)), return_exceptions=True)
        assert len([answer for answer in answers if isinstance(answer, RateLimited)]) == 3
        assert len((await desk.describe("clerk"))["queue"]) == 3


async def test_a_full_queue_refuses_without_asking_d1(desk: Deployment, chat: SteppedChat) -> None:
    async with busy(desk, chat):
        await queued(desk, "second", "third", "fourth")
        await written(desk)
        desk.faults.down.add("sql")
        with pytest.raises(RateLimited):
            await desk.run("clerk", "fifth")
        desk.faults.down.clear()


async def test_a_run_that_was_in_the_queue_for_too_long_does_not_begin_even_if_the_alarm_is_late(
    desk: Deployment, chat: SteppedChat
) -> None:
    async with busy(desk, chat):
        [run_id] = await queued(desk, "second")
        desk.clock.advance(10 * 60_000)
    assert (await desk.ask("clerk", "show", run_id=run_id))["error"]["code"] == "queue_deadline"
    assert asked(chat) == ["first"]


async def test_the_copy_of_a_queued_run_is_gone_before_its_model_is_asked(desk: Deployment, chat: SteppedChat) -> None:
    async with busy(desk, chat):
        [run_id] = await queued(desk, "second")
        await written(desk)
        assert len(await desk.rows("SELECT 1 FROM parked_runs WHERE run_id = ?", run_id)) == 1
        chat.let_go()
        chat.hold()
        await chat.asked.wait()
        assert asked(chat) == ["first", "second"]
        assert await desk.rows("SELECT 1 FROM parked_runs") == []


async def test_an_erased_queued_run_ends_for_its_followers_and_for_d1(desk: Deployment, chat: SteppedChat) -> None:
    async with busy(desk, chat):
        [run_id] = await queued(desk, "second", **ANN)
        await written(desk)
        following = asyncio.create_task(followed(desk, run_id))
        for _ in range(5):
            await asyncio.sleep(0)
        assert await desk.ask("clerk", "erase", user_id="ann") == {"everything": False}
        with pytest.raises(NotFound):
            await asyncio.wait_for(following, 5)
        await written(desk)
        [row] = await desk.rows("SELECT status, error FROM agent_runs WHERE run_id = ?", run_id)
        assert (row["status"], json.loads(row["error"])["code"]) == ("cancelled", "erased")
        await desk.ask("clerk", "erase", user_id="ann")
    assert asked(chat) == ["first"]


async def test_an_instance_that_is_being_erased_queues_nothing(
    deploy: Deploy, agents: Agents, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted = calls(("set_working_memory", {"key": "k", "value": 1}))
    desk = deploy(agents(clerk={"limits": LIMITS, "working_memory": True}), chat=SteppedChat(noted))
    await desk.run("clerk", "note it")
    await desk.settled()
    erasing, go, delete = asyncio.Event(), asyncio.Event(), desk.kv.delete

    async def held(key: str) -> None:
        erasing.set()
        await go.wait()
        await delete(key)

    monkeypatch.setattr(desk.kv, "delete", held)
    erasure = asyncio.create_task(desk.ask("clerk", "erase"))
    await erasing.wait()
    with pytest.raises(Conflict) as refused:
        await desk.run("clerk", "hello")
    assert refused.value.code == "instance_busy"
    go.set()
    assert await erasure == {"everything": True}
    assert (await desk.run("clerk", "hello"))["status"] == "completed"
    await desk.settled()
