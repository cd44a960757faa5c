"""What a run may spend together with its delegates: tokens, delegations, depth."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from retain.agents.catalogue import AgentCatalogue
from retain.models.chat import ChatReply, Usage
from tests.agents.stepped_chat import SteppedChat, calls, says
from tests.support.instances import Deployment

Deploy = Callable[..., Deployment]
Agents = Callable[..., AgentCatalogue]


def to(agent_type: str) -> tuple[str, dict[str, Any]]:
    return "delegate", {"agent": agent_type, "input": "do it"}


def read_by(chat: SteppedChat) -> list[dict[str, Any]]:
    messages = chat.requests[-1].messages
    return [json.loads(message.content) for message in messages if message.role == "tool"]


async def test_what_delegates_spend_counts_for_the_run_that_called_them(deploy: Deploy, agents: Agents) -> None:
    models = {
        "boss": SteppedChat(calls(to("middle")), says("done")),
        "middle": SteppedChat(calls(to("clerk")), says("done")),
        "clerk": SteppedChat(says("done")),
    }
    definitions = {"boss": {"delegates": ["middle"]}, "middle": {"delegates": ["clerk"]}, "clerk": {}}
    deployment = deploy(agents(**definitions), chat=models)
    usage = (await deployment.run("boss", "go"))["usage"]
    spent = {"input_tokens": 6, "cached_input_tokens": 0, "output_tokens": 4}
    assert usage == {**spent, "delegated_tokens": 15, "delegations": 2}
    await deployment.settled()


async def test_what_a_server_did_not_count_is_estimated(deploy: Deploy, agents: Agents) -> None:
    for counted in (Usage(), Usage(3, 0), Usage(0, 2)):
        chat = SteppedChat(ChatReply("x" * 400, (), counted))
        usage = (await deploy(agents(clerk={}), chat=chat).run("clerk", "y" * 800))["usage"]
        read, written = usage["input_tokens"], usage["output_tokens"]
        assert (read == 3) if counted.input_tokens else (read >= 200)
        assert written == (counted.output_tokens or 100)


async def test_calls_that_a_server_did_not_count_are_estimated_and_bound_a_run(deploy: Deploy, agents: Agents) -> None:
    words = {"key": "a", "value": "x" * 4_000}
    chat = SteppedChat(*[replace(calls(("set_working_memory", words)), usage=Usage()) for _ in range(9)])
    deployment = deploy(agents(clerk={"working_memory": True, "limits": {"run_tokens": 2_000}}), chat=chat)
    result = await deployment.run("clerk", "go")
    assert (result["status"], result["error"]["code"]) == ("failed", "token_budget")
    assert 1 <= len(chat.requests) <= 2


async def test_a_run_that_spent_its_tokens_through_a_delegate_ends(deploy: Deploy, agents: Agents) -> None:
    boss, clerk = SteppedChat(calls(to("clerk")), says("done")), SteppedChat(says("done"))
    definitions = {"boss": {"delegates": ["clerk"], "limits": {"run_tokens": 10}}, "clerk": {}}
    deployment = deploy(agents(**definitions), chat={"boss": boss, "clerk": clerk})
    result = await deployment.run("boss", "go")
    assert (result["status"], result["error"]["code"]) == ("failed", "token_budget")
    assert (len(boss.requests), len(clerk.requests)) == (1, 1)
    await deployment.settled()


async def test_a_delegate_may_spend_no_more_than_its_caller_has_left(deploy: Deploy, agents: Agents) -> None:
    boss = SteppedChat(calls(to("clerk")), says("done"))
    clerk = SteppedChat(*[calls(("get_working_memory", {}))] * 9)
    definitions = {
        "boss": {"delegates": ["clerk"], "limits": {"run_tokens": 18}},
        "clerk": {"working_memory": True, "limits": {"run_tokens": 1000}},
    }
    deployment = deploy(agents(**definitions), chat={"boss": boss, "clerk": clerk})
    await deployment.run("boss", "go")
    assert len(clerk.requests) == 3, "five tokens per turn, of the thirteen that are left"
    [row] = await deployment.rows("SELECT error FROM agent_runs WHERE agent_type = 'clerk'")
    assert json.loads(row["error"])["code"] == "token_budget"
    await deployment.settled()


async def test_delegations_are_counted_over_the_whole_tree(deploy: Deploy, agents: Agents) -> None:
    boss = SteppedChat(calls(to("middle"), to("middle")), says("done"))
    middle = SteppedChat(calls(to("clerk"), to("clerk")), says("done"), says("done"))
    clerk = SteppedChat()
    definitions = {
        "boss": {"delegates": ["middle"], "limits": {"max_delegations": 2}},
        "middle": {"delegates": ["clerk"]},
        "clerk": {},
    }
    deployment = deploy(agents(**definitions), chat={"boss": boss, "middle": middle, "clerk": clerk})
    result = await deployment.run("boss", "go")
    assert result["usage"]["delegations"] == 2
    assert len(clerk.requests) == 1
    assert [answer.get("error", {}) and answer["error"]["code"] for answer in read_by(boss)] == [
        None,
        "delegation_limit",
    ]
    await deployment.settled()


async def test_a_run_that_waits_through_two_delegates_resumes_on_its_own(deploy: Deploy, agents: Agents) -> None:
    models = {
        "boss": SteppedChat(calls(to("middle")), says("boss done")),
        "middle": SteppedChat(calls(to("clerk")), says("middle done")),
        "clerk": SteppedChat(calls(("set_working_memory", {"key": "k", "value": 1})), says("clerk done")),
    }
    definitions = {
        "boss": {"delegates": ["middle"]},
        "middle": {"delegates": ["clerk"]},
        "clerk": {"working_memory": True, "approval": ["set_working_memory"]},
    }
    deployment = deploy(agents(**definitions), chat=models)
    run_id = (await deployment.run("boss", "go"))["run_id"]
    await deployment.settled()
    [clerk] = await deployment.rows("SELECT run_id, instance_id FROM agent_runs WHERE agent_type = 'clerk'")
    await deployment.evict()
    fields = {"run_id": clerk["run_id"], "call": "1.0", "approved": True, "by": "ann", "reason": None}
    await deployment.ask("clerk", "answer", instance=clerk["instance_id"], **fields)
    await deployment.settled()
    result = await deployment.ask("boss", "show", run_id=run_id)
    assert (result["status"], result["output"], result["usage"]["delegations"]) == ("completed", "boss done", 2)


async def test_a_caller_that_was_not_woken_checks_less_and_less_often(deploy: Deploy, agents: Agents) -> None:
    models = {"boss": SteppedChat(calls(to("clerk"))), "clerk": SteppedChat(calls(("get_working_memory", {})))}
    clerk = {"working_memory": True, "approval": ["get_working_memory"]}
    deployment = deploy(agents(boss={"delegates": ["clerk"]}, clerk=clerk), chat=models)
    await deployment.run("boss", "go")
    await deployment.settled()
    waits: list[int] = []
    for _ in range(9):
        at_ms = await deployment.next_alarm_ms()
        assert at_ms is not None
        waits.append(at_ms - deployment.clock())
        deployment.clock.set(at_ms)
        await deployment.fire_alarms()
    assert waits == [min(60_000 * 2**n, 3_600_000) for n in range(9)]
