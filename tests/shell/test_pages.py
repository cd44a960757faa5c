"""Pages of other origins, through the whole Worker: what browsers are answered, and who may read it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping

import pytest

from tests.admin.access_team import Team
from tests.shell.access import guarded_worker, token
from tests.shell.test_application_keys import KEYS, RUN, Application, made, token_of
from tests.shell.worker import Answer, Worker

SHOP, DESK, EVIL = "https://shop.example", "https://desk.example", "https://evil.example"
MESSAGES = "/v1/agents/acme/sdr/instances/desk/messages"


@pytest.fixture
async def worker(team: Team, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Worker]:
    """A deployment that accepts keys, with one tenant."""
    async with guarded_worker(team, monkeypatch, ("acme",), APPLICATION_KEYS="true") as served:
        yield served


@pytest.fixture
async def shop(worker: Worker, team: Team) -> Application:
    """The application whose pages are the shop's. A key of another one has the desk's."""
    await made(worker, team, "runs", origins=[DESK])
    return await made(worker, team, "runs", origins=[SHOP])


async def preflight(worker: Worker, origin: str, path: str = MESSAGES, method: str = "POST") -> Answer:
    """Ask as a browser does before it sends the request of a page."""
    wanted = {"access-control-request-method": method, "access-control-request-headers": "authorization"}
    return await worker.request("OPTIONS", path, headers={"origin": origin, **wanted})


async def asks(caller: Application, origin: str, method: str, path: str, content: object = None) -> Answer:
    """Send what a page of the origin sends."""
    headers = {**caller.headers, "origin": origin, "sec-fetch-site": "cross-site"}
    answer = await caller.worker.request(method, path, content, headers=headers)
    await caller.worker.settled()
    return answer


def opened(answer: Answer) -> str | None:
    """Return the origin whose pages may read the answer."""
    headers: Mapping[str, str] = answer.headers
    assert headers["vary"] == "origin"
    assert "access-control-allow-credentials" not in headers
    assert headers.get("access-control-allow-origin") != "*"
    return headers.get("access-control-allow-origin")


@pytest.mark.parametrize("path", [MESSAGES, "/v1/tenants/acme/memories", "/v1/tenants/none/memories", "/v1/agents/x"])
async def test_a_preflight_is_answered_for_the_origins_of_any_key(shop: Application, path: str) -> None:
    answer = await preflight(shop.worker, SHOP, path)
    assert (answer.status, opened(answer), answer.body) == (204, SHOP, b"")
    assert answer.headers["access-control-allow-methods"] == "GET, POST, PUT, PATCH, DELETE"
    assert {"authorization", "content-type", "idempotency-key", "if-match", "last-event-id"} <= set(
        answer.headers["access-control-allow-headers"].split(", ")
    )
    assert answer.headers["access-control-max-age"] == "7200"
    assert opened(await preflight(shop.worker, DESK, path)) == DESK
    refused = await preflight(shop.worker, EVIL, path)
    assert (refused.status, refused.content["code"], opened(refused)) == (403, "origin_not_allowed", None)


async def test_where_no_page_may_come_no_preflight_is_answered(shop: Application, team: Team) -> None:
    worker = shop.worker
    for path in ("/admin/tenants/acme/memories", "/api/v1/tools/echo", "/mcp", "/healthz", "/v1"):
        answer = await preflight(worker, SHOP, path)
        assert answer.status in (401, 403, 404, 405), path
        assert not {name for name in answer.headers if name.startswith("access-control-")}, path
        assert "vary" not in answer.headers
    for headers in ({"origin": SHOP}, {"access-control-request-method": "GET"}):
        answer = await worker.request("OPTIONS", MESSAGES, headers={**token(team), **headers})
        assert answer.status in (403, 405)


async def test_preflights_without_keys_are_routed_as_ever(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    async with guarded_worker(team, monkeypatch, ("acme",), APPLICATION_KEYS="false") as worker:
        answer = await preflight(worker, SHOP)
        assert (answer.status, answer.content["code"]) == (403, "cross_site_request")
        assert not {"vary", "access-control-allow-origin"} & answer.headers.keys()


async def test_a_page_of_the_key_s_origin_reads_answers_errors_and_streams(shop: Application) -> None:
    ran = await asks(shop, SHOP, "POST", "/v1/agents/acme/sdr/run", RUN)
    assert (ran.status, opened(ran)) == (200, SHOP)
    assert {"x-request-id", "retry-after"} <= set(ran.headers["access-control-expose-headers"].split(", "))
    streamed = await asks(shop, SHOP, "POST", "/v1/agents/acme/sdr/run", {**RUN, "stream": True})
    assert (streamed.status, opened(streamed)) == (200, SHOP)
    assert b"event: run.completed" in streamed.body
    for method, path, code in (
        ("GET", "/v1/agents/acme/sdr/instances/none/messages", "no_such_instance"),
        ("GET", "/v1/agents/acme/no/such/route", "no_such_route"),
        ("DELETE", "/v1/agents/acme/instances", "method_not_allowed"),
        ("GET", f"{MESSAGES}?limit=0", "invalid_limit"),
        ("GET", "/v1/tenants/acme/memories", "scope_required"),
        ("GET", "/v1/tenants/other/memories", "scope_required"),
        ("GET", "/v1/agents/other/instances", "role_required"),
    ):
        answer = await asks(shop, SHOP, method, path)
        assert (answer.content["code"], opened(answer)) == (code, SHOP), path


async def test_an_unexpected_failure_is_read_by_the_page_too(
    shop: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    await asks(shop, SHOP, "GET", MESSAGES)  # its key has been read

    def broken(_: str) -> None:
        raise TypeError

    monkeypatch.setitem(vars(shop.worker.db), "prepare", broken)
    answer = await asks(shop, SHOP, "GET", MESSAGES)
    assert (answer.status, answer.content["code"], opened(answer)) == (500, "internal", SHOP)


@pytest.mark.parametrize("origin", [EVIL, DESK, "null"])
async def test_a_page_of_another_origin_is_refused_and_reads_nothing(shop: Application, origin: str) -> None:
    for path in (MESSAGES, "/admin/tenants/acme/memories"):
        answer = await asks(shop, origin, "GET", path)
        assert (answer.status, answer.content["code"]) == (403, "origin_not_allowed")
        assert "access-control-allow-origin" not in answer.headers
    ran = await asks(shop, origin, "POST", "/v1/agents/acme/sdr/run", RUN)
    assert ran.content["code"] == "origin_not_allowed"
    assert await shop.worker.rows("SELECT * FROM agent_runs") == []


async def test_programs_and_pages_of_the_worker_s_own_host_need_no_origin(worker: Worker, team: Team) -> None:
    application = await made(worker, team, "runs")
    without = await application.asks("GET", "/v1/agents/acme/instances")
    assert (without.status, opened(without)) == (200, None)
    own = await asks(application, "http://127.0.0.1:8787", "GET", "/v1/agents/acme/instances")
    assert (own.status, opened(own)) == (200, None)
    other = await asks(application, "http://127.0.0.1:8788", "GET", "/v1/agents/acme/instances")
    assert other.content["code"] == "origin_not_allowed"


async def test_a_user_s_token_has_the_origins_of_its_key(shop: Application, team: Team) -> None:
    ann = await token_of(shop, "ann")
    assert opened(await asks(ann, SHOP, "GET", "/v1/agents/acme/instances")) == SHOP
    assert (await asks(ann, DESK, "GET", "/v1/agents/acme/instances")).content["code"] == "origin_not_allowed"
    changed = await shop.worker.request(
        "PATCH", f"{KEYS}/{shop.key_id}", {"origins": [DESK, DESK]}, headers=token(team)
    )
    assert changed.content["origins"] == [DESK]
    assert opened(await asks(ann, DESK, "GET", "/v1/agents/acme/instances")) == DESK
    assert (await asks(ann, SHOP, "GET", "/v1/agents/acme/instances")).content["code"] == "origin_not_allowed"


async def test_a_page_reads_that_its_token_has_ended_if_any_key_has_its_origin(shop: Application) -> None:
    ann = await token_of(shop, "ann", minutes=1)
    shop.worker.clock.advance(60_000)
    for headers, code in (
        (ann.headers, "invalid_user_token"),
        ({"authorization": "Bearer retainapp_acme_x"}, "invalid_api_key"),
        ({}, "missing_access_token"),
    ):
        for origin, reads in ((SHOP, SHOP), (DESK, DESK), (EVIL, None), ("null", None)):
            answer = await shop.worker.request(
                "GET", "/v1/agents/acme/instances", headers={**headers, "origin": origin}
            )
            assert (answer.status, answer.content["code"], opened(answer)) == (401, code, reads)


async def test_a_page_reads_nothing_in_the_name_of_whom_access_knows(shop: Application, team: Team) -> None:
    answer = await shop.worker.request("GET", MESSAGES, headers={**token(team), "origin": SHOP})
    assert opened(answer) is None
    refused = await shop.worker.request("POST", "/v1/agents/acme/sdr/run", RUN, headers={**token(team), "origin": SHOP})
    assert refused.content["code"] == "cross_site_request"


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"origins": ["*"]}, "invalid_origin"),
        ({"origins": [f"{SHOP}/"]}, "invalid_origin"),
        ({"origins": [f"https://s{n}.example" for n in range(11)]}, "invalid_body"),
        ({"origins": SHOP}, "invalid_body"),
        ({"scopes": ["admin"]}, "invalid_body"),
    ],
)
async def test_origins_that_cannot_be_a_key_s_say_why(
    shop: Application, team: Team, body: dict[str, object], code: str
) -> None:
    changed = await shop.worker.request("PATCH", f"{KEYS}/{shop.key_id}", body, headers=token(team))
    assert (changed.status, changed.content["code"]) == (400, code)
    created = {"name": "x", "scopes": ["runs"], **body}
    if "scopes" not in body:
        answer = await shop.worker.request("POST", KEYS, created, headers=token(team))
        assert answer.content["code"] == code
