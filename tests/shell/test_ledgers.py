"""The ledgers through production's entrypoint: who is named, when rows are written, and what a replay reaches."""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

import pytest

from retain.agents.instance import Instance
from retain.agents.methods import METHODS, InstanceMethod
from retain.gateway.provisioning import tool_entry
from retain.ledgers.errors import Stage, Trouble, error_id_of, park
from retain.ledgers.failures import NOTED_MS
from retain.memory.writing.group import GroupWriter
from retain.roles.grants import Grants
from retain.routing.health import Readiness
from tests.gateway.setting import config
from tests.host.echo_server import echo_server
from tests.shell.platform import sdk
from tests.shell.test_cron import BRIEF
from tests.shell.test_wiring import parts_of
from tests.shell.worker import Worker

PERSON = "developer"


async def replayed(worker: Worker, tenant: str, stage: Stage, concerns: str) -> Any:
    """Park an error, replay it, and return the answer."""
    await park(worker.db.store, Trouble(stage, concerns, "unavailable", worker.clock(), tenant))
    worker.clock.advance(1)
    path = f"/admin/errors/{error_id_of(tenant, stage, concerns)}/replay"
    answer = await worker.request("POST", path)
    assert answer.status == 200, answer.body
    return answer.content


async def test_a_change_in_kv_is_written_to_the_audit_after_the_answer_by_the_person_who_asked(worker: Worker) -> None:
    await worker.tenant()
    await worker.request("PUT", "/admin/tenants/acme/items/shop/s-1/cart/1", {"value": "lamp", "user_id": "ann"})
    await worker.request("PUT", "/admin/tenants/acme/items/shop/s-1/cart/2", {"value": "lamp"})
    assert sdk.background, "the rows are written by waitUntil"
    await worker.settled()
    rows = await worker.rows("SELECT key, changed_by, user_id, at_ms FROM kv_audit ORDER BY key")
    assert [tuple(row.values()) for row in rows] == [
        ("shop:acme:s-1:cart:1", f"person:{PERSON}", "ann", worker.clock()),
        ("shop:acme:s-1:cart:2", f"person:{PERSON}", None, worker.clock()),
    ]
    await worker.request("GET", "/admin/tenants/acme/items/shop/s-1/cart/1")
    assert sdk.background == set(), "a read changes nothing"
    listed = (await worker.request("GET", "/admin/tenants/acme/kv-audit?prefix=shop:acme:s-1:cart:2")).content
    assert [change["key"] for change in listed["changes"]] == ["shop:acme:s-1:cart:2"]


async def test_a_step_of_the_brief_is_parked_by_its_name_and_every_step_can_be_replayed(worker: Worker) -> None:
    await worker.tenant()
    worker.env.MEMORY_NAMESPACE_LEGACY_PATTERNS = "not JSON"
    worker.restart()
    await worker.cron(BRIEF)
    [entry] = (await worker.request("GET", "/admin/errors")).content["errors"]
    assert (entry["stage"], entry["concerns"], entry["code"]) == ("cron", "items", "invalid_legacy_pattern")
    path = f"/admin/errors/{entry['error_id']}"
    worker.clock.advance(1)
    again = (await worker.request("POST", f"{path}/replay")).content
    assert (again["error"]["state"], again["error"]["attempts"]) == ("parked", 2)
    worker.env.MEMORY_NAMESPACE_LEGACY_PATTERNS = "[]"
    worker.restart()
    done = (await worker.request("POST", f"{path}/replay")).content
    assert (done["error"]["state"], done["error"]["settled_by"]) == ("replayed", PERSON)
    for step in ("consolidation", "erasures", "reindexings", "documents", "histories_that_lost_their_head"):
        assert (await replayed(worker, "", "cron", step))["error"]["state"] == "replayed"
    for step in ("pruned", "abandoned_uploads", "ingests", "evaluations"):
        assert (await replayed(worker, "", "cron", step))["error"]["state"] == "replayed"
    unknown = error_id_of("", "cron", "dusting")
    await park(worker.db.store, Trouble("cron", "dusting", "unavailable", worker.clock()))
    assert (await worker.request("POST", f"/admin/errors/{unknown}/replay")).content["code"] == "not_replayable"


