"""Cloudflare Agent Memory's interface on real workerd: wrangler's own commands, and the calls of a program with a key."""

from __future__ import annotations

import itertools
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from tools.local_server import LocalServer
from tools.offline_runtime import environment
from tools.paths import NODE_BIN

pytestmark = pytest.mark.workerd

ACCOUNT = "0123456789abcdef0123456789abcdef"
NAMESPACES = f"/client/v4/accounts/{ACCOUNT}/agent-memory/namespaces"
_numbers = itertools.count(1)


@pytest.fixture
def wrangler(server: LocalServer, tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a command of `wrangler agent-memory namespace` against the server."""
    address = {
        "CLOUDFLARE_API_BASE_URL": f"{server.base_url}/client/v4",
        "CLOUDFLARE_API_TOKEN": "local",
        "CLOUDFLARE_ACCOUNT_ID": ACCOUNT,
        "HOME": str(tmp_path),
    }

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [str(NODE_BIN / "wrangler"), "agent-memory", "namespace", *words]
        return subprocess.run(
            command, cwd=tmp_path, env={**environment(), **address}, capture_output=True, text=True, check=False
        )

    return run


def test_wrangler_creates_lists_shows_and_deletes_namespaces(
    wrangler: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    name = f"wrangled-{next(_numbers)}"
    created = json.loads(wrangler("create", name, "--json").stdout)
    assert (created["name"], created["account_id"]) == (name, ACCOUNT)
    assert json.loads(wrangler("get", name, "--json").stdout) == created
    assert created in json.loads(wrangler("list", "--json").stdout)
    again = wrangler("create", name)
    assert again.returncode != 0
    assert f'Failed to create Agent Memory namespace "{name}"' in again.stdout + again.stderr
    assert "the namespace's name is taken" in again.stdout + again.stderr
    assert f"Deleted Agent Memory namespace {name}" in wrangler("delete", name, "--force").stdout
    gone = wrangler("get", name)
    assert gone.returncode != 0
    assert f'"{name}" not found' in gone.stdout + gone.stderr


def result(answer: httpx.Response, status: int = 200) -> Any:
    assert (answer.status_code, answer.json()["success"]) == (status, True), answer.text
    return answer.json()["result"]


def test_a_program_with_a_key_remembers_and_recalls_in_its_own_namespace(
    api: httpx.Client, tenant: Callable[[], str]
) -> None:
    name, other = tenant(), tenant()
    key = api.post(f"/admin/tenants/{name}/keys", json={"name": "app", "scopes": ["memory:read", "memory:write"]})
    headers = {"authorization": f"Bearer {key.json()['key']}"}
    ann = f"{NAMESPACES}/{name}/profiles/ann"
    body: dict[str, Any] = {"content": "Ann drinks green tea.", "sessionId": "s1"}
    stored = result(api.post(f"{ann}/remember", json=body, headers=headers))
    body = {"messages": [{"role": "user", "content": "I live in Basel.", "timestamp": "2026-11-23T10:00:00Z"}]}
    assert result(api.post(f"{ann}/ingest", json=body, headers=headers)) is None
    found = result(api.post(f"{ann}/recall", json={"query": "What does Ann drink?"}, headers=headers))
    assert found["candidates"][0]["id"] == stored["id"]
    assert "I live in Basel." in [one["summary"] for one in found["candidates"]]
    assert "green tea" in result(api.post(f"{ann}/summary", json={}, headers=headers))["summary"]
    assert [one["name"] for one in result(api.get(NAMESPACES, headers=headers))] == [name]
    for method, path in (("GET", f"{NAMESPACES}/{other}"), ("DELETE", ann), ("POST", NAMESPACES)):
        refused = api.request(method, path, json={"name": "new"} if method == "POST" else None, headers=headers)
        assert (refused.status_code, refused.json()["errors"][0]["code"]) == (403, 10000), path
    assert result(api.delete(ann)) is None
    assert result(api.get(f"{ann}/memories", headers=headers)) == []
