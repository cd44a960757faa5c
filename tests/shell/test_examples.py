"""The examples of the OpenAPI document: the Worker accepts each of them, or refuses what it concerns, never its body."""

from __future__ import annotations

import pytest

from tests.shell.worker import Worker
from tools.openapi import operations, public_path
from tools.openapi.examples import EXAMPLES

ELSEWHERE = {"send_gateway_message"}
"""What needs a key of the gateway: tests/gateway."""
DEFINING = {"define_agent", "check_agent", "roll_back_agent"}
"""What concerns an agent of the tenant's own, which no agent of the repository is."""
WRONG_STATE = {
    "resume_run": "not_waiting",
    "move_tenant": "one_database",
    "fork_run": "wrong_user",
    "record_run_outcome": "no_procedure",
    "create_token": "key_required",
    "start_restore": "no_such_backup",
    "advance_key_migration": "not_ready",
    "record_release": "wrong_phase",
    "backfill_keys": "backfill_not_allowed",
}
"""What the tenant of this test is not in a state for, and the code that says so."""


def test_every_json_body_has_an_example() -> None:
    read = {name for name, route in operations().items() if route.body and route.body.media_type == "application/json"}
    assert EXAMPLES.keys() == read - {"call_tool"}


@pytest.mark.timeout(120)
async def test_every_example_is_accepted(worker: Worker) -> None:
    assert (await worker.request("PUT", "/admin/tenants/acme", EXAMPLES["register_tenant"])).status == 201
    run = await worker.run("acme", "order_triage", "From: ann@shop.example\n\nHello", instance_id="desk")
    key = (await worker.request("POST", "/admin/tenants/acme/keys", EXAMPLES["create_key"])).content
    memory = (await worker.request("POST", "/admin/tenants/acme/memories", {"content": "Ann likes tea."})).content
    webhook = (await worker.request("POST", "/admin/tenants/acme/webhooks", EXAMPLES["create_webhook"])).content
    planned = EXAMPLES["create_schedule"]
    schedule = (await worker.request("POST", "/admin/tenants/acme/schedules", planned)).content
    places = {
        "tenant": "acme",
        "agent_type": "order_triage",
        "instance_id": "desk",
        "run_id": run["run_id"],
        "key_id": key["key_id"],
        "webhook_id": webhook["webhook_id"],
        "schedule_id": schedule["schedule_id"],
        "user": "ann",
        "subject": "email:ada@example.com",
        "name": "refunds",
        "service": "crm",
        "session": "s1",
        "kind": "preferences",
        "id": memory["id"],
    }
    refused = {}
    for name, example in EXAMPLES.items():
        route = operations()[name]
        if name in ELSEWHERE:
            continue
        own = {"agent_type": "clerk"} if name in DEFINING else {}
        answer = await worker.request(route.method, public_path(route).format(**(places | own)), example)
        if answer.status >= 300:
            refused[name] = answer.content["code"]
    assert refused == WRONG_STATE
