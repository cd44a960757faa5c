from __future__ import annotations

import json

import pytest

from retain.errors import InvalidInput, Misconfigured, NotFound, RetainError
from retain.gateway import proxy
from retain.gateway.tool_config import tool_name_in_kv
from tests.gateway.setting import PARAMETERS, SECRET, TENANT, TOOL, Setting, config


async def test_an_agent_calls_a_tool_without_an_api_key_through_the_same_checks(setting: Setting) -> None:
    await setting.add_tool()
    tools = setting.gateway().tools
    answer = await tools.call(TENANT, TOOL, {"order_id": "A-1"}, idempotency_key="run-1/step-2")
    seen = json.loads(answer.body)
    assert seen["headers"]["authorization"] == f"Bearer {SECRET}"
    assert seen["headers"]["idempotency-key"] == "run-1/step-2"
    with pytest.raises(InvalidInput):
        await tools.call(TENANT, TOOL, {"order_id": 7})


async def test_a_tool_is_described_as_its_callers_see_it(setting: Setting) -> None:
    await setting.add_tool(idempotent=True, version=3)
    setting.kv.reads.clear()
    seen = await setting.gateway().tools.describe(TENANT, TOOL)
    assert (seen.name, seen.version, seen.description, seen.idempotent) == (TOOL, 3, "Create an order.", True)
    assert seen.parameters == PARAMETERS
    assert setting.kv.reads == [tool_name_in_kv(TENANT, TOOL)]


async def test_many_tools_are_described_in_a_call_of_kv_for_each_hundred_and_without_their_schemas_compiled(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled: list[object] = []
    monkeypatch.setattr(proxy, "compile_check", compiled.append)
    names = [f"tool_{number}" for number in range(250)]
    for name in names:
        text = json.dumps(config(description=f"Do {name}."))
        await setting.kv.put(tool_name_in_kv(TENANT, name), text)
    await setting.kv.put(tool_name_in_kv(TENANT, "tool_7"), "{}")
    setting.kv.calls.clear()
    seen = await setting.gateway().tools.describe_each(TENANT, [*names[:130], "gone", *names[130:]])
    assert setting.kv.calls == [100, 100, 51]
    assert compiled == []
    refused = {place: tool.code for place, tool in enumerate(seen) if isinstance(tool, RetainError)}
    assert refused == {7: "invalid_tool_configuration", 130: "no_such_tool"}
    described = [tool.description for tool in seen if not isinstance(tool, RetainError)]
    assert described == [f"Do {name}." for name in names if name != "tool_7"]
    assert await setting.gateway().tools.describe_each(TENANT, []) == []


@pytest.mark.parametrize(
    ("tenant", "tool", "code"),
    [
        pytest.param("globex", TOOL, "no_such_tool", id="another tenant's"),
        pytest.param(TENANT, "never_was", "no_such_tool", id="unknown"),
        pytest.param("", TOOL, "invalid_tenant", id="no tenant"),
        pytest.param("acme:create_order", TOOL, "invalid_tenant", id="a tenant that is a path"),
        pytest.param(TENANT, "create_order:x", "invalid_tool_name", id="a tool that is a path"),
        pytest.param(TENANT, "*", "invalid_tool_name", id="every tool"),
    ],
)
async def test_a_tool_that_is_not_the_tenants_is_neither_described_nor_called(
    setting: Setting, tenant: str, tool: str, code: str
) -> None:
    await setting.add_tool()
    tools = setting.gateway().tools
    for attempt in (tools.describe(tenant, tool), tools.call(tenant, tool, {"order_id": "A-1"})):
        with pytest.raises((NotFound, InvalidInput)) as refused:
            await attempt
        assert refused.value.code == code
    assert not setting.server.received


async def test_a_broken_configuration_is_not_described(setting: Setting) -> None:
    await setting.kv.put(tool_name_in_kv(TENANT, TOOL), "{}")
    with pytest.raises(Misconfigured) as refused:
        await setting.gateway().tools.describe(TENANT, TOOL)
    assert refused.value.code == "invalid_tool_configuration"


async def test_a_tool_without_credentials_needs_no_key_of_the_deployment(setting: Setting) -> None:
    await setting.add_tool(auth={"kind": "none"})
    tools = setting.gateway(credentials_key="not a key").tools
    answer = await tools.call(TENANT, TOOL, {"order_id": "A-1"})
    assert "authorization" not in json.loads(answer.body)["headers"]
