"""Where clients of MCP find out who issues tokens, read with the official package as its client does."""

from __future__ import annotations

import json

import httpx
import pytest
from mcp.client.auth.utils import (
    build_protected_resource_metadata_discovery_urls,
    extract_resource_metadata_from_www_auth,
)
from mcp.shared.auth import ProtectedResourceMetadata

from tests.shell.worker import HOST, Answer, Worker, serving

ISSUER = "https://login.shop.example/tenant"
SERVERS = ["/mcp", "/v1/agents/acme/mcp", "/v1/tenants/acme/mcp", "/admin/tenants/acme/mcp"]
ORIGIN = f"http://{HOST}"
UNKNOWN = {"authorization": "Bearer retainapp_acme_" + "a" * 43}
MESSAGE = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


def _refused(answer: Answer) -> httpx.Response:
    """Return a 401 as the package's helpers read it."""
    assert answer.status == 401
    return httpx.Response(401, headers=answer.headers)


@pytest.mark.parametrize("path", SERVERS)
async def test_a_client_finds_the_issuer_after_a_401(path: str) -> None:
    async with serving(AUTHORIZATION_SERVERS=f"{ISSUER}, https://other.example", APPLICATION_KEYS="true") as worker:
        refused = _refused(await worker.request("POST", path, MESSAGE, headers=UNKNOWN))
        address = extract_resource_metadata_from_www_auth(refused)  # type: ignore[arg-type]
        assert address == f"{ORIGIN}/.well-known/oauth-protected-resource{path}"
        assert address in build_protected_resource_metadata_discovery_urls(None, f"{ORIGIN}{path}")
        answer = await worker.request("GET", address.removeprefix(ORIGIN))
        metadata = ProtectedResourceMetadata.model_validate_json(json.dumps(answer.content))
        assert str(metadata.resource) == f"{ORIGIN}{path}"
        assert [str(server) for server in metadata.authorization_servers] == [ISSUER, "https://other.example"]
        assert metadata.bearer_methods_supported == ["header"]


@pytest.mark.parametrize("path", SERVERS)
async def test_nothing_is_invented_where_none_is_configured(worker: Worker, path: str) -> None:
    answer = await worker.request("GET", f"/.well-known/oauth-protected-resource{path}")
    assert (answer.status, answer.content["code"]) == (404, "no_such_route")
    assert (await worker.request("POST", "/mcp", MESSAGE)).headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("path", ["", "/", "/healthz", "/v1/agents/acme/sdr/run", "/v1/agents/a/b/mcp", "/mcp/"])
async def test_other_paths_are_not_protected_resources(path: str) -> None:
    async with serving(AUTHORIZATION_SERVERS=ISSUER) as worker:
        answer = await worker.request("GET", f"/.well-known/oauth-protected-resource{path}")
        assert (answer.status, answer.content["code"]) == (404, "no_such_route")
        asked = await worker.request("POST", "/api/v1/tools/echo", {})
        assert (asked.status, asked.headers["www-authenticate"]) == (401, "Bearer")


@pytest.mark.parametrize(
    "servers",
    [
        "http://login.example",
        "login.example",
        "https://",
        "https://a.example?x=1",
        "https://a.example#x",
        "https://a@b.example",
    ],
)
async def test_what_cannot_be_an_issuer_is_refused(servers: str) -> None:
    async with serving(AUTHORIZATION_SERVERS=servers) as worker:
        answer = await worker.request("POST", "/mcp", MESSAGE)
        assert (answer.status, answer.content["code"]) == (500, "invalid_setting")
