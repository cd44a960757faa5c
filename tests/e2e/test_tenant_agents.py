"""A tenant's own agents on the real Worker: defined over HTTP, changed while a run waits, and kept through a crash."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.e2e.calls import recorded_run
from tests.e2e.conftest import Steered
from tests.e2e.puppet import Puppet, order
from tests.e2e.waiting import eventually

pytestmark = pytest.mark.workerd


def definition(instructions: str, **more: Any) -> dict[str, Any]:
    return {"description": "Refunds.", "instructions": instructions, "functions": ["issue_refund"], **more}


def instructions_in(puppet: Puppet, text: str) -> list[str]:
    """Return the instructions that the model was given in the runs whose input has a text."""
    asked = [request.messages for request in puppet.requests if any(text in one.content for one in request.messages)]
    return [messages[0].content.partition("\n")[0] for messages in asked]


def test_a_waiting_run_ends_under_the_version_it_began_with_and_the_next_has_the_new_one(
    steered: Steered, puppet: Puppet
) -> None:
    tenant_id = steered.tenant()
    agent, path = f"/v1/tenants/{tenant_id}/agents/seller", f"/v1/agents/{tenant_id}/seller"
    assert steered.api.post(f"{path}/run", json={"input": "hello"}).json()["code"] == "unknown_agent"
    made = steered.api.put(agent, json=definition("Refund after approval."))
    assert (made.status_code, made.json()["version"], made.headers["etag"]) == (201, 1, '"1"')
    body = {"input": order(("issue_refund", {"order": "ZX-81"})), "instance_id": "desk"}
    waiting = steered.api.post(f"{path}/run", json=body).json()
    assert waiting["status"] == "waiting"
    weakened = {"if-match": 'W/"1"'}  # as a proxy that compresses passes it on
    changed = steered.api.put(agent, json=definition("Refund nothing.", functions=[]), headers=weakened)
    assert (changed.status_code, changed.json()["version"], changed.json()["added"]) == (200, 2, True)
    stale = steered.api.put(agent, json=definition("Lost."), headers={"if-match": '"1"'})
    assert (stale.status_code, stale.json()["code"], stale.json()["version"]) == (409, "agent_changed", 2)
    place = f"{path}/instances/desk/runs/{waiting['run_id']}"
    steered.crash()
    steered.restart()
    answer = {"call": waiting["waiting_for"]["call"], "decision": "approve"}
    assert steered.api.post(f"{place}/resume", json=answer).status_code in (200, 202)
    result = eventually(lambda: steered.api.get(place).json(), lambda shown: shown["status"] == "completed")
    assert '"refunded": "ZX-81"' in result["output"].replace("\\", "")
    assert instructions_in(puppet, "ZX-81") == ["Refund after approval."] * 2
    body = {"input": order(("issue_refund", {"order": "ZX-82"})), "instance_id": "desk"}
    ended = steered.api.post(f"{path}/run", json=body).json()
    assert ended["status"] == "completed"
    assert set(instructions_in(puppet, "ZX-82")) == {"Refund nothing."}
    recorded = {
        run: recorded_run(steered.api, tenant_id, run)["agent_version"] for run in (waiting["run_id"], ended["run_id"])
    }
    assert list(recorded.values()) == [1, 2]
    listed = steered.api.get(f"/v1/agents/{tenant_id}").json()["agents"]
    assert [(one["source"], one["version"]) for one in listed if one["agent_type"] == "seller"] == [("tenant", 2)]


def test_a_deleted_agent_refuses_runs_and_ends_those_that_wait(steered: Steered, puppet: Puppet) -> None:
    tenant_id = steered.tenant()
    agent, path = f"/v1/tenants/{tenant_id}/agents/seller", f"/v1/agents/{tenant_id}/seller"
    assert steered.api.put(agent, json=definition("Refund after approval.")).status_code == 201
    body = {"input": order(("issue_refund", {"order": "ZX-83"})), "instance_id": "desk"}
    waiting = steered.api.post(f"{path}/run", json=body).json()
    assert steered.api.delete(agent).status_code == 204
    for instance in ("desk", "other"):
        refused = steered.api.post(f"{path}/run", json={"input": "hello", "instance_id": instance})
        assert (refused.status_code, refused.json()["code"]) == (404, "agent_deleted")
    place = f"{path}/instances/desk/runs/{waiting['run_id']}"
    answer = {"call": waiting["waiting_for"]["call"], "decision": "approve"}
    assert steered.api.post(f"{place}/resume", json=answer).status_code in (200, 202)
    eventually(lambda: steered.api.get(place).json(), lambda shown: shown["status"] == "completed")
    again = steered.api.post(f"{agent}/rollback", json={"version": 1})
    assert (again.status_code, again.json()["version"], again.json()["restored_from"]) == (200, 3, 1)
    assert steered.api.post(f"{path}/run", json={"input": order(say="back")}).json()["output"] == "back"


def test_problems_are_named_by_where_they_are_and_nothing_is_stored(steered: Steered) -> None:
    tenant_id = steered.tenant()
    agent = f"/v1/tenants/{tenant_id}/agents/seller"
    bad = definition("Sell.", functions=["nothing"], delegates=["nobody"], model={"name": "another"})
    refused = steered.api.put(agent, json=bad)
    assert (refused.status_code, refused.json()["code"]) == (400, "invalid_agent")
    assert [problem.partition(":")[0] for problem in refused.json()["problems"]] == [
        "/functions/0",
        "/delegates/0",
        "/model",
    ]
    checked = steered.api.post(f"{agent}/check", json={**definition("Sell."), "tools": ["ship"], "limit": 1}).json()
    assert (checked["valid"], [one["pointer"] for one in checked["problems"]]) == (False, ["/limit"])
    checked = steered.api.post(f"{agent}/check", json=definition("Sell.", tools=["ship"])).json()
    assert (checked["valid"], [one["pointer"] for one in checked["warnings"]]) == (True, ["/tools/0"])
    assert steered.api.get(agent).json()["code"] == "unknown_agent"


def test_an_agent_forgets_what_it_may_and_reads_since_when_the_rest_is_so(steered: Steered, puppet: Puppet) -> None:
    tenant_id = steered.tenant()
    path, memories = f"/v1/agents/{tenant_id}/waiter/run", f"/admin/tenants/{tenant_id}/memories"
    config = {"long_term_enabled": True, "recall": "both", "forget": True, "min_score": 0}
    waiter = {"description": "Serves.", "instructions": "Serve.", "memory_config": config}
    assert steered.api.put(f"/v1/tenants/{tenant_id}/agents/waiter", json=waiter).status_code == 201

    def ask(*calls: tuple[str, dict[str, Any]]) -> None:
        body = {"input": order(*calls), "user": {"id": "ann"}}
        assert steered.api.post(path, json=body).json()["status"] == "completed"

    ask(("store_memory", {"content": "Ann likes tea"}), ("store_memory", {"content": "Ann likes ZX-91 cake"}))
    kept = {
        one["content"]: one["id"] for one in steered.api.get(memories, params={"user_id": "ann"}).json()["memories"]
    }
    ask(("recall_memory", {"query": "tea"}), ("forget_memory", {"ids": [kept["Ann likes tea"]]}))
    found = steered.api.post(f"{memories}/recall", json={"query": "what Ann likes", "user_id": "ann"}).json()
    assert [one["content"] for one in found["memories"]] == ["Ann likes ZX-91 cake"]
    ask()
    read = "\n".join(message.content for message in puppet.requests[-1].messages)
    assert re.search(r"^\(since \d{4}-\d\d-\d\d \d\d:\d\d UTC\) Ann likes ZX-91 cake$", read, re.MULTILINE)
    assert "Ann likes tea" not in read.split('<memory section="records"')[1].split("</memory>")[0]
