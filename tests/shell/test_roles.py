"""Who may do what, through the whole Worker: every route of the table, with tokens that Access signed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from retain.roles.role import ROLES, Role, includes
from retain.routing.route import Route
from tests.admin.access_team import Team
from tests.shell.access import guarded_worker, token
from tests.shell.guarded_routes import ROUTES, code_of, path_of, trial_body
from tests.shell.worker import Answer, Worker


@pytest.fixture
async def guarded(team: Team, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Worker]:
    """A deployment with two tenants; `ada` holds no role yet."""
    async with guarded_worker(team, monkeypatch, ("acme", "other")) as worker:
        yield worker


NAMESPACES = "/client/v4/accounts/{account}/agent-memory/namespaces"


class Ada:
    """A person, who asks the Worker."""

    def __init__(self, worker: Worker, team: Team) -> None:
        self._worker = worker
        self._team = team
        self.headers = token(team, email="ada@example.com", custom={"groups": ["support"]})

    async def holds(
        self, role: Role | None, place: str = "/admin/tenants/acme", subject: str = "email:ada@example.com"
    ) -> None:
        """Let an owner grant the role, or take the one there away. place: the path under which roles are."""
        path = f"{place}/roles/{subject}"
        if role is None:
            answer = await self._worker.request("DELETE", path, headers=token(self._team))
        else:
            answer = await self._worker.request("PUT", path, {"role": role}, headers=token(self._team))
        assert answer.status in (200, 204), answer.body

    async def asks(self, method: str, path: str, content: object = None) -> Answer:
        return await self._worker.request(method, path, content, headers=self.headers)

    async def is_refused(self, route: Route[Any], tenant: str = "acme") -> bool:
        """Return whether a role is what the request lacks. Anything else would be said after that."""
        answer = await self.asks(route.method, path_of(route, tenant), trial_body(route, tenant))
        return answer.status == 403 and code_of(answer) == "role_required"


@pytest.fixture
def ada(guarded: Worker, team: Team) -> Ada:
    return Ada(guarded, team)


def test_every_route_behind_access_declares_the_role_it_needs() -> None:
    assert len(ROUTES) > 60
    assert [name for name, route in ROUTES.items() if route.guard != "Access" or route.needs is None] == []


def test_only_what_is_listed_here_names_its_tenant_elsewhere_than_in_the_path() -> None:
    elsewhere = {name: route.tenant_in for name, route in ROUTES.items() if route.tenant_in != "path"}
    assert elsewhere == {
        "PUT /admin/tenants/{tenant}": "deployment",
        "GET /admin/roles": "deployment",
        "PUT /admin/roles/{subject}": "deployment",
        "DELETE /admin/roles/{subject}": "deployment",
        "POST /admin/seed-memory": "body",
        "GET /admin/namespaces": "deployment",
        "POST /admin/namespaces/phase": "deployment",
        "POST /admin/namespaces/rollback": "deployment",
        "POST /admin/namespaces/releases": "deployment",
        "POST /admin/namespaces/backfill": "deployment",
        "PUT /admin/tenants/{tenant}/quotas": "deployment",
        "GET /admin/quotas": "deployment",
        "PUT /admin/quotas": "deployment",
        "GET /admin/shards": "deployment",
        "GET /admin/moves": "deployment",
        "GET /admin/tenants/{tenant}/shard": "deployment",
        "POST /admin/tenants/{tenant}/shard": "deployment",
        "GET /admin/tenants/{tenant}/moves/{move_id}": "deployment",
        "DELETE /admin/tenants/{tenant}/moves/{move_id}": "deployment",
        "GET /admin/history": "deployment",
        "GET /admin/history/mutations": "deployment",
        "GET /admin/history/verify": "deployment",
        "GET /admin/tenants": "own",
        "GET /admin/errors": "own",
        "GET /admin/errors/{error_id}": "own",
        "POST /admin/errors/{error_id}/replay": "own",
        "POST /admin/errors/{error_id}/dismiss": "own",
        "GET /v1/models": "own",
        "GET /v1/models/{model}": "own",
        "POST /v1/chat/completions": "own",
        f"POST {NAMESPACES}": "deployment",
        f"GET {NAMESPACES}": "own",
    }


def test_viewers_change_nothing_and_only_owners_take_data_out_or_away() -> None:
    reading = {"POST /admin/tenants/{tenant}/memories/recall", "POST /admin/tenants/{tenant}/mcp"}
    reading |= {f"POST {NAMESPACES}/{{tenant}}/profiles/{{profile}}/{name}" for name in ("recall", "summary")}
    changing = {name for name, route in ROUTES.items() if route.needs == "viewer" and route.method != "GET"}
    assert changing == reading
    owned = {name for name, route in ROUTES.items() if route.needs == "owner"}
    assert owned == {
        "PUT /admin/tenants/{tenant}",
        "GET /admin/tenants/{tenant}/roles",
        "PUT /admin/tenants/{tenant}/roles/{subject}",
        "DELETE /admin/tenants/{tenant}/roles/{subject}",
        "GET /admin/tenants/{tenant}/keys",
        "DELETE /admin/tenants/{tenant}",
        "DELETE /admin/tenants/{tenant}/users/{user}",
        "POST /admin/tenants/{tenant}/keys",
        "PATCH /admin/tenants/{tenant}/keys/{key_id}",
        "POST /admin/tenants/{tenant}/keys/{key_id}/rotate",
        "DELETE /admin/tenants/{tenant}/keys/{key_id}",
        "GET /admin/tenants/{tenant}/webhooks",
        "POST /admin/tenants/{tenant}/webhooks",
        "POST /admin/tenants/{tenant}/webhooks/reseal",
        "POST /admin/tenants/{tenant}/webhooks/{webhook_id}/rotate",
        "DELETE /admin/tenants/{tenant}/webhooks/{webhook_id}",
        "GET /admin/tenants/{tenant}/webhooks/{webhook_id}/deliveries",
        "POST /admin/tenants/{tenant}/webhooks/{webhook_id}/deliveries/{message_id}/replay",
        "GET /admin/roles",
        "PUT /admin/roles/{subject}",
        "DELETE /admin/roles/{subject}",
        "PUT /admin/tenants/{tenant}/quotas",
        "PUT /admin/quotas",
        "POST /admin/tenants/{tenant}/shard",
        "DELETE /admin/tenants/{tenant}/moves/{move_id}",
        "GET /admin/tenants/{tenant}/users/{user}/export",
        "GET /admin/tenants/{tenant}/export",
        "DELETE /admin/tenants/{tenant}/backups/{backup_id}",
        "POST /admin/tenants/{tenant}/restore",
        "POST /admin/tenants/{tenant}/import",
        "POST /admin/tenants/{tenant}/erase",
        f"POST {NAMESPACES}",
        f"DELETE {NAMESPACES}/{{tenant}}",
        f"DELETE {NAMESPACES}/{{tenant}}/profiles/{{profile}}",
    }


async def test_every_route_refuses_whoever_holds_no_role_or_one_of_another_tenant(ada: Ada) -> None:
    for name, route in ROUTES.items():
        assert await ada.is_refused(route), name
    await ada.holds("owner", "/admin/tenants/other")
    for name, route in ROUTES.items():
        if route.tenant_in != "own":
            assert await ada.is_refused(route), name
            assert await ada.is_refused(route, "unregistered"), name
        if route.tenant_in == "path":
            assert not await ada.is_refused(route, "other"), name


@pytest.mark.parametrize("held", ROLES)
async def test_every_route_asks_for_its_role_and_no_more(ada: Ada, held: Role) -> None:
    await ada.holds(held)
    for name, route in ROUTES.items():
        if route.path.endswith("/roles/{subject}") and held == "owner":
            continue  # would take the role away
        assert route.needs is not None
        allowed = route.tenant_in != "deployment" and includes(held, route.needs)
        assert await ada.is_refused(route) is not allowed, name


@pytest.mark.parametrize("held", ROLES)
async def test_a_role_for_every_tenant_is_one_for_the_deployment(ada: Ada, held: Role) -> None:
    await ada.holds(held, "/admin")
    for name, route in ROUTES.items():
        if route.path.endswith("/roles/{subject}"):
            continue
        assert route.needs is not None
        assert await ada.is_refused(route, "other") is not includes(held, route.needs), name


async def test_a_group_of_the_identity_provider_gives_its_members_the_role(ada: Ada) -> None:
    await ada.holds("viewer", subject="group:support")
    assert (await ada.asks("GET", "/admin/tenants/acme/memories")).status == 200
    await ada.holds(None, subject="group:support")
    assert (await ada.asks("GET", "/admin/tenants/acme/memories")).status == 403


async def test_an_owner_grants_lists_and_revokes_roles_of_its_own_tenant_alone(ada: Ada) -> None:
    await ada.holds("owner")
    bob = "/admin/tenants/acme/roles/email:bob@example.com"
    granted = await ada.asks("PUT", bob, {"role": "operator"})
    assert (granted.status, granted.content["granted_by"]) == (200, "ada@example.com")
    listed = (await ada.asks("GET", "/admin/tenants/acme/roles")).content["roles"]
    assert {grant["subject"]: grant["role"] for grant in listed} == {
        "email:ada@example.com": "owner",
        "email:bob@example.com": "operator",
    }
    assert (await ada.asks("DELETE", bob)).status == 204
    assert (await ada.asks("DELETE", bob)).content["code"] == "no_such_grant"
    assert (await ada.asks("PUT", "/admin/tenants/acme/roles/everybody", {"role": "viewer"})).status == 400
    assert (await ada.asks("PUT", bob, {"role": "root"})).status == 400
    for path in ("/admin/tenants/other/roles/email:ada@example.com", "/admin/roles/email:ada@example.com"):
        assert (await ada.asks("PUT", path, {"role": "viewer"})).content["code"] == "role_required"


async def test_a_list_over_tenants_has_only_those_of_the_caller(ada: Ada, guarded: Worker, team: Team) -> None:
    row = (
        "INSERT INTO error_ledger (error_id, tenant_id, stage, concerns, code, attempts, first_at_ms, last_at_ms)"
        " VALUES (?, ?, 'cron', 'x', 'internal', 1, 1, 1)"
    )
    for number, tenant in enumerate(("acme", "other", "")):
        await guarded.rows(row, str(number) * 32, tenant)
    await ada.holds("operator")
    page = await ada.asks("GET", "/admin/errors")
    assert [error["tenant_id"] for error in page.content["errors"]] == ["acme"]
    assert (await ada.asks("GET", "/admin/errors?tenant=other")).content["errors"] == []
    assert (await ada.asks("GET", f"/admin/errors/{'0' * 32}")).status == 200
    for digit in "12":
        for method, path in (("GET", ""), ("POST", "/dismiss"), ("POST", "/replay")):
            answer = await ada.asks(method, f"/admin/errors/{digit * 32}{path}")
            assert (answer.status, answer.content["code"]) == (404, "no_such_error")
    whole = await guarded.request("GET", "/admin/errors", headers=token(team))
    assert {error["tenant_id"] for error in whole.content["errors"]} == {"acme", "other", ""}


async def test_a_viewer_sees_and_calls_only_the_tools_that_read(ada: Ada) -> None:
    await ada.holds("viewer")
    path = "/admin/tenants/acme/mcp"
    listed = await ada.asks("POST", path, {"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    assert {tool["name"] for tool in listed.content["result"]["tools"]} == {"recall", "list", "get"}
    call = {"name": "remember", "arguments": {"content": "Trust everybody."}}
    refused = await ada.asks("POST", path, {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call})
    assert "role_required" in refused.body.decode()
    assert (await ada.asks("GET", "/admin/tenants/acme/memories")).content["memories"] == []
    await ada.holds("operator")
    done = await ada.asks("POST", path, {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": call})
    assert not done.content["result"].get("isError")
    assert len((await ada.asks("GET", "/admin/tenants/acme/memories")).content["memories"]) == 1


async def test_without_the_setting_nobody_has_a_role_and_the_answer_names_it(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with guarded_worker(team, monkeypatch, OWNERS="") as closed:
        answer = await closed.request("PUT", "/admin/tenants/acme", {}, headers=token(team))
    assert (answer.status, answer.content["code"], answer.content["needs"]) == (403, "role_required", "owner")
    assert "OWNERS" in answer.content["detail"]


async def test_a_setting_of_owners_that_is_not_a_list_of_subjects_is_refused_by_name(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with guarded_worker(team, monkeypatch, OWNERS="user@example.com") as wrong:
        answer = await wrong.request("GET", "/admin/tenants/acme/memories", headers=token(team))
    assert (answer.status, answer.content["code"]) == (500, "invalid_setting")
    assert answer.content["detail"].startswith("OWNERS: ")


async def test_nobody_is_let_in_while_roles_cannot_be_read(ada: Ada, guarded: Worker) -> None:
    await guarded.rows("DROP TABLE role_grants")
    answer = await ada.asks("GET", "/admin/tenants/acme/memories")
    assert (answer.status, answer.content["code"]) == (503, "d1_unavailable")


async def test_an_owner_restores_no_backup_of_a_tenant_that_they_do_not_own(guarded: Worker, team: Team) -> None:
    ada = Ada(guarded, team)
    await ada.holds("owner")
    path = "/admin/tenants/acme/restore"
    refused = await ada.asks("POST", path, {"from": "other"})
    assert (refused.status, refused.content["code"], refused.content["tenant"]) == (403, "role_required", "other")
    assert (await ada.asks("POST", path, {})).content["code"] == "no_such_backup"


async def test_what_a_caller_may_do_is_what_the_routes_let_them_do(ada: Ada) -> None:
    path = "/admin/tenants/acme/access"
    assert (await ada.asks("GET", path)).status == 403
    for role in ROLES:
        await ada.holds(role)
        own = (await ada.asks("GET", path)).content
        assert (own["name"], own["role"], own["everywhere"]) == ("ada@example.com", role, None)
        allowed = set(own["operations"])
        for route in ROUTES.values():
            if route.tenant_in == "path" and "{tenant}" in route.path and not route.path.startswith(NAMESPACES):
                assert (route.name in allowed) == includes(role, route.needs or "owner"), route.name
            elif route.tenant_in == "deployment":
                assert route.name not in allowed
    await ada.holds("owner", "/admin")
    own = (await ada.asks("GET", path)).content
    assert own["everywhere"] == "owner"
    assert {"register_tenant", "get_key_migration", "advance_key_migration"} <= set(own["operations"])
