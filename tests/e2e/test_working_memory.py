"""Tier 1 of the three-tier memory model: working memory. The names are its acceptance criteria."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from tests.e2e.calls import instance, run
from tests.e2e.conftest import Steered
from tests.e2e.local_state import LocalState
from tests.e2e.puppet import Puppet, order

pytestmark = pytest.mark.workerd

DRAFTS = {
    "direct_roi": "Dear contact:7, may I show you how much money you would save?",
    "social_proof": "Dear contact:7, may I show you what a company of your trade gained with us?",
    "open_question": "Dear contact:7, what takes your team most time each week?",
}
"""What the SDR's script writes to a contact of whom nothing is known, by workflow."""
HOUR_MS = 3_600_000


def test_turn_state_row_is_created_on_the_first_run_call_and_updated_on_completion(
    steered: Steered, puppet: Puppet
) -> None:
    tenant_id = steered.tenant()
    path = f"/v1/agents/{tenant_id}/order_triage/run"
    body = {"input": order(say="row"), "instance_id": "one"}
    with ThreadPoolExecutor(1) as pool, puppet.holding("row") as hold:
        answer = pool.submit(steered.api.post, path, json=body)
        hold.wait_for_arrival()
        [created] = steered.state.instance(tenant_id, "order_triage", "one", "SELECT * FROM turn_state")
        [shown] = instance(steered.api, tenant_id, "order_triage", "one")["turn_state"]
        hold.released.set()
        run_id = answer.result().json()["run_id"]
    assert (created["run_id"], created["status"], created["turn"], created["result"]) == (run_id, "running", 1, None)
    assert shown["status"] == "running"
    [updated] = steered.state.instance(tenant_id, "order_triage", "one", "SELECT * FROM turn_state")
    assert (updated["run_id"], updated["status"]) == (run_id, "completed")
    assert json.loads(updated["result"])["output"] == "row"
    assert updated["created_at_ms"] == created["created_at_ms"] < updated["updated_at_ms"]


def test_a_run_log_row_is_written_for_every_agent_turn(
    api: httpx.Client, tenant: Callable[[], str], state: LocalState
) -> None:
    tenant_id = tenant()
    result = run(api, tenant_id, "sdr", "Draft an e-mail to contact:7", instance_id="desk")
    rows = state.instance(tenant_id, "sdr", "desk", "SELECT * FROM run_log ORDER BY seq")
    assert {row["run_id"] for row in rows} == {result["run_id"]}
    assert [row["seq"] for row in rows] == list(range(1, len(rows) + 1))
    # Each model call and each tool call is in the log before it happens and after it.
    turn_1 = ["model_asked", "model_answered", "tool_called", "tool_answered", "tool_called", "tool_answered"]
    turn_2 = ["model_asked", "model_answered", "tool_called", "tool_answered"]
    turn_3 = ["model_asked", "model_answered", "run_completed"]
    logged = [(row["turn"], row["kind"]) for row in rows]
    assert logged == [(turn, kind) for turn, kinds in enumerate((turn_1, turn_2, turn_3), 1) for kind in kinds]
    assert [row["at_ms"] for row in rows] == sorted(row["at_ms"] for row in rows), "time does not go back"
    shown = instance(api, tenant_id, "sdr", "desk")["run_log"]
    assert [(entry["turn"], entry["kind"]) for entry in reversed(shown)] == logged


def test_agent_working_kv_keys_are_set_in_the_sdr_agent_loop_for_an_hour(
    api: httpx.Client, tenant: Callable[[], str], state: LocalState
) -> None:
    tenant_id = tenant()
    result = run(api, tenant_id, "sdr", "Draft an e-mail to contact:7", instance_id="desk")
    [turn_state] = state.instance(tenant_id, "sdr", "desk", "SELECT * FROM turn_state")
    prefix = f"agent_working:{tenant_id}:desk:sdr."
    found = state.kv(f"agent_working:{tenant_id}:")
    assert {key: json.loads(value) for key, (value, _) in found.items()} == {
        f"{prefix}current_contact_id": "contact:7",
        f"{prefix}email_draft_v2": DRAFTS[result["procedure"]["workflow_id"]],
    }
    for _, expires_at_ms in found.values():
        assert expires_at_ms is not None
        # KV counts in whole seconds.
        assert turn_state["created_at_ms"] - 1000 <= expires_at_ms - HOUR_MS <= turn_state["updated_at_ms"] + 1000


def test_agent_working_keys_are_read_in_the_sdr_agent_loop(
    api: httpx.Client, tenant: Callable[[], str], state: LocalState
) -> None:
    tenant_id = tenant()
    first = run(api, tenant_id, "sdr", "Draft an e-mail to contact:7", instance_id="desk")
    second = run(api, tenant_id, "sdr", "What do you do?", instance_id="desk")
    [row] = state.instance(
        tenant_id, "sdr", "desk", f"SELECT context FROM turn_state WHERE run_id = '{second['run_id']}'"
    )
    remembered = json.loads(row["context"])["messages"][-2]["content"]
    assert 'current_contact_id = "contact:7"' in remembered
    assert f'email_draft_v2 = "{DRAFTS[first["procedure"]["workflow_id"]]}"' in remembered


def test_working_memory_is_the_instance_s_own(api: httpx.Client, tenant: Callable[[], str], state: LocalState) -> None:
    first, second = tenant(), tenant()
    run(api, first, "sdr", "Draft an e-mail to contact:7", instance_id="desk")
    for tenant_id, instance_id in ((first, "desk-2"), (second, "desk")):
        run(api, tenant_id, "sdr", "What do you do?", instance_id=instance_id)
        assert instance(api, tenant_id, "sdr", instance_id)["working"] == {}
        assert state.kv(f"agent_working:{tenant_id}:{instance_id}:") == {}
    assert set(instance(api, first, "sdr", "desk")["working"]) == {"current_contact_id", "email_draft_v2"}
