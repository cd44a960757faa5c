"""Agents on a model that speaks OpenAI's wire format, over HTTP from the Worker."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.e2e.calls import recorded_run, run, seed, timeline
from tests.e2e.conftest import Steered
from tests.e2e.puppet import MODEL, Puppet, as_it_is, order
from tests.e2e.waiting import eventually
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
        {"input_tokens": 20, "output_tokens": 10, "delegated_tokens": 30, "delegations": 1, "cached_input_tokens": 8},
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
    error = result["error"]
    assert (error["code"], error["status"], error["upstream_code"]) == ("model_refused", 400, "invalid_request_error")
    assert "asked to fail" in error["upstream_message"]
    assert puppet.api_key not in response.text
    recorded = recorded_run(steered.api, tenant_id, result["run_id"])
    assert (recorded["status"], recorded["error"]) == ("failed", error)


def test_a_run_whose_model_refused_is_retried_from_the_step_that_failed(steered: Steered, puppet: Puppet) -> None:
    tenant_id = steered.tenant()
    call = ("days_between", {"first": "2026-01-01", "second": "2026-01-31"})
    text = order(call)
    puppet.fail(Failure(status=400), after=1)
    path = f"/v1/agents/{tenant_id}/order_triage"
    failed = steered.api.post(f"{path}/run", json={"input": text}).json()
    assert (failed["status"], failed["steps"]) == ("failed", 2)
    run = f"{path}/instances/{failed['instance_id']}/runs/{failed['run_id']}"
    begun = steered.api.post(f"{run}/retry")
    retried = eventually(lambda: steered.api.get(begun.headers["location"]).json(), lambda one: "output" in one)
    assert (begun.status_code, retried["status"], retried["steps"]) == (202, "completed", 1)
    kinds = [event["kind"] for event in timeline(steered.api, tenant_id, retried["run_id"])]
    assert kinds.count("tool_called") == 1
    streamed = steered.api.get(f"{begun.headers['location']}/events").text
    assert f'event: run.forked\ndata: {{"forked_from": "{failed["run_id"]}", "turns": 1}}' in streamed
    assert kinds[4:] == ["run_forked", "model_asked", "model_answered", "run_completed"]
    other = run[:-1] + ("1" if run.endswith("0") else "0")
    refused = [steered.api.post(f"{run}/fork", json={"turns": 2}), steered.api.post(f"{other}/retry")]
    assert [(one.status_code, one.json()["code"]) for one in refused] == [
        (400, "invalid_turn"),
        (404, "no_such_run"),
    ]


def test_a_model_that_is_overloaded_for_a_moment_is_asked_again(steered: Steered, puppet: Puppet) -> None:
    tenant_id = steered.tenant()
    puppet.fail(Failure(status=429, retry_after="0"))
    result = run(steered.api, tenant_id, "order_triage", order(say="said in the end"))
    assert result["output"] == "said in the end"


@pytest.mark.parametrize("arguments", ["[" * 20_000, '{"input":' * 3_000, "{", "[]"])
def test_tool_arguments_that_are_not_an_object_or_nested_too_deeply_are_fed_back(
    steered: Steered, arguments: str
) -> None:
    result = run(steered.api, steered.tenant(), "order_triage", order(("delegate", as_it_is(arguments))))
    assert json.loads(result["output"])[0]["error"]["code"] == "malformed_tool_call"


def test_a_run_waits_for_a_server_that_is_down_and_the_alarm_asks_again(steered: Steered, puppet: Puppet) -> None:
    tenant_id = steered.tenant()
    puppet.fail(Failure(status=503, code="overloaded"), times=4)
    path = f"/v1/agents/{tenant_id}/order_triage"
    answer = steered.api.post(f"{path}/run", json={"input": order(say="back again"), "instance_id": "patient"})
    waiting = answer.json()
    assert (answer.status_code, waiting["status"]) == (202, "waiting")
    asked = waiting["waiting_for"]
    assert (asked["kind"], asked["code"], asked["status"]) == ("model", "model_unavailable", 503)
    place = f"{path}/instances/patient/runs/{waiting['run_id']}"
    result = eventually(lambda: steered.api.get(place).json(), lambda shown: shown["status"] == "completed")
    assert (result["output"], result["finish_reason"]) == ("back again", "stop")
    recorded_run(steered.api, tenant_id, waiting["run_id"])
    kinds = [event["kind"] for event in timeline(steered.api, tenant_id, waiting["run_id"])]
    retries = ["call_retried"] * 3
    assert kinds == [
        *("model_asked", *retries, "model_unavailable", "run_resumed"),
        *("model_asked", "model_answered", "run_completed"),
    ]


def test_a_function_that_exits_fails_its_call_and_not_the_process(steered: Steered) -> None:
    tenant_id = steered.tenant()
    result = run(steered.api, tenant_id, "clerk", order(("quit_process", {})))
    assert json.loads(result["output"])[0]["error"]["code"] == "internal"
    recorded_run(steered.api, tenant_id, result["run_id"])
    kinds = [event["kind"] for event in timeline(steered.api, tenant_id, result["run_id"])]
    assert "run_recovered" not in kinds


def test_a_function_that_ends_badly_ends_its_own_call_and_no_neighbour(steered: Steered, puppet: Puppet) -> None:
    """The neighbour waits for its model meanwhile. Nothing interrupts it."""
    tenant_id = steered.tenant()
    endings = ["interrupt", "cancellation", "closing", "out of memory", "recursion"]
    with puppet.holding("a neighbour") as hold, ThreadPoolExecutor(1) as pool:
        neighbour = pool.submit(run, steered.api, tenant_id, "order_triage", order(say="a neighbour"))
        hold.wait_for_arrival()
        calls = [("end_badly", {"how": how}) for how in endings]
        result = run(steered.api, tenant_id, "clerk", order(*calls))
        hold.released.set()
    assert [answer["error"]["code"] for answer in json.loads(result["output"])] == ["internal"] * len(endings)
    for ended in (result, neighbour.result()):
        recorded_run(steered.api, tenant_id, ended["run_id"])
        kinds = [event["kind"] for event in timeline(steered.api, tenant_id, ended["run_id"])]
        assert "run_recovered" not in kinds


def test_a_streamed_run_on_a_server_that_does_not_stream_has_its_answer(steered: Steered, puppet: Puppet) -> None:
    tenant_id = steered.tenant()
    puppet.fail(Failure("whole"))
    body = {"input": order(say="all at once"), "stream": True}
    with steered.api.stream("POST", f"/v1/agents/{tenant_id}/order_triage/run", json=body) as response:
        text = "".join(response.iter_text())
    assert '"text": "all at once"' in text
    assert "event: run.completed" in text


def test_half_a_letter_in_an_answer_does_not_end_the_run(steered: Steered) -> None:
    result = run(steered.api, steered.tenant(), "order_triage", r'{"calls": [], "say": "x \ud83d y"}')
    assert result["output"] == "x \ufffd y"


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
def test_a_run_is_cancelled_while_its_model_hangs(steered: Steered, puppet: Puppet, stream: bool) -> None:
    tenant_id = steered.tenant()
    path = f"/v1/agents/{tenant_id}/clerk"
    body = {"input": order(say="it hangs"), "stream": stream, "instance_id": "hung"}
    with ThreadPoolExecutor(1) as pool, puppet.holding("it hangs") as hold:
        asked = pool.submit(lambda: steered.api.post(f"{path}/run", json=body).text)
        hold.wait_for_arrival()
        [turn] = steered.api.get(f"{path}/instances/hung").json()["turn_state"]
        cancelled = steered.api.post(f"{path}/instances/hung/runs/{turn['run_id']}/cancel").json()
        assert cancelled["status"] == "cancelled"
        assert turn["run_id"] in asked.result(20)
        assert eventually(lambda: _hung_up(puppet), bool), "the request to the model was aborted"
        assert not hold.released.is_set()
        assert run(steered.api, tenant_id, "clerk", order(say="next"), instance_id="hung")["output"] == "next"


def test_a_run_whose_model_hangs_ends_at_its_deadline(steered: Steered, puppet: Puppet) -> None:
    tenant_id = steered.tenant()
    with puppet.holding("it hangs on") as hold:
        body = {"input": order(say="it hangs on")}
        result = steered.api.post(f"/v1/agents/{tenant_id}/hasty/run", json=body).json()
        assert (result["status"], result["error"]["code"], result["done"]) == ("failed", "run_deadline", [])
        assert eventually(lambda: _hung_up(puppet), bool), "the request to the model was aborted"
        assert not hold.released.is_set()


def _hung_up(puppet: Puppet) -> bool:
    """Return whether the client of a request that the model has not answered is gone: its connection is half closed."""
    port = int(puppet.base_url.rsplit(":", 1)[1].split("/")[0])
    half_closed = "08"
    connections = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return any(local.endswith(f":{port:04X}") and state == half_closed for _, local, _, state, *_ in connections)
