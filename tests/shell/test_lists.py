"""The lists that an application shows, through the whole Worker: under both paths, and what each caller sees of them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from retain.routing.queries import QueryModel
from tests.admin.access_team import Team
from tests.shell.access import guarded_worker, token
from tests.shell.guarded_routes import ROUTES
from tests.shell.test_application_keys import RUN, Application, made, token_of
from tests.shell.worker import Worker

ITEMS = "/v1/tenants/acme/items"


@pytest.fixture
async def worker(team: Team, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Worker]:
    """A deployment that accepts keys, with three tenants."""
    async with guarded_worker(team, monkeypatch, ("acme", "beta", "other"), APPLICATION_KEYS="true") as served:
        yield served


@pytest.fixture
async def application(worker: Worker, team: Team) -> Application:
    return await made(worker, team, "runs", "memory:read", "memory:write")


async def listed(caller: Application, path: str, what: str, *, size: int = 1) -> list[Any]:
    """Follow the cursors of a list."""
    found: list[Any] = []
    cursor: str | None = None
    for _ in range(30):
        joined = f"{path}{'&' if '?' in path else '?'}limit={size}"
        answer = await caller.asks("GET", joined if cursor is None else f"{joined}&cursor={cursor}")
        assert answer.status == 200, answer.body
        assert len(answer.content[what]) <= size
        found += answer.content[what]
        if (cursor := answer.content["cursor"]) is None:
            return found
    raise AssertionError("the pages never end")


async def test_agents_are_listed_by_their_types(application: Application) -> None:
    agents = await listed(application, "/v1/agents/acme", "agents")
    types = [one["agent_type"] for one in agents]
    assert types == sorted(set(types))
    assert "sdr" in types
    assert all(one["description"] for one in agents)
    assert set(agents[0]) == {"agent_type", "description", "house", "delegates", "source", "version"}
    bound = await token_of(application, "ann", agent_type="sdr")
    assert [one["agent_type"] for one in await listed(bound, "/v1/agents/acme", "agents")] == ["sdr"]
    assert (await application.asks("GET", "/v1/agents/other")).content["code"] == "role_required"


async def test_a_list_of_tenants_has_those_of_which_the_caller_is_a_viewer(worker: Worker, team: Team) -> None:
    async def tenants(path: str = "/admin/tenants", **claims: str) -> list[str]:
        answer = await worker.request("GET", path, headers=token(team, **claims))
        assert answer.status == 200, answer.body
        return [one["tenant"] for one in answer.content["tenants"]]

    assert await tenants() == ["acme", "beta", "default", "other"]
    assert await tenants("/v1/tenants?limit=2") == ["acme", "beta"]
    assert await tenants("/admin/tenants?cursor=beta") == ["default", "other"]
    granted = await worker.request(
        "PUT", "/admin/tenants/beta/roles/email:eve@example.org", {"role": "viewer"}, headers=token(team)
    )
    assert granted.status in (200, 201), granted.body
    assert await tenants(email="eve@example.org") == ["beta"]
    stranger = await worker.request("GET", "/admin/tenants", headers=token(team, email="mal@example.org"))
    assert stranger.content["code"] == "role_required"
    admin = await made(worker, team, "admin", tenant="beta")
    assert [one["tenant"] for one in await listed(admin, "/v1/tenants", "tenants")] == ["beta"]
    bad = await worker.request("GET", "/admin/tenants?cursor=A", headers=token(team))
    assert bad.content["code"] == "invalid_cursor"


async def test_a_tenant_is_shown(worker: Worker, application: Application, team: Team) -> None:
    shown = await application.asks("GET", "/v1/tenants/acme")
    assert shown.content == {
        "tenant": "acme",
        "created_at_ms": shown.content["created_at_ms"],
        "max_memories_per_user": None,
    }
    assert (await application.asks("GET", "/v1/tenants/other")).content["code"] == "role_required"
    missing = await worker.request("GET", "/admin/tenants/none", headers=token(team))
    assert (missing.status, missing.content["code"]) == (404, "unknown_tenant")


async def test_items_are_listed_by_service_session_kind_and_user(application: Application, worker: Worker) -> None:
    for place, user in (
        ("crm/s1/preferences/p1", "ann"),
        ("crm/s1/preferences/p2", None),
        ("crm/s1/cart/active", "ann"),
        ("crm/s10/cart/active", "ben"),
        ("crm2/s1/cart/active", None),
    ):
        put = await application.asks("PUT", f"{ITEMS}/{place}", {"value": "tea", "user_id": user})
        assert put.status == 200, put.body
    assert (await application.asks("DELETE", f"{ITEMS}/crm/s1/preferences/p2")).status == 200

    async def places(query: str = "") -> list[str]:
        items = await listed(application, f"{ITEMS}{query}", "items")
        return ["/".join((one["service"], one["session"], one["kind"], one["id"])) for one in items]

    crm = ["crm/s10/cart/active", "crm/s1/cart/active", "crm/s1/preferences/p1"]
    assert sorted(await places()) == sorted([*crm, "crm2/s1/cart/active"])
    assert sorted(await places("?service=crm")) == sorted(crm)
    assert await places("?service=crm&session=s1") == crm[1:]
    assert await places("?service=crm&session=s1&kind=cart") == ["crm/s1/cart/active"]
    assert sorted(await places("?user_id=ann")) == sorted(crm[1:])
    assert await places("?user_id=ben&service=crm2") == []
    one = (await listed(application, f"{ITEMS}?user_id=ben", "items"))[0]
    assert (one["key"], one["user_id"], one["sealed"]) == ("crm:acme:s10:cart:active", "ben", False)
    assert "value" not in one
    for query in ("session=s1", "service=crm&kind=cart"):
        assert (await application.asks("GET", f"{ITEMS}?{query}")).content["code"] == "invalid_query"
    assert (await application.asks("GET", f"{ITEMS}?service=*")).content["code"] == "invalid_namespace"
    for cursor in ("", "x" * 513):
        assert (await application.asks("GET", f"{ITEMS}?cursor={cursor}")).content["code"] == "invalid_cursor"
    worker.clock.advance(400 * 86_400_000)
    assert "crm/s1/cart/active" not in await places()


async def test_runs_are_listed_searched_and_shown_below_v1(application: Application) -> None:
    runs = "/v1/agents/acme/runs"
    ids = []
    for instance, text in (("desk", "Where is order 17?"), ("desk", "Thanks"), ("phone", "Refund order 17")):
        ran = await application.asks("POST", "/v1/agents/acme/sdr/run", {"input": text, "instance_id": instance})
        ids.append(ran.content["run_id"])
        application.worker.clock.advance(1000)
    first, second, third = ids

    async def found(query: str) -> list[str]:
        return [one["run_id"] for one in await listed(application, f"{runs}{query}", "runs")]

    assert await found("") == [third, second, first]
    assert await found("?agent_type=sdr&instance_id=desk") == [second, first]
    assert await found("?text=ORDER%2017") == [third, first]
    assert await found("?agent_type=sdr&instance_id=desk&text=order%2017") == [first]
    started = (await application.asks("GET", f"{runs}/{second}")).content["created_at_ms"]
    assert await found(f"?since_ms={started}") == [third, second]
    assert await found(f"?until_ms={started}") == [first]
    timeline = await application.asks("GET", f"{runs}/{first}/events")
    assert timeline.content["events"]
    assert (await application.asks("GET", "/v1/agents/acme/procedures")).status == 200
    assert (await application.asks("GET", "/v1/agents/acme/decisions")).content["code"] == "scope_required"
    assert (await application.asks("GET", "/v1/agents/other/runs")).content["code"] == "role_required"
    for text, status in (("x" * 200, 200), ("x" * 201, 400), ("", 400)):
        assert (await application.asks("GET", f"{runs}?text={text}")).status == status
    unnamed = await application.asks("GET", f"{runs}?instance_id=desk")
    assert unnamed.content["code"] == "invalid_query"


async def test_a_user_lists_and_searches_their_own_runs_alone(application: Application) -> None:
    runs = "/v1/agents/acme/runs"
    ann, ben = await token_of(application, "ann"), await token_of(application, "ben")
    own = (await ann.asks("POST", "/v1/agents/acme/sdr/run", RUN)).content["run_id"]
    other = (await ben.asks("POST", "/v1/agents/acme/sdr/run", RUN)).content["run_id"]
    for query in ("", "?user_id=ben", "?text=contact", "?by=user:ben", "?agent_type=sdr&instance_id=desk"):
        listed_ids = [one["run_id"] for one in await listed(ann, f"{runs}{query}", "runs")]
        assert listed_ids == ([] if query == "?by=user:ben" else [own]), query
    assert (await ann.asks("GET", f"{runs}/{other}")).content["code"] == "token_not_allowed"
    clerk = await token_of(application, "ann", agent_type="support")
    assert await listed(clerk, f"{runs}?agent_type=sdr", "runs") == []


LEFT_BY = {
    "register_tenant": ("list_tenants", "delete_tenant"),
    "grant_role": ("list_roles", "revoke_role"),
    "grant_deployment_role": ("list_deployment_roles", "revoke_deployment_role"),
    "create_key": ("list_keys", "revoke_key"),
    "rotate_key": ("list_keys", "revoke_key"),
    "create_webhook": ("list_webhooks", "delete_webhook"),
    "create_schedule": ("list_schedules", "delete_schedule"),
    "create_attachment": ("list_attachments", "delete_attachment"),
    "move_tenant": ("list_moves", "cancel_move"),
    "define_agent": ("list_agent_definitions", "delete_agent"),
    "roll_back_agent": ("list_agent_versions", "delete_agent"),
    "put_user": ("list_users", "delete_user"),
    "seed_memories": ("list_memories", "delete_memory"),
    "create_memory": ("list_memories", "delete_memory"),
    "ingest_conversation": ("list_memories", "delete_memory"),
    "import_memories": ("list_memories", "delete_memory"),
    "put_item": ("list_items", "delete_item"),
    "start_backup": ("list_backups", "delete_backup"),
    "put_dataset": ("list_datasets", "delete_dataset"),
    "start_evaluation": ("list_evaluations", "delete_evaluation"),
    "create_run": ("list_runs", "delete_instance"),
    "retry_run": ("list_runs", "delete_instance"),
    "fork_run": ("list_runs", "delete_instance"),
    "run_ag_ui": ("list_runs", "delete_instance"),
    "send_agents_message": ("list_runs", "delete_instance"),
    "create_chat_completion": ("list_runs", "delete_instance"),
}
"""By the route that creates something: those that list it and delete it."""
CREATE_NOTHING = {
    **dict.fromkeys(("set_quotas", "set_default_quotas"), "null takes a number away"),
    **dict.fromkeys(("recall_memories", "verify_memories", "send_memory_message", "check_agent"), "ask"),
    **dict.fromkeys(
        ("cancel_evaluation", "resume_evaluation", "cancel_run", "cancel_runs", "resume_run"),
        "continue or end what is there",
    ),
    **dict.fromkeys(("replay_error", "dismiss_error"), "end what is there"),
    **dict.fromkeys(("rotate_webhook", "replay_delivery"), "change or repeat what is there"),
    **dict.fromkeys(
        ("start_reindex", "start_restore", "erase_memories", "reseal_items", "reseal_webhooks"), "work on what is there"
    ),
    **dict.fromkeys(("advance_key_migration", "roll_back_key_migration", "backfill_keys"), "work on what is there"),
    "record_release": "a ledger of the deployment",
    "record_run_outcome": "goes with the run",
    "create_token": "is kept nowhere, and ends with its key or after an hour",
}


def test_what_is_created_can_be_listed_and_deleted() -> None:
    named = {route.name: route for route in ROUTES.values()}
    own = {name for name, route in named.items() if not route.path.startswith("/client/v4/")}  # as Cloudflare has them
    creating = {name for name in own if named[name].method in ("POST", "PUT")}
    assert creating == LEFT_BY.keys() | CREATE_NOTHING.keys()
    for lists, deletes in LEFT_BY.values():
        assert named[lists].method == "GET"
        assert named[deletes].method == "DELETE"
        reader = named[lists].query
        assert reader is not None
        assert issubclass(reader.model, QueryModel)
        assert "cursor" in reader.model.model_fields, lists


async def test_a_user_and_a_tenant_are_deleted_as_an_erasure_does(worker: Worker, team: Team) -> None:
    admin = await made(worker, team, "admin", tenant="beta")
    assert (await admin.asks("PUT", "/v1/tenants/beta/users/ann", {"name": "Ann"})).status == 201
    await admin.asks("POST", "/v1/tenants/beta/memories", {"content": "Ann drinks tea.", "user_id": "ann"})
    deleted = await admin.asks("DELETE", "/v1/tenants/beta/users/ann")
    assert (deleted.status, deleted.content["receipt"]["kind"]) == (200, "user")
    assert (await admin.asks("GET", "/v1/tenants/beta/users/ann")).content["code"] == "no_such_user"
    assert (await admin.asks("GET", "/v1/tenants/beta/memories")).content["memories"] == []
    for query in ("", "?confirm=", "?confirm=acme"):
        refused = await admin.asks("DELETE", f"/v1/tenants/beta{query}")
        assert (refused.status, refused.content["code"]) == (400, "not_confirmed")
    assert (await admin.asks("DELETE", "/v1/tenants/acme?confirm=acme")).content["code"] == "role_required"
    erased = await admin.asks("DELETE", "/v1/tenants/beta?confirm=beta")
    assert (erased.status, erased.content["receipt"]["kind"]) == (202, "tenant")
    owner = token(team)
    worker.clock.advance(erased.content["retry_after_ms"])
    done = await worker.request("DELETE", "/admin/tenants/beta?confirm=beta", headers=owner)
    assert (done.status, done.content["receipt"]["state"]) == (200, "completed")
    assert (await worker.request("GET", "/admin/tenants/beta", headers=owner)).content["code"] == "unknown_tenant"
    again = await worker.request("DELETE", "/admin/tenants/beta?confirm=beta", headers=owner)
    assert again.content["receipt"]["receipt_id"] == erased.content["receipt"]["receipt_id"]
    never = await worker.request("DELETE", "/admin/tenants/never?confirm=never", headers=owner)
    assert (never.status, never.content["code"]) == (404, "unknown_tenant")
