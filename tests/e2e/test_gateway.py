"""The tool proxy on the real KV, with a real upstream on this machine."""

from __future__ import annotations

import asyncio
import json
import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp_types import TextContent

from retain.cli.gateway import find_credentials_key
from retain.cli.project import Project
from retain.cli.wrangler_kv import wrangler_of
from retain.gateway.provisioning import KvEntry, credential_entry, new_api_key, tool_entry
from retain.host.crypto import HostCrypto
from tests.e2e.local_state import LocalState
from tests.host.echo_server import EchoServer, echo_server
from tests.support.mcp_client import MODES, Mode, connected
from tools.local_config import write_secrets
from tools.paths import PRODUCTION_CONFIG, ROOT

pytestmark = pytest.mark.workerd

SECRET = "upstream-secret-7f3a"
_PARAMETERS = {
    "type": "object",
    "properties": {"order_id": {"type": "string"}, "quantity": {"type": "integer", "minimum": 1}},
    "required": ["order_id"],
    "additionalProperties": False,
}


@dataclass(frozen=True)
class Provisioned:
    """Tenants of the gateway. keys: API keys, by what they are for."""

    upstream: EchoServer
    keys: dict[str, str]


def _tool(upstream: EchoServer, path: str, **changes: object) -> dict[str, object]:
    host = upstream.origin.removeprefix("http://")
    return {
        "version": 1,
        "description": "Create an order.",
        "url": f"{upstream.origin}{path}",
        "method": "POST",
        "host": host,
        "auth": {"kind": "bearer"},
        "parameters": _PARAMETERS,
        "idempotent": False,
        "timeout_ms": 5000,
        **changes,
    }


@pytest.fixture(scope="module")
def provisioned(state: LocalState, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Provisioned]:
    """Write keys, tools and a credential into the KV of the running server, as `retain gateway` makes them."""
    now_ms = time.time_ns() // 1_000_000
    keys = {
        "all": new_api_key("shop", ["*"], now_ms=now_ms),
        "one tool": new_api_key("shop", ["show_order"], now_ms=now_ms),
        "expired": new_api_key("shop", ["*"], now_ms=now_ms - 2000, lifetime_ms=1000),
        "other tenant": new_api_key("other-shop", ["*"], now_ms=now_ms),
    }
    write_secrets()
    sealing_key = find_credentials_key(os.environ, remote=False, local_secrets=ROOT / ".dev.vars")
    with echo_server() as upstream:
        show = {"method": "GET", "auth": {"kind": "none"}, "idempotent": True}
        entries = [
            *(key.entry for key in keys.values()),
            tool_entry("shop", "create_order", _tool(upstream, "/orders"), allow_loopback=True),
            tool_entry("shop", "show_order", _tool(upstream, "/orders/{order_id}", **show), allow_loopback=True),
            tool_entry("shop", "redirected", _tool(upstream, "/redirect", **show), allow_loopback=True),
            tool_entry("shop", "broken", _tool(upstream, "/status/503", **show), allow_loopback=True),
            tool_entry("shop", "without_credential", _tool(upstream, "/orders"), allow_loopback=True),
            asyncio.run(credential_entry(HostCrypto(), sealing_key, "shop", "create_order", SECRET)),
        ]
        _write(entries, state, tmp_path_factory.mktemp("kv") / "entries.json")
        yield Provisioned(upstream, {name: key.api_key for name, key in keys.items()})


def _write(entries: list[KvEntry], state: LocalState, file: Path) -> None:
    file.write_text(json.dumps([{"key": entry.key, "value": entry.value} for entry in entries]))
    where = ["--binding", "KV", "--config", str(PRODUCTION_CONFIG), "--local", "--persist-to", str(state.root)]
    wrangler_of(Project(ROOT))(["kv", "bulk", "put", str(file), *where])


def _call(api: httpx.Client, key: str | None, tool: str, arguments: dict[str, Any], **headers: str) -> httpx.Response:
    if key is not None:
        headers["authorization"] = f"Bearer {key}"
    return api.post(f"/api/v1/tools/{tool}", json=arguments, headers=headers)


def test_a_tool_call_reaches_its_upstream_with_the_tenant_s_credential_and_reports_where_time_went(
    api: httpx.Client, provisioned: Provisioned
) -> None:
    key = provisioned.keys["all"]
    response = _call(api, key, "create_order", {"order_id": "AB-1", "quantity": 2}, **{"idempotency-key": "once"})
    assert response.status_code == 200, response.text
    seen = response.json()
    assert (seen["method"], seen["target"]) == ("POST", "/orders")
    assert json.loads(seen["body"]) == {"order_id": "AB-1", "quantity": 2}
    assert seen["headers"]["authorization"] == f"Bearer {SECRET}"
    assert seen["headers"]["idempotency-key"] == "once"
    assert key not in json.dumps(seen), "the caller's key is not the upstream's business"
    assert re.fullmatch(r"kv;dur=\d+, upstream;dur=\d+, overhead;dur=\d+", response.headers["server-timing"])
    assert len(response.headers["x-request-id"]) == 26
    assert "x-mixed-case" not in response.headers


