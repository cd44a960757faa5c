"""Keys of applications on real workerd: what they reach, what they do not, and until when."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pytest

from retain.cli.command import main
from tests.e2e.waiting import eventually

pytestmark = pytest.mark.workerd

Tenant = Callable[[], str]


def _key(api: httpx.Client, tenant_id: str, *scopes: str) -> tuple[str, dict[str, str]]:
    """Create a key; return its id, and the headers of a request with it."""
    answer = api.post(f"/admin/tenants/{tenant_id}/keys", json={"name": "shop", "scopes": list(scopes)})
    assert answer.status_code == 201, answer.text
    return answer.json()["key_id"], {"authorization": f"Bearer {answer.json()['key']}"}


def test_an_application_runs_an_agent_and_reads_and_writes_memory(api: httpx.Client, tenant: Tenant) -> None:
    tenant_id = tenant()
    key_id, headers = _key(api, tenant_id, "runs", "memory:read", "memory:write")
    body = {"input": "hello", "instance_id": "desk"}
    ran = api.post(f"/v1/agents/{tenant_id}/sdr/run", json=body, headers=headers)
    assert (ran.status_code, ran.json()["status"]) == (200, "completed")
    with api.stream(
        "POST", f"/v1/agents/{tenant_id}/sdr/run", json={**body, "stream": True}, headers=headers
    ) as events:
        assert events.status_code == 200
        assert "event: run.completed" in events.read().decode()
    memories = f"/v1/tenants/{tenant_id}/memories"
    stored = api.post(memories, json={"content": "Ann drinks tea."}, headers=headers)
    assert stored.status_code == 201
    found = api.post(f"{memories}/recall", json={"query": "What does Ann drink?"}, headers=headers)
    assert [memory["id"] for memory in found.json()["memories"]] == [stored.json()["id"]]
    shown = api.get(f"{memories}/{stored.json()['id']}", headers=headers).json()
    assert shown["events"][0]["source"]["by"] == f"key:{key_id}"

    eventually(
        lambda: api.get(f"/admin/tenants/{tenant_id}/keys").json()["keys"],
        lambda keys: keys[0]["last_used_at_ms"] is not None,
    )


def test_a_key_reaches_neither_another_tenant_nor_what_its_scopes_leave_out(api: httpx.Client, tenant: Tenant) -> None:
    tenant_id, other = tenant(), tenant()
    key_id, headers = _key(api, tenant_id, "memory:read")
    for path, code in (
        (f"/v1/tenants/{other}/memories", "role_required"),
        (f"/admin/tenants/{other}/memories", "role_required"),
        (f"/v1/agents/{tenant_id}/instances", "scope_required"),
        (f"/v1/tenants/{tenant_id}/export", "scope_required"),
        ("/admin/namespaces", "scope_required"),
    ):
        answer = api.get(path, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (403, code), path
    assert api.get(f"/v1/tenants/{tenant_id}/memories", headers=headers).status_code == 200
    assert api.delete(f"/admin/tenants/{tenant_id}/keys/{key_id}").status_code == 200
    refused = api.get(f"/v1/tenants/{tenant_id}/memories", headers=headers)
    assert (refused.status_code, refused.json()["code"]) == (401, "invalid_api_key")


@pytest.mark.parametrize("by_token", [False, True], ids=["key", "token"])
def test_a_stream_breaks_off_when_its_key_is_revoked_and_the_run_continues(
    api: httpx.Client, tenant: Tenant, by_token: bool
) -> None:
    tenant_id = tenant()
    key_id, headers = _key(api, tenant_id, "runs")
    if by_token:
        made = api.post(f"/v1/tenants/{tenant_id}/tokens", json={"user": "ann"}, headers=headers).json()
        headers = {"authorization": f"Bearer {made['token']}"}
    body = {"input": "take 3 seconds", "stream": True}
    pieces: list[str] = []
    with api.stream("POST", f"/v1/agents/{tenant_id}/clerk/run", json=body, headers=headers) as events:
        received = events.iter_text()
        while "tool.called" not in "".join(pieces):
            pieces.append(next(received))
        assert api.delete(f"/admin/tenants/{tenant_id}/keys/{key_id}").status_code == 200
        with pytest.raises(httpx.RemoteProtocolError):
            pieces.extend(received)
    assert "run.completed" not in "".join(pieces)
    eventually(
        lambda: api.get(f"/admin/agents/{tenant_id}/runs").json()["runs"],
        lambda runs: [run["status"] for run in runs] == ["completed"],
    )


def test_a_user_s_token_reaches_their_own_conversation_alone(api: httpx.Client, tenant: Tenant) -> None:
    tenant_id = tenant()
    _, headers = _key(api, tenant_id, "runs")

    def token(user: str) -> dict[str, str]:
        made = api.post(f"/v1/tenants/{tenant_id}/tokens", json={"user": user}, headers=headers)
        assert made.status_code == 201, made.text
        return {"authorization": f"Bearer {made.json()['token']}"}

    ann, ben = token("ann"), token("ben")
    body = {"input": "hello", "instance_id": "desk", "stream": True}
    with api.stream("POST", f"/v1/agents/{tenant_id}/sdr/run", json=body, headers=ann) as events:
        assert "event: run.completed" in events.read().decode()
    messages = f"/v1/agents/{tenant_id}/sdr/instances/desk/messages"
    eventually(lambda: api.get(messages, headers=ann).json()["messages"], bool)
    assert api.get(messages, headers=ben).json() == {"messages": [], "cursor": None}  # Ben's own, which has not begun
    refused = api.get(f"/v1/tenants/{tenant_id}/memories", headers=ann)
    assert (refused.status_code, refused.json()["code"]) == (403, "scope_required")
    changed = {"authorization": ann["authorization"][:-2] + "AA"}
    assert api.get(messages, headers=changed).json()["code"] == "invalid_user_token"


def test_a_page_of_a_key_s_origin_asks_streams_and_reads_errors_and_no_other_page_does(
    api: httpx.Client, tenant: Tenant
) -> None:
    tenant_id = tenant()
    origin = f"https://{tenant_id}.example"
    made = api.post(
        f"/admin/tenants/{tenant_id}/keys", json={"name": "shop", "scopes": ["runs"], "origins": [origin]}
    ).json()
    made_token = api.post(
        f"/v1/tenants/{tenant_id}/tokens",
        json={"user": "ann"},
        headers={"authorization": f"Bearer {made['key']}"},
    ).json()
    page = {"origin": origin, "sec-fetch-site": "cross-site", "sec-fetch-mode": "cors"}
    run = f"/v1/agents/{tenant_id}/sdr/run"
    wanted = {"access-control-request-method": "POST", "access-control-request-headers": "authorization,content-type"}

    def preflight(sent: dict[str, str]) -> httpx.Response:
        return api.request("OPTIONS", run, headers={**sent, **wanted})

    asked = eventually(lambda: preflight(page), lambda answer: answer.status_code == 204)
    assert asked.content == b""
    assert asked.headers["access-control-allow-origin"] == origin
    assert asked.headers["vary"] == "origin"
    assert "authorization" in asked.headers["access-control-allow-headers"]
    user = {"authorization": f"Bearer {made_token['token']}"}
    body = {"input": "hello", "instance_id": "desk", "stream": True}
    with api.stream("POST", run, json=body, headers={**page, **user}) as events:
        assert events.headers["access-control-allow-origin"] == origin
        assert "x-request-id" in events.headers["access-control-expose-headers"]
        assert "event: run.completed" in events.read().decode()
    refused = api.get(f"/v1/tenants/{tenant_id}/memories", headers={**page, **user})
    assert (refused.json()["code"], refused.headers["access-control-allow-origin"]) == ("scope_required", origin)

    other = {**page, "origin": "https://evil.example"}
    assert preflight(other).status_code == 403
    answer = api.post(run, json=body, headers={**other, **user})
    assert (answer.status_code, answer.json()["code"]) == (403, "origin_not_allowed")
    assert not {name for name in answer.headers if name.startswith("access-control-")}


def test_the_command_asks_a_deployment_with_a_key(
    api: httpx.Client, tenant: Tenant, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tenant_id = tenant()
    key_id, headers = _key(api, tenant_id, "runs", "memory:read", "memory:write")
    assert key_id
    for name, value in (("URL", str(api.base_url)), ("TENANT", tenant_id), ("KEY", headers["authorization"][7:])):
        monkeypatch.setenv(f"RETAIN_{name}", value)

    def command(*arguments: str) -> tuple[int, str]:
        return main(arguments), capsys.readouterr().out

    _, memory_id = command("remember", "Ann drinks tea.", "--user", "ann")
    status, recalled = command("recall", "What does Ann drink?", "--user", "ann")
    assert (status, recalled.split()[1], recalled.strip().endswith("Ann drinks tea.")) == (0, memory_id.strip(), True)
    ran = api.post(f"/v1/agents/{tenant_id}/sdr/run", json={"input": "hello", "instance_id": "desk"}, headers=headers)
    run_id = ran.json()["run_id"]
    eventually(lambda: command("runs", "list", "--agent", "sdr")[1], lambda printed: run_id in printed)
    status, shown = command("runs", "show", run_id)
    assert (status, "completed  sdr/desk" in shown) == (0, True)
    assert command("runs", "show", "01ARZ3NDEKTSV4RRFFQ69G5FAV")[0] == 4
    monkeypatch.setenv("RETAIN_KEY", f"{headers['authorization'][7:]}x")
    assert command("runs", "list")[0] == 3
