"""Invariants 1 and 2 through production's entrypoint: a tool call is answered where every binding except KV raises."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any, NoReturn

import pytest

from retain.gateway.provisioning import credential_entry, new_api_key, tool_entry
from retain.gateway.proxy import ToolProxy
from retain.host.crypto import HostCrypto
from tests.gateway.setting import config
from tests.host.echo_server import echo_server
from tests.shell.platform import sdk
from tests.shell.worker import KEY, Worker, serving

TENANT, TOOL, SECRET = "acme", "create_order", "upstream-secret"
BINDINGS = ("DB", "COLD", "VECTORIZE", "AGENT_RUNTIME", "TENANT_WRITER", "AI")


class Untouchable:
    """A binding that raises on any use, and remembers it in case somebody catches the error."""

    def __init__(self, name: str, touched: list[str]) -> None:
        vars(self)["touched"] = (name, touched)

    @property
    def _binding(self) -> Untouchable:  # the adapters keep the platform's own object when they are made
        return self

    def __getattr__(self, attribute: str) -> NoReturn:
        name, touched = vars(self)["touched"]
        touched.append(f"{name}.{attribute}")
        raise AssertionError(f"the proxy touched {name}.{attribute}")


@pytest.fixture(scope="module")
def origin() -> Iterator[str]:
    with echo_server() as server:
        yield server.origin


@pytest.fixture
def touched(worker: Worker) -> list[str]:
    """Make every binding except KV untouchable; return what is touched nevertheless."""
    found: list[str] = []
    for name in BINDINGS:
        setattr(worker.env, name, Untouchable(name, found))
    worker.restart()
    return found


async def provisioned(worker: Worker, origin: str) -> dict[str, str]:
    """Store a tool, its credential and a key; return the header with the key."""
    key = new_api_key(TENANT, [TOOL], now_ms=worker.clock())
    tool = tool_entry(TENANT, TOOL, config(f"{origin}/echo"), allow_loopback=True)
    credential = await credential_entry(HostCrypto(), base64.b64decode(KEY), TENANT, TOOL, SECRET)
    for entry in (key.entry, tool, credential):
        await entry.write(worker.kv.store)
    return {"authorization": f"Bearer {key.api_key}"}


REST = (f"/api/v1/tools/{TOOL}", {"order_id": "A-1"})
MCP = (
    "/mcp",
    {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": TOOL, "arguments": {"order_id": "A-1"}}},
)


@pytest.mark.parametrize(("path", "content"), [REST, MCP], ids=["rest", "mcp"])
async def test_invariant_2_the_entrypoint_answers_a_tool_call_with_kv_alone(
    worker: Worker, touched: list[str], origin: str, path: str, content: dict[str, Any]
) -> None:
    headers = await provisioned(worker, origin)
    for isolate in ("cold", "warm"):
        worker.kv.calls.clear()
        answer = await worker.request("POST", path, content, headers=headers)
        assert answer.status == 200, isolate
        echoed = answer.content if path != "/mcp" else json.loads(answer.content["result"]["content"][0]["text"])
        assert echoed["headers"]["authorization"] == f"Bearer {SECRET}"
        assert json.loads(echoed["body"]) == {"order_id": "A-1"}
        assert sorted(call.split(":")[0] for call in worker.kv.calls) == [
            "get gateway_credential",
            "get gateway_key",
            "get gateway_tool",
        ]
        assert (touched, sdk.background) == ([], set())


async def test_invariant_2_a_refused_tool_call_touches_kv_alone_too(
    worker: Worker, touched: list[str], origin: str
) -> None:
    headers = await provisioned(worker, origin)
    answers = [
        await worker.request("POST", "/api/v1/tools/create_order", {"order_id": ""}, headers=headers),
        await worker.request("POST", "/api/v1/tools/create_order", {"order_id": "A-1"}),
        await worker.request("POST", "/api/v1/tools/other_tool", {}, headers=headers),
        await worker.request("GET", "/api/v1/tools/create_order", headers=headers),
    ]
    assert [(answer.status, answer.content["code"]) for answer in answers] == [
        (400, "invalid_arguments"),
        (401, "missing_api_key"),
        (403, "tool_not_allowed"),
        (405, "method_not_allowed"),
    ]
    assert (touched, sdk.background) == ([], set())


async def test_invariant_2_a_tool_call_that_fails_unexpectedly_touches_kv_alone_too(
    worker: Worker, touched: list[str], origin: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    headers = await provisioned(worker, origin)

    async def broken(*_: object, **__: object) -> NoReturn:
        raise ValueError("unexpected")

    monkeypatch.setattr(ToolProxy, "call", broken)
    for path, content in (REST, MCP):
        assert (await worker.request("POST", path, content, headers=headers)).status == 500
    assert (touched, sdk.background) == ([], set())


@pytest.mark.parametrize("name", BINDINGS)
async def test_an_untouchable_binding_notices_any_use(worker: Worker, touched: list[str], name: str) -> None:
    with pytest.raises(AssertionError):
        getattr(worker.env, name).run("anything")
    assert touched == [f"{name}.run"]


async def test_the_health_of_the_worker_needs_no_binding(worker: Worker, touched: list[str]) -> None:
    worker.env.KV = Untouchable("KV", touched)
    answers = [await worker.request(method, "/healthz") for method in ("GET", "HEAD")]
    assert [answer.status for answer in answers] == [200, 200]
    assert touched == []


async def test_a_tool_at_a_loopback_address_is_only_called_in_development(worker: Worker, origin: str) -> None:
    headers = await provisioned(worker, origin)
    assert (await worker.request("POST", *REST, headers=headers)).status == 200
    worker.env.RETAIN_ENVIRONMENT = "production"
    warm = await worker.request("POST", *REST, headers=headers)
    assert warm.status == 200, "an isolate serves one deployment, and reads `env` once"
    worker.restart()
    refused = await worker.request("POST", *REST, headers=headers)
    assert (refused.status, refused.content["code"]) == (500, "invalid_tool_configuration")


async def test_a_resolver_that_is_not_reached_over_https_is_refused_by_name() -> None:
    async with serving(RESOLVER_URL="dns.example.com") as worker:
        answer = await worker.request("POST", f"/api/v1/tools/{TOOL}", {})
    assert (answer.status, answer.content["code"]) == (500, "invalid_setting")
    assert answer.content["detail"].startswith("RESOLVER_URL ")