@pytest.mark.parametrize("agents_only", [False, True])
async def test_a_tool_s_call_is_made_again_through_the_gateway_with_its_key(worker: Worker, agents_only: bool) -> None:
    await worker.tenant()
    with echo_server() as upstream:
        tool = config(
            url=f"{upstream.origin}/orders",
            host=upstream.origin.removeprefix("http://"),
            auth={"kind": "none"},
            parameters={"type": "object"},
            agents_only=agents_only,
        )
        entry = tool_entry("acme", "ship", tool, allow_loopback=True)
        await worker.kv.store.put(entry.key, entry.value)
        run_id = "01HZZZZZZZZZZZZZZZZZZZZZZZ"
        for name, index in (("ship", 0), ("days_between", 1)):
            called = json.dumps({"turn": 1, "index": index, "name": name, "arguments": {}})
            await worker.rows(
                "INSERT INTO run_events VALUES (?, ?, 'acme', 'tool_called', 1, ?, 1)", run_id, index, called
            )
        done = await replayed(worker, "acme", "tool", f"{run_id}.1.0")
        assert (done["error"]["state"], done["outcome"]["upstream_status"]) == ("replayed", 200)
    await park(worker.db.store, Trouble("tool", f"{run_id}.1.1", "internal", worker.clock(), "acme"))
    path = f"/admin/errors/{error_id_of('acme', 'tool', f'{run_id}.1.1')}/replay"
    assert (await worker.request("POST", path)).content["code"] == "not_replayable"


async def test_an_item_and_an_evaluation_are_replayed_by_the_parts_that_own_them(worker: Worker) -> None:
    await worker.tenant()
    done = await replayed(worker, "acme", "demotion", "shop:acme:s-1:cart:gone")
    assert (done["error"]["state"], done["outcome"]) == ("replayed", {"item": "kept"})
    gone = await replayed(worker, "acme", "evaluation", "01HZZZZZZZZZZZZZZZZZZZZZZZ")
    assert (gone["error"]["state"], gone["outcome"]["code"]) == ("parked", "no_such_evaluation")


@pytest.mark.parametrize("path", ["errors/nothing", "errors?stage=dusting", "errors?tenant=A", "errors?cursor=x"])
async def test_what_no_error_can_be_is_refused(worker: Worker, path: str) -> None:
    assert (await worker.request("GET", f"/admin/{path}")).status == 400


async def test_replaying_works_with_the_deployment_s_own_parts(worker: Worker) -> None:
    parts = parts_of(worker)
    ports = parts.admin.replaying()._ports
    assert ports.stores is parts.lifecycle.stores
    assert (ports.ingestion, ports.evaluation, ports.demotion) == (
        parts.memory.ingestion,
        parts.evaluation.runner,
        parts.items.demotion,
    )


def _broken(*_: object, **__: object) -> NoReturn:
    raise ValueError("ann@shop.example's secret")


async def test_a_request_that_fails_unexpectedly_is_parked_once_a_minute_after_its_answer(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    await worker.tenant()
    monkeypatch.setattr(Grants, "page", _broken)
    for _ in range(3):
        answer = await worker.request("GET", "/admin/tenants/acme/roles")
        assert (answer.status, answer.content["code"]) == (500, "internal")
    await worker.settled()
    [entry] = (await worker.request("GET", "/admin/errors?stage=request&state=parked")).content["errors"]
    assert (entry["code"], entry["tenant_id"], entry["attempts"]) == ("internal", "", 1)
    assert re.fullmatch(
        r"GET /admin/tenants/\{tenant\}/roles ValueError retain\.admin\.resources\.access\.roles:\d+", entry["concerns"]
    )
    worker.clock.advance(NOTED_MS)
    await worker.request("GET", "/admin/tenants/acme/roles")
    await worker.settled()
    [entry] = (await worker.request("GET", "/admin/errors?stage=request")).content["errors"]
    assert (entry["attempts"], entry["last_at_ms"]) == (2, worker.clock())


async def test_an_unexpected_failure_in_an_object_or_its_alarm_is_parked_as_well(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    await worker.tenant()
    monkeypatch.setitem(METHODS, "run", InstanceMethod(_broken))
    monkeypatch.setattr(Instance, "on_alarm", _broken)
    monkeypatch.setattr(GroupWriter, "store", _broken)
    run = await worker.request("POST", "/v1/agents/acme/sdr/run", {"input": "x", "instance_id": "desk"})
    assert (run.status, run.content["code"]) == (500, "internal")
    memory = await worker.request("POST", "/admin/tenants/acme/memories", {"content": "x"})
    assert (memory.status, memory.content["code"]) == (500, "internal")
    with pytest.raises(ValueError, match="secret"):
        await worker.agents.object("sdr:acme:desk").alarm()
    await worker.settled()
    listed = (await worker.request("GET", "/admin/errors?stage=request")).content["errors"]
    assert sorted(entry["concerns"].partition(" ValueError ")[0] for entry in listed) == [
        "a tenant's writer",
        "an instance's alarm",
        "an instance's run",
    ]


async def test_an_unexpected_failure_that_the_ledger_does_not_take_is_answered_all_the_same(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    await worker.tenant()
    monkeypatch.setattr(Grants, "page", _broken)
    await worker.rows("DROP TABLE error_ledger")
    assert (await worker.request("GET", "/admin/tenants/acme/roles")).status == 500
    await worker.settled()


async def test_what_is_open_to_anyone_writes_no_entry(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Readiness, "read", _broken)
    assert (await worker.request("GET", "/readyz")).status == 500
    assert sdk.background == set()
