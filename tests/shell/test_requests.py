"""The Worker's entrypoint: a request in, an answer or a problem out."""

from __future__ import annotations

import json
from typing import Any

import pytest

from retain.http import MAX_BODY_BYTES
from tests.admin.access_team import AUDIENCE
from tests.shell.platform.http import BROKEN, Request
from tests.shell.worker import Answer, Worker, entry, request_bodies, serving
from tests.support.instances import ULID

ITEM = "/admin/tenants/acme/items/shop/s-1/cart/active"
INGEST = "/admin/tenants/acme/memories/ingest"
CONVERSATION = {
    "conversation": "c-1",
    "messages": [{"speaker": "Ann", "content": "I moved to Oslo."}],
}


MAX_DISCARDED_BYTES: int = request_bodies.MAX_DISCARDED_BYTES


def received(request: Request) -> int:
    return 0 if request.body is None else request.body.received


def code_of(answer: Answer) -> tuple[int, str]:
    return answer.status, answer.content["code"]


def logged(output: str, message: str) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    return [line for line in lines if line.get("message") == message]


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("GET", "/healthz", (200, None)),
        ("HEAD", "/healthz", (200, None)),
        ("GET", "/healthz?probe=1&probe=", (400, "invalid_query")),
        ("GET", "/", (404, "no_such_route")),
        ("POST", "/healthz", (405, "method_not_allowed")),
        ("POST", "/mcp", (401, "missing_api_key")),
        ("POST", "/mcp/more", (404, "no_such_route")),
        ("POST", "/api/v1/tools/a_tool", (401, "missing_api_key")),
        ("POST", "/api/v1", (404, "no_such_route")),
        ("GET", "/api/v1/other", (404, "no_such_route")),
        ("POST", "/v1/agents/acme/sdr/run", (400, "malformed_json")),
        ("POST", "/v1/agents/acme/none", (404, "no_such_route")),
        ("GET", "/admin/tenants/acme/memories", (404, "unknown_tenant")),
        ("GET", "/admin/tenants/acme/history", (404, "unknown_tenant")),
        ("GET", "/admin/tenants/acme/history/mutations", (404, "unknown_tenant")),
        ("GET", "/admin/tenants/acme/history/verify", (404, "unknown_tenant")),
        ("GET", "/admin/tenants/acme/memories?unknown=1", (400, "invalid_query")),
        ("GET", "/admin/tenants/acme/memories?limit=1&limit=2", (400, "invalid_query")),
        ("GET", "/admin/tenants/acme/memories?limit=", (400, "invalid_limit")),
        ("GET", "/admin/agents/acme/runs?text=%FF", (400, "invalid_query")),
        ("GET", "/admin/tenants?%FF=1", (400, "invalid_query")),
        ("POST", "/v1/agents/acme/attachments?name=%ED%A0%80.txt", (400, "invalid_query")),
        ("PUT", "/admin/tenants/acme/roles/group:%C3", (404, "no_such_route")),
    ],
)
async def test_each_area_has_its_own_paths(
    worker: Worker, method: str, path: str, expected: tuple[int, str | None]
) -> None:
    answer = await worker.request(method, path)
    status, code = expected
    assert answer.status == status
    if code is None:
        assert answer.content == {"status": "ok", "version": answer.content["version"]}
        return
    assert answer.content["code"] == code
    assert answer.headers["content-type"] == "application/problem+json"


async def test_a_parameter_that_is_given_twice_is_named_once(worker: Worker) -> None:
    answer = await worker.request("GET", "/admin/tenants/acme/memories?limit=1&limit=2&kind=a&kind=b&kind=c&house=h")
    assert answer.content["problems"] == ["kind: given more than once", "limit: given more than once"]


