"""The agents' MCP server on the real workerd: the official client, with a key, and a run as a task."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest
from mcp_types import TextContent

from tests.e2e.waiting import eventually
from tests.support.mcp_client import MODES, Mode, connected

pytestmark = pytest.mark.workerd
TASKS = "io.modelcontextprotocol/tasks"
VERSION = "2026-07-28"


def _made(api: httpx.Client, path: str, body: dict[str, object]) -> Any:
    return api.post(path, json=body).json()


def _shown(api: httpx.Client, path: str) -> Any:
    return api.get(path).json()


@pytest.mark.parametrize("mode", MODES)
async def test_an_agent_is_called_as_a_tool_with_an_application_s_key(
    api: httpx.Client, tenant: Callable[[], str], mode: Mode
) -> None:
    tenant_id = tenant()
    made = _made(api, f"/admin/tenants/{tenant_id}/keys", {"name": "shop", "scopes": ["runs"]})
    key = {"authorization": f"Bearer {made['key']}"}
    async with connected(f"{api.base_url}/v1/agents/{tenant_id}/mcp", mode=mode, headers=key) as client:
        assert "sdr" in {tool.name for tool in (await client.list_tools()).tools}
        answered = await client.call_tool("sdr", {"input": "hello", "instance_id": "desk"})
        assert isinstance(answered.content[0], TextContent)
        assert (answered.is_error, answered.content[0].text[:11]) == (False, "Tell me how")
        assert answered.structured_content is not None
    run = f"/v1/agents/{tenant_id}/sdr/instances/desk/runs/{answered.structured_content['run_id']}"
    shown = _shown(api, run)
    assert (shown["output"], shown["by"]) == (answered.content[0].text, f"key:{made['key_id']}")


def _asked(api: httpx.Client, tenant_id: str, method: str, **params: Any) -> Any:
    meta = {
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientCapabilities": {"extensions": {TASKS: {}}},
    }
    named = str(params.get("taskId", params.get("name")))
    headers = {"mcp-protocol-version": VERSION, "mcp-method": method, "mcp-name": named}
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
    answer = api.post(f"/v1/agents/{tenant_id}/mcp", json=message, headers=headers)
    assert answer.status_code == 200, answer.text
    return answer.json()["result"]


def test_a_run_is_a_task_until_its_answer_is_there(api: httpx.Client, tenant: Callable[[], str]) -> None:
    tenant_id = tenant()
    begun = _asked(api, tenant_id, "tools/call", name="sdr", arguments={"input": "hello"})
    assert (begun["resultType"], begun["status"] in ("working", "completed")) == ("task", True)
    done = eventually(
        lambda: _asked(api, tenant_id, "tasks/get", taskId=begun["taskId"]), lambda task: task["status"] == "completed"
    )
    assert done["result"]["content"][0]["text"].startswith("Tell me how")
    assert done["createdAt"] == begun["createdAt"]
    assert _asked(api, tenant_id, "tasks/cancel", taskId=begun["taskId"]) == {"resultType": "complete"}
    assert _asked(api, tenant_id, "tasks/get", taskId=begun["taskId"])["status"] == "completed"
