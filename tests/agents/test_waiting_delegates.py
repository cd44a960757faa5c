"""A delegate that waits for a person lets its caller wait: a crash of everything at any point loses neither."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress
from typing import Any

import pytest

from retain.agents.calls.client import InstanceClient
from retain.agents.conversations.deletion import delete_conversation
from retain.agents.definitions import AgentDefinition
from retain.agents.identity import instance_of
from retain.agents.tools.delegation import ERASURE
from retain.errors import Conflict, RetainError
from retain.models.chat import ChatReply, ChatRequest, OnText
from tests.agents.conftest import agent
from tests.agents.remembered import check_d1_agrees, remembered
from tests.agents.stepped_chat import SteppedChat, calls, says
from tests.agents.test_crash_points import different
from tests.ports import raises
from tests.support.faults import Crash, Fault
from tests.support.instances import Deployment, LocalInstances, Upstream, catalogue

WANTED: dict[str, tuple[str, dict[str, Any]]] = {
    "boss": ("delegate", {"agent": "clerk", "input": "pay it"}),
    "clerk": ("pay", {"order": "A"}),
}


class SteadyChat(SteppedChat):
    """Answers by the calls made so far, so that a run that is resumed in another life continues as it began."""

    def __init__(self, agent_type: str) -> None:
        super().__init__()
        self._agent_type = agent_type

    async def complete(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
        """Call, then say that it is done."""
        results = [message for message in request.messages if message.role == "tool"]
        return says(f"{self._agent_type} done") if results else calls(WANTED[self._agent_type])


def chat(definition: AgentDefinition) -> SteadyChat:
    return SteadyChat(definition.type)


@asynccontextmanager
async def office(fault: Fault | None = None) -> AsyncIterator[Deployment]:
    agents = catalogue(agent("boss", delegates=["clerk"]), agent("clerk", tools=["pay"], approval=["pay"]))
    with closing(Deployment(agents, upstreams=[Upstream("pay", idempotent=True)], chat=chat)) as deployment:
        if fault is not None:
            deployment.faults.plan(fault)
        yield deployment


async def approve(deployment: Deployment) -> None:
    [name] = [name for name in deployment.objects() if name.startswith("clerk:")]
    [row] = deployment.local(name, "SELECT run_id FROM turn_state")
    fields: dict[str, Any] = {"run_id": row["run_id"], "call": "1.0", "approved": True, "by": "ann", "reason": None}
    await deployment.ask("clerk", "answer", instance=name.split(":")[2], **fields)


async def play(deployment: Deployment) -> tuple[dict[str, Any], int]:
    """Run, answer and ask for the result, each as often as needed.

    Return the result, and how many points were reached up to the second answer: a fault at any of them happens.
    """
    for _ in range(2):
        with suppress(Crash, RetainError):
            await deployment.run("boss", "hello", key="k")
        await a_minute(deployment)
    for _ in range(2):
        with suppress(Crash):
            await approve(deployment)
        reached = len(deployment.faults.trace)
        await a_minute(deployment)
    assert not deployment.faults.pending
    await deployment.recover()
    return await deployment.run("boss", "hello", key="k"), reached


async def a_minute(deployment: Deployment) -> None:
    """Let a minute pass, with its alarms. What dies starts again."""
    with suppress(Crash):
        await deployment.settled()
    await deployment.restart(planned=True)
    deployment.clock.advance(60_000)
    with suppress(Crash):
        await deployment.fire_alarms()
    with suppress(Crash):
        await deployment.restart(planned=True)


@pytest.mark.parametrize("left", [[], ["other"]], ids=["none", "another"])
@pytest.mark.parametrize("caller", ["cancelled", "resumed"])
async def test_a_delegate_that_its_caller_s_agent_may_call_no_longer_ends_with_the_call(
    caller: str, left: list[str]
) -> None:
    async with office() as deployment:
        waiting = await deployment.run("boss", "hello", key="k")
        assert waiting["status"] == "waiting"
        await deployment.evict()
        clerk = agent("clerk", tools=["pay"], approval=["pay"])
        deployment.catalogue = catalogue(agent("boss", delegates=left), agent("other"), clerk)
        if caller == "cancelled":
            await deployment.ask("boss", "cancel", run_id=waiting["run_id"], by="ann", reason=None)
        else:
            deployment.clock.advance(6 * 60_000)
            await deployment.fire_alarms()
        await deployment.settled()
        rows = await deployment.rows("SELECT agent_type, status FROM agent_runs ORDER BY agent_type")
        ended = "cancelled" if caller == "cancelled" else "completed"
        assert [tuple(row.values()) for row in rows] == [("boss", ended), ("clerk", "cancelled")]
        with raises(Conflict):
            await approve(deployment)
        assert deployment.upstreams["pay"].asked == []


async def test_a_crash_at_any_point_of_waiting_for_a_delegate_ends_in_the_same_memory() -> None:
    async with office() as deployment:
        undisturbed, reached = await play(deployment)
        points = different(deployment.faults.trace[:reached])
        memory = await remembered(deployment)
        assert undisturbed["output"] == "boss done"
    for number, point in points:
        async with office(Fault(Crash(), number)) as deployment:
            result, _ = await play(deployment)
            assert (result["status"], result["output"]) == ("completed", "boss done"), point
            assert result["usage"]["delegations"] == 1, point
            assert len({key for _, key in deployment.upstreams["pay"].asked}) == 1, point
            assert await remembered(deployment) == memory, point
            await check_d1_agrees(deployment)


@pytest.mark.parametrize("gone", [False, True], ids=["it waits", "it is gone"])
async def test_the_delegate_of_a_run_is_cancelled_with_the_deleted_conversation(gone: bool) -> None:
    async with office() as deployment:
        waiting = await deployment.run("boss", "hello")
        await deployment.settled()
        place = f"{waiting['run_id']}.clerk"
        [row] = await deployment.rows("SELECT run_id FROM agent_runs WHERE agent_type = 'clerk'")
        deleted = [("clerk", place), ("boss", "main")] if gone else [("boss", "main")]
        for agent_type, instance_id in deleted:
            client = InstanceClient(LocalInstances(deployment), instance_of("acme", agent_type, instance_id))
            await delete_conversation(deployment.sql, client)
            await deployment.settled()
        if gone:
            assert deployment.local(f"clerk:acme:{place}", "SELECT 1 FROM identity") == [], "it is not called"
        else:
            shown = await deployment.ask("clerk", "show", instance=place, run_id=row["run_id"])
            assert (shown["status"], shown["error"]["by"]) == ("cancelled", ERASURE)
            with raises(Conflict, code="run_cancelled"):
                await approve(deployment)
        await deployment.settled()
        assert deployment.upstreams["pay"].asked == []
        assert deployment.local("boss:acme:main", "SELECT 1 FROM turn_state") == []
