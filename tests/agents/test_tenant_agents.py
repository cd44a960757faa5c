"""Agents that a tenant defines: a run has the version with which it began, however long it waits."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from retain.admin.definitions.checking import TenantModels
from retain.admin.definitions.defining import DefinedAgents
from retain.agents.versions.tenant_agents import TenantAgents
from retain.errors import NotFound, RetainError
from retain.retention import DAY_MS
from tests.agents.stepped_chat import SteppedChat, calls, says
from tests.support.held import Held
from tests.support.instances import Deployment, Upstream

Deploy = Callable[..., Deployment]


def defined_in(deployment: Deployment, agents: TenantAgents | None = None) -> DefinedAgents:
    """Return what defines agents, in an isolate of its own unless `agents` are those of the deployment's."""
    known = agents or TenantAgents(deployment.catalogue, deployment.sql, deployment.clock)
    return DefinedAgents(known, deployment.sql, deployment.clock, lambda: TenantModels("scripted", "", (), ("*",)))


def definition(instructions: str, **more: Any) -> dict[str, Any]:
    return {"description": "Helps.", "instructions": instructions, "model": {"script": "support"}, **more}


async def define(deployment: Deployment, instructions: str, name: str = "helper", **more: Any) -> int:
    content = definition(instructions, **more)
    return (await defined_in(deployment).define("acme", name, content, by="person:ann")).version.version


def instructions_of(chat: SteppedChat) -> list[str]:
    """Return the first line of the instructions that the model was given, call by call."""
    return [request.messages[0].content.partition("\n")[0] for request in chat.requests]


async def versions_of(deployment: Deployment) -> list[int | None]:
    await deployment.settled()
    rows = (await deployment.sql.run("SELECT agent_version FROM agent_runs ORDER BY run_id")).rows
    return [row["agent_version"] for row in rows]


async def test_an_agent_that_a_tenant_defines_runs_at_once_and_its_change_in_the_next_run(deploy: Deploy) -> None:
    chat = SteppedChat()
    deployment = deploy(chat=chat)
    with pytest.raises(NotFound) as refused:
        await deployment.run("helper", "hello")
    assert refused.value.code == "unknown_agent"
    await define(deployment, "Be brief.")
    assert (await deployment.run("helper", "hello"))["status"] == "completed"
    await define(deployment, "Be kind.")
    for instance in ("main", "main", "other"):
        await deployment.run("helper", "hello", instance=instance)
    assert instructions_of(chat) == ["Be brief.", *["Be kind."] * 3]
    assert await versions_of(deployment) == [1, 2, 2, 2]


async def test_a_run_that_waits_keeps_the_version_it_began_with(deploy: Deploy) -> None:
    chat = SteppedChat(calls(("ship", {"order": "AB-1"})), says("shipped"))
    deployment = deploy(chat=chat, upstreams=[Upstream("ship", False)])
    await define(deployment, "Ask first.", tools=["ship"], approval=["ship"])
    waiting = await deployment.run("helper", "Ship it.")
    assert waiting["status"] == "waiting"
    await define(deployment, "Never ship.")
    await deployment.run("helper", "What do you do?", instance="other")
    answered = await deployment.ask("helper", "answer", run_id=waiting["run_id"], call="1.0", approved=True, by="ann")
    assert answered["run_id"] == waiting["run_id"]
    await deployment.settled()
    shown = await deployment.ask("helper", "show", run_id=waiting["run_id"])
    assert (shown["status"], shown["output"]) == ("completed", "done")
    assert [arguments for arguments, _ in deployment.upstreams["ship"].asked] == [{"order": "AB-1"}]
    await deployment.run("helper", "And now?")
    assert instructions_of(chat) == ["Ask first.", "Never ship.", "Ask first.", "Never ship."]
    assert await versions_of(deployment) == [1, 2, 2]


@pytest.mark.parametrize("lost", [False, True], ids=["put to sleep", "storage lost"])
async def test_a_waiting_run_that_is_rebuilt_keeps_its_version(deploy: Deploy, lost: bool) -> None:
    chat = SteppedChat(calls(("ship", {"order": "AB-1"})))
    deployment = deploy(chat=chat, upstreams=[Upstream("ship", False)])
    await define(deployment, "Ask first.", tools=["ship"], approval=["ship"])
    waiting = await deployment.run("helper", "Ship it.")
    await deployment.settled()
    await define(deployment, "Never ship.")
    await defined_in(deployment).delete("acme", "helper", by="person:ann")
    await (deployment.lose("helper:acme:main") if lost else deployment.evict())
    await deployment.ask("helper", "answer", run_id=waiting["run_id"], call="1.0", approved=True, by="ann")
    await deployment.settled()
    assert (await deployment.ask("helper", "show", run_id=waiting["run_id"]))["status"] == "completed"
    assert instructions_of(chat) == ["Ask first.", "Ask first."]


