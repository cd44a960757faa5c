"""The shipped agents end to end, on the scripted model and on one that speaks OpenAI's wire format: the same decisions.

And the agent that the README adds by a YAML file alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from retain.agents.runs.events import from_json
from retain.agents.runs.replay import replay
from retain.agents.runs.run_state import AskModel, CallTool, Complete, Policy, Step
from tests.e2e.calls import instance, recorded_run, run, seed, timeline
from tests.e2e.conftest import Steered
from tests.e2e.puppet import MODEL, Puppet, order
from tests.e2e.waiting import eventually

pytestmark = pytest.mark.workerd

SARA = ("Refund approved for sara@example.com: order SO-4411.", "Refund approved for sara@example.com: order SO-4520.")
FACT = "The guest of room 4 eats no nuts."


@dataclass(frozen=True)
class Site:
    """A server with a model. provider: who answered in OpenAI's wire format; None for the scripted model."""

    api: httpx.Client
    tenant: Callable[[], str]
    provider: Puppet | None


@pytest.fixture(params=["scripted", "openai"])
def site(request: pytest.FixtureRequest) -> Site:
    """Each of the two."""
    if request.param == "scripted":
        return Site(request.getfixturevalue("api"), request.getfixturevalue("tenant"), None)
    steered: Steered = request.getfixturevalue("steered")
    return Site(steered.api, steered.tenant, request.getfixturevalue("puppet"))


def decisions(api: httpx.Client, tenant_id: str, run_id: str) -> list[str | None]:
    """Replay the run from its timeline and return what was decided: a tool's name for a call, None for a question."""
    events = [from_json(event["kind"], event["data"]) for event in timeline(api, tenant_id, run_id)]
    policy = Policy(max_turns=8, idempotent=frozenset(), max_delegations=20)
    again = replay(events, policy)
    assert again.state.closed is not None
    return [_decision(step) for step in again.steps]


def _decision(step: Step) -> str | None:
    match step:
        case CallTool(call=call):
            return call.name
        case AskModel():
            return None
        case Complete(output=output):
            return f"said: {output}"
    raise AssertionError(f"no run of this page decides {step}")


def model_of(site: Site, script: str) -> str:
    return f"scripted/{script}" if site.provider is None else MODEL


def reported_to_the_provider(provider: Puppet, text: str) -> list[str]:
    """Return the names of the tools whose answers are in the provider's last request about this input."""
    asked = [request for request in provider.requests if any(text in message.content for message in request.messages)]
    messages = asked[-1].messages
    called = {call.id: call.name for message in messages for call in message.tool_calls}
    return [called[message.tool_call_id or ""] for message in messages if message.role == "tool"]


def test_order_triage_approves_the_first_mail_and_escalates_the_second(site: Site) -> None:
    tenant_id = site.tenant()
    seed(site.api, tenant_id, "refund_decision", *SARA)
    outputs = []
    for number in ("SO-4702", "SO-4790"):
        text = f"From: sara@example.com. Order {number} came in pieces. I would like a refund, please."
        result = run(site.api, tenant_id, "order_triage", text, instance_id="mail")
        outputs.append(result["output"])
        recorded = recorded_run(site.api, tenant_id, result["run_id"])
        assert recorded["model"] == model_of(site, "order_triage")
        [child] = recorded["delegated"]
        decided = recorded_run(site.api, tenant_id, child["run_id"])
        assert (child["agent_type"], decided["model"]) == ("refund_decision", model_of(site, "refund_decision"))
        assert decisions(site.api, tenant_id, result["run_id"]) == [None, "delegate", None, f"said: {result['output']}"]
        assert decisions(site.api, tenant_id, child["run_id"]) == [
            *(None, "recall_memory", None, "store_memory", None),
            f"said: {decided['output']}",
        ]
        if site.provider is not None:
            assert reported_to_the_provider(site.provider, text) == ["delegate"]
    assert outputs == [
        "Refund request of sara@example.com: APPROVE: sara@example.com was refunded 2 times before, fewer than 3.",
        "Refund request of sara@example.com: ESCALATE: sara@example.com was already refunded 3 times.",
    ]


LATE = "From: bea@example.com\nDate: 2026-11-20\nThe coat of order SO-5190 was delivered on 2026-08-12. Refund, please."