def test_an_argument_in_the_path_stays_one_segment(api: httpx.Client, provisioned: Provisioned) -> None:
    response = _call(api, provisioned.keys["one tool"], "show_order", {"order_id": "a..b?c=d&e", "quantity": 3})
    assert response.json()["target"] == "/orders/a..b%3Fc%3Dd%26e?quantity=3"


REFUSED: dict[str, tuple[str | None, str, dict[str, Any], int, str]] = {
    "no key": (None, "create_order", {"order_id": "x"}, 401, "missing_api_key"),
    "expired key": ("expired", "create_order", {"order_id": "x"}, 401, "invalid_api_key"),
    "unknown tool": ("all", "no_tool", {}, 404, "no_such_tool"),
    "another tenant's tool": ("other tenant", "create_order", {"order_id": "x"}, 404, "no_such_tool"),
    "tool the key does not allow": ("one tool", "create_order", {"order_id": "x"}, 403, "tool_not_allowed"),
    "argument missing": ("all", "create_order", {}, 400, "invalid_arguments"),
    "argument of another type": ("all", "create_order", {"order_id": 1}, 400, "invalid_arguments"),
    "argument too small": ("all", "create_order", {"order_id": "x", "quantity": 0}, 400, "invalid_arguments"),
    "argument too many": ("all", "create_order", {"order_id": "x", "tenant_id": "y"}, 400, "invalid_arguments"),
    "separator in the path": ("one tool", "show_order", {"order_id": "a/../b"}, 400, "invalid_arguments"),
    "redirecting upstream": ("all", "redirected", {"order_id": "x"}, 502, "upstream_redirected"),
    "no credential": ("all", "without_credential", {"order_id": "x"}, 500, "credential_missing"),
}


@pytest.mark.parametrize(("key", "tool", "arguments", "status", "code"), REFUSED.values(), ids=list(REFUSED))
def test_a_call_that_cannot_be_made_is_refused(
    api: httpx.Client,
    provisioned: Provisioned,
    key: str | None,
    tool: str,
    arguments: dict[str, Any],
    status: int,
    code: str,
) -> None:
    response = _call(api, None if key is None else provisioned.keys[key], tool, arguments)
    problem = response.json()
    assert (response.status_code, problem["code"]) == (status, code)
    assert response.headers["content-type"] == "application/problem+json"
    assert problem["request_id"] == response.headers["x-request-id"]
    assert SECRET not in response.text


@pytest.mark.parametrize("body", ["[" * 100_000, '{"order_id":' * 50_000, "{", "[]", '"x"', "NaN"])
def test_a_body_that_is_not_an_object_of_arguments_is_refused(
    api: httpx.Client, provisioned: Provisioned, body: str
) -> None:
    headers = {"x-api-key": provisioned.keys["all"]}
    response = api.post("/api/v1/tools/create_order", content=body, headers=headers)
    assert response.status_code == 400, response.text
    assert response.json()["code"] in {"malformed_json", "invalid_arguments"}


@pytest.mark.parametrize("mode", MODES)
async def test_the_official_mcp_client_finds_a_tool_and_calls_it(
    api: httpx.Client, provisioned: Provisioned, mode: Mode
) -> None:
    headers = {"authorization": f"Bearer {provisioned.keys['one tool']}"}
    async with connected(f"{api.base_url}/mcp", mode=mode, headers=headers) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["show_order"]
        result = await client.call_tool("show_order", {"order_id": "AB-1"})
    assert isinstance(result.content[0], TextContent)
    assert json.loads(result.content[0].text)["target"] == "/orders/AB-1"


def test_an_upstream_s_own_error_is_passed_on(api: httpx.Client, provisioned: Provisioned) -> None:
    response = _call(api, provisioned.keys["all"], "broken", {"order_id": "x"})
    assert response.status_code == 503
    assert "server-timing" in response.headers


def test_neither_the_credential_nor_a_key_is_readable_in_kv_or_in_the_log(
    api: httpx.Client, provisioned: Provisioned, state: LocalState
) -> None:
    _call(api, provisioned.keys["all"], "create_order", {"order_id": "AB-1"})
    kept = json.dumps(state.kv(""))
    log = next(state.root.glob("wrangler-*.log")).read_text()
    for secret in (SECRET, *provisioned.keys.values()):
        assert secret not in kept
        assert secret not in log
