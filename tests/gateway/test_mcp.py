"""The gateway's tools through the official MCP client, in both eras of the protocol."""

from __future__ import annotations

import json
from typing import Any

import pytest
from mcp import MCPError
from mcp_types import TextContent

from retain.errors import Misconfigured, NoSuchTool
from retain.gateway.mcp import MAX_ANSWER_BYTES, PAGE
from retain.http import Request, Response
from retain.mcp.server import PROBLEM
from tests.gateway.setting import PARAMETERS, SECRET, TENANT, TOOL, Setting, request
from tests.support.mcp_client import HERE, MODES, Mode, connected

INITIALIZE = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest) -> Mode:
    chosen: Mode = request.param
    return chosen


async def answered(setting: Setting, api_key: str | None, message: Any, **headers: str) -> Response:
    body = message if isinstance(message, str) else json.dumps(message)
    sent = headers if api_key is None else {"authorization": f"Bearer {api_key}", **headers}
    return await setting.gateway().handle(Request("POST", "/mcp", {}, sent, body, "retain.example", "request-1"))


def rpc(method: str, params: Any = None, number: Any = 1) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, **({} if params is None else {"params": params})}


def texts(result: Any) -> list[str]:
    return [content.text for content in result.content if isinstance(content, TextContent)]


async def test_a_client_finds_the_tools_with_their_schemas_and_calls_one(setting: Setting, mode: Mode) -> None:
    await setting.add_tool()
    await setting.add_tool("/other", name="another", idempotent=True)
    key = await setting.add_key()
    headers = {"authorization": f"Bearer {key}"}
    async with connected(HERE, mode=mode, headers=headers, handle=setting.gateway().handle) as client:
        listed = (await client.list_tools()).tools
        assert [tool.name for tool in listed] == ["another", TOOL]
        assert listed[1].input_schema == PARAMETERS
        assert [tool.annotations and tool.annotations.idempotent_hint for tool in listed] == [True, False]
        result = await client.call_tool(TOOL, {"order_id": "A-7"})
    assert not result.is_error
    [text] = texts(result)
    seen = json.loads(text)
    assert json.loads(seen["body"]) == {"order_id": "A-7"}
    assert seen["headers"]["authorization"] == f"Bearer {SECRET}"


async def test_properties_are_listed_as_objects_because_clients_refuse_others(setting: Setting, mode: Mode) -> None:
    text = {"type": "string"}
    await setting.add_tool(parameters={"type": "object", "properties": {"any": True, "none": False, "text": text}})
    headers = {"authorization": f"Bearer {await setting.add_key()}"}
    async with connected(HERE, mode=mode, headers=headers, handle=setting.gateway().handle) as client:
        [tool] = (await client.list_tools()).tools
        assert tool.input_schema == {"type": "object", "properties": {"any": {}, "none": {"not": {}}, "text": text}}
        accepted, refused = [await client.call_tool(TOOL, {name: 1}) for name in ("any", "none")]
    assert (accepted.is_error, refused.is_error) == (False, True)


async def test_a_tool_that_takes_nothing_is_listed_with_properties_because_models_refuse_it_otherwise(
    setting: Setting, mode: Mode
) -> None:
    await setting.add_tool(parameters={"type": "object"})
    headers = {"authorization": f"Bearer {await setting.add_key()}"}
    async with connected(HERE, mode=mode, headers=headers, handle=setting.gateway().handle) as client:
        [tool] = (await client.list_tools()).tools
    assert tool.input_schema == {"type": "object", "properties": {}}


async def test_an_answer_has_a_largest_size_and_over_rest_that_of_its_tool(setting: Setting) -> None:
    key = await setting.add_key()
    for more in (0, 1):
        size = MAX_ANSWER_BYTES + more
        await setting.add_tool(
            f"/large/{size}",
            name=f"large_{more}",
            method="GET",
            parameters={"type": "object"},
            max_response_bytes=10 * 1_048_576,
        )
        answer = await answered(setting, key, rpc("tools/call", {"name": f"large_{more}", "arguments": {}}))
        result = json.loads(answer.body)["result"]
        assert result["isError"] == bool(more)
        if more:
            problem = result["_meta"][PROBLEM]
            assert (problem["code"], problem["limit_bytes"]) == ("response_too_large", MAX_ANSWER_BYTES)
        else:
            assert result["content"][0]["text"] == "x" * size
        passed = await setting.gateway().handle(request(key, {}, tool=f"large_{more}"))
        assert (passed.status, len(passed.body)) == (200, size)


