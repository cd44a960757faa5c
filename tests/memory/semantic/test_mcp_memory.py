"""A tenant's memory through the official MCP client, on the real workerd."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from mcp import Client, MCPError
from mcp_types import TextContent

from retain.mcp.server import PROBLEM
from tests.support.mcp_client import MODES, Mode, connected

pytestmark = pytest.mark.workerd


async def called(client: Client, tool: str, **arguments: Any) -> Any:
    result = await client.call_tool(tool, arguments)
    assert isinstance(result.content[0], TextContent)
    assert not result.is_error, result.content[0].text
    return json.loads(result.content[0].text)


async def failure(client: Client, tool: str, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    assert isinstance(result.content[0], TextContent)
    assert result.is_error
    return result.content[0].text.partition(":")[0]


def address(api: httpx.Client, tenant_id: str, scope: str = "") -> str:
    return f"{api.base_url}/admin/tenants/{tenant_id}/mcp{scope}"


@pytest.mark.parametrize("mode", MODES)
async def test_a_memory_is_remembered_recalled_edited_and_forgotten(
    api: httpx.Client, tenant: Callable[[], str], mode: Mode
) -> None:
    async with connected(address(api, tenant()), mode=mode) as client:
        tools = (await client.list_tools()).tools
        assert [tool.name for tool in tools] == ["remember", "recall", "list", "get", "edit", "forget"]
        made = await called(client, "remember", content="Ann likes green tea.", metadata={"checked": True})
        assert await called(client, "remember", content="Ann likes green tea.") == {**made, "created": False}
        [hit] = (await called(client, "recall", query="what does Ann drink?", filter={"checked": True}))["memories"]
        assert hit["id"] == made["id"]
        assert await called(client, "recall", query="What is 2+2?", min_score=0.3) == {"memories": [], "degraded": []}
        assert await failure(client, "recall", query="tea", min_score=2) == "invalid_body"
        await called(client, "edit", id=made["id"], content="Ann likes black tea.")
        shown = await called(client, "get", id=made["id"])
        assert (shown["content"], [event["kind"] for event in shown["events"]]) == (
            "Ann likes black tea.",
            ["stored", "edited"],
        )
        assert shown["source"] == {"origin": "person", "by": "developer"}
        [then] = (await called(client, "recall", query="green", as_of_ms=shown["recorded_at_ms"]))["memories"]
        assert then["content"] == "Ann likes green tea."
        for tool, asked in (("recall", {"query": "tea"}), ("list", {})):
            for at_ms, count in ((shown["valid_from_ms"], 1), (shown["valid_from_ms"] - 1, 0)):
                assert len((await called(client, tool, **asked, valid_at_ms=at_ms))["memories"]) == count
        listed = (await called(client, "list", filter={"checked": True}, limit=5))["memories"]
        assert [memory["id"] for memory in listed] == [made["id"]]
        await called(client, "forget", id=made["id"])
        assert await failure(client, "get", id=made["id"]) == "no_such_memory"


async def test_the_address_alone_determines_whose_memory_it_is(api: httpx.Client, tenant: Callable[[], str]) -> None:
    mine, other = tenant(), tenant()
    async with connected(address(api, mine, "?agent_type=sdr"), mode="legacy") as sdr:
        made = await called(sdr, "remember", content="Bea prefers mornings.")
        assert await failure(sdr, "remember", content="x", agent_type="refund_decision") == "invalid_body"
        assert await failure(sdr, "recall", query="x", tenant=other) == "invalid_body"
        assert [hit["id"] for hit in (await called(sdr, "recall", query="mornings"))["memories"]] == [made["id"]]
    async with connected(address(api, mine, "?agent_type=refund_decision"), mode="legacy") as refunds:
        assert (await called(refunds, "recall", query="mornings"))["memories"] == []
    async with connected(address(api, other), mode="legacy") as neighbour:
        assert (await called(neighbour, "list"))["memories"] == []
        assert await failure(neighbour, "get", id=made["id"]) == "no_such_memory"


async def test_the_address_alone_determines_which_memories_can_be_read_and_changed_by_id(
    api: httpx.Client, tenant: Callable[[], str]
) -> None:
    acme = tenant()
    async with connected(address(api, acme), mode="legacy") as whole:
        tenants = (await called(whole, "remember", content="The shop closes at eight."))["id"]
    async with connected(address(api, acme, "?agent_type=sdr"), mode="legacy") as sdr:
        own = (await called(sdr, "remember", content="Bea prefers mornings."))["id"]
    async with connected(address(api, acme, "?agent_type=refund_decision"), mode="legacy") as refunds:
        for tool, more in (("get", {}), ("edit", {"content": "Bea prefers nights."}), ("forget", {})):
            assert await failure(refunds, tool, id=own, **more) == "no_such_memory"
        assert (await called(refunds, "get", id=tenants))["content"] == "The shop closes at eight."
        for tool, more in (("edit", {"content": "The shop closes never."}), ("forget", {})):
            assert await failure(refunds, tool, id=tenants, **more) == "no_such_memory"
    async with connected(address(api, acme, "?agent_type=sdr"), mode="legacy") as sdr:
        assert (await called(sdr, "get", id=own))["content"] == "Bea prefers mornings."
        await called(sdr, "forget", id=own)


async def test_a_refused_call_says_what_to_correct(api: httpx.Client, tenant: Callable[[], str]) -> None:
    async with connected(address(api, tenant()), mode="legacy") as client:
        refused = await client.call_tool("remember", {"confidence": "0.5"})
        assert refused.is_error
        assert isinstance(refused.content[0], TextContent)
        text = refused.content[0].text
        assert text.startswith("invalid_body: the body does not fit\n")
        assert "content: Field required" in text
        assert "confidence: Input should be a valid number" in text
        problem = (refused.meta or {})[PROBLEM]
        assert (problem["code"], problem["status"]) == ("invalid_body", 400)
        missing = await client.call_tool("get", {"id": "01ARZ3NDEKTSV4RRFFQ69G5FAV"})
        assert missing.meta == {
            PROBLEM: {"code": "no_such_memory", "status": 404, "detail": "there is no such memory"}
        }  # fmt: skip


async def test_a_tool_that_does_not_exist_is_a_protocol_error(api: httpx.Client, tenant: Callable[[], str]) -> None:
    async with connected(address(api, tenant()), mode="legacy") as client:
        with pytest.raises(MCPError, match="no tool 'erase'"):
            await client.call_tool("erase", {})
