"""Cloudflare Agent Memory's interface on real workerd: wrangler's own commands, a program with a key, and the binding."""

from __future__ import annotations

import itertools
import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.waiting import eventually
from tools.local_server import LocalServer, free_port, registry_of, stop
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


@pytest.fixture
def app(server: LocalServer, api: httpx.Client, tmp_path: Path) -> Iterator[httpx.Client]:
    """A Worker in TypeScript for the binding, served by a wrangler of its own, which finds the local server's Workers."""
    api.post(NAMESPACES, json={"name": "assistant"})
    folder = tmp_path / "app"
    shutil.copytree(Path(__file__).with_name("memory_app"), folder)
    port = free_port()
    options = [
        "--port",
        port,
        "--ip",
        "127.0.0.1",
        "--inspector-port",
        free_port(),
        "--show-interactive-dev-session=false",
    ]
    registry = {"WRANGLER_REGISTRY_PATH": str(registry_of(server.log.parent))}
    with (tmp_path / "app.log").open("wb") as log:
        process = subprocess.Popen(
            [str(NODE_BIN / "wrangler"), "dev", *map(str, options)],
            cwd=folder,
            env={**environment(), **registry},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    running = LocalServer(f"http://127.0.0.1:{port}", tmp_path / "app.log", process)
    try:
        with httpx.Client(base_url=running.base_url, timeout=60, trust_env=False) as client:
            eventually(lambda: _status(client, "/healthz"), lambda status: status == 200, within_s=120)
            yield client
    finally:
        stop(running)


def _status(client: httpx.Client, path: str) -> int:
    try:
        return client.get(path).status_code
    except httpx.HTTPError:
        return 0


def test_a_typescript_worker_uses_the_binding_as_documented(app: httpx.Client) -> None:
    answer = app.get("/whole")
    assert answer.status_code == 200, answer.text
    found = answer.json()
    stored = found["stored"]
    assert (stored["content"], stored["type"], stored["sessionId"]) == ("Ann drinks green tea.", "fact", "s1")
    assert found["dates"] is True
    assert found["shown"] == found["deleted"] == stored
    recalled = found["recalled"]
    assert (recalled["count"], recalled["answer"]) == (len(recalled["candidates"]), "")
    assert recalled["candidates"][0]["id"] == stored["id"]
    [first] = found["first"]["memories"]
    assert first == found["ofSession"]["memories"][0] == {name: stored[name] for name in stored if name != "content"}
    assert {one["sessionId"] for one in found["second"]["memories"]} == {"s2"}
    assert "cursor" not in found["second"]
    assert "- user: My name is Ann Lang and I live in Basel." in found["summary"]
    assert found["left"] == {"memories": []}

    # A call on a profile that was not awaited, and errors as text.
    pipelined = app.get("/pipelined").json()
    assert pipelined["candidates"][0]["id"] == pipelined["stored"]["id"]
    assert pipelined["after"] == {"memories": []}
    assert app.get("/absent").json() == {"thrown": "the memory does not exist"}
    assert app.get("/too-many").json() == {"thrown": "limit must be 1 to 500"}
    assert app.get("/nameless").json() == ["a name or an id must be a text, and not empty, . or .."]
