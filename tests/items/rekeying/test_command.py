"""`retain namespaces` against the administrator's handlers, on the host's stores: the whole runbook."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from types import SimpleNamespace
from typing import TypeVar, cast

import httpx
import pytest

from retain.admin.context import AdminContext
from retain.admin.routes import ROUTER
from retain.cli.namespaces import main
from retain.errors import RetainError
from retain.http import Request, problem
from retain.items.rekeying.reads import SETTLE_MS
from retain.items.tiers.sql_warm import SqlWarm
from tests.items.rekeying.deployment import Deployment, Isolate

Outcome = TypeVar("Outcome")
URL = "http://retain.example"


@pytest.fixture
def deployment() -> Iterator[Deployment]:
    made = Deployment()
    yield made
    made.close()


def _connected(isolate: Isolate) -> Callable[[str], httpx.Client]:
    """Return a client whose transport answers as the Worker would."""
    context = cast(AdminContext, SimpleNamespace(migration=isolate.migration, backfill=isolate.backfill))

    def answered(asked: httpx.Request) -> httpx.Response:
        body = asked.content.decode()
        request = Request(asked.method, asked.url.path, {}, {}, body, "retain.example", "test")
        try:
            answer = asyncio.run(ROUTER.handle(context, request))
        except RetainError as error:
            answer = problem(error, "test")
        return httpx.Response(answer.status, text=str(answer.body))

    return lambda url: httpx.Client(base_url=url, transport=httpx.MockTransport(answered))


def _run(isolate: Isolate, *arguments: str) -> int:
    return main([*arguments, "--url", URL], _connected(isolate))


async def _awaited(work: Awaitable[Outcome]) -> Outcome:
    return await work


def _now(work: Awaitable[Outcome]) -> Outcome:
    return asyncio.run(_awaited(work))


def test_the_runbook_goes_through_all_phases_and_back(
    deployment: Deployment, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(70):
        _now(SqlWarm(deployment.sql, "acme", deployment.clock).upsert(f"acme:s1:cart:e{number}", "old"))
    first, second, third = (deployment.isolate(*both) for both in ((False, True), (True, True), (True, False)))
    assert _run(first, "status") == 0
    assert _run(first, "advance", "1", "--baseline", "0.95") == 0
    assert _run(first, "advance", "2") == 1
    assert "not_ready" in capsys.readouterr().err
    assert _run(second, "advance", "2") == 0
    assert _run(second, "backfill") == 1
    assert "backfill_not_allowed" in capsys.readouterr().err
    deployment.clock.advance(SETTLE_MS)
    assert _run(second, "backfill") == 0
    assert "70 copied" in capsys.readouterr().out
    assert _run(second, "backfill", "--again") == 0
    assert _run(second, "release", "1.0") == 0
    for name in ("1.1", "1.2"):
        for number in range(70):
            _now(second.warm().read(f"crm:acme:s1:cart:e{number}"))
            _now(second.warm().read(f"crm:acme:s1:cart:e{number}"))
        _now(second.reads.flush())
        assert _run(second, "release", name) == 0
    assert "cycle 4 since 1.1: stable, warm 1.0000" in capsys.readouterr().out
    assert _run(second, "advance", "3") == 0
    _now(deployment.objects.put("acme:s1:cart:late", b"late"))
    for _ in range(20):
        _now(third.cold().download_text("crm:acme:s1:cart:late"))
    _now(third.reads.flush())
    assert _run(third, "status") == 1
    assert "roll back to 2" in capsys.readouterr().out
    for phase in ("2", "1", "0"):
        assert _run(third, "rollback", phase) == 0
    assert _run(third, "rollback", "2") == 1
    assert len(_now(deployment.rows("SELECT 1 FROM memory_items WHERE namespace_key <> ''"))) == 70


@pytest.mark.parametrize("body", [{}, {"to": "x"}, {"to": 1, "more": 1}, {"to": 1, "baseline": "high"}], ids=json.dumps)
def test_an_invalid_body_is_refused(deployment: Deployment, body: dict[str, object]) -> None:
    client = _connected(deployment.isolate(False, True))(URL)
    answer = client.post("/admin/namespaces/phase", json=body)
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_body")
    client.close()


def test_a_server_that_does_not_answer_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    def refused(asked: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("no")

    connect = lambda url: httpx.Client(base_url=url, transport=httpx.MockTransport(refused))  # noqa: E731
    assert main(["status", "--url", URL], connect) == 1
    assert main(["advance", "1", "--baseline", "nan", "--url", URL], connect) == 1
    assert "server_failed" in capsys.readouterr().err
