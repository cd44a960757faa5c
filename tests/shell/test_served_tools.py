"""Tools of a real MCP server, made with the official package, as an instance of an agent gets and calls them."""

from __future__ import annotations

import base64
import json

import pytest

from retain.agents.definitions import McpServerConfig
from retain.agents.runs.tables import STEPS
from retain.agents.tools.built_in import CallContext
from retain.agents.tools.kept_lists import KeptLists
from retain.errors import UpstreamFailed
from retain.gateway.provisioning import credential_entry, tool_entry
from retain.host.crypto import HostCrypto
from retain.schema.object import migrate
from tests.gateway.setting import config
from tests.shell.guarded_routes import ROUTES
from tests.shell.platform.objects import Storage
from tests.shell.worker import KEY, Worker, root
from tests.support.mcp_server import shop

_CONTEXT = CallContext("run", 1, 0)


@pytest.mark.parametrize("json_response", [True, False], ids=["JSON", "events"])
@pytest.mark.parametrize(
    ("stateless", "modern"), [(True, True), (True, False), (False, False)], ids=["2026-07-28", "stateless", "session"]
)
async def test_tools_of_a_server_are_listed_and_called(
    worker: Worker, *, json_response: bool, stateless: bool, modern: bool
) -> None:
    with shop(json_response=json_response, stateless=stateless, modern=modern) as (url, seen):
        settings = config(url, parameters={"type": "object"}, max_response_bytes=10 * 2**20, agents_only=True)
        tool = tool_entry("acme", "shop", settings, allow_loopback=True)
        credential = await credential_entry(HostCrypto(), base64.b64decode(KEY), "acme", "shop", "secret")
        for stored in (tool, credential):
            await stored.write(worker.kv.store)
        ports = root.assembly_of(worker.env).instances.ports(Storage())
        migrate(ports.local, STEPS)
        kept = KeptLists(ports.local)
        wanted = McpServerConfig(tools=("search", "refuse", "large", "absent"))
        tools = {tool.spec.name: tool for tool in await ports.served_tools("acme", "shop", wanted, kept)}
        assert sorted(tools) == ["shop__large", "shop__refuse", "shop__search"]
        search = tools["shop__search"]
        assert (search.spec.description, search.idempotent) == ("Find an article.", True)
        assert search.spec.parameters["required"] == ["words"]
        assert not tools["shop__refuse"].idempotent
        for words in ("hats", "größe 7", " =?base64?YQ==?= "):
            assert json.loads((await search.call({"words": words}, _CONTEXT)).content) == {"found": words}
        with pytest.raises(UpstreamFailed, match="sold out") as raised:
            await tools["shop__refuse"].call({}, _CONTEXT)
        assert raised.value.code == "upstream_failed"
        with pytest.raises(UpstreamFailed) as raised:
            await tools["shop__large"].call({}, _CONTEXT)
        assert raised.value.code == "response_too_large"
        assert set(seen) == {"Bearer secret"}
        assert len(seen) == (7 if modern else 9)  # one or three messages to agree, a list and five calls
        assert await ports.served_tools("other", "shop", wanted, kept) == []


async def test_a_run_of_an_agent_whose_tool_is_not_stored_is_refused_as_the_document_says(worker: Worker) -> None:
    await worker.tenant()
    definition, runs = "/admin/tenants/acme/agents/lame", "/v1/agents/acme/lame"
    model = {"provider": "scripted", "script": "sdr"}
    lame = {"description": "Does it.", "instructions": "Do it.", "model": model}
    assert (await worker.request("PUT", definition, lame)).status == 201
    ran = await worker.run("acme", "lame", "hello", instance_id="desk")
    changed = await worker.request("PUT", definition, {**lame, "tools": ["absent"]})
    assert len(changed.content["warnings"]) == 1, changed.body
    refused = await worker.request("POST", f"{runs}/run", {"input": "hello"})
    forked = await worker.request("POST", f"{runs}/instances/desk/runs/{ran['run_id']}/fork", {"turns": 0})
    for answer in (refused, forked):
        assert (answer.status, answer.content["code"]) == (404, "no_such_tool")
    one = "/v1/agents/{tenant}/{agent_type}"
    for route in (f"{one}/run", f"{one}/instances/{{instance_id}}/runs/{{run_id}}/fork"):
        assert "no_such_tool" in ROUTES[f"POST {route}"].errors


async def test_an_agent_is_defined_while_nobody_can_look_whether_its_tools_are_stored(worker: Worker) -> None:
    await worker.tenant()
    definition = "/admin/tenants/acme/agents/lame"
    lame = {
        "description": "Does it.",
        "instructions": "Do it.",
        "model": {"provider": "scripted", "script": "sdr"},
        "tools": ["absent"],
    }
    worker.kv.down = True
    added = await worker.request("PUT", definition, lame)
    assert (added.status, added.content["warnings"]) == (201, []), added.body
