"""What a caller gets for each mistake: a status, a stable code, and a problem document that names the request."""

from __future__ import annotations

import itertools
import select
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

from retain.agents.calls.asked_files import MAX_BODY_BYTES
from tests.e2e.calls import recorded_run, run, runs

pytestmark = pytest.mark.workerd

RUN = "/v1/agents/{tenant}/order_triage/run"
RUNS = "/admin/agents/{tenant}/runs"
SEED = "/admin/seed-memory"
MEMORIES = "/admin/tenants/{tenant}/memories"
RECALL = f"{MEMORIES}/recall"
TOOL = "/api/v1/tools/create_order"
NO_RUN = "01ARZ3NDEKTSV4RRFFQ69G5FAV"


@dataclass(frozen=True)
class Mistake:
    """A request and how it is refused. `{tenant}` in path and body is a tenant that exists."""

    method: str
    path: str
    status: int
    code: str
    json: Any = None
    content: str | bytes | None = None
    headers: dict[str, str] | dict[bytes, bytes] = field(default_factory=dict)


def _seeded(**changes: object) -> dict[str, object]:
    return {"tenant": "{tenant}", "agent_type": "sdr", "memories": [{"content": "x"}], **changes}


MISTAKES: dict[str, Mistake] = {
    "unknown route": Mistake("GET", "/nothing", 404, "no_such_route"),
    "unknown route of agents": Mistake("GET", "/v1/agents/{tenant}/nothing", 404, "no_such_route"),
    "unknown route of the admin": Mistake("GET", "/admin/nothing", 404, "no_such_route"),
    "unknown route of the gateway": Mistake("POST", "/api/v1/nothing", 404, "no_such_route"),
    "wrong method of the health check": Mistake("POST", "/healthz", 405, "method_not_allowed"),
    "unknown instance": Mistake("GET", "/v1/agents/{tenant}/order_triage/instances/never-ran", 404, "no_such_instance"),
    "a page of another site": Mistake(
        "POST", SEED, 403, "cross_site_request", json=_seeded(), headers={"origin": "https://evil.example"}
    ),
    "slash at the end": Mistake("POST", f"{RUN}/", 404, "no_such_route", json={"input": "x"}),
    "wrong method of a run": Mistake("GET", RUN, 405, "method_not_allowed"),
    "wrong method of runs": Mistake("DELETE", RUNS, 405, "method_not_allowed"),
    "wrong method of a tool": Mistake("GET", TOOL, 405, "method_not_allowed"),
    "unknown tenant, run": Mistake(
        "POST", "/v1/agents/nobody/order_triage/run", 404, "unknown_tenant", json={"input": "x"}
    ),
    "unknown tenant, runs": Mistake("GET", "/admin/agents/nobody/runs", 404, "unknown_tenant"),
    "unknown tenant, seed": Mistake("POST", SEED, 404, "unknown_tenant", json=_seeded(tenant="nobody")),
    "unknown agent, run": Mistake("POST", "/v1/agents/{tenant}/nothing/run", 404, "unknown_agent", json={"input": "x"}),
    "unknown agent, instance": Mistake("GET", "/v1/agents/{tenant}/nothing/instances/x", 404, "unknown_agent"),
    "unknown agent, seed": Mistake("POST", SEED, 404, "unknown_agent", json=_seeded(agent_type="nothing")),
    "unknown run": Mistake("GET", f"{RUNS}/{NO_RUN}", 404, "no_such_run"),
    "unknown run's events": Mistake("GET", f"{RUNS}/{NO_RUN}/events", 404, "no_such_run"),
    "id of a run that is none": Mistake("GET", f"{RUNS}/nope", 400, "invalid_id"),
    "tenant outside the grammar": Mistake("PUT", "/admin/tenants/Acme", 400, "invalid_tenant"),
    "tenant too long": Mistake("PUT", f"/admin/tenants/{'a' * 41}", 400, "invalid_tenant"),
    "agent outside the grammar": Mistake(
        "POST", "/v1/agents/{tenant}/SDR/run", 400, "invalid_agent_type", json={"input": "x"}
    ),
    "instance outside the grammar": Mistake(
        "POST", RUN, 400, "invalid_instance_id", json={"input": "x", "instance_id": "a:b"}
    ),
    "instance that no URL can name": Mistake(
        "POST", RUN, 400, "invalid_instance_id", json={"input": "x", "instance_id": ".."}
    ),
    "instance that is a dot": Mistake("POST", RUN, 400, "invalid_instance_id", json={"input": "x", "instance_id": "."}),
    "flag as a text": Mistake("POST", RUN, 400, "invalid_body", json={"input": "x", "stream": "yes"}),
    "flag as a number": Mistake("POST", RUN, 400, "invalid_body", json={"input": "x", "stream": 1}),
    "top_k as a text": Mistake("POST", RECALL, 400, "invalid_body", json={"query": "x", "top_k": "5"}),
    "top_k as a flag": Mistake("POST", RECALL, 400, "invalid_body", json={"query": "x", "top_k": True}),
    "confidence as a text": Mistake("POST", MEMORIES, 400, "invalid_body", json={"content": "x", "confidence": "0.5"}),
    "confidence as a flag": Mistake("POST", MEMORIES, 400, "invalid_body", json={"content": "x", "confidence": True}),
    "memory that has expired": Mistake(
        "POST", MEMORIES, 400, "invalid_expires_at_ms", json={"content": "x", "expires_at_ms": 1}
    ),
    "memory that expires before it is valid": Mistake(
        "POST",
        MEMORIES,
        400,
        "invalid_expires_at_ms",
        json={"content": "x", "expires_at_ms": 4_000_000_000_000, "valid_from_ms": 4_000_000_000_000},
    ),
    "house that has nothing": Mistake("GET", f"{MEMORIES}?house=nope", 404, "unknown_scope"),
    "parameter misspelt": Mistake("GET", f"{MEMORIES}?agent=probe", 400, "invalid_query"),
    "parameter of another route": Mistake("GET", f"{RUNS}?instance_id=x", 400, "invalid_query"),
    "parameter where none is read": Mistake("POST", f"{RUN}?stream=true", 400, "invalid_query", json={"input": "x"}),
    "parameter twice": Mistake("GET", f"{RUNS}?limit=1&limit=2", 400, "invalid_query"),
    "flag neither true nor false": Mistake("GET", f"{MEMORIES}?all=maybe", 400, "invalid_query"),
    "item of a reserved service": Mistake(
        "PUT", "/admin/tenants/{tenant}/items/agent_working/s1/cart/a", 400, "reserved_service", json={"value": "x"}
    ),
    "item that outlives everyone": Mistake(
        "PUT", "/admin/tenants/{tenant}/items/svc/s1/cart/a", 400, "invalid_ttl", json={"value": "x", "ttl_s": 10**12}
    ),
    "no body": Mistake("POST", RUN, 400, "malformed_json"),
    "body cut short": Mistake("POST", RUN, 400, "malformed_json", content='{"input": "x'),
    "body not UTF-8": Mistake("POST", RUN, 400, "malformed_json", content=b"\xff\xfe{"),
    "text in Latin-1": Mistake("POST", RUN, 400, "malformed_json", content=b'{"input": "caf\xe9"}'),
    "half a character": Mistake("POST", RUN, 400, "malformed_json", content=r'{"input": "x \ud83d y"}'),
    "half a character in metadata": Mistake(
        "POST", MEMORIES, 400, "malformed_json", content=r'{"content": "x", "metadata": {"a": "\ud83d"}}'
    ),
    "not a number": Mistake("POST", MEMORIES, 400, "malformed_json", content='{"content": "x", "confidence": NaN}'),
    "body nested too deeply": Mistake("POST", RUN, 400, "malformed_json", content="[" * 100_000),
    "objects nested too deeply": Mistake("POST", SEED, 400, "malformed_json", content='{"a":' * 50_000),
    "body a list": Mistake("POST", RUN, 400, "invalid_body", json=[]),
    "input missing": Mistake("POST", RUN, 400, "invalid_body", json={}),
    "input a number": Mistake("POST", RUN, 400, "invalid_body", json={"input": 1}),
    "extra field of a run": Mistake("POST", RUN, 400, "invalid_body", json={"input": "x", "tenant_id": "other"}),
    "extra field of a seed": Mistake("POST", SEED, 400, "invalid_body", json=_seeded(scope="*")),
    "extra field of a memory": Mistake(
        "POST", SEED, 400, "invalid_body", json=_seeded(memories=[{"content": "x", "tenant_id": "other"}])
    ),
    "no memories": Mistake("POST", SEED, 400, "invalid_body", json=_seeded(memories=[])),
    "too many memories": Mistake("POST", SEED, 400, "invalid_body", json=_seeded(memories=[{"content": "x"}] * 101)),
    "memory without content": Mistake("POST", SEED, 400, "empty_content", json=_seeded(memories=[{"content": " "}])),
    "memory too large": Mistake(
        "POST", SEED, 413, "content_too_large", json=_seeded(memories=[{"content": "x" * 70_000}])
    ),
    "metadata too large": Mistake(
        "POST",
        SEED,
        413,
        "metadata_too_large",
        json=_seeded(memories=[{"content": "x", "metadata": {"a": "x" * 11_000}}]),
    ),
    "input too large to take": Mistake("POST", RUN, 413, "input_too_large", json={"input": "x" * 300_000}),
    "input too large for the context": Mistake("POST", RUN, 413, "input_too_large", json={"input": "x" * 70_000}),
    "body too large": Mistake("POST", RUN, 413, "body_too_large", content="x" * (MAX_BODY_BYTES + 1)),
    "idempotency key empty": Mistake(
        "POST", RUN, 400, "invalid_idempotency_key", json={"input": "x"}, headers={"idempotency-key": ""}
    ),
    "idempotency key too long": Mistake(
        "POST", RUN, 400, "invalid_idempotency_key", json={"input": "x"}, headers={"idempotency-key": "x" * 256}
    ),
    "idempotency key not UTF-8": Mistake(
        "POST", RUN, 400, "invalid_idempotency_key", json={"input": "x"}, headers={b"idempotency-key": b"caf\xe9"}
    ),
    "limit zero": Mistake("GET", f"{RUNS}?limit=0", 400, "invalid_limit"),
    "limit too high": Mistake("GET", f"{RUNS}?limit=201", 400, "invalid_limit"),
    "limit negative": Mistake("GET", f"{RUNS}?limit=-1", 400, "invalid_limit"),
    "limit no number": Mistake("GET", f"{RUNS}?limit=ten", 400, "invalid_limit"),
    "limit empty": Mistake("GET", f"{RUNS}?limit=", 400, "invalid_limit"),
    "cursor of another kind": Mistake("GET", f"{RUNS}?cursor=abc", 400, "invalid_cursor"),
    "cursor cut short": Mistake("GET", f"{RUNS}?cursor=1.{NO_RUN[:-1]}", 400, "invalid_cursor"),
    "agent filter outside the grammar": Mistake("GET", f"{RUNS}?agent_type=*", 400, "invalid_agent_type"),
    "API key missing": Mistake("POST", TOOL, 401, "missing_api_key", json={}),
    "API key of another scheme": Mistake(
        "POST", TOOL, 401, "missing_api_key", json={}, headers={"authorization": "Basic YTpi"}
    ),
    "API key unknown": Mistake(
        "POST", TOOL, 401, "invalid_api_key", json={}, headers={"x-api-key": f"retain_acme_{'x' * 43}"}
    ),
    "tool outside the grammar": Mistake("POST", "/api/v1/tools/Create-Order", 400, "invalid_tool_name", json={}),
    "host that is not this machine": Mistake(
        "GET", RUNS, 500, "access_not_configured", headers={"host": "retain.example.com"}
    ),
}


