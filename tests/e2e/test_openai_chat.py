"""Agents on a model that speaks OpenAI's wire format, over HTTP from the Worker."""

from __future__ import annotations

import json

import pytest

from tests.e2e.calls import recorded_run, run, seed
from tests.e2e.conftest import Steered
from tests.e2e.puppet import MODEL, Puppet, as_it_is, order
from tests.support.model_server import Failure

pytestmark = pytest.mark.workerd


def test_order_triage_delegates_and_recalls_through_an_openai_compatible_model(
    steered: Steered, puppet: Puppet
) -> None:
    tenant_id = steered.tenant()
    seed(steered.api, tenant_id, "refund_decision", "Refund approved for dora@example.com: order AB-100.")
    decision = order(("recall_memory", {"query": "refund history for dora@example.com"}))
    text = order(("delegate", {"agent": "refund_decision", "input": decision}))
    result = run(steered.api, tenant_id, "order_triage", text, instance_id="mail")

    [delegated] = json.loads(result["output"])
    [recalled] = json.loads(delegated["output"])
    assert [memory["content"] for memory in recalled["memories"]] == [
        "Refund approved for dora@example.com: order AB-100."
    ]
    assert (result["steps"], result["usage"]) == (
        3,
        {"input_tokens": 20, "output_tokens": 10, "delegated_tokens": 30, "delegations": 1},
    )
    recorded = recorded_run(steered.api, tenant_id, result["run_id"])
    assert recorded["model"] == MODEL
    assert [(child["run_id"], child["agent_type"]) for child in recorded["delegated"]] == [
        (delegated["run_id"], "refund_decision")
    ]
    asked = next(request for request in puppet.requests if request.messages[-1].content == text)
    assert [tool.name for tool in asked.tools] == ["delegate", "days_between"]
    assert asked.messages[0].content.startswith("You triage e-mails")


def test_a_model_that_refuses_ends_the_run_as_failed_and_says_why(steered: Steered, puppet: Puppet) -> None:
    tenant_id = steered.tenant()
    puppet.fail(Failure(status=400))
    response = steered.api.post(f"/v1/agents/{tenant_id}/order_triage/run", json={"input": order(say="never said")})
    result = response.json()
    assert (response.status_code, result["status"], result["output"]) == (200, "failed", None)
    assert result["error"]["code"] == "model_refused"
    recorded = recorded_run(steered.api, tenant_id, result["run_id"])
    assert (recorded["status"], recorded["error"]["code"]) == ("failed", "model_refused")


def test_a_model_that_is_overloaded_for_a_moment_is_asked_again(steered: Steered, puppet: Puppet) -> None:
    tenant_id = steered.tenant()
    puppet.fail(Failure(status=429, retry_after="0"))
    result = run(steered.api, tenant_id, "order_triage", order(say="said in the end"))
    assert result["output"] == "said in the end"


@pytest.mark.parametrize("arguments", ["[" * 20_000, '{"input":' * 3_000, "{", "[]"])
def test_tool_arguments_that_are_not_an_object_or_nested_too_deeply_end_the_run_and_nothing_else(
    steered: Steered, arguments: str
) -> None:
    text = order(("delegate", as_it_is(arguments)))
    response = steered.api.post(f"/v1/agents/{steered.tenant()}/order_triage/run", json={"input": text})
    assert (response.status_code, response.json()["error"]["code"]) == (200, "malformed_tool_call")
