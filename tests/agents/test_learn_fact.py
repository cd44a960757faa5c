"""`learn_fact`: an agent stores facts in parts, about its user unless it names another subject."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from retain.agents.calls.user import User
from retain.agents.catalogue import AgentCatalogue
from tests.agents.stepped_chat import SteppedChat, calls, says
from tests.support.instances import Deployment

Deploy = Callable[..., Deployment]
Agents = Callable[..., AgentCatalogue]

ANN, BOB = User("ann", "Ann"), User("bob")
CONFIG = {"long_term_enabled": True, "recall": "both", "facts": True, "profile": {}}


async def learn(
    deploy: Deploy, agents: Agents, *steps: tuple[User | None, Mapping[str, Any]]
) -> tuple[Deployment, SteppedChat, list[dict[str, Any]]]:
    """Let an agent learn in one run for each step; return the deployment, its model, and the tool's answers."""
    chat = SteppedChat(*[reply for _, fact in steps for reply in (calls(("learn_fact", fact)), says("ok"))])
    deployment = deploy(agents(clerk={"memory_config": CONFIG}), chat=chat)
    answers = []
    for number, (user, _) in enumerate(steps):
        deployment.clock.advance(60_000)
        asking = None if user is None else user.to_json()
        await deployment.run("clerk", "Good day", instance=f"talk-{number}", user=asking)
        answers.append(json.loads(chat.requests[-1].messages[-1].content))
    await deployment.settled()
    return deployment, chat, answers


async def facts(deployment: Deployment) -> list[tuple[Any, ...]]:
    rows = await deployment.rows(
        "SELECT r.*, s.user_id FROM memory_records r JOIN scopes s USING (tenant_id, scope_id) ORDER BY r.id"
    )
    return [(row["user_id"], row["content"], row["predicate"], row["valid_to_ms"] is None) for row in rows]


async def test_a_newer_fact_replaces_the_older_one_of_this_user_only(deploy: Deploy, agents: Agents) -> None:
    deployment, _, answers = await learn(
        deploy,
        agents,
        (ANN, {"predicate": "lives_in", "object": "Berlin"}),
        (BOB, {"predicate": "lives_in", "object": "Berlin"}),
        (ANN, {"predicate": "lives_in", "object": "Lyon"}),
    )
    assert await facts(deployment) == [
        ("ann", "Ann lives in Berlin", "lives_in", False),
        ("bob", "The user lives in Berlin", "lives_in", True),
        ("ann", "Ann lives in Lyon", "lives_in", True),
    ]
    assert [answer["created"] for answer in answers] == [True] * 3
    [row] = await deployment.rows("SELECT * FROM memory_records WHERE content = 'Ann lives in Lyon'")
    source = json.loads(row["source"])
    assert (row["subject"], row["object"], source["origin"], source["step"]) == ("user:ann", "Lyon", "agent", 1)


async def test_the_vector_of_a_learned_fact_carries_its_parts_and_the_run(deploy: Deploy, agents: Agents) -> None:
    fact = {"subject": "contact:c-100", "predicate": "works_at", "object": "Harbour Ltd"}
    deployment, _, [answer] = await learn(deploy, agents, (None, fact))
    [run] = await deployment.rows("SELECT run_id FROM agent_runs")
    [vector] = await deployment.index.get_by_ids([f"{answer['id']}#0"])
    assert vector.namespace == "agent_memory_semantic:acme"
    named = {
        **fact,
        "fact_id": answer["id"],
        "tenant_id": "acme",
        "agent_type": "clerk",
        "confidence": 1.0,
        "learned_from_run_id": run["run_id"],
    }
    assert {name: vector.metadata.get(name) for name in named} == named
    assert isinstance(vector.metadata["created_at"], int)


async def test_only_a_relation_of_one_value_replaces_and_the_model_may_say_that_it_is_one(
    deploy: Deploy, agents: Agents
) -> None:
    channel = {"predicate": "prefers_channel", "one_value": True}
    deployment, _, _ = await learn(
        deploy,
        agents,
        (ANN, {"predicate": "likes", "object": "green tea"}),
        (ANN, {"predicate": "likes", "object": "black tea"}),
        (ANN, {**channel, "object": "phone"}),
        (ANN, {**channel, "object": "mail"}),
    )
    assert [(content, holds) for _, content, _, holds in await facts(deployment)] == [
        ("Ann likes green tea", True),
        ("Ann likes black tea", True),
        ("Ann prefers channel phone", False),
        ("Ann prefers channel mail", True),
    ]


