"""A delegate and the run that called it, when one of the two is stopped, erased or out of reach before the other."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from retain.agents.calls.client import InstanceClient
from retain.agents.catalogue import AgentCatalogue
from retain.agents.conversations.deletion import delete_conversation
from retain.agents.execution.executor import MAX_OTHER_RESUMPTIONS
from retain.agents.identity import instance_of
from retain.agents.tools.delegation import ATTEMPTS
from retain.errors import Unavailable
from tests.agents.stepped_chat import SteppedChat, calls, says
from tests.support.faults import Crash, Fault
from tests.support.instances import Deployment, LocalInstances, Upstream

Deploy = Callable[..., Deployment]
Agents = Callable[..., AgentCatalogue]
PAY = calls(("pay", {"order": "A"}))
CLERK: dict[str, Any] = {"tools": ["look", "pay"], "approval": ["pay"]}


def to(agent_type: str) -> tuple[str, dict[str, Any]]:
    return "delegate", {"agent": agent_type, "input": "do it"}


def read_by(chat: SteppedChat) -> list[dict[str, Any]]:
    messages = chat.requests[-1].messages
    return [json.loads(message.content) for message in messages if message.role == "tool"]


def upstreams() -> list[Upstream]:
    return [Upstream("look", idempotent=True), Upstream("pay", idempotent=True)]


async def run_of(deployment: Deployment, agent_type: str) -> dict[str, Any]:
    """Return the agent's one run, as D1 has it."""
    await deployment.settled()
    [row] = await deployment.rows("SELECT * FROM agent_runs WHERE agent_type = ?", agent_type)
    return dict(row)


async def approve(deployment: Deployment, call: str) -> None:
    """Approve what the clerk asks, and let everything that follows happen."""
    run = await run_of(deployment, "clerk")
    fields: dict[str, Any] = {"run_id": run["run_id"], "call": call, "approved": True, "by": "ann", "reason": None}
    await deployment.ask("clerk", "answer", instance=run["instance_id"], **fields)
    await deployment.settled()


async def some_minutes(deployment: Deployment) -> None:
    """Let an hour pass, with every alarm."""
    for _ in range(6):
        await deployment.settled()
        deployment.clock.advance(600_000)
        await deployment.fire_alarms()
    await deployment.settled()


async def test_a_delegate_whose_conversation_was_deleted_is_not_begun_again(deploy: Deploy, agents: Agents) -> None:
    boss = SteppedChat(calls(to("clerk")))
    clerk = SteppedChat(calls(("look", {"order": "A"})), PAY, calls(("look", {"order": "A"})), PAY)
    chats = {"boss": boss, "clerk": clerk}
    deployment = deploy(agents(boss={"delegates": ["clerk"]}, clerk=CLERK), chat=chats, upstreams=upstreams())
    waiting = await deployment.run("boss", "go")
    run = await run_of(deployment, "clerk")
    client = InstanceClient(LocalInstances(deployment), instance_of("acme", "clerk", run["instance_id"]))
    await delete_conversation(deployment.sql, client)
    await some_minutes(deployment)
    assert (await deployment.ask("boss", "show", run_id=waiting["run_id"]))["status"] == "completed"
    assert [answer["error"]["code"] for answer in read_by(boss)] == ["no_such_run"]
    assert len(deployment.upstreams["look"].asked) == 1


async def test_a_delegate_that_is_out_of_reach_for_a_while_is_still_waited_for(deploy: Deploy, agents: Agents) -> None:
    boss, clerk = SteppedChat(calls(to("clerk"))), SteppedChat(PAY, says("paid"))
    chats = {"boss": boss, "clerk": clerk}
    deployment = deploy(agents(boss={"delegates": ["clerk"]}, clerk=CLERK), chat=chats, upstreams=upstreams())
    waiting = await deployment.run("boss", "go")
    await deployment.settled()
    for _ in range(ATTEMPTS):
        deployment.faults.plan(Fault(Unavailable("gone", code="agent_instance_unavailable"), point="instances.call"))
    deployment.clock.advance(60_000)
    await deployment.fire_alarms()
    shown = await deployment.ask("boss", "show", run_id=waiting["run_id"])
    assert (shown["status"], shown["waiting_for"]["kind"]) == ("waiting", "delegate")
    await approve(deployment, "1.0")
    assert [answer["output"] for answer in read_by(boss)] == ["paid"]


async def test_what_a_delegate_spent_before_its_caller_was_cancelled_counts_for_the_callers_caller(
    deploy: Deploy, agents: Agents
) -> None:
    boss, middle = SteppedChat(calls(to("middle"))), SteppedChat(calls(to("clerk")))
    chats = {"boss": boss, "middle": middle, "clerk": SteppedChat(PAY)}
    chain = agents(boss={"delegates": ["middle"]}, middle={"delegates": ["clerk"]}, clerk=CLERK)
    deployment = deploy(chain, chat=chats, upstreams=upstreams())
    waiting = await deployment.run("boss", "go")
    run = await run_of(deployment, "middle")
    by = {"run_id": run["run_id"], "by": "ann", "reason": None}
    await deployment.ask("middle", "cancel", instance=run["instance_id"], **by)
    await deployment.settled()
    assert (await run_of(deployment, "clerk"))["status"] == "cancelled"
    usage = (await deployment.ask("boss", "show", run_id=waiting["run_id"]))["usage"]
    assert (usage["delegated_tokens"], usage["delegations"]) == (10, 2)


