"""The three ledgers on the real Worker: an error and its replay, a change in KV, a decision and what it rests on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from retain.cli.project import Project
from retain.cli.wrangler_kv import wrangler_of
from retain.gateway.provisioning import KvEntry, new_api_key, tool_entry
from tests.e2e.calls import Answer, run, seed
from tests.e2e.conftest import Steered
from tests.e2e.puppet import order
from tests.e2e.waiting import eventually
from tests.host.echo_server import EchoServer, echo_server
from tools.paths import PRODUCTION_CONFIG, ROOT

pytestmark = pytest.mark.workerd

ANN = "ann@shop.example"
Write = Callable[..., None]


@pytest.fixture
def write(steered: Steered, tmp_path: Path) -> Write:
    """Write entries into the KV of the running server, as `retain gateway` does."""

    def entries(*wanted: KvEntry) -> None:
        file = tmp_path / "entries.json"
        file.write_text(json.dumps([{"key": entry.key, "value": entry.value} for entry in wanted]))
        where = ["--binding", "KV", "--config", str(PRODUCTION_CONFIG), "--local"]
        wrangler_of(Project(ROOT))(["kv", "bulk", "put", str(file), *where, "--persist-to", str(steered.state.root)])

    return entries


def _tool(tenant: str, upstream: EchoServer, path: str) -> KvEntry:
    tool = {
        "version": 1,
        "description": "Ship an order.",
        "url": f"{upstream.origin}{path}",
        "method": "POST",
        "host": upstream.origin.removeprefix("http://"),
        "auth": {"kind": "none"},
        "parameters": {"type": "object", "properties": {"order_id": {"type": "string"}}},
        "idempotent": True,
        "timeout_ms": 5000,
    }
    return tool_entry(tenant, "ship_order", tool, allow_loopback=True)


def _listed(steered: Steered, path: str, what: str, at_least: int = 1, **params: str) -> list[Answer]:
    """Return the entries of a ledger once there are as many: they are written after the answer."""

    def read() -> list[Answer]:
        answer = steered.api.get(path, params=params)
        assert answer.is_success, answer.text
        found: list[Answer] = answer.json()[what]
        return found

    return eventually(read, lambda entries: len(entries) >= at_least)


def _post(steered: Steered, path: str) -> Any:
    answer = steered.api.post(path)
    assert answer.is_success, answer.text
    return answer.json()


def test_a_failing_upstream_is_parked_and_a_replay_succeeds_once_it_is_back(steered: Steered, write: Write) -> None:
    tenant = steered.tenant()
    with echo_server() as upstream:
        write(_tool(tenant, upstream, "/status/503"))
        result = run(steered.api, tenant, "courier", order(("ship_order", {"order_id": "AB-1"}), say="tried"))
        [error] = _listed(steered, "/admin/errors", "errors", tenant=tenant, stage="tool")
        assert (error["concerns"], error["code"]) == (f"{result['run_id']}.1.0", "upstream_status")
        assert (error["state"], error["attempts"], error["agent_type"]) == ("parked", 1, "courier")
        path = f"/admin/errors/{error['error_id']}"
        failed = _post(steered, f"{path}/replay")
        assert (failed["error"]["state"], failed["error"]["attempts"]) == ("parked", 2)
        assert failed["outcome"] == {"tool": "ship_order", "upstream_status": 503}
        write(_tool(tenant, upstream, "/orders"))
        done = eventually(
            lambda: _post(steered, f"{path}/replay"), lambda answer: answer["error"]["state"] == "replayed"
        )
        assert done["outcome"] == {"tool": "ship_order", "upstream_status": 200}
        assert _post(steered, f"{path}/replay")["outcome"] is None
        assert steered.api.get(path).json()["state"] == "replayed"
        assert steered.api.get(f"/admin/errors/{'0' * 32}").json()["code"] == "no_such_error"
        assert steered.api.get("/admin/errors/x").json()["code"] == "invalid_error_id"


def test_what_cannot_be_replayed_is_dismissed(steered: Steered) -> None:
    tenant = steered.tenant()
    with steered.state.d1_transaction() as database:
        database.execute(
            "INSERT INTO error_ledger (error_id, tenant_id, stage, concerns, code, attempts, first_at_ms, last_at_ms)"
            " VALUES (?, ?, 'learning', 'r', 'resumed_too_often', 5, 1, 1)",
            (hashlib.sha256(tenant.encode()).hexdigest()[:32], tenant),
        )
    [error] = _listed(steered, "/admin/errors", "errors", tenant=tenant)
    path = f"/admin/errors/{error['error_id']}"
    refused = steered.api.post(f"{path}/replay")
    assert (refused.status_code, refused.json()["code"]) == (409, "not_replayable")
    dismissed = _post(steered, f"{path}/dismiss")
    assert (dismissed["state"], dismissed["settled_by"]) == ("dismissed", "developer")
    assert steered.api.get("/admin/errors", params={"tenant": tenant, "state": "parked"}).json()["errors"] == []


def test_a_change_in_kv_has_a_row_and_the_tool_proxy_has_none(steered: Steered, write: Write) -> None:
    tenant = steered.tenant()
    path = f"/admin/tenants/{tenant}/kv-audit"
    with echo_server() as upstream:
        key = new_api_key(tenant, ["*"], now_ms=1)
        write(_tool(tenant, upstream, "/orders"), key.entry)
        for _ in range(3):
            called = steered.api.post(
                "/api/v1/tools/ship_order", json={"order_id": "1"}, headers={"x-api-key": key.api_key}
            )
            assert called.status_code == 200, called.text
        note = ("set_working_memory", {"key": "draft", "value": "hello"})
        result = run(steered.api, tenant, "courier", order(note, say="noted"), instance_id="desk")
    item = f"/admin/tenants/{tenant}/items/shop/s-1/cart/active"
    assert steered.api.put(item, json={"value": "2 lamps", "user_id": "ann"}).is_success
    changes = _listed(steered, path, "changes", 2)
    by_key = {change["key"]: change for change in changes}
    assert by_key.keys() == {f"agent_working:{tenant}:desk:courier.draft", f"shop:{tenant}:s-1:cart:active"}
    noted = by_key[f"agent_working:{tenant}:desk:courier.draft"]
    digest = hashlib.sha256(b'"hello"').hexdigest()
    assert (noted["changed_by"], noted["run_id"], noted["digest"]) == ("agent:courier", result["run_id"], digest)
    assert (noted["operation"], noted["value_bytes"], noted["ttl_s"]) == ("put", 7, 3600)
    copied = by_key[f"shop:{tenant}:s-1:cart:active"]
    assert (copied["changed_by"], copied["user_id"], copied["run_id"]) == ("person:developer", "ann", None)
    assert [one["key"] for one in _listed(steered, path, "changes", prefix="shop:")] == [copied["key"]]
    assert steered.state.d1("SELECT * FROM error_ledger WHERE tenant_id = ?", tenant) == []


def test_the_refund_scenario_logs_its_decision_and_a_record_shows_what_rested_on_it(steered: Steered) -> None:
    tenant = steered.tenant()
    [record] = seed(steered.api, tenant, "refund_decision", f"Refund approved for {ANN}: order AB-1001.")
    result = run(steered.api, tenant, "refund_decision", f"{ANN} asks for a refund of order AB-1003.")
    label = result["output"].split(":")[0].split()[0]
    path = f"/admin/agents/{tenant}/decisions"
    [decision] = _listed(steered, path, "decisions", memory=record)
    assert (decision["run_id"], decision["decision"], decision["policy"]) == (result["run_id"], label, "refunds-1")
    [memory] = [one for one in decision["memories"] if one["id"] == record]
    shown = steered.api.get(f"/admin/tenants/{tenant}/memories/{record}").json()
    assert (memory["kind"], memory["source"]) == ("record", "tool")
    assert memory["version"] == max(event["event_id"] for event in shown["events"])
    assert _listed(steered, path, "decisions", decision=label, agent_type="refund_decision") == [decision]
    assert steered.api.get(path, params={"memory": "nothing"}).json() == {"decisions": [], "cursor": None}