async def test_every_answer_has_the_id_under_which_it_is_logged(
    worker: Worker, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    fine = await worker.request("GET", "/healthz")
    refused = await worker.request("GET", "/none")
    ids = [answer.headers["x-request-id"] for answer in (fine, refused)]
    assert all(ULID.fullmatch(name) for name in ids)
    assert len(set(ids)) == 2
    assert refused.content["request_id"] == ids[1]
    assert "type" in refused.content


async def test_an_unexpected_error_is_a_problem_without_its_text_and_logged_with_it(
    worker: Worker, capsys: pytest.CaptureFixture[str]
) -> None:
    del worker.env.KV  # what no deployment lacks
    answer = await worker.request("GET", "/healthz")
    assert code_of(answer) == (500, "internal")
    assert answer.content["detail"] == "an unexpected error occurred; it was logged"
    assert answer.content["request_id"] == answer.headers["x-request-id"]
    worker.env.KV = worker.kv
    vars(worker.db)["prepare"] = None
    capsys.readouterr()
    answer = await worker.request("GET", "/admin/tenants/acme/memories")
    assert code_of(answer) == (500, "internal")
    [line] = logged(capsys.readouterr().out, "unexpected error")
    assert (line["level"], line["logger"]) == ("error", "retain.entry")
    assert line["request_id"] == answer.headers["x-request-id"]
    assert "TypeError" in line["exception"]


@pytest.mark.parametrize("headers", [{}, {"content-length": "18"}], ids=["without a length", "with a length"])
async def test_a_body_is_read_whole_and_not_at_all_where_there_is_none(worker: Worker, headers: dict[str, str]) -> None:
    await worker.tenant()
    put = Request("PUT", f"http://127.0.0.1{ITEM}", headers, [b'\xef\xbb\xbf{"value": "2 \xc3', b'\xa9"}'])
    assert (await worker.send(put)).status == 200
    assert (await worker.request("GET", ITEM)).content["value"] == "2 é"
    for method in ("GET", "HEAD"):
        get = Request(method, f"http://127.0.0.1{ITEM}", {"content-length": str(2 * MAX_BODY_BYTES)}, [b"ignored"])
        answer = await worker.send(get)
        assert (answer.status, received(get)) == ((200, 0) if method == "GET" else (405, 0))
    delete = Request("DELETE", f"http://127.0.0.1{ITEM}", {}, [b"not JSON"])
    assert (await worker.send(delete)).status == 200
    assert received(delete) == len(b"not JSON")


async def test_a_body_is_not_kept_before_its_sender_is_known(worker: Worker) -> None:
    """What is not kept is discarded, so that the sender reads the answer."""
    pieces = [b"x" * MAX_BODY_BYTES] * 3
    for path, code in (("/api/v1/tools/echo", (401, "missing_api_key")), ("/none", (404, "no_such_route"))):
        request = Request("POST", f"http://127.0.0.1{path}", {}, pieces)
        answer = await worker.send(request)
        assert code_of(answer) == code
        assert received(request) == 3 * MAX_BODY_BYTES


@pytest.mark.parametrize(
    ("body", "headers", "expected"),
    [
        pytest.param(b'"' + b"x" * (MAX_BODY_BYTES - 2) + b'"', {}, (400, "invalid_body"), id="the most"),
        pytest.param(b'"' + b"x" * (MAX_BODY_BYTES - 1) + b'"', {}, (413, "body_too_large"), id="a byte more"),
        pytest.param(b'"' + "é".encode() * (MAX_BODY_BYTES // 2) + b'"', {}, (413, "body_too_large"), id="not ASCII"),
        pytest.param(b"{}", {"content-length": str(MAX_BODY_BYTES + 1)}, (413, "body_too_large"), id="announced"),
        pytest.param(b"{}", {"content-length": str(MAX_BODY_BYTES)}, (400, "invalid_body"), id="the most announced"),
        pytest.param(b"{}", {"content-length": "many"}, (400, "invalid_body"), id="no number"),
        pytest.param(b"{}", {"content-length": "-1"}, (400, "invalid_body"), id="negative"),
    ],
)
async def test_a_body_over_the_limit_is_refused(
    worker: Worker, body: bytes, headers: dict[str, str], expected: tuple[int, str]
) -> None:
    await worker.tenant()
    answer = await worker.request("PUT", ITEM, body=body, headers=headers)
    assert code_of(answer) == expected
    if answer.status == 413:
        assert answer.content["limit_bytes"] == MAX_BODY_BYTES
        assert answer.content["detail"] == "the body is too large"


@pytest.mark.parametrize("path", [ITEM, INGEST])
@pytest.mark.parametrize("announced", [50 * MAX_BODY_BYTES + 1, MAX_DISCARDED_BYTES, MAX_DISCARDED_BYTES + 1])
async def test_what_is_refused_unread_is_received_so_that_its_sender_reads_the_answer(
    worker: Worker, announced: int, path: str
) -> None:
    await worker.tenant()
    method, limit = ("PUT", MAX_BODY_BYTES) if path == ITEM else ("POST", 50 * MAX_BODY_BYTES)
    request = Request(method, f"http://127.0.0.1{path}", {"content-length": str(announced)}, [b"12345"])
    answer = await worker.send(request)
    assert code_of(answer) == (413, "body_too_large")
    assert answer.content["limit_bytes"] == limit
    assert received(request) == (0 if announced > MAX_DISCARDED_BYTES else 5)


async def test_no_more_than_a_hundred_megabytes_are_discarded(worker: Worker) -> None:
    assert MAX_DISCARDED_BYTES == 100 * 1024 * 1024
    request = Request("POST", "http://127.0.0.1/none", {}, [bytes(1024 * 1024)] * 120)
    assert code_of(await worker.send(request)) == (404, "no_such_route")
    assert received(request) <= MAX_DISCARDED_BYTES + request_bodies.PIECE_BYTES


async def test_a_conversation_is_read_as_it_arrives(worker: Worker) -> None:
    await worker.tenant()
    body = json.dumps(CONVERSATION).encode()
    request = Request("POST", f"http://127.0.0.1{INGEST}", {}, [body[:30], body[30:31], body[31:]])
    answer = await worker.send(request)
    assert answer.status == 201, answer.body
    assert received(request) == len(body)
    assert request.body is not None
    assert not request.body.locked
    await worker.settled()
    rows = await worker.rows("SELECT content FROM memory_records WHERE tenant_id = 'acme' ORDER BY id")
    assert any("Oslo" in row["content"] for row in rows)
    again = await worker.request("POST", INGEST, CONVERSATION)
    assert (again.status, again.content["job_id"]) == (200, answer.content["job_id"])


async def test_a_conversation_that_is_refused_is_received_completely(worker: Worker) -> None:
    await worker.tenant()
    rest = [b"x" * 1000] * 3
    request = Request("POST", f"http://127.0.0.1{INGEST}", {}, [b"not JSON", *rest])
    answer = await worker.send(request)
    assert code_of(answer) == (400, "malformed_json")
    assert request.body is not None
    assert not request.body.locked, "the reader of the route is closed before the rest is received"
    assert received(request) == 3000 + len(b"not JSON")


async def test_what_a_conversation_has_besides_is_refused_at_once_and_not_kept(worker: Worker) -> None:
    """Fifty megabytes of it would take half a gigabyte of the isolate's memory."""
    await worker.tenant()
    answer = await worker.request("POST", INGEST, pieces=[b'{"messages": [], "a1": 0,', b"not JSON"])
    assert code_of(answer) == (400, "invalid_body")
    assert [problem.partition(":")[0] for problem in answer.content["problems"]] == ["a1"]


async def test_a_body_that_is_interrupted_is_a_problem_that_may_pass(worker: Worker) -> None:
    await worker.tenant()
    answer = await worker.request("POST", INGEST, pieces=[b'{"messages": [', BROKEN])
    assert code_of(answer) == (503, "body_interrupted")
    refused = await worker.request("POST", INGEST, pieces=[b"not JSON", BROKEN])
    assert code_of(refused) == (400, "malformed_json")


async def test_the_routes_behind_access_ask_access_who_calls() -> None:
    async with serving(ACCESS_TEAM_DOMAIN="acme.cloudflareaccess.com", ACCESS_AUDIENCE=AUDIENCE) as worker:
        paths = ["/admin/tenants/acme/memories", "/v1/agents/acme/sdr/run", "/admin/none", "/v1/agents/none"]
        assert [code_of(await worker.request("GET", path)) for path in paths] == [(401, "missing_access_token")] * 4
        assert (await worker.request("GET", "/healthz")).status == 200
        assert worker.db.calls == []


async def test_a_deployment_without_access_lets_nobody_in_from_outside(worker: Worker) -> None:
    outside = await worker.request("GET", "/admin/tenants/acme/memories", host="retain.example.com")
    assert code_of(outside) == (500, "access_not_configured")
    async with serving(RETAIN_ENVIRONMENT="production") as production:
        answer = await production.request("GET", "/admin/tenants/acme/memories")
        assert code_of(answer) == (500, "access_not_configured")


async def test_a_page_of_another_site_is_not_the_developer(worker: Worker) -> None:
    answer = await worker.request("GET", "/admin/namespaces", headers={"Origin": "https://example.com"})
    assert code_of(answer) == (403, "cross_site_request")


async def test_a_setting_that_cannot_be_read_is_a_problem_of_every_route() -> None:
    async with serving(EMBEDDING_DIMENSIONS="many") as worker:
        answer = await worker.request("GET", "/healthz")
        assert code_of(answer) == (500, "invalid_setting")
        assert ULID.fullmatch(answer.content["request_id"])


async def test_an_answer_without_content_has_no_body(worker: Worker) -> None:
    await worker.tenant()
    ran = await worker.run("acme", "order_triage", "hello", instance_id="one")
    path = f"/v1/agents/acme/order_triage/instances/one/runs/{ran['run_id']}/events"
    events = await worker.request("GET", path)
    last = events.body.decode().split("id: ")[-1].split("\n")[0]
    answer = await worker.request("GET", path, headers={"last-event-id": last})
    assert (answer.status, answer.body) == (204, b"")


async def test_a_stream_is_sent_piece_by_piece(worker: Worker) -> None:
    await worker.tenant()
    answer = await worker.request(
        "POST", "/v1/agents/acme/order_triage/run", {"input": "hello", "stream": True, "instance_id": "one"}
    )
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert answer.body.decode().count("event: ") >= 3
    await worker.settled()


async def test_the_worker_exports_its_entrypoint_and_its_durable_objects() -> None:
    assert entry.__all__ == ["AgentRuntime", "Default", "TenantWriter"]


async def test_who_cancels_a_run_is_recorded(worker: Worker) -> None:
    await worker.tenant()
    ran = await worker.run("acme", "order_triage", "hello", instance_id="one")
    path = f"/v1/agents/acme/order_triage/instances/one/runs/{ran['run_id']}/cancel"
    await worker.request("POST", path, {})
    name, method, asked = worker.agents.requests[-1]
    assert (name, method, json.loads(asked)["by"]) == ("order_triage:acme:one", "cancel", "person:developer")
