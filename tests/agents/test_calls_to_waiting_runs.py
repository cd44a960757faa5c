"""Calls to a run that waits: what they change is due at once, so that a crash delays it by a second at most."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from retain.agents.catalogue import AgentCatalogue
from retain.ports import SqlResult, Statement
from tests.agents.queues import LIMITS
from tests.agents.stepped_chat import SteppedChat, calls
from tests.support.instances import Deployment, Upstream

Agents = Callable[..., AgentCatalogue]
Deploy = Callable[..., Deployment]
CLERK: dict[str, Any] = {"tools": ["pay"], "approval": ["pay"]}
NAME = "clerk:acme:main"
PAY = calls(("pay", {"order": "AB-1"}))


@pytest.fixture
def waiting(deploy: Deploy, agents: Agents) -> tuple[Deployment, SteppedChat]:
    chat = SteppedChat(PAY)
    return deploy(agents(clerk=CLERK), upstreams=[Upstream("pay", idempotent=False)], chat=chat), chat


async def begun(deployment: Deployment, **more: Any) -> str:
    """Let a run wait for a person, with everything that it owes written to D1; return its id."""
    run = await deployment.run("clerk", "pay AB-1", **more)
    await deployment.settled()
    assert run["status"] == "waiting"
    return str(run["run_id"])


async def test_an_answer_is_due_in_a_second_and_has_its_effect_at_once(waiting: tuple[Deployment, SteppedChat]) -> None:
    deployment, _ = waiting
    run_id = await begun(deployment)
    fields: dict[str, Any] = {"run_id": run_id, "call": "1.0", "approved": True, "by": "ann", "reason": None}
    report = await deployment.ask("clerk", "answer", **fields)
    assert (report["run_id"], report["status"]) == (run_id, "running")
    assert await deployment.next_alarm_ms() == deployment.clock() + 1000
    await deployment.settled()
    assert (await deployment.ask("clerk", "show", run_id=run_id))["status"] == "completed"


async def test_a_cancellation_of_a_waiting_run_is_due_in_a_second_while_another_run_is_under_way(
    waiting: tuple[Deployment, SteppedChat],
) -> None:
    deployment, chat = waiting
    run_id = await begun(deployment)
    chat.hold()
    other = asyncio.create_task(deployment.run("clerk", "hello"))
    await chat.asked.wait()
    deployment.clock.advance(5000)
    report = await deployment.ask("clerk", "cancel", run_id=run_id, by="ann", reason=None)
    assert (report["status"], report["cancelling"]) == ("running", True)
    assert await deployment.next_alarm_ms() == deployment.clock() + 1000
    chat.let_go()
    assert (await other)["status"] == "completed"
    await deployment.settled()
    assert (await deployment.ask("clerk", "show", run_id=run_id))["status"] == "cancelled"


async def test_a_cancelled_run_that_nobody_holds_up_has_ended_when_the_call_returns(
    waiting: tuple[Deployment, SteppedChat],
) -> None:
    deployment, _ = waiting
    run_id = await begun(deployment, key="k")
    report = await deployment.ask("clerk", "cancel_call", idempotency_key="k", by="ann", reason="why")
    assert (report["run_id"], report["status"], deployment.naps) == (run_id, "cancelled", [])
    await deployment.settled()
    assert [row["status"] for row in await deployment.rows("SELECT status FROM agent_runs")] == ["cancelled"]


async def test_a_cancellation_does_not_wait_for_the_runs_of_the_queue(
    deploy: Deploy, agents: Agents, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat = SteppedChat(PAY)
    clerk = {**CLERK, "limits": LIMITS}
    deployment = deploy(agents(clerk=clerk), upstreams=[Upstream("pay", idempotent=False)], chat=chat)
    run_id = await begun(deployment)
    chat.hold()
    batch = deployment.sql.batch

    async def queue_another(statements: Sequence[Statement]) -> list[SqlResult]:
        monkeypatch.undo()
        assert (await deployment.run("clerk", "hello"))["status"] == "queued"
        return await batch(statements)

    monkeypatch.setattr(deployment.sql, "batch", queue_another)  # while D1 gets to know that the run does not wait
    report = await deployment.ask("clerk", "cancel", run_id=run_id, by="ann", reason=None)
    assert (report["status"], deployment.naps) == ("cancelled", [])
    await chat.asked.wait()
    chat.let_go()
    await deployment.settled()
    assert [row["status"] for row in await deployment.rows("SELECT status FROM agent_runs ORDER BY run_id")] == [
        "cancelled",
        "completed",
    ]


async def test_a_wake_up_is_due_in_a_second_and_has_its_effect_at_once(deploy: Deploy, agents: Agents) -> None:
    chats = {"boss": SteppedChat(calls(("delegate", {"agent": "clerk", "input": "pay"}))), "clerk": SteppedChat(PAY)}
    pay = Upstream("pay", idempotent=False)
    deployment = deploy(agents(clerk=CLERK, boss={"delegates": ["clerk"]}), upstreams=[pay], chat=chats)
    run = await deployment.run("boss", "hello")
    await deployment.settled()
    assert run["status"] == "waiting"
    [alarm] = [await deployment.storages["boss:acme:main"].alarm.get()]
    assert alarm == deployment.clock() + 60_000
    assert await deployment.ask("boss", "wake", run_id=run["run_id"]) == {}
    assert await deployment.storages["boss:acme:main"].alarm.get() == deployment.clock() + 1000
    await deployment.settled()
    kinds = await deployment.rows(f"SELECT kind FROM run_events WHERE run_id = '{run['run_id']}' ORDER BY seq DESC")
    assert [row["kind"] for row in kinds[:2]] == ["run_suspended", "run_resumed"]


@pytest.mark.parametrize("method", ["run", "start"])
async def test_a_repeated_call_finds_the_run_that_the_object_lost_and_sets_its_alarm(
    waiting: tuple[Deployment, SteppedChat], method: str
) -> None:
    deployment, chat = waiting
    run_id = await begun(deployment, key="k")
    await deployment.lose(NAME)
    request: dict[str, Any] = {"input": "pay AB-1", "metadata": {}, "idempotency_key": "k"}
    report = await deployment.ask("clerk", method, **request)
    assert (report["run_id"], report["status"], len(chat.requests)) == (run_id, "waiting", 1)
    assert await deployment.next_alarm_ms() == report["waiting_for"]["expires_at_ms"]


async def test_a_cancellation_by_key_finds_the_run_that_the_object_lost(
    waiting: tuple[Deployment, SteppedChat],
) -> None:
    deployment, _ = waiting
    run_id = await begun(deployment, key="k")
    await deployment.lose(NAME)
    report = await deployment.ask("clerk", "cancel_call", idempotency_key="k", by="ann", reason=None)
    assert (report["run_id"], report["status"]) == (run_id, "cancelled")
    await deployment.settled()
