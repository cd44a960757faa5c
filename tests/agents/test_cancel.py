"""Cancelling a run: durably, before its next side effect, with its delegates, reporting what was done."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import closing, suppress
from typing import Any

import pytest

from retain.agents.catalogue import AgentCatalogue
from retain.errors import NotFound, RetainError, Unavailable
from retain.models.chat import ChatModel
from tests.agents.conftest import agent
from tests.agents.remembered import check_d1_agrees
from tests.agents.stepped_chat import SteppedChat, calls, says
from tests.agents.test_crash_points import different
from tests.support.faults import Crash, Fault
from tests.support.instances import Deployment, Upstream, catalogue

Deploy = Callable[..., Deployment]
Agents = Callable[..., AgentCatalogue]
ANN = "ann@example.com"


async def cancel(deployment: Deployment, run_id: str, agent_type: str = "clerk", **more: Any) -> dict[str, Any]:
    fields = {"by": ANN, "reason": "enough", **more}
    return await deployment.ask(agent_type, "cancel", run_id=run_id, **fields)


async def the_run(deployment: Deployment, agent_type: str = "clerk") -> str:
    """Return the id of the only run of an agent."""
    [name] = [name for name in deployment.objects() if name.startswith(f"{agent_type}:")]
    [row] = deployment.local(name, "SELECT run_id FROM turn_state")
    return str(row["run_id"])


class SlowTool(Upstream):
    """A tool that runs until the test lets it end."""

    def __init__(self, name: str) -> None:
        super().__init__(name, idempotent=False)
        self.called, self.end = asyncio.Event(), asyncio.Event()

    async def call(self, arguments: Any, idempotency_key: str) -> tuple[int, bytes]:
        """Answer when the test lets it."""
        self.called.set()
        await self.end.wait()
        return await super().call(arguments, idempotency_key)


async def test_a_call_under_way_ends_and_the_next_one_is_not_made(deploy: Deploy, agents: Agents) -> None:
    slow, pay = SlowTool("slow"), Upstream("pay", idempotent=False)
    chat = SteppedChat(calls(("slow", {"order": "A"}), ("pay", {"order": "A"})), says("done"))
    deployment = deploy(agents(clerk={"tools": ["slow", "pay"]}), upstreams=[slow, pay], chat=chat)
    run = asyncio.create_task(deployment.run("clerk", "hello"))
    await slow.called.wait()
    run_id = await the_run(deployment)
    wish = asyncio.create_task(cancel(deployment, run_id))
    while not deployment.local("clerk:acme:main", "SELECT 1 FROM run_log WHERE kind = 'cancel_requested'"):
        await asyncio.sleep(0)
    slow.end.set()
    result = await run
    assert await wish == result
    assert (result["status"], result["output"], pay.asked, len(chat.requests)) == ("cancelled", None, [], 1)
    assert result["error"] == {"code": "cancelled", "message": "enough", "by": ANN}
    assert result["done"] == [{"call": "1.0", "tool": "slow", "outcome": "done"}]
    await deployment.settled()
    await check_d1_agrees(deployment)


async def test_a_run_that_is_cancelled_while_its_model_hangs_stops_at_once(deploy: Deploy, agents: Agents) -> None:
    pay = Upstream("pay", idempotent=False)
    chat = SteppedChat(calls(("pay", {"order": "A"})), hold=True)
    deployment = deploy(agents(clerk={"tools": ["pay"]}), upstreams=[pay], chat=chat)
    run = asyncio.create_task(deployment.run("clerk", "hello"))
    await chat.asked.wait()
    shown = await cancel(deployment, await the_run(deployment))
    assert shown["status"] == "cancelled"
    assert shown["usage"]["input_tokens"] > 0  # an estimate: the model's server counts the request all the same
    chat.let_go()
    assert ((await run), pay.asked) == (shown, [])
    await deployment.settled()
    await check_d1_agrees(deployment)


async def test_a_run_that_has_ended_stays_as_it_is_and_an_unknown_one_is_not_found(
    deploy: Deploy, agents: Agents
) -> None:
    deployment = deploy(agents(clerk={}), chat=SteppedChat(says("hi")))
    result = await deployment.run("clerk", "hello")
    assert await cancel(deployment, result["run_id"]) == result
    with pytest.raises(NotFound) as unknown:
        await cancel(deployment, "01HZZZZZZZZZZZZZZZZZZZZZZZ")
    assert unknown.value.code == "no_such_run"
    await deployment.settled()


async def test_a_waiting_run_is_cancelled_at_once_and_a_later_answer_is_refused(deploy: Deploy, agents: Agents) -> None:
    pay = Upstream("pay", idempotent=False)
    chat = SteppedChat(calls(("pay", {"order": "A"})))
    deployment = deploy(agents(clerk={"tools": ["pay"], "approval": ["pay"]}), upstreams=[pay], chat=chat)
    run_id = (await deployment.run("clerk", "hello"))["run_id"]
    await deployment.evict()
    result = await cancel(deployment, run_id)
    assert (result["status"], result["done"]) == ("cancelled", [])
    with pytest.raises(RetainError) as refused:
        await deployment.ask("clerk", "answer", run_id=run_id, call="1.0", approved=True, by=ANN)
    assert refused.value.code == "run_cancelled"
    await deployment.settled()
    assert pay.asked == []
    await check_d1_agrees(deployment)


@pytest.mark.parametrize("waits", [False, True], ids=["while the delegate works", "while the delegate waits"])
async def test_cancelling_a_run_cancels_its_delegates(deploy: Deploy, agents: Agents, waits: bool) -> None:
    pay = Upstream("pay", idempotent=False)
    boss = SteppedChat(calls(("delegate", {"agent": "middle", "input": "do it"})))
    middle = SteppedChat(calls(("delegate", {"agent": "clerk", "input": "do it"})))
    clerk = SteppedChat(calls(("pay", {"order": "A"})), hold=not waits)
    definitions = {
        "boss": {"delegates": ["middle"]},
        "middle": {"delegates": ["clerk"]},
        "clerk": {"tools": ["pay"], "approval": ["pay"]},
    }
    models = {"boss": boss, "middle": middle, "clerk": clerk}
    deployment = deploy(agents(**definitions), upstreams=[pay], chat=models)
    run = asyncio.create_task(deployment.run("boss", "hello"))
    await clerk.asked.wait()
    if waits:
        assert (await run)["waiting_for"]["agent_type"] == "middle"
        await deployment.evict()
        await cancel(deployment, await the_run(deployment, "boss"), "boss")
    else:
        wish = asyncio.create_task(cancel(deployment, await the_run(deployment, "boss"), "boss"))
        while not any(
            deployment.local(name, "SELECT 1 FROM run_log WHERE kind = 'cancel_requested'")
            for name in deployment.objects()
            if name.startswith("clerk:")
        ):
            await asyncio.sleep(0)
        clerk.let_go()
        assert (await wish)["run_id"] == (await run)["run_id"]
    await deployment.recover()
    rows = await deployment.rows("SELECT agent_type, status FROM agent_runs ORDER BY agent_type")
    statuses = [(row["agent_type"], row["status"]) for row in rows]
    assert statuses == [("boss", "cancelled"), ("clerk", "cancelled"), ("middle", "cancelled")]
    assert pay.asked == []
    await check_d1_agrees(deployment)


@pytest.mark.parametrize("failures", [1, 2, 12], ids=["once", "until the alarm", "for many alarms"])
async def test_a_delegate_that_could_not_be_reached_is_cancelled_before_the_run_ends(
    deploy: Deploy, agents: Agents, failures: int
) -> None:
    boss = SteppedChat(calls(("delegate", {"agent": "clerk", "input": "do it"})))
    clerk = SteppedChat(calls(("pay", {"order": "A"})))
    definitions = {"boss": {"delegates": ["clerk"]}, "clerk": {"tools": ["pay"], "approval": ["pay"]}}
    models = {"boss": boss, "clerk": clerk}
    deployment = deploy(agents(**definitions), upstreams=[Upstream("pay", idempotent=False)], chat=models)
    run_id = (await deployment.run("boss", "hello"))["run_id"]
    await deployment.settled()
    for _ in range(failures):
        deployment.faults.plan(Fault(Unavailable("gone"), point="instances.call"))
    shown = await cancel(deployment, run_id, "boss")
    assert shown["status"] == ("cancelled" if failures == 1 else "running")
    await deployment.recover()
    rows = await deployment.rows("SELECT agent_type, status FROM agent_runs ORDER BY agent_type")
    assert [(row["agent_type"], row["status"]) for row in rows] == [("boss", "cancelled"), ("clerk", "cancelled")]
    await check_d1_agrees(deployment)


async def test_a_cancellation_that_arrives_before_the_delegate_s_run_stops_it_when_it_arrives(
    deploy: Deploy, agents: Agents
) -> None:
    chat = SteppedChat(says("never"))
    deployment = deploy(agents(clerk={}), chat=chat)
    unknown = await deployment.ask("clerk", "cancel_call", idempotency_key="call-1", by=ANN, reason=None)
    assert unknown == {"status": "unknown"}
    result = await deployment.run("clerk", "hello", key="call-1")
    assert (result["status"], result["error"]["by"], chat.requests) == ("cancelled", ANN, [])
    assert (await deployment.run("clerk", "hello", key="call-2"))["status"] == "completed"
    await deployment.settled()


class Office:
    """A run of two calls, cancelled during the first; a fault may occur anywhere."""

    def __init__(self, fault: Fault | None) -> None:
        self.slow = SlowTool("slow")
        self.pay = Upstream("pay", idempotent=False)
        self.deployment = Deployment(
            catalogue(agent("clerk", tools=["slow", "pay"])),
            upstreams=[self.slow, self.pay],
            chat=lambda definition: SteppedChat(calls(("slow", {"order": "A"}), ("pay", {"order": "A"}))),
        )
        if fault is not None:
            self.deployment.faults.plan(fault)

    async def play(self) -> tuple[bool, dict[str, Any] | None]:
        """Return whether the cancellation was accepted, and how the run ended, if there is one."""
        deployment = self.deployment
        run = asyncio.create_task(deployment.run("clerk", "hello", key="k"))
        begun = asyncio.create_task(self.slow.called.wait())
        await asyncio.wait({run, begun}, return_when=asyncio.FIRST_COMPLETED)
        begun.cancel()
        accepted = False
        if not run.done():
            wish = asyncio.create_task(cancel(deployment, await the_run(deployment)))
            for _ in range(5):
                await asyncio.sleep(0)
            self.slow.end.set()
            with suppress(Crash):
                await wish
                accepted = True
        self.slow.end.set()
        with suppress(Crash, RetainError):
            await run
        with suppress(Crash):
            await deployment.settled()
        await deployment.recover()
        found = [name for name in deployment.objects() if deployment.local(name, "SELECT 1 FROM turn_state")]
        if not found:
            return accepted, None
        return accepted, await deployment.ask("clerk", "show", run_id=await the_run(deployment))


async def test_a_crash_at_any_point_of_cancelling_loses_no_accepted_cancellation() -> None:
    office = Office(None)
    with closing(office.deployment):
        accepted, result = await office.play()
        assert accepted
        assert result is not None
        assert result["status"] == "cancelled"
        points = different(list(office.deployment.faults.trace))
    accepted_in_all = 0
    for number, point in points:
        office = Office(Fault(Crash(), number))
        with closing(office.deployment):
            accepted, result = await office.play()
            accepted_in_all += accepted
            if accepted:
                assert result is not None, point
                assert (result["status"], office.pay.asked) == ("cancelled", []), point
            assert result is None or result["status"] in ("cancelled", "completed"), point
            await check_d1_agrees(office.deployment)
    assert accepted_in_all


class CountedModels(dict[str, ChatModel]):
    """Models by agent, and the agents for which one was made."""

    def __init__(self, **models: ChatModel) -> None:
        super().__init__(models)
        self.made: list[str] = []

    def __getitem__(self, agent: str) -> ChatModel:
        self.made.append(agent)
        return super().__getitem__(agent)


async def test_cancelling_a_delegate_makes_no_model_and_reads_no_tool(deploy: Deploy, agents: Agents) -> None:
    helper = SteppedChat(hold=True)
    models = CountedModels(boss=SteppedChat(calls(("delegate", {"agent": "helper", "input": "do it"}))), helper=helper)
    boss = {"delegates": ["helper"], "tools": ["pay"], "working_memory": True}
    deployment = deploy(agents(boss=boss, helper={}), upstreams=[Upstream("pay", idempotent=True)], chat=models)
    run = asyncio.create_task(deployment.run("boss", "hello"))
    await helper.asked.wait()
    models.made.clear()
    before = len(deployment.faults.trace)
    wish = asyncio.create_task(
        deployment.ask("boss", "cancel", run_id=await the_run(deployment, "boss"), by=ANN, reason="enough")
    )
    for _ in range(200):
        await asyncio.sleep(0)
    reached = [point for owner, point in deployment.faults.trace[before:] if owner == "boss:acme:main"]
    assert "instances.call done" in reached, "the delegate was cancelled"
    assert [point for point in reached if point.startswith(("kv.", "tool.", "chat."))] == []
    assert models.made == []
    helper.let_go()
    assert (await run)["status"] == "cancelled"
    await wish
    await deployment.settled()
