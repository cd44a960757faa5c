"""Delegation: another agent's run as a tool call, in its own instance and scope."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from retain.agents.calls.run_request import RunRequest
from retain.agents.catalogue import AgentCatalogue
from retain.agents.identity import InstanceIdentity
from retain.agents.queueing.reports import WAIT_S
from retain.agents.tools.built_in import CallContext, run_tool
from retain.agents.tools.delegate import MAX_DEPTH, Delegate
from retain.agents.tools.delegation import ATTEMPTS, Delegation
from retain.errors import Unavailable, UpstreamFailed
from retain.memory.scope import Scope
from tests.agents.remembered import check_d1_agrees
from tests.agents.stepped_chat import SteppedChat, calls, says
from tests.support.faults import Crash, Fault
from tests.support.instances import Deployment, LocalInstances

Deploy = Callable[..., Deployment]
Agents = Callable[..., AgentCatalogue]
AN_HOUR_OF_NAPS = int(3600 / WAIT_S)
RUN_ID = "01HZZZZZZZZZZZZZZZZZZZZZZZ"


def delegate(agent: str = "helper", text: str = "do it", **more: Any) -> tuple[str, Mapping[str, Any]]:
    return "delegate", {"agent": agent, "input": text, **more}


def read_by(chat: SteppedChat) -> list[dict[str, Any]]:
    """Return the tool answers that the model read last."""
    messages = chat.requests[-1].messages
    return [json.loads(message.content) for message in messages if message.role == "tool"]


async def test_the_other_agent_works_in_an_instance_named_after_the_run_and_its_answer_is_read(
    deploy: Deploy, agents: Agents
) -> None:
    boss, helper = SteppedChat(calls(delegate()), says("all done")), SteppedChat(says("it is done"))
    deployment = deploy(agents(boss={"delegates": ["helper"]}, helper={}), chat={"boss": boss, "helper": helper})
    result = await deployment.run("boss", "hello", tenant="rival")
    await deployment.settled()
    [answer] = read_by(boss)
    assert (answer["status"], answer["output"]) == ("completed", "it is done")
    [child] = await deployment.rows("SELECT * FROM agent_runs WHERE agent_type = 'helper'")
    assert (child["run_id"], child["parent_run_id"]) == (answer["run_id"], result["run_id"])
    assert (child["tenant_id"], child["instance_id"]) == ("rival", f"{result['run_id']}.helper")
    assert [message.content for message in helper.requests[0].messages[1:]] == ["do it"]
    await check_d1_agrees(deployment)


async def test_two_calls_in_one_run_reach_the_same_instance(deploy: Deploy, agents: Agents) -> None:
    boss = SteppedChat(calls(delegate(text="first"), delegate(text="second")), says("done"))
    helper = SteppedChat(says("one"), says("two"))
    deployment = deploy(agents(boss={"delegates": ["helper"]}, helper={}), chat={"boss": boss, "helper": helper})
    await deployment.run("boss", "hello")
    await deployment.settled()
    assert [answer["output"] for answer in read_by(boss)] == ["one", "two"]
    assert len(await deployment.rows("SELECT DISTINCT instance_id FROM agent_runs WHERE agent_type = 'helper'")) == 1
    shown = [(message.role, message.content) for message in helper.requests[1].messages]
    assert shown[1:] == [("user", "first"), ("assistant", "one"), ("user", "second")]


async def test_a_repeated_call_gets_the_first_answer(deploy: Deploy, agents: Agents) -> None:
    deployment = deploy(agents(helper={}), chat=SteppedChat(says("one"), says("two"), says("three")))
    tool = make(deployment)
    contexts = [CallContext(RUN_ID, 1, 0), CallContext(RUN_ID, 1, 0), CallContext(RUN_ID, 1, 1)]
    answers = [json.loads((await tool.call(delegate()[1], context)).content)["output"] for context in contexts]
    assert answers == ["one", "one", "two"]
    await deployment.settled()


def make(deployment: Deployment, depth: int = 0) -> Delegate:
    caller = InstanceIdentity(Scope("acme", "boss"), "main")
    delegation = Delegation(LocalInstances(deployment), caller, lambda _: ("helper",))
    return Delegate(delegation, {"helper": "Helps."}, RunRequest("text", depth=depth))


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        pytest.param({"agent": "sdr", "input": "x"}, "delegate_not_allowed", id="an agent that exists"),
        pytest.param({"agent": "nobody", "input": "x"}, "delegate_not_allowed", id="an agent that does not exist"),
        pytest.param({"agent": "helper:rival", "input": "x"}, "delegate_not_allowed", id="another tenant's"),
        pytest.param({"agent": "helper"}, "invalid_arguments", id="no input"),
        pytest.param({"agent": "helper", "input": ""}, "invalid_arguments", id="empty input"),
        pytest.param({"agent": "helper", "input": {"a": 1}}, "invalid_arguments", id="input that is not a text"),
        pytest.param({"input": "x"}, "invalid_arguments", id="no agent"),
        *(
            pytest.param({"agent": "helper", "input": "x", name: "rival"}, "invalid_arguments", id=name)
            for name in ("tenant_id", "tenant", "instance_id", "depth", "parent_run_id", "idempotency_key", "scope_id")
        ),
    ],
)
async def test_what_may_not_be_delegated_is_refused_as_data(
    deploy: Deploy, agents: Agents, arguments: dict[str, Any], code: str
) -> None:
    deployment = deploy(agents(helper={}), chat=SteppedChat())
    event = await run_tool({"delegate": make(deployment)}, "delegate", arguments, CallContext(RUN_ID, 1, 0))
    assert (event.failed, json.loads(event.content)["error"]["code"]) == (True, code)
    assert deployment.storages == {}


async def test_runs_are_nested_up_to_the_limit_and_no_deeper(deploy: Deploy, agents: Agents) -> None:
    depths = range(MAX_DEPTH + 2)
    models = {f"level{n}": SteppedChat(calls(delegate(f"level{n + 1}")), says(f"level {n} done")) for n in depths}
    models[f"level{MAX_DEPTH + 2}"] = SteppedChat()
    definitions = {f"level{n}": {"delegates": [f"level{n + 1}"]} for n in depths} | {f"level{MAX_DEPTH + 2}": {}}
    deployment = deploy(agents(**definitions), chat=models)
    assert (await deployment.run("level0", "go"))["output"] == "level 0 done"
    await deployment.settled()
    ran = await deployment.rows("SELECT agent_type FROM agent_runs ORDER BY agent_type")
    assert [row["agent_type"] for row in ran] == [f"level{n}" for n in range(MAX_DEPTH + 1)]
    [refusal] = read_by(models[f"level{MAX_DEPTH}"])
    assert refusal["error"]["code"] == "delegation_depth"


async def test_runs_of_agents_that_delegate_to_each_other_end(deploy: Deploy, agents: Agents) -> None:
    ping = SteppedChat(*[calls(delegate("pong"))] * 2, says("ping"), says("ping"))
    pong = SteppedChat(*[calls(delegate("ping"))] * 2, says("pong"), says("pong"))
    definitions = {"ping": {"delegates": ["pong"]}, "pong": {"delegates": ["ping"]}}
    deployment = deploy(agents(**definitions), chat={"ping": ping, "pong": pong})
    assert (await deployment.run("ping", "go"))["status"] == "completed"
    await deployment.settled()
    assert len(await deployment.rows("SELECT 1 FROM agent_runs")) == MAX_DEPTH + 1


async def test_a_failed_run_of_the_other_agent_is_read_as_such(deploy: Deploy, agents: Agents) -> None:
    boss, helper = SteppedChat(calls(delegate())), SteppedChat(UpstreamFailed("gone", code="model_refused"))
    deployment = deploy(agents(boss={"delegates": ["helper"]}, helper={}), chat={"boss": boss, "helper": helper})
    assert (await deployment.run("boss", "hello"))["output"] == "done"
    [answer] = read_by(boss)
    assert (answer["status"], answer["output"]) == ("failed", None)
    assert answer["error"] == {"code": "model_refused", "message": "gone"}


@pytest.mark.parametrize("failures", range(ATTEMPTS + 1))
async def test_an_instance_that_cannot_be_reached_is_called_again_a_few_times(
    deploy: Deploy, agents: Agents, failures: int
) -> None:
    boss, helper = SteppedChat(calls(delegate())), SteppedChat(says("helped"))
    deployment = deploy(agents(boss={"delegates": ["helper"]}, helper={}), chat={"boss": boss, "helper": helper})
    for _ in range(failures):
        deployment.faults.plan(Fault(Unavailable("gone", code="agent_instance_unavailable"), point="instances.call"))
    assert (await deployment.run("boss", "hello"))["output"] == "done"
    [answer] = read_by(boss)
    if failures < ATTEMPTS:
        assert answer["output"] == "helped"
    else:
        assert answer["error"]["code"] == "agent_instance_unavailable"


async def test_the_other_agent_does_not_see_what_this_one_stored(deploy: Deploy, agents: Agents) -> None:
    remembering = {"memory_config": {"long_term_enabled": True}}
    boss = SteppedChat(
        calls(("store_memory", {"content": "The safe opens with 1234."}), delegate()),
        calls(("recall_memory", {"query": "safe opens"})),
        says("done"),
    )
    helper = SteppedChat(calls(("recall_memory", {"query": "safe opens"})), says("nothing"))
    deployment = deploy(
        agents(boss={"delegates": ["helper"], **remembering}, helper=remembering), chat={"boss": boss, "helper": helper}
    )
    await deployment.run("boss", "hello")
    assert read_by(helper) == [{"memories": []}]
    assert [memory["content"] for memory in read_by(boss)[-1]["memories"]] == ["The safe opens with 1234."]


async def test_a_resumed_run_waits_for_a_delegate_that_is_still_running_however_long_it_takes(
    deploy: Deploy, agents: Agents
) -> None:
    boss, helper = SteppedChat(calls(delegate()), says("all done")), SteppedChat(says("helped"), hold=True)
    deployment = deploy(agents(boss={"delegates": ["helper"]}, helper={}), chat={"boss": boss, "helper": helper})
    run = asyncio.create_task(deployment.run("boss", "hello", key="k"))
    await helper.asked.wait()
    deployment.faults.kill("boss:acme:main")
    again = asyncio.create_task(deployment.run("boss", "hello", key="k"))
    for _ in range(AN_HOUR_OF_NAPS):
        await asyncio.sleep(0)
    helper.let_go()
    with pytest.raises(Crash):
        await run
    assert (await again)["output"] == "all done"
    await deployment.recover()
    assert len(helper.requests) == 1
    assert [answer["output"] for answer in read_by(boss)] == ["helped"]