async def test_an_error_in_a_call_is_reported_to_the_model(setting: Setting, mode: Mode) -> None:
    await setting.add_tool()
    await setting.add_tool("/status/503", name="broken")
    key = await setting.add_key()
    headers = {"authorization": f"Bearer {key}"}
    async with connected(HERE, mode=mode, headers=headers, handle=setting.gateway().handle) as client:
        unfit = await client.call_tool(TOOL, {"order_id": ""})
        broken = await client.call_tool("broken", {"order_id": "A-7"})
    assert (unfit.is_error, broken.is_error) == (True, True)
    assert texts(unfit)[0].startswith("invalid_arguments: ")
    assert "status: 400" in texts(unfit)[0]
    assert (unfit.meta or {})[PROBLEM]["path"] == "/order_id"
    assert texts(broken)[0].startswith("upstream_status: the tool's upstream answered 503")
    data = (broken.meta or {})[PROBLEM]
    assert (data["code"], data["status"], data["upstream_status"]) == ("upstream_status", 503, 503)


@pytest.mark.parametrize("scopes", [("*",), (TOOL,)], ids=["all", "named"])
@pytest.mark.parametrize("cursor", ["zzz", "", "a.b", 7, ["x"]], ids=["text", "empty", "dotted", "number", "list"])
async def test_a_cursor_that_was_never_given_is_refused(setting: Setting, scopes: tuple[str, ...], cursor: Any) -> None:
    await setting.add_tool()
    key = await setting.add_key(*scopes)
    refused = json.loads((await answered(setting, key, rpc("tools/list", {"cursor": cursor}))).body)
    assert refused["error"]["code"] == -32602


async def test_a_tool_that_the_key_does_not_allow_does_not_exist(setting: Setting, mode: Mode) -> None:
    await setting.add_tool()
    await setting.add_tool("/other", name="another")
    key = await setting.add_key("another")
    headers = {"authorization": f"Bearer {key}"}
    async with connected(HERE, mode=mode, headers=headers, handle=setting.gateway().handle) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["another"]
        with pytest.raises(MCPError, match=f"no tool '{TOOL}'"):
            await client.call_tool(TOOL, {"order_id": "A-7"})


async def test_the_tools_of_another_tenant_are_neither_listed_nor_called(setting: Setting, mode: Mode) -> None:
    await setting.add_tool(tenant="globex")
    key = await setting.add_key()
    headers = {"authorization": f"Bearer {key}"}
    async with connected(HERE, mode=mode, headers=headers, handle=setting.gateway().handle) as client:
        assert (await client.list_tools()).tools == []
        with pytest.raises(MCPError):
            await client.call_tool(TOOL, {"order_id": "A-7"})


async def test_a_call_reads_kv_three_times(setting: Setting) -> None:
    await setting.add_tool()
    key = await setting.add_key()
    setting.kv.reads.clear()
    response = await answered(setting, key, rpc("tools/call", {"name": TOOL, "arguments": {"order_id": "A-7"}}))
    assert response.status == 200
    assert len(setting.kv.reads) == 3


@pytest.mark.parametrize("scopes", [("*",), tuple(f"tool_{n:03}" for n in range(PAGE + 5))], ids=["all", "named"])
async def test_a_long_list_is_paged(setting: Setting, scopes: tuple[str, ...]) -> None:
    names = [f"tool_{number:03}" for number in range(PAGE + 5)]
    for name in names:
        await setting.add_tool(name=name)
    key = await setting.add_key(*scopes)
    first = json.loads((await answered(setting, key, rpc("tools/list"))).body)["result"]
    rest = json.loads((await answered(setting, key, rpc("tools/list", {"cursor": first["nextCursor"]}))).body)["result"]
    assert [tool["name"] for tool in [*first["tools"], *rest["tools"]]] == names
    assert "nextCursor" not in rest


async def test_one_unusable_configuration_does_not_hide_the_other_tools(setting: Setting) -> None:
    await setting.add_tool()
    await setting.kv.put("gateway_tool:acme:broken", "{}")
    key = await setting.add_key()
    result = json.loads((await answered(setting, key, rpc("tools/list"))).body)["result"]
    assert [tool["name"] for tool in result["tools"]] == [TOOL]


@pytest.mark.parametrize("asked", ["2025-03-26", "2025-06-18", "2025-11-25", "1999-01-01"])
async def test_a_handshake_agrees_on_the_asked_version_or_names_the_newest(setting: Setting, asked: str) -> None:
    key = await setting.add_key()
    message = rpc("initialize", {**INITIALIZE, "protocolVersion": asked})
    result = json.loads((await answered(setting, key, message)).body)["result"]
    assert result["protocolVersion"] == (asked if asked != "1999-01-01" else "2025-11-25")
    assert result["capabilities"] == {"tools": {}}


