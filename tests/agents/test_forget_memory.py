"""`forget_memory`: an agent deletes what the run's own scope remembers, and nothing that it shares with others."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import ValidationError

from retain.agents.calls.user import User
from retain.agents.catalogue import AgentCatalogue
from retain.agents.definitions import AgentDefinition
from retain.identifiers import new_id
from retain.memory.records.record import NewRecord, RecordSource
from retain.memory.scope import Scope
from retain.memory.semantic import SemanticMemory
from tests.agents.stepped_chat import SteppedChat, calls, says
from tests.support.instances import Deployment, shipped_embedder

Deploy = Callable[..., Deployment]
Agents = Callable[..., AgentCatalogue]
ANN, BOB = User("ann", "Ann"), User("bob", "Bob")
CONFIG = {"long_term_enabled": True, "recall": "both", "forget": True}
BY_HAND = RecordSource("person")


def memory(deployment: Deployment, scope: Scope) -> SemanticMemory:
    return SemanticMemory(scope, deployment.sql, deployment.index, shipped_embedder(), deployment.clock)


async def stored(deployment: Deployment, scope: Scope, content: str) -> str:
    return (await memory(deployment, scope).store(NewRecord(content), BY_HAND)).id


async def forget(deployment: Deployment, chat: SteppedChat, user: User | None, *ids: str) -> Any:
    """Let a run of a user call the tool; return its answer."""
    chat.then(calls(("forget_memory", {"ids": list(ids)})), says("ok"))
    asking = None if user is None else user.to_json()
    await deployment.run("clerk", "Forget it.", instance=f"talk-{len(chat.requests)}", user=asking)
    return json.loads(chat.requests[-1].messages[-1].content)


async def left(deployment: Deployment) -> list[str]:
    return [row["content"] for row in await deployment.rows("SELECT content FROM memory_records ORDER BY content")]


async def test_what_the_runs_user_has_is_deleted_and_what_others_have_stays(deploy: Deploy, agents: Agents) -> None:
    chat = SteppedChat()
    deployment = deploy(agents(clerk={"memory_config": CONFIG, "house": "desk"}), chat=chat)
    own = await stored(deployment, Scope("acme", "clerk", house="desk", user_id="ann"), "Ann likes tea")
    other = await stored(deployment, Scope("acme", "clerk", house="desk", user_id="bob"), "Bob likes tea")
    agents_own = await stored(deployment, Scope("acme", "clerk", house="desk"), "Tea is served at five")
    foreign = await stored(deployment, Scope("globex", "clerk", user_id="ann"), "Ann likes rum")
    absent = new_id()
    answer = await forget(deployment, chat, ANN, own, other, agents_own, foreign, absent, own)
    # What the run cannot read is as if it had never been.
    assert answer == {"gone": [own, other, foreign, absent], "kept": [agents_own]}
    assert await left(deployment) == ["Ann likes rum", "Bob likes tea", "Tea is served at five"]
    assert await forget(deployment, chat, ANN, own) == {"gone": [own], "kept": []}
    assert await forget(deployment, chat, None, agents_own) == {"gone": [agents_own], "kept": []}
    [event] = await deployment.rows("SELECT source FROM memory_events WHERE kind = 'deleted' AND record_id = ?", own)
    assert json.loads(event["source"])["origin"] == "agent"


@pytest.mark.parametrize("ids", [[], ["x"], "01HF0000000000000000000000", ["01HF0000000000000000000000"] * 21, None])
async def test_other_arguments_are_refused_and_delete_nothing(deploy: Deploy, agents: Agents, ids: Any) -> None:
    chat = SteppedChat(calls(("forget_memory", {"ids": ids})), says("ok"))
    deployment = deploy(agents(clerk={"memory_config": CONFIG}), chat=chat)
    await stored(deployment, Scope("acme", "clerk"), "Tea is served at five")
    await deployment.run("clerk", "Forget it.")
    assert json.loads(chat.requests[-1].messages[-1].content)["error"]["code"] in {"invalid_arguments", "invalid_id"}
    assert await left(deployment) == ["Tea is served at five"]


async def test_it_is_offered_where_the_definition_says_so_alone(deploy: Deploy, agents: Agents) -> None:
    chat = SteppedChat()
    deployment = deploy(agents(clerk={"memory_config": {**CONFIG, "forget": False}}), chat=chat)
    await deployment.run("clerk", "Hello")
    assert "forget_memory" not in {tool.name for tool in chat.requests[-1].tools}


@pytest.mark.parametrize("config", [{"forget": True}, {**CONFIG, "recall": "context"}])
def test_without_the_ids_of_a_recall_it_is_no_use(config: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="forget needs"):
        AgentDefinition.model_validate(
            {"type": "clerk", "description": "Clerk.", "instructions": "Help.", "memory_config": config}
        )
