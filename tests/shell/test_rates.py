"""Rates through the whole Worker: who is counted together, in which order, and that the proxy asks no store for it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from types import SimpleNamespace

import pytest

from retain.gateway.provisioning import new_api_key
from tests.admin.access_team import Team
from tests.shell.access import guarded_worker, token
from tests.shell.platform.bindings import Binding
from tests.shell.platform.ffi import JsException, PlainObject, options_of
from tests.shell.test_application_keys import made
from tests.shell.worker import Worker


class RateLimit(Binding):
    """The rate limiting binding: allows each key so many requests."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self._limit = limit
        self.counts: dict[str, int] = {}

    async def limit(self, options: PlainObject) -> SimpleNamespace:
        """Count a request."""
        if self.down:
            raise JsException("internal error")
        key = str(options_of(options)["key"])
        self.counts[key] = self.counts.get(key, 0) + 1
        return SimpleNamespace(success=self.counts[key] <= self._limit)


@pytest.fixture
async def guarded(team: Team, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Worker]:
    async with guarded_worker(team, monkeypatch, ("acme", "other"), OWNERS="domain:example.com") as worker:
        yield worker


def limited(worker: Worker, *, callers: int = 10**9, tenants: int = 10**9) -> tuple[RateLimit, RateLimit]:
    """Give the deployment both bindings, and a cold isolate that has them."""
    worker.env.CALLER_RATE, worker.env.TENANT_RATE = RateLimit(callers), RateLimit(tenants)
    worker.restart()
    return worker.env.CALLER_RATE, worker.env.TENANT_RATE


async def listed(worker: Worker, team: Team, tenant: str = "acme", by: str = "ada@example.com") -> int:
    path = f"/admin/tenants/{tenant}/memories"
    return (await worker.request("GET", path, headers=token(team, email=by))).status


async def test_each_person_has_a_rate_of_their_own(guarded: Worker, team: Team) -> None:
    limited(guarded, callers=2)
    assert [await listed(guarded, team, tenant) for tenant in ("acme", "other", "acme")] == [200, 200, 429]
    assert await listed(guarded, team, by="bob@example.com") == 200


async def test_users_of_two_tenants_with_one_id_have_a_rate_each(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    async with guarded_worker(team, monkeypatch, ("acme", "other"), APPLICATION_KEYS="true") as worker:
        users = {}
        for tenant in ("acme", "other"):
            application = await made(worker, team, "runs", tenant=tenant)
            answer = await application.asks("POST", f"/v1/tenants/{tenant}/tokens", {"user": "1"})
            users[tenant] = {"authorization": f"Bearer {answer.content['token']}"}
        limited(worker, callers=2)

        async def instances(tenant: str) -> int:
            return (await worker.request("GET", f"/v1/agents/{tenant}/instances", headers=users[tenant])).status

        assert [await instances("other") for _ in range(3)] == [200, 200, 429]
        assert await instances("acme") == 200


async def test_everybody_in_a_tenant_shares_its_rate(guarded: Worker, team: Team) -> None:
    limited(guarded, tenants=2)
    people = ("ada@example.com", "bob@example.com", "eve@example.com")
    assert [await listed(guarded, team, by=person) for person in people] == [200, 200, 429]
    assert await listed(guarded, team, "other") == 200


async def test_whoever_has_no_role_uses_nothing_of_the_tenants_rate(guarded: Worker, team: Team) -> None:
    _, tenants = limited(guarded, tenants=1)
    assert [await listed(guarded, team, by="mallory@elsewhere.example") for _ in range(3)] == [403, 403, 403]
    assert tenants.counts == {}
    assert await listed(guarded, team) == 200


async def test_a_refused_caller_costs_no_statement(guarded: Worker, team: Team) -> None:
    limited(guarded, callers=0)
    guarded.db.calls.clear()
    assert await listed(guarded, team) == 429
    assert guarded.db.calls == []


async def test_a_key_and_its_tenant_are_counted_by_the_gateway_after_the_key_is_known(guarded: Worker) -> None:
    callers, tenants = limited(guarded, callers=2)
    key = new_api_key("acme", ["*"], now_ms=guarded.clock())
    await guarded.kv.store.put(key.entry.key, key.entry.value)
    headers = {"authorization": f"Bearer {key.api_key}"}
    guarded.db.calls.clear()
    answers = [await guarded.request("POST", "/api/v1/tools/no_tool", {}, headers=headers) for _ in range(3)]
    assert [(answer.status, answer.content["code"]) for answer in answers] == [
        (404, "no_such_tool"),
        (404, "no_such_tool"),
        (429, "rate_limited"),
    ]
    assert answers[2].headers["retry-after"] == "60"
    assert tenants.counts == {"tenant:acme": 2}
    forged = {"authorization": f"Bearer {key.api_key[:-1]}"}
    assert (await guarded.request("POST", "/api/v1/tools/no_tool", {}, headers=forged)).status == 401
    assert sum(callers.counts.values()) == 3
    assert guarded.db.calls == []


async def test_a_limiter_that_fails_lets_everybody_pass(guarded: Worker, team: Team) -> None:
    callers, _ = limited(guarded, callers=0)
    callers.down = True
    assert await listed(guarded, team) == 200
