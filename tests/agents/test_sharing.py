"""Sharing: an agent stores into its house when its definition says so, and into no other scope."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import ValidationError

from retain.agents.catalogue import AgentCatalogue
from retain.agents.definitions import AgentDefinition
from retain.models.chat import ToolSpec
from tests.agents.conftest import agent
from tests.agents.stepped_chat import SteppedChat, calls, says
from tests.support.instances import ULID, Deployment

Deploy = Callable[..., Deployment]
Agents = Callable[..., AgentCatalogue]

FACT = "Orders above 500 euros need a second signature."
REMEMBERS = {"long_term_enabled": True}
HOUSEMATES: dict[str, dict[str, Any]] = {
    "clerk": {"house": "orders", "memory_config": {**REMEMBERS, "share": True}},
    "buyer": {"house": "orders", "memory_config": REMEMBERS},
    "guard": {"house": "gate", "memory_config": REMEMBERS},
    "guest": {"memory_config": REMEMBERS},
}


async def answers(deployment: Deployment, chat: SteppedChat, agent_type: str, **more: Any) -> dict[str, Any]:
    """Run an agent whose model makes one call, and return what the tool answered."""
    await deployment.run(agent_type, "go", instance=f"of-{len(chat.requests)}", **more)
    await deployment.settled()
    answer: dict[str, Any] = json.loads(chat.requests[-1].messages[-1].content)
    return answer


def stores(content: str = FACT, **more: Any) -> Any:
    return calls(("store_memory", {"content": content, **more}))


RECALLS = calls(("recall_memory", {"query": "What do orders above 500 euros need?"}))


async def test_what_is_shared_is_recalled_by_the_agents_of_the_house_and_by_no_others(
    deploy: Deploy, agents: Agents
) -> None:
    readers = ["clerk", "buyer", "guard", "guest"]
    chat = SteppedChat(stores(shared=True), says("ok"), *[reply for _ in readers for reply in (RECALLS, says("ok"))])
    deployment = deploy(agents(**HOUSEMATES), chat=chat)
    stored = await answers(deployment, chat, "clerk")
    [row] = await deployment.rows("SELECT * FROM memory_records")
    assert (stored, row["scope_id"]) == ({"id": row["id"], "created": True, "merged": [], "kept": []}, "house.orders")
    source = json.loads(row["source"])
    assert (source["origin"], source["step"]) == ("agent", 1)
    assert ULID.fullmatch(source["run_id"])
    found = {reader: (await answers(deployment, chat, reader))["memories"] for reader in readers}
    assert {reader: len(memories) for reader, memories in found.items()} == {
        "clerk": 1,
        "buyer": 1,
        "guard": 0,
        "guest": 0,
    }


async def test_without_shared_the_memory_stays_the_agent_s_own(deploy: Deploy, agents: Agents) -> None:
    chat = SteppedChat(stores(), says("ok"), stores(shared=False), says("ok"), RECALLS, says("ok"))
    deployment = deploy(agents(**HOUSEMATES), chat=chat)
    first, second = await answers(deployment, chat, "clerk"), await answers(deployment, chat, "clerk")
    assert (first["id"], first["created"], second["created"]) == (second["id"], True, False)
    assert (await answers(deployment, chat, "buyer"))["memories"] == []


async def test_what_only_the_agent_remembers_can_be_shared_with_the_house_and_is_shared_once(
    deploy: Deploy, agents: Agents
) -> None:
    chat = SteppedChat(stores(), says("ok"), stores(shared=True), says("ok"), stores(shared=True), says("ok"))
    deployment = deploy(agents(**HOUSEMATES), chat=chat)
    own, shared, again = [await answers(deployment, chat, "clerk") for _ in range(3)]
    assert (own["created"], shared["created"], again) == (True, True, {**shared, "created": False})
    rows = await deployment.rows("SELECT scope_id FROM memory_records ORDER BY number")
    assert [row["scope_id"] for row in rows] == ["agent.clerk", "house.orders"]


@pytest.mark.parametrize(
    ("agent_type", "shared", "code"),
    [("buyer", True, "sharing_not_allowed"), ("guest", True, "no_house"), ("clerk", "house.gate", "invalid_arguments")],
)
async def test_an_agent_that_may_not_share_reads_why_and_nothing_is_stored(
    deploy: Deploy, agents: Agents, agent_type: str, shared: object, code: str
) -> None:
    chat = SteppedChat(stores(shared=shared), says("ok"))
    deployment = deploy(agents(**HOUSEMATES), chat=chat)
    assert (await answers(deployment, chat, agent_type))["error"]["code"] == code
    assert await deployment.rows("SELECT * FROM memory_records") == []


def properties_of(tool: ToolSpec) -> dict[str, object]:
    properties = tool.parameters["properties"]
    assert isinstance(properties, dict)
    return properties


async def test_the_argument_shared_is_offered_to_agents_that_may_share(deploy: Deploy, agents: Agents) -> None:
    chat = SteppedChat()
    deployment = deploy(agents(**HOUSEMATES), chat=chat)
    for agent_type in HOUSEMATES:
        await deployment.run(agent_type, "go")
    offered = [{tool.name: set(properties_of(tool)) for tool in asked.tools} for asked in chat.requests]
    assert ["shared" in tools["store_memory"] for tools in offered] == [True, False, False, False]
    assert all(not tools["store_memory"] & {"house", "scope", "agent_type"} for tools in offered)


@pytest.mark.parametrize(
    "fields",
    [
        {"memory_config": {**REMEMBERS, "share": True}},
        {"house": "orders", "memory_config": {"share": True}},
        {"house": "orders", "memory_config": {**REMEMBERS, "share": True, "store": False}},
    ],
    ids=["no house", "no memory", "no store"],
)
def test_a_definition_that_cannot_share_must_not_declare_it(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="share needs"):
        AgentDefinition.model_validate(agent("clerk", **fields))