ENVELOPE = {
    "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
}
NEW = {"mcp-protocol-version": "2026-07-28"}
REFUSED: dict[str, tuple[Any, dict[str, str], int, int]] = {
    "no JSON": ("{", {}, 400, -32700),
    "a batch": ([rpc("ping")], {}, 400, -32600),
    "no version of JSON-RPC": ({"id": 1, "method": "ping"}, {}, 400, -32600),
    "params that are a list": (rpc("ping", [1]), {}, 400, -32600),
    "an id that is null": (rpc("ping", number=None), {}, 400, -32600),
    "an id that is a list": (rpc("ping", number=[1]), {}, 400, -32600),
    "an unknown method": (rpc("resources/list"), {}, 200, -32601),
    "a call without a name": (rpc("tools/call", {}), {}, 200, -32602),
    "arguments that are a list": (rpc("tools/call", {"name": TOOL, "arguments": [1]}), {}, 200, -32602),
    "a name that no tool can have": (rpc("tools/call", {"name": "../x"}), {}, 200, -32602),
    "an unknown version": (rpc("ping"), {"mcp-protocol-version": "1999-01-01"}, 400, -32022),
    "new: an unknown method": (rpc("x/y", ENVELOPE), {**NEW, "mcp-method": "x/y"}, 404, -32601),
    "new: another version in the header": (
        rpc("ping", ENVELOPE),
        {"mcp-protocol-version": "2025-11-25", "mcp-method": "ping"},
        400,
        -32020,
    ),
    "new: another method in the header": (rpc("ping", ENVELOPE), {**NEW, "mcp-method": "tools/list"}, 400, -32020),
    "new: another tool in the header": (
        rpc("tools/call", {**ENVELOPE, "name": TOOL}),
        {**NEW, "mcp-method": "tools/call", "mcp-name": "other"},
        400,
        -32020,
    ),
    "new: no capabilities": (
        rpc("ping", {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}),
        {**NEW, "mcp-method": "ping"},
        400,
        -32602,
    ),
    "new: no handshake": (rpc("initialize", ENVELOPE), {**NEW, "mcp-method": "initialize"}, 404, -32601),
    "old: no discovery": (rpc("server/discover"), {}, 200, -32601),
}


@pytest.mark.parametrize("case", REFUSED)
async def test_what_the_protocol_refuses_is_a_json_rpc_error(setting: Setting, case: str) -> None:
    message, headers, status, code = REFUSED[case]
    response = await answered(setting, await setting.add_key(), message, **headers)
    body = json.loads(response.body)
    assert (response.status, body["error"]["code"]) == (status, code)
    number = message.get("id") if isinstance(message, dict) else None
    assert body["id"] == (number if isinstance(number, int) else None)


@pytest.mark.parametrize(
    "message",
    [{"jsonrpc": "2.0", "method": "notifications/initialized"}, {"jsonrpc": "2.0", "id": 1, "result": {}}],
    ids=["a notification", "an answer"],
)
async def test_what_needs_no_answer_is_accepted(setting: Setting, message: Any) -> None:
    response = await answered(setting, await setting.add_key(), message)
    assert (response.status, response.body) == (202, "")


@pytest.mark.parametrize(
    ("method", "headers", "status", "code"),
    [
        ("GET", {}, 405, "method_not_allowed"),
        ("DELETE", {}, 405, "method_not_allowed"),
        ("POST", {"origin": "https://evil.example"}, 403, "cross_origin"),
        ("POST", {}, 401, "missing_api_key"),
        ("POST", {"authorization": "Bearer retain_acme_nope"}, 401, "invalid_api_key"),
    ],
    ids=["a stream", "the end of a session", "another origin", "no key", "an unknown key"],
)
async def test_who_may_not_call_gets_a_problem(
    setting: Setting, method: str, headers: dict[str, str], status: int, code: str
) -> None:
    from retain.errors import RetainError
    from retain.http import problem

    asked = Request(method, "/mcp", {}, headers, json.dumps(rpc("ping")), "retain.example", "request-1")
    with pytest.raises(RetainError) as refused:
        await setting.gateway().handle(asked)
    assert (problem(refused.value, "request-1").status, refused.value.code) == (status, code)


@pytest.mark.parametrize("scopes", [("*",), ("server",)], ids=["all", "named"])
async def test_a_tool_for_agents_alone_is_reached_by_no_key(
    setting: Setting, mode: Mode, scopes: tuple[str, ...]
) -> None:
    await setting.add_tool(name="server", agents_only=True)
    key = await setting.add_key(*scopes)
    headers = {"authorization": f"Bearer {key}"}
    async with connected(HERE, mode=mode, headers=headers, handle=setting.gateway().handle) as client:
        assert (await client.list_tools()).tools == []
        with pytest.raises(MCPError):
            await client.call_tool("server", {"order_id": "A-7"})
    with pytest.raises(NoSuchTool):
        await setting.gateway().handle(request(key, tool="server"))


async def test_a_server_that_keys_could_reach_is_not_used_as_one(setting: Setting) -> None:
    await setting.add_tool()
    await setting.add_tool(name="server", agents_only=True)
    tools, arguments = setting.gateway().tools, {"order_id": "A-7"}
    with pytest.raises(Misconfigured) as refused:
        await tools.call(TENANT, TOOL, arguments, audience="agents alone")
    assert refused.value.code == "invalid_tool_configuration"
    assert (await tools.call(TENANT, TOOL, arguments, audience="agents")).status == 200
    assert (await tools.call(TENANT, "server", arguments, audience="agents alone")).status == 200