async def test_a_run_keeps_its_version_when_another_request_learns_of_a_newer_one_while_it_begins(
    deploy: Deploy, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployment = deploy(
        chat=SteppedChat(calls(("ship", {"order": "AB-1"})), says("shipped")), upstreams=[Upstream("ship", False)]
    )
    queue: dict[str, Any] = {"limits": {"busy": "queue"}}
    await define(deployment, "Ask first.", tools=["ship"], approval=["ship"], **queue)
    held = Held(monkeypatch, deployment.sql, "batch", lambda some: "conversation_messages" in str(some), after=True)
    first = asyncio.create_task(deployment.run("helper", "Ship it."))
    await held.begun.wait()
    await define(deployment, "Never ship.", **queue)
    assert (await deployment.run("helper", "hello"))["status"] == "queued"
    held.go.set()
    waiting = await first
    await deployment.evict()
    await deployment.ask("helper", "answer", run_id=waiting["run_id"], call="1.0", approved=True, by="ann")
    await deployment.settled()
    assert (await deployment.ask("helper", "show", run_id=waiting["run_id"]))["status"] == "completed"
    assert await versions_of(deployment) == [1, 2]


async def test_a_run_that_is_rebuilt_keeps_a_version_that_its_object_has_had_and_dropped(deploy: Deploy) -> None:
    deployment = deploy(chat=SteppedChat(calls(("ship", {"order": "AB-1"}))), upstreams=[Upstream("ship", False)])
    asks: dict[str, Any] = {"tools": ["ship"], "approval": ["ship"], "limits": {"approval_hours": 720}}
    await define(deployment, "Ask first.", **asks)
    waiting = await deployment.run("helper", "Ship it.")
    await deployment.settled()
    await deployment.lose("helper:acme:main")
    for instructions in ("Never ship.", "Never do.", ""):  # each run has the version before
        await deployment.run("helper", "hello")
        await deployment.settled()
        deployment.clock.advance(3 * DAY_MS)
        await deployment.fire_alarms()  # forgets the run
        if instructions:
            await define(deployment, instructions)
    kept = deployment.local("helper:acme:main", "SELECT version FROM agent_versions")
    assert [row["version"] for row in kept] == [3]
    assert (await deployment.ask("helper", "show", run_id=waiting["run_id"]))["status"] == "waiting"
    await deployment.evict()
    await deployment.ask("helper", "answer", run_id=waiting["run_id"], call="1.0", approved=True, by="ann")
    await deployment.settled()
    assert (await deployment.ask("helper", "show", run_id=waiting["run_id"]))["status"] == "completed"


async def test_a_deleted_agent_begins_no_run_whatever_its_instances_know(deploy: Deploy) -> None:
    deployment = deploy(chat=SteppedChat())
    await define(deployment, "Be brief.")
    ended = await deployment.run("helper", "hello", key="k")
    await defined_in(deployment).delete("acme", "helper", by="person:ann")
    for instance in ("main", "other", "main"):
        with pytest.raises(NotFound) as refused:
            await deployment.run("helper", "hello", instance=instance)
        assert refused.value.code == "agent_deleted"
    assert await deployment.run("helper", "hello", key="k") == ended
    assert (await deployment.ask("helper", "show", run_id=ended["run_id"]))["status"] == "completed"
    assert await define(deployment, "Be kind.") == 3
    assert (await deployment.run("helper", "hello"))["status"] == "completed"


async def test_no_other_tenant_has_the_agent(deploy: Deploy) -> None:
    deployment = deploy(chat=SteppedChat())
    await define(deployment, "Be brief.")
    await deployment.run("helper", "hello")
    with pytest.raises(NotFound) as refused:
        await deployment.run("helper", "hello", tenant="other")
    assert refused.value.code == "unknown_agent"


async def test_a_queued_run_begins_with_the_version_that_is_current_then(deploy: Deploy) -> None:
    chat = SteppedChat(hold=True)
    deployment = deploy(chat=chat)
    await define(deployment, "Be brief.", limits={"busy": "queue"})
    first = await deployment.ask("helper", "start", input="one", metadata={})
    await chat.asked.wait()
    queued = await deployment.ask("helper", "start", input="two", metadata={})
    assert queued["status"] == "queued"
    await define(deployment, "Be kind.", limits={"busy": "queue"})
    chat.let_go()
    await deployment.settled()
    assert instructions_of(chat) == ["Be brief.", "Be kind."]
    for run in (first, queued):
        assert (await deployment.ask("helper", "show", run_id=run["run_id"]))["status"] == "completed"
    assert await versions_of(deployment) == [1, 2]


async def test_a_fork_has_the_version_that_is_current(deploy: Deploy) -> None:
    chat = SteppedChat(NotFound("gone", code="not_found"))
    deployment = deploy(chat=chat)
    await define(deployment, "Be brief.")
    failed = await deployment.run("helper", "hello")
    assert failed["status"] == "failed"
    await define(deployment, "Be kind.")
    again = await deployment.ask("helper", "fork", run_id=failed["run_id"], by="person:ann")
    await deployment.settled()
    assert (await deployment.ask("helper", "show", run_id=again["run_id"]))["status"] == "completed"
    assert await versions_of(deployment) == [1, 2]


async def test_an_agent_of_the_repository_costs_nothing_and_is_not_shadowed(deploy: Deploy) -> None:
    chat = SteppedChat()
    deployment = deploy(chat=chat)
    with pytest.raises(RetainError) as refused:
        await define(deployment, "Shadow.", name="sdr")
    assert refused.value.code == "agent_of_repository"
    before = await deployment.sql.run(
        "INSERT INTO agent_versions (tenant_id, agent_type, version, definition, digest, created_by, created_at_ms)"
        " VALUES ('acme', 'sdr', 1, ?, 'd', 'person:ann', 0) RETURNING 1",
        json.dumps(definition("Shadow.")),
    )
    assert before.rows
    await deployment.run("sdr", "hello")
    assert instructions_of(chat) != ["Shadow."]
    assert await versions_of(deployment) == [None]
    assert not deployment.storages["sdr:acme:main"].run("SELECT * FROM agent_versions").rows