async def test_another_subject_may_be_named_and_the_user_by_any_of_their_names(deploy: Deploy, agents: Agents) -> None:
    fact = {"predicate": "responded_positively_to", "object": "a free trial"}
    deployment, _, _ = await learn(
        deploy,
        agents,
        (None, {**fact, "subject": "contact:c-100", "confidence": 0.8, "importance": 0.9, "kind": "event"}),
        *[(ANN, {"predicate": "lives_in", "object": "Lyon", "subject": name}) for name in ("User", "ann", "user:ann")],
    )
    rows = await deployment.rows(
        "SELECT subject, content, confidence, importance, kind FROM memory_records ORDER BY id"
    )
    assert [tuple(row.values()) for row in rows] == [
        ("contact:c-100", "contact:c-100 responded positively to a free trial", 0.8, 0.9, "event"),
        ("user:ann", "Ann lives in Lyon", 1.0, 0.5, "fact"),
    ]


async def test_the_next_prompt_of_the_user_has_the_fact_and_another_users_has_not(
    deploy: Deploy, agents: Agents
) -> None:
    deployment, chat, _ = await learn(deploy, agents, (ANN, {"predicate": "lives_in", "object": "Lyon"}))
    for user, known in ((ANN, True), (BOB, False), (None, False)):
        asking = None if user is None else user.to_json()
        await deployment.run("clerk", "Where do I live?", instance=f"later-{user and user.id}", user=asking)
        prompt = "\n".join(message.content for message in chat.requests[-1].messages)
        assert ("Ann lives in Lyon" in prompt) == known


@pytest.mark.parametrize(
    ("fact", "user"),
    [
        pytest.param({"object": "Lyon"}, ANN, id="no predicate"),
        pytest.param({"predicate": "Lives in", "object": "Lyon"}, ANN, id="a predicate in words"),
        pytest.param({"predicate": "lives_in", "object": " "}, ANN, id="a blank object"),
        pytest.param({"predicate": "lives_in", "object": "Lyon"}, None, id="no subject and no user"),
        pytest.param({"predicate": "lives_in", "object": "Lyon", "confidence": 2}, ANN, id="confidence"),
        pytest.param({"predicate": "lives_in", "object": "Lyon", "importance": "high"}, ANN, id="importance"),
        pytest.param({"predicate": "lives_in", "object": "Lyon", "kind": "rumour"}, ANN, id="kind"),
        pytest.param({"predicate": "lives_in", "object": "Lyon", "one_value": "yes"}, ANN, id="one_value"),
        pytest.param({"predicate": "lives_in", "object": "Lyon", "user_id": "bob"}, ANN, id="another scope"),
    ],
)
async def test_what_does_not_fit_is_refused(
    deploy: Deploy, agents: Agents, fact: dict[str, Any], user: User | None
) -> None:
    deployment, _, [answer] = await learn(deploy, agents, (user, fact))
    assert answer["error"]["code"] == "invalid_arguments"
    assert await facts(deployment) == []


async def test_invariant_7_recalled_text_is_not_learned(deploy: Deploy, agents: Agents) -> None:
    recalled = '<memory section="records" note="x">Berlin</memory>'
    deployment, _, [answer] = await learn(deploy, agents, (ANN, {"predicate": "lives_in", "object": recalled}))
    assert "Berlin" not in json.dumps(await facts(deployment))
    assert answer


async def test_the_tool_is_offered_only_where_the_definition_says_so(deploy: Deploy, agents: Agents) -> None:
    chat = SteppedChat()
    deployment = deploy(agents(clerk={"memory_config": {"long_term_enabled": True}}), chat=chat)
    await deployment.run("clerk", "hello")
    assert "learn_fact" not in [tool.name for tool in chat.requests[-1].tools]


async def test_values_that_differ_in_a_sign_alone_are_known_side_by_side(deploy: Deploy, agents: Agents) -> None:
    values = ("C", "C++", "C#", "A+", "A-", "-5", "5")
    deployment, _, _ = await learn(
        deploy, agents, *((ANN, {"predicate": "knows", "object": value}) for value in values)
    )
    assert [(content, valid) for _, content, _, valid in await facts(deployment)] == [
        (f"Ann knows {value}", True) for value in values
    ]


async def test_underscores_of_a_subject_and_a_value_stay(deploy: Deploy, agents: Agents) -> None:
    deployment, _, answers = await learn(
        deploy,
        agents,
        (ANN, {"predicate": "reads_mail_at", "object": "john_doe@example.com"}),
        (ANN, {"subject": "file:/etc/my_app", "predicate": "names_key", "object": "OPENAI_API_KEY"}),
        (ANN, {"predicate": "is_called", "object": "ann_b", "one_value": True}),
        (ANN, {"predicate": "is_called", "object": "ann b", "one_value": True}),
    )
    assert [content for _, content, _, _ in await facts(deployment)] == [
        "Ann reads mail at john_doe@example.com",
        "file:/etc/my_app names key OPENAI_API_KEY",
        "Ann is called ann_b",
        "Ann is called ann b",
    ]
    assert [answer["created"] for answer in answers] == [True] * 4
