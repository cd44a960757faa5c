"""Agents that choose between workflows: each run is given one, and its outcome is learned."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from retain.errors import InvalidInput
from retain.memory.procedures.posterior import Posterior
from tests.agents.stepped_chat import SteppedChat, says
from tests.support.instances import Deployment, catalogue

Deploy = Callable[..., Deployment]
DRAFT = "Draft an e-mail to contact:7"
OUTREACH = {"direct_roi", "social_proof", "open_question"}


async def reported(deployment: Deployment, run: dict[str, object], score: float, instance: str = "main") -> Posterior:
    fields = {"run_id": run["run_id"], **dict(run["procedure"]), "score": score}  # type: ignore[call-overload]
    learned = await deployment.ask("sdr", "record_outcome", instance=instance, **fields)
    await deployment.settled()
    return Posterior(**learned["posterior"])


async def test_a_run_is_given_a_workflow_as_instructions_and_says_which(deploy: Deploy) -> None:
    chat = SteppedChat(says("done"))
    deployment = deploy(chat=chat)
    result = await deployment.run("sdr", DRAFT)
    followed = result["procedure"]
    assert followed["task_type"] == "outreach"
    assert followed["workflow_id"] in OUTREACH
    definition = deployment.catalogue.agent("sdr")
    spec = definition.procedures["outreach"][followed["workflow_id"]]
    system = chat.requests[0].messages[0].content
    assert f"Follow the workflow {followed['workflow_id']}: {spec}" in system.partition("<memory")[0]
    await deployment.settled()
    [run] = await deployment.rows("SELECT input FROM agent_runs")
    assert json.loads(run["input"])["procedure"] == followed


async def test_the_sdr_drafts_by_its_workflow_until_it_knows_what_the_contact_responds_to(deploy: Deploy) -> None:
    deployment = deploy()
    drafts = {}
    for number in range(60):  # each new instance chooses among three that it knows nothing of
        instance = f"desk-{number}"
        result = await deployment.run("sdr", DRAFT, instance=instance)
        working = (await deployment.describe("sdr", instance=instance))["working"]
        assert working["current_contact_id"] == "contact:7"
        drafts[result["procedure"]["workflow_id"]] = working["email_draft_v2"]
        if drafts.keys() == OUTREACH:
            break
    assert len(set(drafts.values())) == 3
    await deployment.run("sdr", "Contact contact:7 responded positively to short questions.", instance="desk-0")
    await deployment.run("sdr", DRAFT, instance="desk-0")
    working = (await deployment.describe("sdr", instance="desk-0"))["working"]
    assert "short questions" in working["email_draft_v2"]


async def test_outcomes_are_learned_by_the_instance_and_kept_in_d1(deploy: Deploy) -> None:
    deployment = deploy()
    run = await deployment.run("sdr", DRAFT)
    assert await reported(deployment, run, 0.75) == Posterior(1.75, 1.25)
    assert await reported(deployment, run, 0.75) == Posterior(1.75, 1.25)
    shown = (await deployment.describe("sdr"))["procedures"]["outreach"]
    assert shown[run["procedure"]["workflow_id"]] == {"alpha": 1.75, "beta": 1.25}
    [outcome] = await deployment.rows("SELECT run_id, workflow_id, score FROM procedure_outcomes")
    assert outcome == {"run_id": run["run_id"], "workflow_id": run["procedure"]["workflow_id"], "score": 0.75}


async def test_the_workflow_that_works_is_given_to_more_and_more_runs(deploy: Deploy) -> None:
    deployment = deploy()
    given = []
    for _ in range(40):
        run = await deployment.run("sdr", DRAFT)
        given.append(run["procedure"]["workflow_id"])
        await reported(deployment, run, float(given[-1] == "open_question"))
    assert given[-15:].count("open_question") >= 12


@pytest.mark.parametrize("task_type", ["follow_up", "", 7, None, ["outreach"]], ids=str)
async def test_an_unknown_task_type_is_refused_and_nothing_is_recorded(deploy: Deploy, task_type: object) -> None:
    deployment = deploy()
    with pytest.raises(InvalidInput) as refused:
        await deployment.run("sdr", DRAFT, metadata={"task_type": task_type})
    assert refused.value.code == "unknown_task_type"
    await deployment.settled()
    assert await deployment.rows("SELECT run_id FROM agent_runs") == []


async def test_a_run_is_of_the_task_type_that_it_names(deploy: Deploy) -> None:
    agent = {
        "type": "caller",
        "description": "Calls.",
        "instructions": "Call.",
        "procedures": {"first": {"a": "Do a."}, "second": {"b": "Do b."}},
    }
    deployment = deploy(catalogue(agent), chat=SteppedChat(says("1"), says("2")))
    named = await deployment.run("caller", "x", metadata={"task_type": "second"})
    unnamed = await deployment.run("caller", "x")
    assert named["procedure"] == {"task_type": "second", "workflow_id": "b"}
    assert unnamed["procedure"] == {"task_type": "first", "workflow_id": "a"}
