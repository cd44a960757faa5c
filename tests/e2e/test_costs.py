"""Costs on the real workerd: what a model's server says of its cache, and what is asked of models outside of runs."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.calls import run, timeline
from tests.e2e.conftest import Steered
from tests.e2e.puppet import MODEL, order
from tests.e2e.waiting import eventually

pytestmark = pytest.mark.workerd


def test_cached_input_arrives_in_the_answer_the_timeline_and_the_costs(steered: Steered) -> None:
    tenant_id = steered.tenant()
    result = run(steered.api, tenant_id, "order_triage", order(say="Done."), instance_id="mail")
    assert (result["usage"]["input_tokens"], result["usage"]["cached_input_tokens"]) == (10, 4)
    path = f"/v1/agents/{tenant_id}/order_triage/run"
    streamed = steered.api.post(path, json={"input": order(say="Done."), "instance_id": "letter", "stream": True})
    assert '"cached_input_tokens":4' in streamed.text.replace(" ", "")

    [one] = eventually(lambda: costs(steered, tenant_id), lambda listed: [one["runs"] for one in listed] == [2])
    assert (one["purpose"], one["model"], one["calls"]) == ("run", MODEL, None)
    assert (one["input_tokens"], one["cached_input_tokens"], one["output_tokens"]) == (20, 8, 10)
    [answered] = [
        event for event in timeline(steered.api, tenant_id, result["run_id"]) if event["kind"] == "model_answered"
    ]
    assert answered["data"]["cached_input_tokens"] == 4


def test_answers_and_judges_of_a_model_count_with_their_purpose(steered: Steered) -> None:
    tenant_id = steered.tenant()
    api = steered.api
    profile = f"/client/v4/accounts/0123456789abcdef0123456789abcdef/agent-memory/namespaces/{tenant_id}/profiles/ann"
    assert api.post(f"{profile}/remember", json={"content": "Ann drinks green tea."}).is_success
    found = api.post(f"{profile}/recall", json={"query": "What does Ann drink?"})
    assert found.json()["result"]["answer"] == "As ordered.", found.text
    case = {"id": "one", "input": order(say="Good morning!"), "expected": {"judge": {"criteria": "Polite."}}}
    dataset = {"target": {"agent": "order_triage"}, "cases": [case]}
    assert api.put(f"/admin/tenants/{tenant_id}/evals/datasets/set", json=dataset).status_code == 201
    judged = api.post(f"/admin/tenants/{tenant_id}/evals/runs", json={"dataset": "set"})
    assert judged.is_success, judged.text

    listed = eventually(lambda: costs(steered, tenant_id), lambda listed: len(listed) == 3)
    assert {(one["purpose"], one["agent_type"], one["calls"]) for one in listed} == {
        ("evaluation", "order_triage", 1),
        ("judge", "order_triage", 1),
        ("answer", "", 1),
    }
    asked_once = [one for one in listed if one["purpose"] != "evaluation"]
    assert all((one["input_tokens"], one["cached_input_tokens"]) == (10, 4) for one in asked_once)


def costs(steered: Steered, tenant_id: str) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = steered.api.get(f"/v1/tenants/{tenant_id}/costs").json()["costs"]
    return listed
