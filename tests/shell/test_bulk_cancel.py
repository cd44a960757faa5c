"""Many runs cancelled at once, through the whole Worker: those that are named, and no others."""

from __future__ import annotations

import json
from typing import Any

import pytest

from retain.admin.resources.runs import MAX_CANCELLED
from tests.agents.conftest import agent
from tests.shell.worker import Worker, serving
from tests.support.instances import staged_agents

CANCEL = "/v1/agents/acme/runs/cancel"
_CALL = {"tool": "set_working_memory", "arguments": {"key": "k", "value": 1}}
SCRIPT = {"name": "payer", "rules": [{"rule": "pay", "when": {}, "reply": {"calls": [_CALL]}}]}


def payers() -> str:
    """Return agents whose runs wait for a person."""
    asks = {
        "working_memory": True,
        "approval": ["set_working_memory"],
        "model": {"provider": "scripted", "script": "payer"},
    }
    return staged_agents(agent("clerk", **asks), agent("helper", **asks), scripts=[SCRIPT])


async def waiting(worker: Worker, name: str, instance: str, **more: object) -> str:
    """Let a run wait; return its id."""
    body = {"input": "pay", "instance_id": instance, **more}
    answer = await worker.request("POST", f"/v1/agents/acme/{name}/run", body)
    assert (answer.status, answer.content["status"]) == (202, "waiting"), answer.body
    await worker.settled()
    return str(answer.content["run_id"])


async def cancelled(worker: Worker, **body: object) -> dict[str, Any]:
    answer = await worker.request("POST", CANCEL, body)
    await worker.settled()
    assert answer.status == 200, answer.body
    return dict(answer.content)


async def test_the_open_runs_that_are_named_are_cancelled_and_no_others() -> None:
    async with serving(agents=payers()) as worker:
        await worker.tenant("acme")
        ann = [await waiting(worker, "clerk", f"desk-{number}", user={"id": "ann"}) for number in range(3)]
        bob = await waiting(worker, "clerk", "bobs", user={"id": "bob"})
        other = await waiting(worker, "helper", "desk")
        first = await cancelled(worker, user_id="ann", limit=2, reason="withdrawn")
        assert [(one["run_id"], one["status"], one["error"]) for one in first["runs"]] == [
            (run_id, "cancelled", None) for run_id in reversed(ann[1:])
        ]
        rest = await cancelled(worker, user_id="ann", limit=2, cursor=first["cursor"])
        assert ([one["run_id"] for one in rest["runs"]], rest["cursor"]) == (ann[:1], None)
        shown = await worker.request("GET", f"/v1/agents/acme/clerk/instances/desk-1/runs/{ann[1]}")
        assert shown.content["error"] == {"code": "cancelled", "message": "withdrawn", "by": "person:developer"}
        still = (await worker.request("GET", "/v1/agents/acme/runs?status=open")).content["runs"]
        assert {one["run_id"] for one in still} == {bob, other}
        [by_instance] = (await cancelled(worker, agent_type="clerk", instance_id="bobs"))["runs"]
        assert by_instance["run_id"] == bob
        assert (await cancelled(worker, status="running"))["runs"] == []
        assert [one["run_id"] for one in (await cancelled(worker, status="waiting"))["runs"]] == [other]
        assert (await cancelled(worker, status="waiting"))["runs"] == []


async def test_an_instance_that_refuses_is_named_and_the_others_are_cancelled() -> None:
    async with serving(agents=payers()) as worker:
        await worker.tenant("acme")
        gone, there = await waiting(worker, "clerk", "gone"), await waiting(worker, "clerk", "there")
        await worker.rows("UPDATE agent_runs SET instance_id = 'elsewhere' WHERE run_id = ?", gone)
        found = {one["run_id"]: one for one in (await cancelled(worker, agent_type="clerk"))["runs"]}
        assert (found[there]["status"], found[there]["error"]) == ("cancelled", None)
        assert (found[gone]["status"], found[gone]["error"]["code"]) == ("waiting", "no_such_instance")


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({}, "invalid_body"),
        ({"reason": "all of them"}, "invalid_body"),
        ({"agent_type": "clerk", "limit": MAX_CANCELLED + 1}, "invalid_body"),
        ({"agent_type": "clerk", "status": "completed"}, "invalid_body"),
        ({"agent_type": "Clerk"}, "invalid_agent_type"),
        ({"user_id": "ann", "instance_id": "desk"}, "invalid_query"),
        ({"user_id": "ann", "cursor": "x"}, "invalid_cursor"),
    ],
    ids=json.dumps,
)
async def test_which_runs_are_meant_has_to_be_said(worker: Worker, body: dict[str, Any], code: str) -> None:
    await worker.tenant("acme")
    answer = await worker.request("POST", CANCEL, body)
    assert (answer.status, answer.content["code"]) == (400, code)
    most = await worker.request("POST", CANCEL, {"agent_type": "clerk", "limit": MAX_CANCELLED})
    assert (most.status, most.content) == (200, {"runs": [], "cursor": None})