def _filled(value: Any, tenant_id: str) -> Any:
    if isinstance(value, dict):
        return {key: _filled(item, tenant_id) for key, item in value.items()}
    return value.replace("{tenant}", tenant_id) if isinstance(value, str) else value


def _send(api: httpx.Client, mistake: Mistake, tenant_id: str) -> httpx.Response:
    return api.request(
        mistake.method,
        mistake.path.replace("{tenant}", tenant_id),
        json=_filled(mistake.json, tenant_id),
        content=mistake.content,
        headers=mistake.headers,
    )


@pytest.fixture(scope="module")
def known(api: httpx.Client) -> str:
    """A tenant that exists."""
    assert api.put("/admin/tenants/known").is_success
    return "known"


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=list(MISTAKES))
def test_a_mistake_is_refused_with_its_status_its_code_and_the_request_s_id(
    api: httpx.Client, known: str, mistake: Mistake
) -> None:
    response = _send(api, mistake, known)
    assert response.headers["content-type"] == "application/problem+json", response.text
    problem = response.json()
    assert (response.status_code, problem["code"]) == (mistake.status, mistake.code), problem
    assert problem["status"] == response.status_code
    assert problem["request_id"] == response.headers["x-request-id"]
    assert problem["type"] == "about:blank"
    assert problem["title"]
    assert problem["detail"]
    if mistake.status == 405:
        assert problem["allowed"]
    if mistake.status == 413:
        assert any(name.startswith("limit") for name in problem)


