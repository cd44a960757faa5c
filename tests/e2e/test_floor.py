"""What recall brings into a prompt on the real Worker: what concerns the input, and nothing else."""

from __future__ import annotations

import pytest

from tests.e2e.calls import recorded_run, run, seed
from tests.e2e.conftest import Steered
from tests.e2e.puppet import Puppet

pytestmark = pytest.mark.workerd

FACTS = (
    "Bob is allergic to peanuts.",
    "Our lawyer is on holiday until the end of August.",
    "The office in Lyon moved to 12 rue Garibaldi.",
    "Invoices above 500 euros need the signature of two managers.",
    "The warehouse in Graz has no forklift on Fridays.",
)
QUESTIONS = {"What is 2+2?": None, "May Bob eat this peanut sauce?": 0, "Is there a forklift in Graz today?": 4}


def test_a_question_brings_its_record_into_the_prompt_and_arithmetic_brings_none(
    steered: Steered, puppet: Puppet
) -> None:
    tenant_id = steered.tenant()
    ids = seed(steered.api, tenant_id, "sdr", *FACTS)
    seed(steered.api, tenant_id, "sdr", "[" * 12_000)
    for number, (question, place) in enumerate(QUESTIONS.items()):
        result = run(steered.api, tenant_id, "sdr", question, instance_id=f"desk-{number}")
        used = recorded_run(steered.api, tenant_id, result["run_id"])["input"]["records"]
        asked = next(request for request in puppet.requests if request.messages[-1].content == question)
        prompt = "\n".join(message.content for message in asked.messages)
        assert [fact for fact in FACTS if fact in prompt] == ([] if place is None else [FACTS[place]])
        assert [record["id"] for record in used] == ([] if place is None else [ids[place]])
        assert "[[[" not in prompt


def test_the_recall_of_the_administrator_takes_a_floor(steered: Steered) -> None:
    tenant_id = steered.tenant()
    seed(steered.api, tenant_id, "sdr", *FACTS)
    path = f"/admin/tenants/{tenant_id}/memories/recall"
    asked = {"query": "What is 2+2?", "agent_type": "sdr"}
    everything = steered.api.post(path, json=asked).json()["memories"]
    assert len(everything) >= 4
    assert all(0 <= memory["relevance"] < 0.3 for memory in everything)
    assert steered.api.post(path, json={**asked, "min_score": 0.3}).json() == {"memories": [], "degraded": []}
    refused = steered.api.post(path, json={**asked, "min_score": 2})
    assert (refused.status_code, refused.json()["code"]) == (400, "invalid_min_score")