@pytest.mark.parametrize(
    ("known", "mail", "decided", "kept"),
    [
        pytest.param(
            "Refund approved for bea@example.com: order SO-5100, wrong size.",
            LATE,
            "DECLINE: bea@example.com asked 100 days after the delivery of order SO-5190, more than 30.",
            "Refund declined for bea@example.com: order SO-5190, asked 100 days after its delivery.",
            id="outside the window",
        ),
        pytest.param(
            "Refund approved for bea@example.com: order SO-5190, it came late.",
            "From: bea@example.com. I want my money back for SO-5190!",
            "DECLINE: order SO-5190 of bea@example.com was already refunded.",
            "Refund declined for bea@example.com: order SO-5190 was already refunded.",
            id="already refunded",
        ),
        pytest.param(
            "Abuse of refunds by bea@example.com was confirmed: two empty parcels.",
            "From: bea@example.com. Refund SO-5190, please.",
            "DECLINE: abuse of refunds by bea@example.com was confirmed.",
            "Refund declined for bea@example.com: abuse of refunds was confirmed.",
            id="abuse",
        ),
    ],
)
def test_order_triage_declines_with_the_reason_which_is_remembered(
    site: Site, known: str, mail: str, decided: str, kept: str
) -> None:
    tenant_id = site.tenant()
    seed(site.api, tenant_id, "refund_decision", known)
    result = run(site.api, tenant_id, "order_triage", mail, instance_id="mail")
    assert result["output"] == f"Refund request of bea@example.com: {decided}"
    counted = ["days_between", None] if mail == LATE else []
    expected = [None, *counted, "delegate", None, f"said: {result['output']}"]
    assert decisions(site.api, tenant_id, result["run_id"]) == expected
    [child] = recorded_run(site.api, tenant_id, result["run_id"])["delegated"]
    assert decisions(site.api, tenant_id, child["run_id"]) == [
        *(None, "recall_memory", None, "store_memory", None),
        f"said: {decided}",
    ]
    memories = site.api.get(f"/admin/tenants/{tenant_id}/memories", params={"agent_type": "refund_decision"}).json()
    assert kept in [memory["content"] for memory in memories["memories"]]


def test_the_sdr_drafts_with_what_its_contact_responded_to_and_learns_from_the_outcome(site: Site) -> None:
    tenant_id = site.tenant()
    news = "Contact contact:7 responded positively to a short case study."
    noted = run(site.api, tenant_id, "sdr", news, instance_id="monday")
    assert noted["output"] == "Noted the response of contact:7."
    wanted = "Draft an e-mail to contact:7"
    drafted = run(site.api, tenant_id, "sdr", wanted, instance_id="tuesday")
    assert drafted["memory"]["records_used"] >= 1
    assert instance(site.api, tenant_id, "sdr", "tuesday")["working"] == {
        "current_contact_id": "contact:7",
        "email_draft_v2": "Dear contact:7, here is our offer, with a short case study.",
    }
    recorded = recorded_run(site.api, tenant_id, drafted["run_id"])
    assert recorded["model"] == model_of(site, "sdr")
    calls = ["set_working_memory", "recall_memory", None, "set_working_memory"]
    assert decisions(site.api, tenant_id, drafted["run_id"]) == [None, *calls, None, f"said: {drafted['output']}"]
    if site.provider is not None:
        assert reported_to_the_provider(site.provider, wanted) == [name for name in calls if name]
    path = f"/admin/agents/{tenant_id}/runs/{drafted['run_id']}/outcome"
    learned = site.api.post(path, json={"score": 1})
    assert (learned.status_code, learned.json()["workflow_id"]) == (200, drafted["procedure"]["workflow_id"])
    path = f"/admin/agents/{tenant_id}/procedures"
    [row] = eventually(lambda: site.api.get(path).json()["procedures"], lambda rows: len(rows) == 1)
    assert (row["workflow_id"], row["outcomes"], row["mean_score"]) == (drafted["procedure"]["workflow_id"], 1, 1)


def test_the_agent_that_the_readme_adds_by_yaml_alone_remembers_across_runs_and_instances(steered: Steered) -> None:
    tenant_id = steered.tenant()

    def ask(instance_id: str, tool: str, **arguments: Any) -> tuple[Any, list[str]]:
        """Return what the tool answered, and the records that were in the run's context before it."""
        result = run(steered.api, tenant_id, "concierge", order((tool, arguments)), instance_id=instance_id)
        recorded = recorded_run(steered.api, tenant_id, result["run_id"])
        [answer] = json.loads(result["output"])
        return answer, [record["id"] for record in recorded["input"]["records"]]

    stored, known = ask("reception", "store_memory", content=FACT)
    assert (stored["created"], known) == (True, [])
    recalled, known = ask("kitchen", "recall_memory", query="What must the guest of room 4 not eat?")
    assert [(memory["id"], memory["content"]) for memory in recalled["memories"]] == [(stored["id"], FACT)]
    assert known == [stored["id"]], "what is known comes into the context of another instance's run"
    asked = order(("recall_memory", {"query": "the guest of room 4"}))
    elsewhere = run(steered.api, steered.tenant(), "concierge", asked)
    assert json.loads(elsewhere["output"]) == [{"memories": []}], "another tenant's agent knows nothing of it"
