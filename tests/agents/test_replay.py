"""A run of the real loop, replayed from its log: the same decisions, and the same requests to the model."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from retain.agents.calls.tokens import Estimate
from retain.agents.catalogue import AgentCatalogue
from retain.agents.runs.compaction import compacted, history
from retain.agents.runs.events import ModelAsked, RunEvent, from_json
from retain.agents.runs.replay import replay
from retain.agents.runs.run_state import (
    AskApproval,
    AskModel,
    CallTool,
    Cancel,
    Complete,
    Fail,
    Policy,
    RefuseTool,
    RunState,
    apply,
)
from tests.agents.stepped_chat import SteppedChat, calls, says
from tests.support.faults import Crash, Fault
from tests.support.instances import Deployment, Upstream

Deploy = Callable[..., Deployment]
Agents = Callable[..., AgentCatalogue]
CLERK: dict[str, Any] = {"tools": ["look", "pay"], "approval": ["pay"], "limits": {"max_turns": 3}}
POLICY = Policy(3, frozenset({"look"}), frozenset({"pay"}))
LOOK, PAY = ("look", {"order": "A"}), ("pay", {"order": "A"})


async def logged(deployment: Deployment) -> list[RunEvent]:
    """Return the timeline that D1 has of the only run."""
    rows = await deployment.rows("SELECT kind, data FROM run_events ORDER BY seq")
    return [from_json(row["kind"], json.loads(row["data"])) for row in rows]


def desk(deploy: Deploy, agents: Agents, *replies: Any) -> tuple[Deployment, SteppedChat]:
    chat = SteppedChat(*replies)
    upstreams = [Upstream("look", idempotent=True, body="x" * 6_000), Upstream("pay", idempotent=False)]
    return deploy(agents(clerk=CLERK), upstreams=upstreams, chat=chat), chat


async def answer(deployment: Deployment, run_id: str, approved: bool) -> None:
    fields: dict[str, Any] = {"run_id": run_id, "call": "1.1", "approved": approved, "by": "ann", "reason": None}
    await deployment.ask("clerk", "answer", **fields)
    await deployment.settled()


@pytest.mark.parametrize("approved", [True, False], ids=["approved", "rejected"])
async def test_a_run_that_a_person_answered_takes_the_same_decisions(
    deploy: Deploy, agents: Agents, approved: bool
) -> None:
    deployment, _ = desk(deploy, agents, calls(LOOK, PAY), says("done"))
    await answer(deployment, (await deployment.run("clerk", "hello"))["run_id"], approved)
    again = replay(await logged(deployment), POLICY)
    paid = CallTool if approved else RefuseTool
    assert [type(step) for step in again.steps] == [AskModel, CallTool, AskApproval, paid, AskModel, Complete]
    assert again.state.closed is not None


async def test_a_run_that_reached_its_limit_or_was_cancelled_takes_the_same_decisions(
    deploy: Deploy, agents: Agents
) -> None:
    deployment, _ = desk(deploy, agents, *[calls(LOOK)] * 3)
    await deployment.run("clerk", "hello")
    await deployment.settled()
    assert [type(step) for step in replay(await logged(deployment), POLICY).steps][-1] is Fail
    other, _ = desk(deploy, agents, calls(PAY))
    run_id = (await other.run("clerk", "hello"))["run_id"]
    await other.ask("clerk", "cancel", run_id=run_id, by="ann", reason="enough")
    await other.settled()
    assert [type(step) for step in replay(await logged(other), POLICY).steps] == [AskModel, AskApproval, Cancel]


async def test_a_run_that_was_interrupted_takes_the_same_decisions(deploy: Deploy, agents: Agents) -> None:
    deployment, _ = desk(deploy, agents, calls(LOOK), says("done"))
    deployment.faults.plan(Fault(Crash(), point="tool.call done"))
    with pytest.raises(Crash):
        await deployment.run("clerk", "hello")
    await deployment.recover()
    assert [type(step) for step in replay(await logged(deployment), POLICY).steps] == [
        AskModel,
        CallTool,
        AskModel,
        Complete,
    ]


async def test_the_model_is_asked_the_same_again(deploy: Deploy, agents: Agents) -> None:
    replies = [calls(LOOK, text="One."), calls(LOOK, text="Two."), says("done")]
    chat = SteppedChat(*replies)
    limits = {"max_turns": 3, "context_tokens": 2_500}
    clerk = {**CLERK, "limits": limits, "model": {"max_output_tokens": 100}}
    upstreams = [Upstream("look", idempotent=True, body="x" * 6_000), Upstream("pay", idempotent=False)]
    deployment = deploy(agents(clerk=clerk), upstreams=upstreams, chat=chat)
    await deployment.run("clerk", "hello")
    await deployment.settled()
    state, asked = RunState(), 0
    estimate = Estimate.of(chat.name)
    for event in await logged(deployment):
        if isinstance(event, ModelAsked):
            request = chat.requests[asked]
            room = limits["context_tokens"] - estimate.specs(request.tools)
            made = compacted(chat.requests[0].messages, history(state), room, estimate)
            assert (list(made.messages), made.cut) == (list(request.messages), event.cut)
            asked += 1
        state = apply(state, event)
    assert asked == 3
    assert [event.cut for event in await logged(deployment) if isinstance(event, ModelAsked)] == [(), (), (1,)]
