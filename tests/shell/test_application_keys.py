"""What an application may do with its key, through the whole Worker: every route of the table, with every scope."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from retain.agents.calls.client import InstanceClient
from retain.agents.calls.report import RunReport
from retain.agents.calls.run_request import RunRequest
from retain.application_keys.keys import FRESH_MS
from retain.application_keys.scope import KEY_SCOPES, KeyScope
from retain.routing.route import Route
from tests.admin.access_team import Team
from tests.shell.access import guarded_worker, token
from tests.shell.guarded_routes import ROUTES, code_of, path_of, trial_body
from tests.shell.worker import Answer, Worker

KEYS = "/admin/tenants/acme/keys"
RUN = {"input": "Contact contact:7 responded positively.", "instance_id": "desk"}


@pytest.fixture
async def worker(team: Team, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Worker]:
    """A deployment that accepts keys, with two tenants."""
    async with guarded_worker(team, monkeypatch, ("acme", "other"), APPLICATION_KEYS="true") as served:
        yield served


class Application:
    """An application, which asks the Worker with its key."""

    def __init__(self, worker: Worker, made: dict[str, Any]) -> None:
        self.worker = worker
        self.key_id: str = made["key_id"]
        self.headers = {"authorization": f"Bearer {made['key']}"}

    async def asks(self, method: str, path: str, content: object = None) -> Answer:
        answer = await self.worker.request(method, path, content, headers=self.headers)
        await self.worker.settled()
        return answer

    async def refusal(self, route: Route[Any], tenant: str = "acme") -> str | None:
        """Return the code with which the caller is refused, None for anything that would be said after that."""
        answer = await self.asks(route.method, path_of(route, tenant), trial_body(route, tenant))
        code = code_of(answer) if answer.status in (401, 403) else None
        refusals = ("scope_required", "role_required", "invalid_api_key", "token_not_allowed", "invalid_user_token")
        return code if code in refusals else None


async def made(
    worker: Worker, team: Team, *scopes: KeyScope, tenant: str = "acme", origins: Sequence[str] = ()
) -> Application:
    """Let an owner create a key."""
    body = {"name": "shop", "scopes": list(scopes), "origins": list(origins)}
    answer = await worker.request("POST", f"/admin/tenants/{tenant}/keys", body, headers=token(team))
    assert answer.status == 201, answer.body
    return Application(worker, answer.content)


def test_what_each_scope_opens() -> None:
    opened: dict[str, set[str]] = {scope: set() for scope in KEY_SCOPES}
    for name, route in ROUTES.items():
        opened[route.scope].add(name)
    memories = "/admin/tenants/{tenant}/memories"
    item = "/admin/tenants/{tenant}/items/{service}/{session}/{kind}/{id}"
    users = "/admin/tenants/{tenant}/users"
    namespaces = "/client/v4/accounts/{account}/agent-memory/namespaces"
    profile = f"{namespaces}/{{tenant}}/profiles/{{profile}}"
    assert opened["memory:read"] == {
        f"GET {memories}",
        f"POST {memories}/recall",
        f"GET {memories}/{{id}}",
        f"GET {memories}/similar",
        f"GET {memories}/ingest/{{job_id}}",
        f"GET {item}",
        "GET /admin/tenants/{tenant}/items",
        "GET /admin/tenants/{tenant}",
        f"GET {users}",
        f"GET {users}/{{user}}",
        f"GET {namespaces}",
        f"GET {namespaces}/{{tenant}}",
        f"GET {namespaces}/{{tenant}}/profiles",
        f"POST {profile}/recall",
        f"POST {profile}/summary",
        f"GET {profile}/memories",
        f"GET {profile}/memories/{{memory_id}}",
    }
    assert opened["memory:write"] == {
        "POST /admin/seed-memory",
        f"POST {memories}",
        f"PATCH {memories}/{{id}}",
        f"DELETE {memories}/{{id}}",
        f"POST {memories}/ingest",
        f"PUT {item}",
        f"DELETE {item}",
        f"PUT {users}/{{user}}",
        f"DELETE {profile}/sessions/{{session_id}}",
        f"POST {profile}/ingest",
        f"POST {profile}/remember",
        f"DELETE {profile}/memories/{{memory_id}}",
    }
    assert opened["users:erase"] == {f"DELETE {users}/{{user}}", f"DELETE {profile}"}
    assert {name for name in ROUTES if "/v1/agents/" in name} <= opened["runs"]
    assert all(ROUTES[name].needs != "owner" for scope in KEY_SCOPES[:3] for name in opened[scope])


@pytest.mark.parametrize("scope", KEY_SCOPES)
async def test_a_key_opens_what_its_scopes_name_in_its_own_tenant(worker: Worker, team: Team, scope: KeyScope) -> None:
    application = await made(worker, team, scope)
    for name, route in ROUTES.items():
        refusal = await application.refusal(route)
        if scope in (route.scope, "admin"):
            assert (refusal == "role_required") == (route.tenant_in == "deployment"), name
        else:
            assert refusal == "scope_required", name


async def test_no_scope_reaches_another_tenant(worker: Worker, team: Team) -> None:
    application = await made(worker, team, *KEY_SCOPES)
    for name, route in ROUTES.items():
        if route.tenant_in != "own":
            assert await application.refusal(route, "other") == "role_required", name
            assert await application.refusal(route, "unregistered") == "role_required", name


async def test_the_refusal_of_another_tenant_s_key_says_so_without_a_hint_to_owners(worker: Worker, team: Team) -> None:
    application = await made(worker, team, *KEY_SCOPES)
    for tenant in ("other", "unregistered"):
        refused = await application.asks("POST", f"/v1/tenants/{tenant}/memories/recall", {"query": "x"})
        assert refused.content["code"] == "role_required"
        assert refused.content["detail"].endswith(f"for the tenant {tenant}: the key is another tenant's")


async def test_lists_over_tenants_have_the_key_s_own_alone(worker: Worker, team: Team) -> None:
    for tenant in ("acme", "other"):
        await worker.rows(
            "INSERT INTO error_ledger (error_id, tenant_id, stage, concerns, code, attempts, first_at_ms, last_at_ms)"
            " VALUES (?, ?, 'ingest', 'x', 'ingest_failed', 1, 1, 1)",
            tenant.ljust(32, "0"),
            tenant,
        )
    application = await made(worker, team, "admin")
    listed = (await application.asks("GET", "/admin/errors")).content["errors"]
    assert [error["tenant_id"] for error in listed] == ["acme"]


async def test_an_application_runs_agents_and_reaches_memory_below_v1(worker: Worker, team: Team) -> None:
    application = await made(worker, team, "runs", "memory:read", "memory:write")
    ran = await application.asks("POST", "/v1/agents/acme/sdr/run", RUN)
    assert (ran.status, ran.content["status"]) == (200, "completed")
    stored = await application.asks("POST", "/v1/tenants/acme/memories", {"content": "Ann drinks tea."})
    assert stored.status == 201
    found = await application.asks("POST", "/v1/tenants/acme/memories/recall", {"query": "What does Ann drink?"})
    assert found.content["memories"][0]["id"] == stored.content["id"]
    assert (await application.asks("GET", "/v1/tenants/other/memories")).content["code"] == "role_required"
    assert (await application.asks("GET", "/v1/tenants/acme/keys")).content["code"] == "scope_required"
    assert (await application.asks("GET", "/v1/tenants/../admin/tenants/acme/keys")).status == 404


async def test_history_names_the_key(worker: Worker, team: Team) -> None:
    application = await made(worker, team, "memory:write")
    await application.asks("PUT", "/v1/tenants/acme/users/ann", {"name": "Ann"})
    await application.asks("PUT", "/v1/tenants/acme/items/crm/s1/preferences/p1", {"value": "tea"})
    rows = await worker.rows("SELECT kind, changed_by FROM mutation_log WHERE tenant_id = 'acme' ORDER BY number")
    named = {row["kind"]: row["changed_by"] for row in rows}
    assert named["key_created"] == "person:user@example.com"
    assert named["user_met"] == named["item_written"] == f"key:{application.key_id}"
    audited = await worker.rows("SELECT DISTINCT changed_by FROM kv_audit")
    assert [row["changed_by"] for row in audited] == [f"key:{application.key_id}"]
    [used] = await worker.rows("SELECT last_used_at_ms FROM application_keys")
    assert used["last_used_at_ms"] == worker.clock()


async def test_a_key_is_listed_rotated_and_revoked(worker: Worker, team: Team) -> None:
    owner = token(team)
    application = await made(worker, team, "runs")
    [listed] = (await worker.request("GET", KEYS, headers=owner)).content["keys"]
    assert (listed["key_id"], listed["name"], listed["scopes"]) == (application.key_id, "shop", ["runs"])
    path = f"{KEYS}/{application.key_id}"
    rotated = await worker.request("POST", f"{path}/rotate", {"grace_minutes": 5}, headers=owner)
    assert rotated.status == 201
    assert rotated.content["replaces"]["key_id"] == application.key_id
    successor = Application(worker, rotated.content)
    instance = "/v1/agents/acme/sdr/instances/desk"
    assert (await application.asks("GET", instance)).status == (await successor.asks("GET", instance)).status == 404
    worker.clock.advance(5 * 60_000)
    assert (await application.asks("GET", instance)).content["code"] == "invalid_api_key"
    revoked = await worker.request("DELETE", f"{KEYS}/{successor.key_id}", headers=owner)
    assert revoked.content["revoked_at_ms"] == worker.clock()
    answer = await successor.asks("GET", instance)
    assert (answer.status, answer.content["code"]) == (401, "invalid_api_key")
    again = await worker.request("POST", f"{KEYS}/{successor.key_id}/rotate", {}, headers=owner)
    assert (again.status, again.content["code"]) == (404, "no_such_key")


@pytest.mark.parametrize(("lasts_ms", "status"), [(FRESH_MS - 1, 200), (FRESH_MS, 401)])
async def test_who_waits_for_an_answer_for_long_does_not_get_it_once_the_key_is_revoked(
    worker: Worker, team: Team, monkeypatch: pytest.MonkeyPatch, lasts_ms: int, status: int
) -> None:
    application = await made(worker, team, "runs")
    run = InstanceClient.run

    async def lasting(client: InstanceClient, asked: RunRequest) -> RunReport:
        report = await run(client, asked)
        await worker.request("DELETE", f"{KEYS}/{application.key_id}", headers=token(team))
        worker.clock.advance(lasts_ms)
        return report

    monkeypatch.setattr(InstanceClient, "run", lasting)
    answer = await application.asks("POST", "/v1/agents/acme/sdr/run", RUN)
    assert (answer.status, answer.content.get("code")) == (status, None if status == 200 else "invalid_api_key")
    assert [row["status"] for row in await worker.rows("SELECT status FROM agent_runs")] == ["completed"]


@pytest.mark.parametrize(
    "body",
    [
        {"name": "", "scopes": ["runs"]},
        {"name": "x" * 101, "scopes": ["runs"]},
        {"name": "shop", "scopes": []},
        {"name": "shop", "scopes": ["everything"]},
        {"name": "shop", "scopes": ["runs"], "days": 0},
        {"name": "shop", "scopes": ["runs"], "days": 3651},
        {"name": "shop", "scopes": ["runs"], "tenant": "other"},
    ],
)
async def test_a_key_that_cannot_be_created_says_why(worker: Worker, team: Team, body: dict[str, Any]) -> None:
    answer = await worker.request("POST", KEYS, body, headers=token(team))
    assert (answer.status, answer.content["code"]) == (400, "invalid_body")
    assert await worker.rows("SELECT * FROM application_keys") == []


async def test_keys_are_refused_unless_the_deployment_turns_them_on(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with guarded_worker(team, monkeypatch, ("acme",), APPLICATION_KEYS="false") as worker:
        application = await made(worker, team, *KEY_SCOPES)
        for path in ("/admin/tenants/acme/memories", "/v1/tenants/acme/memories", "/v1/agents/acme/instances"):
            answer = await application.asks("GET", path)
            assert (answer.status, answer.content["code"]) == (401, "missing_access_token")


async def test_a_person_reaches_the_same_routes_below_v1_with_their_own_role(worker: Worker, team: Team) -> None:
    assert (await worker.request("GET", "/v1/tenants/acme/memories", headers=token(team))).status == 200
    stranger = await worker.request("GET", "/v1/tenants/acme/memories", headers=token(team, email="eve@example.org"))
    assert stranger.content["code"] == "role_required"
    assert (await worker.request("GET", "/v1/tenants/acme/memories")).content["code"] == "missing_access_token"


async def test_a_key_with_a_token_of_access_decides_alone(worker: Worker, team: Team) -> None:
    application = await made(worker, team, "memory:read", tenant="other")
    both = {**token(team), **application.headers}
    assert (await worker.request("GET", "/v1/tenants/acme/memories", headers=both)).content["code"] == "role_required"
    wrong = {**token(team), "authorization": "Bearer retainapp_acme_wrong"}
    assert (await worker.request("GET", "/v1/tenants/acme/memories", headers=wrong)).content[
        "code"
    ] == "invalid_api_key"


async def test_the_tool_proxy_takes_no_key_of_an_application(worker: Worker, team: Team) -> None:
    application = await made(worker, team, *KEY_SCOPES)
    answer = await application.asks("POST", "/api/v1/tools/create_order", {})
    assert (answer.status, answer.content["code"]) == (401, "invalid_api_key")


@pytest.fixture
async def application(worker: Worker, team: Team) -> Application:
    return await made(worker, team, "runs", "memory:read", "memory:write")


async def token_of(application: Application, user: str, **more: object) -> Application:
    """Return the user, who asks with their token."""
    answer = await application.asks("POST", "/v1/tenants/acme/tokens", {"user": user, **more})
    assert answer.status == 201, answer.body
    return Application(application.worker, {"key_id": "", "key": answer.content["token"]})


async def test_a_user_runs_an_agent_in_their_own_instances_alone(application: Application) -> None:
    ann, ben = await token_of(application, "ann"), await token_of(application, "ben")
    ran = await ann.asks("POST", "/v1/agents/acme/sdr/run", RUN)
    assert (ran.status, ran.content["status"], ran.content["by"]) == (200, "completed", "user:ann")
    own, run_id = ran.content["instance_id"], ran.content["run_id"]
    for instance in ("desk", own):  # both name the same
        place = f"/v1/agents/acme/sdr/instances/{instance}"
        assert (await ann.asks("GET", f"{place}/runs/{run_id}")).status == 200
        assert (await ben.asks("GET", f"{place}/runs/{run_id}")).status == 404
        assert len((await ann.asks("GET", f"{place}/messages")).content["messages"]) == 2
        # Ben's own conversation of this name, which has not begun.
        assert (await ben.asks("GET", f"{place}/messages?limit=5")).content == {"messages": [], "cursor": None}
        assert (await application.asks("GET", f"{place}x/messages")).status == 404
    taken = await ben.asks("POST", "/v1/agents/acme/sdr/run", {**RUN, "instance_id": own})
    assert taken.content["instance_id"] != own
    listed = (await ann.asks("GET", "/v1/agents/acme/instances?user=ben")).content["instances"]
    assert [(one["instance_id"], one["user_id"]) for one in listed] == [(own, "ann")]
    assert (await ben.asks("DELETE", f"/v1/agents/acme/sdr/instances/{own}")).status == 204  # Ben's, of that name
    assert (await application.asks("GET", f"/v1/agents/acme/sdr/instances/{own}/messages")).status == 200
    assert (await ann.asks("DELETE", "/v1/agents/acme/sdr/instances/desk")).status == 204


async def test_the_run_is_for_the_token_s_user_whatever_the_body_says(application: Application) -> None:
    ann = await token_of(application, "ann")
    refused = await ann.asks("POST", "/v1/agents/acme/sdr/run", {**RUN, "user": {"id": "ben"}})
    assert (refused.status, refused.content["code"]) == (403, "token_not_allowed")
    named = await ann.asks("POST", "/v1/agents/acme/sdr/run", {**RUN, "user": {"id": "ann", "name": "Ann"}})
    assert named.status == 200
    rows = await application.worker.rows("SELECT DISTINCT user_id FROM agent_runs")
    assert [row["user_id"] for row in rows] == ["ann"]


async def test_equal_idempotency_keys_of_two_users_are_two_runs(application: Application) -> None:
    ran = []
    for user in ("ann", "ben", "ann"):
        asks = await token_of(application, user)
        asks.headers["idempotency-key"] = "k"
        ran.append((await asks.asks("POST", "/v1/agents/acme/sdr/run", {"input": "hello"})).content["run_id"])
    assert ran[0] == ran[2] != ran[1]


async def test_a_token_opens_what_is_the_user_s_and_no_other_route(application: Application) -> None:
    ann = await token_of(application, "ann")
    opened = {name for name, route in ROUTES.items() if route.for_users}
    instance = "/v1/agents/{tenant}/{agent_type}/instances/{instance_id}"
    assert opened == {
        "POST /v1/agents/{tenant}/{agent_type}/run",
        "POST /v1/agents/{tenant}/{agent_type}/ag-ui",
        "POST /v1/agents/{tenant}/mcp",
        "POST /v1/chat/completions",
        "GET /v1/models",
        "GET /v1/models/{model}",
        "GET /v1/agents/{tenant}",
        "GET /v1/agents/{tenant}/instances",
        "POST /v1/agents/{tenant}/attachments",
        "GET /v1/agents/{tenant}/attachments",
        "GET /v1/agents/{tenant}/attachments/{attachment_id}",
        "GET /v1/agents/{tenant}/attachments/{attachment_id}/content",
        "DELETE /v1/agents/{tenant}/attachments/{attachment_id}",
        "GET /admin/agents/{tenant}/runs",
        f"GET {instance}/messages",
        f"PATCH {instance}",
        f"DELETE {instance}",
        f"GET {instance}/runs/{{run_id}}",
        f"GET {instance}/runs/{{run_id}}/events",
        f"POST {instance}/runs/{{run_id}}/cancel",
        f"POST {instance}/runs/{{run_id}}/retry",
        f"POST {instance}/runs/{{run_id}}/fork",
    }
    for name, route in ROUTES.items():
        refusal = await ann.refusal(route)
        assert (refusal is None) == (name in opened), name
        if route.tenant_in == "path":
            assert await ann.refusal(route, "other") is not None, name


async def test_a_token_for_one_agent_reaches_no_other(application: Application) -> None:
    ann = await token_of(application, "ann", agent_type="sdr")
    assert (await ann.asks("POST", "/v1/agents/acme/sdr/run", RUN)).status == 200
    refused = await ann.asks("POST", "/v1/agents/acme/support/run", RUN)
    assert (refused.status, refused.content["code"]) == (403, "token_not_allowed")
    listed = (await ann.asks("GET", "/v1/agents/acme/instances?agent_type=support")).content["instances"]
    assert [one["agent_type"] for one in listed] == ["sdr"]


async def test_a_token_ends_with_its_time_and_with_its_key(
    application: Application, worker: Worker, team: Team
) -> None:
    messages = "/v1/agents/acme/instances"
    ann = await token_of(application, "ann", minutes=1)
    longer = await token_of(application, "ann")
    assert (await ann.asks("GET", messages)).status == 200
    worker.clock.advance(60_000)
    assert (await ann.asks("GET", messages)).content["code"] == "invalid_user_token"
    assert (await longer.asks("GET", messages)).status == 200
    await worker.request("DELETE", f"{KEYS}/{application.key_id}", headers=token(team))
    assert (await longer.asks("GET", messages)).content["code"] == "invalid_api_key"


async def test_only_a_key_that_runs_agents_makes_tokens(worker: Worker, team: Team) -> None:
    path = "/v1/tenants/acme/tokens"
    by_a_person = await worker.request("POST", path, {"user": "ann"}, headers=token(team))
    assert (by_a_person.status, by_a_person.content["code"]) == (403, "key_required")
    reader = await made(worker, team, "memory:read")
    assert (await reader.asks("POST", path, {"user": "ann"})).content["code"] == "scope_required"
    runner = await made(worker, team, "runs")
    ann = await token_of(runner, "ann")
    assert (await ann.asks("POST", path, {"user": "ben"})).content["code"] == "token_not_allowed"
    for body in ({"user": ""}, {"user": "a b"}, {"user": "ann", "minutes": 61}, {"user": "ann", "minutes": 0}):
        assert (await runner.asks("POST", path, body)).status == 400, body
    assert (await runner.asks("POST", "/v1/tenants/other/tokens", {"user": "ann"})).content["code"] == "role_required"


async def test_a_key_forgets_customers_and_nothing_else_that_an_owner_may_do(worker: Worker, team: Team) -> None:
    application = await made(worker, team, "runs", "users:erase")
    other = await made(worker, team, "memory:write")
    assert (await other.asks("PUT", "/v1/tenants/acme/users/ann", {"name": "Ann"})).status == 201
    assert (await other.asks("DELETE", "/v1/tenants/acme/users/ann")).content["code"] == "scope_required"
    for _ in range(20):
        erased = await application.asks("DELETE", "/v1/tenants/acme/users/ann")
        if erased.status == 200:
            break
        assert erased.status == 202, erased.body
    assert erased.content["receipt"]["state"] == "completed"
    for method, path, body in (
        ("POST", "/v1/tenants/acme/erase", {"subject": "ann"}),
        ("GET", "/v1/tenants/acme/users/ann/export", None),
        ("GET", "/v1/tenants/acme/keys", None),
        ("GET", "/v1/tenants/acme/memories", None),
    ):
        refused = await application.asks(method, path, body)
        assert (refused.status, refused.content["code"]) == (403, "scope_required"), path


async def test_a_user_s_conversation_that_has_not_begun_is_empty_and_an_application_s_does_not_exist(
    application: Application,
) -> None:
    path = "/v1/agents/acme/sdr/instances/desk/messages"
    ann = await token_of(application, "ann")
    assert (await ann.asks("GET", f"{path}?order=desc&limit=5")).content == {"messages": [], "cursor": None}
    assert (await application.asks("GET", path)).content["code"] == "no_such_instance"
