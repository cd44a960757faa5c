"""A tenant's own agents with front ends, MCP, schedules, delegates, files, webhooks, evaluations and exports."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.e2e.conftest import Steered
from tests.e2e.puppet import Puppet, order
from tests.e2e.test_attachments import upload
from tests.e2e.test_tenant_agents import definition, instructions_in
from tests.e2e.waiting import eventually
from tests.support.files import data_url, png
from tests.support.mcp_client import MODES, Mode, connected

pytestmark = pytest.mark.workerd
SCHEMA = {"type": "object", "properties": {"total": {"type": "integer"}}, "required": ["total"]}


@pytest.fixture(scope="module")
def tenant_id(steered: Steered) -> str:
    """A tenant with an agent of its own, in its second version, and one to which that one delegates."""
    tenant_id = steered.tenant()
    define(steered, tenant_id, "packer", definition("Pack.", model={"accepts": ["image", "text"]}))
    define(steered, tenant_id, "seller", definition("Sell, at first."))
    define(
        steered,
        tenant_id,
        "seller",
        definition("Sell.", delegates=["packer", "helper"], model={"accepts": ["image", "text"]}),
    )
    return tenant_id


def define(steered: Steered, tenant_id: str, agent_type: str, body: dict[str, Any]) -> None:
    made = steered.api.put(f"/v1/tenants/{tenant_id}/agents/{agent_type}", json=body)
    assert made.is_success, made.text


def test_chat_completions_and_ag_ui_run_it_and_it_answers_by_a_schema(
    steered: Steered, puppet: Puppet, tenant_id: str
) -> None:
    headers = {"openai-organization": tenant_id}
    asked = [{"role": "user", "content": order(say="by chat")}]
    chat = steered.api.post("/v1/chat/completions", json={"model": "seller", "messages": asked}, headers=headers)
    assert chat.json()["choices"][0]["message"]["content"] == "by chat", chat.text
    schema = {"type": "json_schema", "json_schema": {"name": "bill", "schema": SCHEMA}}
    asked = [{"role": "user", "content": order(say='{"total": 3}')}]
    body = {"model": "seller", "messages": asked, "response_format": schema, "stream": True}
    assert '{\\"total\\": 3}' in steered.api.post("/v1/chat/completions", json=body, headers=headers).text
    message = {"id": "1", "role": "user", "content": order(say="by AG-UI")}
    empty: dict[str, Any] = {"state": {}, "tools": [], "context": [], "forwardedProps": {}}
    body = {"threadId": "desk", "runId": "one", "messages": [message], **empty}
    answer = steered.api.post(f"/v1/agents/{tenant_id}/seller/ag-ui", json=body)
    assert "by AG-UI" in answer.text
    assert answer.text.rstrip().splitlines()[-1].startswith('data: {"type":"RUN_FINISHED"'), answer.text[-300:]
    assert set(instructions_in(puppet, "by AG-UI")) == {"Sell."}


@pytest.mark.parametrize("mode", MODES)
async def test_it_is_a_tool_of_the_agents_server(steered: Steered, tenant_id: str, mode: Mode) -> None:
    async with connected(f"{steered.api.base_url}/v1/agents/{tenant_id}/mcp", mode=mode) as client:
        assert {"seller", "packer"} <= {tool.name for tool in (await client.list_tools()).tools}
        answered = await client.call_tool("seller", {"input": order(say="by MCP")})
        assert (answered.structured_content or {})["output"] == "by MCP"


def test_it_delegates_to_both_kinds_of_agents_and_passes_on_files(
    steered: Steered, puppet: Puppet, tenant_id: str
) -> None:
    picture = png(seed=71)
    image = upload(steered.api, tenant_id, picture, "image/png", name="box.png")
    packed, helped = order(say="packed it"), order(say="helped it")
    calls: list[tuple[str, dict[str, Any]]] = [
        ("delegate", {"agent": "packer", "input": packed, "files": ["box.png"]}),
        ("delegate", {"agent": "helper", "input": helped}),
    ]
    body = {"input": order(*calls, say="both did"), "attachments": [{"id": image["id"]}]}
    run = steered.api.post(f"/v1/agents/{tenant_id}/seller/run", json=body).json()
    assert run["output"] == "both did", run
    users = [
        one.body["messages"][-1]["content"] for one in puppet.received if one.body["messages"][-1]["role"] == "user"
    ]
    assert users.count(helped) == 1
    [sent] = [content for content in users if isinstance(content, list) and content[-1]["text"] == packed]
    assert sent[0] == {"type": "image_url", "image_url": {"url": data_url(picture)}}


def test_a_schedule_begins_it_and_a_webhook_hears_of_it(steered: Steered, tenant_id: str) -> None:
    hook = {"url": "http://127.0.0.1:1/hook", "events": ["run.completed"]}
    made = steered.api.post(f"/v1/tenants/{tenant_id}/webhooks", json=hook).json()
    at_ms = int(time.time() * 1000) + 1_000
    body = {"agent_type": "seller", "instance_id": "planned", "input": order(say="on time"), "at_ms": at_ms}
    planned = steered.api.post(f"/v1/tenants/{tenant_id}/schedules", json=body)
    assert planned.status_code == 201, planned.text
    runs = f"/admin/agents/{tenant_id}/runs?agent_type=seller&instance_id=planned"
    found = eventually(
        lambda: steered.api.get(runs).json()["runs"], lambda rows: [one["status"] for one in rows] == ["completed"]
    )
    assert found[0]["agent_version"] == 2
    deliveries = f"/v1/tenants/{tenant_id}/webhooks/{made['webhook_id']}/deliveries"
    owed = eventually(lambda: steered.api.get(deliveries).json()["deliveries"], bool)
    assert {one["run_id"] for one in owed} == {found[0]["run_id"]}
    steered.api.delete(f"/v1/tenants/{tenant_id}/webhooks/{made['webhook_id']}")


def test_it_is_evaluated_with_its_delegates_in_a_tenant_of_its_own(steered: Steered, tenant_id: str) -> None:
    asked = order(("delegate", {"agent": "packer", "input": order(say="packed")}), say="sold")
    case = {"id": "one", "input": asked, "expected": {"exact": "sold", "calls": {"calls": [{"tool": "delegate"}]}}}
    dataset = f"/admin/tenants/{tenant_id}/evals/datasets/selling"
    put = steered.api.put(dataset, json={"target": {"agent": "seller"}, "cases": [case]})
    assert put.is_success, put.text
    runs = f"/admin/tenants/{tenant_id}/evals/runs"
    assert steered.api.post(runs, json={"dataset": "selling"}).is_success
    [ended] = eventually(
        lambda: steered.api.get(runs).json()["runs"], lambda found: found[0]["state"] == "completed", within_s=60
    )
    assert (ended["passed"], ended["failed"], ended["errored"]) == (1, 0, 0)


def test_an_export_brings_every_version_into_another_tenant_and_an_erasure_removes_them(
    steered: Steered, tenant_id: str
) -> None:
    other, lines = steered.tenant(), []
    query: dict[str, str] = {}
    while True:
        page = steered.api.get(f"/admin/tenants/{tenant_id}/export", params=query).text
        lines.append(page)
        cursor = next(line for line in reversed(page.splitlines()) if '"kind":"page"' in line)
        if '"cursor":null' in cursor:
            break
        query = {"cursor": cursor.partition('"cursor":"')[2].partition('"')[0]}
    for _ in range(2):  # repeated, it changes nothing
        for page in lines:
            headers = {"content-type": "application/x-ndjson"}
            answer = steered.api.post(f"/admin/tenants/{other}/import", content=page, headers=headers)
            assert answer.is_success, answer.text
    versions = steered.api.get(f"/v1/tenants/{other}/agents/seller/versions").json()["versions"]
    assert [one["version"] for one in versions] == [2, 1]
    run = steered.api.post(f"/v1/agents/{other}/seller/run", json={"input": order(say="sold there")}).json()
    assert run["output"] == "sold there"
    eventually(
        lambda: steered.api.post(f"/admin/tenants/{other}/erase", json={"tenant": True, "confirm": other}).json(),
        lambda answer: answer.get("receipt", {}).get("state") == "completed",
        within_s=60,
    )
    assert steered.api.put(f"/admin/tenants/{other}").status_code in (200, 201)
    refused = steered.api.post(f"/v1/agents/{other}/seller/run", json={"input": order(say="sold")})
    assert (refused.status_code, refused.json()["code"]) == (404, "unknown_agent")
