"""A production deployment: nobody reaches an agent or the administrator's side without Cloudflare Access."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.local_state import LocalState
from tests.e2e.servers import client_of, one_database, serving, staged

pytestmark = pytest.mark.workerd


@pytest.fixture(scope="module")
def production_state(migrated_state: Callable[[], Path]) -> LocalState:
    """What the production server keeps on disk."""
    return LocalState(migrated_state())


@pytest.fixture(scope="module")
def production(production_state: LocalState) -> Iterator[httpx.Client]:
    """A client of a server that is configured as a deployment behind Access."""
    variables = {
        "RETAIN_ENVIRONMENT": "production",
        "ACCESS_TEAM_DOMAIN": "team.cloudflareaccess.com",
        "ACCESS_AUDIENCE": "audience-tag",
    }
    with (
        staged("production", variables) as config,
        serving(production_state.root, config) as server,
        client_of(server) as client,
    ):
        yield client


def _token(header: dict[str, Any], claims: dict[str, Any], signature: bytes = b"signature") -> str:
    return ".".join(map(_encoded, (json.dumps(header).encode(), json.dumps(claims).encode(), signature)))


def _encoded(part: bytes) -> str:
    return base64.urlsafe_b64encode(part).decode().rstrip("=")


_HEADER = b'{"alg": "RS256", "kid": "1"}'


_CLAIMS = {"iss": "https://team.cloudflareaccess.com", "aud": ["audience-tag"], "email": "a@example.com", "sub": "1"}

GUARDED = {
    "run": ("POST", "/v1/agents/default/order_triage/run", {"input": "hello", "instance_id": "desk"}),
    "instance": ("GET", "/v1/agents/default/order_triage/instances/desk", None),
    "tenant": ("PUT", "/admin/tenants/intruder", None),
    "seed": (
        "POST",
        "/admin/seed-memory",
        {"tenant": "default", "agent_type": "sdr", "memories": [{"content": "Trust everybody."}]},
    ),
    "runs": ("GET", "/admin/agents/default/runs", None),
    "route that does not exist": ("GET", "/admin/nothing", None),
}

TOKENS: dict[str, tuple[dict[str, str], str]] = {
    "none": ({}, "missing_access_token"),
    "garbage": ({"cf-access-jwt-assertion": "garbage"}, "invalid_access_token"),
    "garbage in the cookie": ({"cookie": "CF_Authorization=garbage"}, "invalid_access_token"),
    "unsigned": (
        {"cf-access-jwt-assertion": _token({"alg": "none"}, {**_CLAIMS, "exp": 2**40, "iat": 0}, b"")},
        "invalid_access_token",
    ),
    "of another audience": (
        {"cf-access-jwt-assertion": _token({"alg": "RS256"}, {**_CLAIMS, "aud": "x", "exp": 2**40, "iat": 0})},
        "invalid_access_token",
    ),
    "expired": (
        {"cf-access-jwt-assertion": _token({"alg": "RS256", "kid": "1"}, {**_CLAIMS, "exp": 1, "iat": 0})},
        "invalid_access_token",
    ),
    "nested deeply in its header": (
        {"cf-access-jwt-assertion": f"{_encoded(b'[' * 12_000)}.e30.c2ln"},
        "invalid_access_token",
    ),
    "nested deeply in its claims": (
        {"cf-access-jwt-assertion": f"{_encoded(_HEADER)}.{_encoded(b'[' * 12_000)}.c2ln"},
        "invalid_access_token",
    ),
    "a bearer instead": ({"authorization": "Bearer admin"}, "missing_access_token"),
    "an e-mail instead": ({"cf-access-authenticated-user-email": "admin@example.com"}, "missing_access_token"),
}


@pytest.mark.parametrize(("method", "path", "body"), GUARDED.values(), ids=list(GUARDED))
@pytest.mark.parametrize(("headers", "code"), TOKENS.values(), ids=list(TOKENS))
def test_invariant_2_production_lets_nobody_in_without_a_valid_access_token(
    production: httpx.Client,
    method: str,
    path: str,
    body: dict[str, Any] | None,
    headers: dict[str, str],
    code: str,
) -> None:
    response = production.request(method, path, json=body, headers=headers)
    assert (response.status_code, response.json()["code"]) == (401, code), response.text
    assert response.headers["content-type"] == "application/problem+json"
    assert "garbage" not in response.text


@one_database
def test_a_refused_request_has_done_nothing(production: httpx.Client, production_state: LocalState) -> None:
    for method, path, body in GUARDED.values():
        assert production.request(method, path, json=body).status_code == 401
    [done] = production_state.d1(
        "SELECT (SELECT COUNT(*) FROM agent_runs) AS runs, (SELECT COUNT(*) FROM memory_records) AS records,"
        " (SELECT COUNT(*) FROM tenants) AS tenants"
    )
    assert done == {"runs": 0, "records": 0, "tenants": 1}
    with pytest.raises(LookupError):
        production_state.instance("default", "order_triage", "desk", "SELECT 1")


def test_production_answers_healthz_and_the_gateway_without_access(production: httpx.Client) -> None:
    assert production.get("/healthz").status_code == 200
    response = production.post("/api/v1/tools/create_order", json={})
    assert (response.status_code, response.json()["code"]) == (401, "missing_api_key")
