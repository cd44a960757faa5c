"""What a run reads before it begins: in two trips, and by the conversation that D1 has."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from retain.agents.catalogue import AgentCatalogue
from retain.errors import RetainError
from tests.agents.stepped_chat import SteppedChat, says
from tests.support.instances import Deployment

Deploy = Callable[..., Deployment]
Agents = Callable[..., AgentCatalogue]
FACTS = ["The office in Lyon moved to 12 rue Garibaldi.", "The staging server restarts every night."]
ANN = {"id": "ann"}


@pytest.fixture
async def desk(deploy: Deploy, agents: Agents) -> Deployment:
    """Return a deployment whose agent recalls into its context, and has run once."""
    config = {"long_term_enabled": True, "recall": "both", "profile": {}}
    chat = SteppedChat(*[says("It restarts at two, the staging server.")] * 9)
    deployment = deploy(agents(teller={"memory_config": config}), chat=chat)
    await deployment.seed("teller", FACTS)
    await deployment.run("teller", "Tell me of the staging server.")
    await deployment.settled()
    return deployment


async def batches(deployment: Deployment, text: str, **more: Any) -> int:
    """Return how many batches D1 gets until a run with this input has ended, and what it owes is written."""
    del deployment.faults.trace[:]
    await deployment.run("teller", text, **more)
    await deployment.settled()
    points = [point for _, point in deployment.faults.trace]
    assert "sql.run" not in points
    return points.count("sql.batch")


async def recalled(deployment: Deployment) -> list[str]:
    """Return the contents of the records in the context of the last run."""
    [row] = await deployment.rows("SELECT input FROM agent_runs ORDER BY run_id DESC LIMIT 1")
    ids = [record["id"] for record in json.loads(row["input"])["records"]]
    found = await deployment.rows("SELECT id, content FROM memory_records")
    return [row["content"] for one in ids for row in found if row["id"] == one]


async def test_a_further_run_reads_in_two_trips(desk: Deployment) -> None:
    assert await batches(desk, "And then?") == 3  # two to read, one as it has ended
    assert await recalled(desk) == [FACTS[1]]


async def test_a_run_for_a_user_reads_the_profile_in_the_same_trips(desk: Deployment) -> None:
    await desk.run("teller", "Hello.", instance="hers", user=ANN)
    await desk.settled()
    assert await batches(desk, "And the office in Lyon?", instance="hers", user=ANN) == 3


async def test_what_was_deleted_from_the_conversation_leads_to_nothing(desk: Deployment) -> None:
    await desk.sql.run("DELETE FROM conversation_messages")
    assert await batches(desk, "And then?") == 4  # the recall begins again
    assert await recalled(desk) == []


async def test_a_conversation_that_the_object_has_forgotten_leads_to_what_it_concerns(desk: Deployment) -> None:
    await desk.lose("teller:acme:main")
    assert await batches(desk, "And then?") == 4
    assert await recalled(desk) == [FACTS[1]]


async def test_long_messages_count_as_the_prompt_has_them(desk: Deployment) -> None:
    await desk.run("teller", "The staging server is slow. " * 400)
    await desk.settled()
    assert await batches(desk, "And then?") == 3


async def test_a_refused_run_reads_once(desk: Deployment) -> None:
    await desk.sql.run("INSERT INTO quotas (tenant_id, runs_a_day) VALUES ('acme', 0)")
    del desk.faults.trace[:]
    with pytest.raises(RetainError, match="day"):
        await desk.run("teller", "And then?")
    assert [point for _, point in desk.faults.trace].count("sql.batch") == 1