def test_no_mistake_leaves_a_run_behind(api: httpx.Client, tenant: Callable[[], str]) -> None:
    tenant_id = tenant()
    for mistake in MISTAKES.values():
        if mistake.path == RUN:
            assert _send(api, mistake, tenant_id).is_error
    made = run(api, tenant_id, "order_triage", "hello")
    recorded_run(api, tenant_id, made["run_id"])
    assert [recorded["run_id"] for recorded in runs(api, tenant_id)] == [made["run_id"]]


def test_a_body_that_names_no_length_is_measured_as_it_arrives(api: httpx.Client, known: str) -> None:
    def parts() -> Iterator[bytes]:
        yield from itertools.repeat(b"x" * 65_536, MAX_BODY_BYTES // 65_536 + 1)

    response = api.post(RUN.replace("{tenant}", known), content=parts())
    assert (response.status_code, response.json()["code"]) == (413, "body_too_large")


def test_a_body_that_names_no_length_has_to_be_utf_8(api: httpx.Client, known: str) -> None:
    pieces = (piece for piece in (b'{"input": "caf', b'\xe9"}'))
    answer = api.post(RUN.replace("{tenant}", known), content=pieces, headers={"content-type": "application/json"})
    assert (answer.status_code, answer.json()["code"], answer.json()["at_byte"]) == (400, "malformed_json", 14)


def test_a_body_that_is_refused_by_its_length_is_received_completely(api: httpx.Client) -> None:
    """An earlier answer would leave the sender with a broken connection instead of the reason."""
    length = 2_000_000
    head = f"POST /admin/seed-memory HTTP/1.1\r\nhost: localhost\r\ncontent-length: {length}\r\n\r\n"
    with socket.create_connection((api.base_url.host, api.base_url.port or 80), timeout=30) as sender:
        sender.sendall(head.encode() + b"z" * (length // 2))
        answered_early, _, _ = select.select([sender], [], [], 1)
        assert not answered_early
        sender.sendall(b"z" * (length - length // 2))
        assert sender.recv(100).startswith(b"HTTP/1.1 413 ")


def test_every_answer_carries_a_request_id_of_its_own(api: httpx.Client, known: str) -> None:
    paths = ["/healthz", "/nothing", RUNS.replace("{tenant}", known), "/healthz"]
    ids = [api.get(path).headers["x-request-id"] for path in paths]
    assert len(set(ids)) == len(paths)
    assert all(len(request_id) == 26 for request_id in ids)


def test_healthz_names_the_version_and_asks_for_nothing(api: httpx.Client) -> None:
    response = api.get("/healthz")
    assert response.status_code == 200
    assert response.json().keys() == {"status", "version"}


def test_a_page_of_runs_continues_where_the_last_one_ended(api: httpx.Client, tenant: Callable[[], str]) -> None:
    tenant_id = tenant()
    made = [run(api, tenant_id, "order_triage", "hello", instance_id="desk")["run_id"] for _ in range(5)]
    recorded_run(api, tenant_id, made[-1])  # and with it those before it
    path = RUNS.replace("{tenant}", tenant_id)
    pages: list[list[str]] = []
    cursor: str | None = None
    while not pages or cursor is not None:
        page = api.get(path, params={"limit": "2"} if cursor is None else {"limit": "2", "cursor": cursor}).json()
        pages.append([recorded["run_id"] for recorded in page["runs"]])
        cursor = page["cursor"]
    assert pages == [made[:2:-1], made[2:0:-1], made[:1]]