async def test_the_delegate_of_a_run_that_a_mention_erases_is_cancelled(deploy: Deploy, agents: Agents) -> None:
    chats = {"boss": SteppedChat(calls(to("clerk"))), "clerk": SteppedChat(PAY)}
    deployment = deploy(agents(boss={"delegates": ["clerk"]}, clerk=CLERK), chat=chats, upstreams=upstreams())
    await deployment.run("boss", "go for ann@example.org")
    await deployment.settled()
    await deployment.ask("boss", "erase", term="ann@example.org")
    await deployment.settled()
    assert deployment.local("boss:acme:main", "SELECT 1 FROM turn_state") == []
    assert (await run_of(deployment, "clerk"))["status"] == "cancelled"


async def test_the_delegate_of_a_run_that_is_given_up_is_cancelled(deploy: Deploy, agents: Agents) -> None:
    chats = {"boss": SteppedChat(calls(to("clerk"))), "clerk": SteppedChat(PAY)}
    chain = agents(boss={"delegates": ["clerk"], "tools": ["ship"]}, clerk=CLERK)
    deployment = deploy(chain, chat=chats, upstreams=[*upstreams(), Upstream("ship", idempotent=True)])
    waiting = await deployment.run("boss", "go")
    await deployment.settled()
    del deployment.upstreams["ship"]
    deployment.clock.advance(60_000)
    await deployment.fire_alarms()
    shown = await deployment.ask("boss", "show", run_id=waiting["run_id"])
    assert (shown["status"], shown["error"]["code"]) == ("failed", "no_such_tool")
    assert (await run_of(deployment, "clerk"))["status"] == "cancelled"


async def test_the_delegate_that_works_for_a_run_that_is_interrupted_too_often_is_cancelled(
    deploy: Deploy, agents: Agents
) -> None:
    """The caller is given up while its delegate, in an object of its own, has not ended."""
    chats = {"boss": SteppedChat(calls(to("clerk"))), "clerk": SteppedChat(PAY)}
    deployment = deploy(agents(boss={"delegates": ["clerk"]}, clerk=CLERK), chat=chats, upstreams=upstreams())
    deployment.faults.plan(Fault(Crash(), point="instances.call done"))
    with pytest.raises(Crash):
        await deployment.run("boss", "go")
    await deployment.restart()
    storage = deployment.storages["boss:acme:main"]
    storage.run("UPDATE turn_state SET resumed = ?", MAX_OTHER_RESUMPTIONS)
    storage.commit()
    await deployment.recover()
    assert json.loads((await run_of(deployment, "boss"))["error"])["code"] == "resumed_too_often"
    assert (await run_of(deployment, "clerk"))["status"] == "cancelled"


@pytest.mark.parametrize("left", [[], ["other"]], ids=["none", "another"])
@pytest.mark.parametrize("caller", ["cancelled", "completed"])
async def test_the_delegate_that_works_for_a_run_whose_agent_may_call_it_no_longer_is_cancelled(
    deploy: Deploy, agents: Agents, caller: str, left: list[str]
) -> None:
    chats = {"boss": SteppedChat(calls(to("clerk"))), "clerk": SteppedChat(PAY)}
    staff: dict[str, Any] = {"clerk": CLERK, "other": {}}
    deployment = deploy(agents(boss={"delegates": ["clerk"]}, **staff), chat=chats, upstreams=upstreams())
    deployment.faults.plan(Fault(Crash(), point="instances.call done"))
    with pytest.raises(Crash):
        await deployment.run("boss", "go")
    await deployment.restart()
    deployment.catalogue = agents(boss={"delegates": left}, **staff)
    await deployment.evict()
    [run] = deployment.local("boss:acme:main", "SELECT run_id FROM turn_state")
    if caller == "cancelled":
        await deployment.ask("boss", "cancel", run_id=run["run_id"], by="ann", reason=None)
    await deployment.recover()
    assert (await run_of(deployment, "boss"))["status"] == caller
    assert (await run_of(deployment, "clerk"))["status"] == "cancelled"


async def test_a_delegate_that_is_given_up_wakes_its_caller(deploy: Deploy, agents: Agents) -> None:
    boss = SteppedChat(calls(to("clerk")))
    chats = {"boss": boss, "clerk": SteppedChat(PAY)}
    deployment = deploy(agents(boss={"delegates": ["clerk"]}, clerk=CLERK), chat=chats, upstreams=upstreams())
    await deployment.run("boss", "go")
    await deployment.settled()
    del deployment.upstreams["look"]
    await approve(deployment, "1.0")
    assert [answer["error"]["code"] for answer in read_by(boss)] == ["no_such_tool"]
