"""What an instance answers to the calls that start, repeat and cancel runs and learn from them, each alone."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from retain.agents.catalogue import AgentCatalogue
from retain.errors import Conflict, Unavailable
from tests.agents.stepped_chat import SteppedChat, calls, says
from tests.ports import raises
from tests.support.faults import Crash, Fault
from tests.support.instances import Deployment, Upstream

Agents = Callable[..., AgentCatalogue]
Deploy = Callable[..., Deployment]
DESK = "sdr:acme:main"
ANN = {"id": "ann", "name": "Ann"}
LEARNS: dict[str, Any] = {
    "memory_config": {"long_term_enabled": True, "recall": "context", "profile": {}, "learn": "rules"}
}


class Slow(Upstream):
    """Answers when `ends` is set."""

    def __init__(self, name: str, *, idempotent: bool) -> None:
        super().__init__(name, idempotent)
        self.ends = asyncio.Event()

    async def call(self, arguments: Mapping[str, Any], idempotency_key: str) -> tuple[int, bytes]:
        answer = await super().call(arguments, idempotency_key)
        await self.ends.wait()
        return answer


async def test_starting_answers_at_once_and_with_an_equal_key_answers_of_the_same_run(deploy: Deploy) -> None:
    chat = SteppedChat(says("done"), hold=True)
    deployment = deploy(chat=chat)
    request: dict[str, Any] = {"input": "hello", "metadata": {}, "idempotency_key": "k"}
    first = await deployment.ask("sdr", "start", **request)
    assert first == {"run_id": first["run_id"], "instance_id": "main", "status": "running"}
    assert await deployment.ask("sdr", "start", **request) == first
    with raises(Conflict, code="instance_busy"):
        await deployment.ask("sdr", "start", **(request | {"idempotency_key": "another"}))
    chat.let_go()
    await deployment.settled()
    assert (await deployment.ask("sdr", "start", **request))["output"] == "done"
    assert len(chat.requests) == 1


async def test_a_repeated_call_waits_for_the_run_under_way_and_reports_its_result(deploy: Deploy) -> None:
    chat = SteppedChat(says("done"), hold=True)
    deployment = deploy(chat=chat)
    first = asyncio.create_task(deployment.run("sdr", "hello", key="k"))
    await chat.asked.wait()
    again = asyncio.create_task(deployment.run("sdr", "hello", key="k"))
    for _ in range(10):
        await asyncio.sleep(0)
    assert not again.done()
    chat.let_go()
    assert (await again)["output"] == "done"
    assert await first == await again
    await deployment.settled()


async def test_a_call_waits_a_while_for_the_run_under_way_and_then_reports_that_it_is_running(deploy: Deploy) -> None:
    chat = SteppedChat(says("done"), hold=True)
    deployment = deploy(chat=chat)
    first = asyncio.create_task(deployment.run("sdr", "hello", key="k"))
    await chat.asked.wait()
    again = await deployment.run("sdr", "hello", key="k")
    assert (again["status"], deployment.naps) == ("running", [0.25] * 100)
    chat.let_go()
    assert (await first)["status"] == "completed"
    await deployment.settled()


async def test_a_cancellation_waits_five_seconds_for_a_run_that_does_not_stop(deploy: Deploy, agents: Agents) -> None:
    pay = Slow("pay", idempotent=False)
    deployment = deploy(agents(clerk={"tools": ["pay"]}), upstreams=[pay], chat=SteppedChat(calls(("pay", {}))))
    first = asyncio.create_task(deployment.run("clerk", "hello"))
    while not pay.asked:
        await asyncio.sleep(0)
    [run] = deployment.local("clerk:acme:main", "SELECT run_id FROM turn_state")
    request = {"run_id": run["run_id"], "by": "ann", "reason": None}
    standing = await deployment.ask("clerk", "cancel", **request)
    assert (standing["status"], standing["cancelling"], deployment.naps) == ("running", True, [0.25] * 20)
    pay.ends.set()
    ended = await first
    assert ended["status"] == "cancelled"
    await deployment.settled()
    deployment.naps.clear()
    assert await deployment.ask("clerk", "cancel", **request) == ended
    assert deployment.naps == [], "it has ended"


async def test_a_repeated_call_resumes_the_run_that_a_crash_interrupted_and_returns_its_result(deploy: Deploy) -> None:
    deployment = deploy(chat=SteppedChat(says("done")))
    deployment.faults.plan(Fault(Crash(), point="chat.complete"))
    with pytest.raises(Crash):
        await deployment.run("sdr", "hello", key="k")
    await deployment.restart()
    [run] = deployment.local(DESK, "SELECT run_id FROM turn_state")
    result = await deployment.run("sdr", "hello", key="k")
    assert (result["run_id"], result["status"], result["output"]) == (run["run_id"], "completed", "done")
    assert len(deployment.local(DESK, "SELECT 1 FROM turn_state")) == 1
    await deployment.settled()


async def test_a_run_resumes_what_a_crash_interrupted_before_it_begins(deploy: Deploy) -> None:
    deployment = deploy(chat=SteppedChat(says("first"), says("second"), says("third"), says("fourth")))
    for method in ("run", "start"):
        deployment.faults.plan(Fault(Crash(), point="chat.complete"))
        with pytest.raises(Crash):
            await deployment.run("sdr", "hello")
        await deployment.restart()
        await deployment.ask("sdr", method, input="hello", metadata={})
        await deployment.settled()
        deployment.clock.advance(1000)
    rows = await deployment.rows("SELECT output FROM agent_runs ORDER BY run_id")
    assert [row["output"] for row in rows] == ["first", "second", "third", "fourth"]


async def test_an_outcome_is_answered_with_what_is_believed_of_the_workflow_and_written_at_once(deploy: Deploy) -> None:
    deployment = deploy()
    run = await deployment.run("sdr", "Draft an e-mail to contact:7")
    await deployment.settled()
    fields = {"run_id": run["run_id"], **run["procedure"]}
    assert await deployment.ask("sdr", "record_outcome", score=0.75, **fields) == {
        "posterior": {"alpha": 1.75, "beta": 1.25}
    }
    assert await deployment.next_alarm_ms() == deployment.clock() + 1000, "until it is written"
    await deployment.settled()
    assert [row["score"] for row in await deployment.rows("SELECT score FROM procedure_outcomes")] == [0.75]
    assert deployment.local(DESK, "SELECT 1 FROM outbox") == []


async def test_an_agent_begins_with_what_the_other_agents_of_its_house_learned(deploy: Deploy, agents: Agents) -> None:
    ways: dict[str, Any] = {"procedures": {"mail": {"short": "Be short."}}}
    of_shop = {"house": "shop", **ways}
    deployment = deploy(agents(clerk=of_shop, seller=of_shop, guard=ways), chat=SteppedChat())
    run = await deployment.run("clerk", "hello")
    fields = {"run_id": run["run_id"], **run["procedure"]}
    await deployment.ask("clerk", "record_outcome", score=1, **fields)
    await deployment.settled()
    began = {}
    for agent in ("clerk", "seller", "guard"):
        await deployment.run(agent, "hello", instance="second")
        await deployment.settled()
        described = await deployment.describe(agent, instance="second")
        began[agent] = described["procedures"]["mail"]["short"]
    assert began["clerk"] == began["seller"] != {"alpha": 1.0, "beta": 1.0}
    assert began["guard"] == {"alpha": 1.0, "beta": 1.0}


async def test_what_a_run_taught_is_in_d1_without_an_alarm_and_known_to_the_next_run(
    deploy: Deploy, agents: Agents
) -> None:
    chat = SteppedChat()
    deployment = deploy(agents(clerk=LEARNS), chat=chat)
    await deployment.run("clerk", "I live in Lyon.", user=ANN)
    await deployment.settled()
    assert json.loads((await learnings(deployment))[0])["status"] == "learned"
    assert deployment.local("clerk:acme:main", "SELECT 1 FROM outbox") == []
    await deployment.run("clerk", "I work at Acme.", user=ANN)
    await deployment.run("clerk", "Where do I work?", user=ANN)
    assert "works at Acme" in "\n".join(message.content for message in chat.requests[-1].messages)
    await deployment.settled()


async def test_what_could_not_be_learned_is_learned_when_the_alarm_fires(deploy: Deploy, agents: Agents) -> None:
    learns = {"memory_config": {**LEARNS["memory_config"], "learn": "model"}}
    chat = SteppedChat(says("done"), Unavailable("down"), says('{"facts": []}'))
    deployment = deploy(agents(clerk=learns), chat=chat)
    await deployment.run("clerk", "I live in Lyon.", user=ANN)
    await deployment.settled()
    assert json.loads((await learnings(deployment))[0])["status"] == "pending"
    at_ms = await deployment.next_alarm_ms()
    assert at_ms == deployment.clock() + 2000
    deployment.clock.set(at_ms)
    assert await deployment.fire_alarms() == 1
    assert json.loads((await learnings(deployment))[0])["status"] == "learned"


async def learnings(deployment: Deployment) -> list[str]:
    """Return the reports on learning that D1 has, in the order of the runs."""
    return [row["learning"] for row in await deployment.rows("SELECT learning FROM agent_runs ORDER BY run_id")]
