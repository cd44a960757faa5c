"""A run that waits for a person outlives the storage of its instance."""

from __future__ import annotations

import pytest

from tests.e2e.calls import recorded_run, timeline
from tests.e2e.conftest import Steered
from tests.e2e.puppet import order
from tests.e2e.waiting import eventually

pytestmark = pytest.mark.workerd


def test_a_run_whose_instance_lost_its_storage_is_approved_and_ends_as_it_would_have(steered: Steered) -> None:
    tenant_id = steered.tenant()
    path = f"/v1/agents/{tenant_id}/clerk/run"
    body = {"input": order(("issue_refund", {"order": "AB-1"})), "instance_id": "desk", "user": {"id": "sue"}}
    key = {"idempotency-key": "parked-1"}
    waiting = steered.api.post(path, json=body, headers=key).json()
    assert waiting["status"] == "waiting"
    run_id = waiting["run_id"]
    parked = "SELECT run_id, user_id, idempotency_key, seq FROM parked_runs WHERE tenant_id = ?"
    [copy] = eventually(lambda: steered.state.d1(parked, tenant_id), bool)
    assert (copy["run_id"], copy["user_id"], copy["idempotency_key"]) == (run_id, "sue", "parked-1")
    before = timeline(steered.api, tenant_id, run_id)
    steered.crash()
    steered.state.lose_instance(f"clerk:{tenant_id}:desk")
    steered.restart()
    again = steered.api.post(path, json=body, headers=key).json()
    assert again == waiting
    place = f"/v1/agents/{tenant_id}/clerk/instances/desk/runs/{run_id}"
    answer = {"call": waiting["waiting_for"]["call"], "decision": "approve"}
    for _ in range(2):
        assert steered.api.post(f"{place}/resume", json=answer).status_code in (200, 202)
    result = eventually(lambda: steered.api.get(place).json(), lambda shown: shown["status"] == "completed")
    assert '"refunded": "AB-1"' in result["output"].replace("\\", "")
    assert recorded_run(steered.api, tenant_id, run_id)["status"] == "completed"
    events = timeline(steered.api, tenant_id, run_id)
    assert events[: len(before)] == before
    assert [event["kind"] for event in events].count("tool_called") == 1
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert eventually(lambda: steered.state.d1(parked, tenant_id) == [], bool)
