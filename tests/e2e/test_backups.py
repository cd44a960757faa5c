"""Backups on the real Worker: a tenant that has something of every kind is lost, and restored from R2."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from tests.e2e.calls import recorded_run, run
from tests.e2e.every_store import places
from tests.e2e.local_state import LocalState
from tests.e2e.waiting import eventually

pytestmark = pytest.mark.workerd

Tenant = Callable[[], str]
PERSON = '{"name": "Ann", "email": "ann@shop.example"}'


def fill(api: httpx.Client, tenant: str, user: str) -> None:
    """Let something of each kind in that a client can write, with the user's name in it."""
    answer = api.post(f"/admin/tenants/{tenant}/memories", json={"content": f"{user} likes tea.", "user_id": user})
    assert answer.status_code == 201, answer.text
    api.patch(f"/admin/tenants/{tenant}/memories/{answer.json()['id']}", json={"importance": 0.9})
    result = run(api, tenant, "order_triage", f"Order SO-1 of {user} is late.", instance_id=user, user={"id": user})
    recorded_run(api, tenant, result["run_id"])
    for item, value in (("preferences/p", PERSON), ("order_history/o", f"a lamp for {user}"), ("cart/c", user)):
        put = api.put(f"/admin/tenants/{tenant}/items/shop/{user}/{item}", json={"value": value, "user_id": user})
        assert put.status_code == 200, put.text
    dataset = {"target": {"recall": {}}, "cases": [{"id": "one", "input": "tea?", "expected": {"memories": ["tea"]}}]}
    api.put(f"/admin/tenants/{tenant}/evals/datasets/{user}", json=dataset)


def lines_of(api: httpx.Client, tenant: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    cursor: str | None = None
    while True:
        page = api.get(f"/admin/tenants/{tenant}/export", params={} if cursor is None else {"cursor": cursor})
        assert page.status_code == 200, page.text
        found += [json.loads(line) for line in page.text.split("\n")[:-2]]
        cursor = page.headers.get("x-next-cursor")
        if cursor is None:
            return found


def texts(lines: list[dict[str, Any]]) -> Counter[str]:
    """Return what the lines say, for a comparison of two tenants: without ids, times and sealed values."""

    def text_of(line: dict[str, Any]) -> str:
        if line["kind"] == "record":
            return json.dumps([(event["kind"], event["data"].get("content")) for event in line["events"]])
        if line["kind"] == "item":
            item = line["item"]
            return json.dumps([item["key"].split(":")[3:], item["sealed"] or item["value"], item["user_id"]])
        content = line.get("row") or line.get("user") or {}
        kept = (
            "content",
            "role",
            "input",
            "output",
            "status",
            "title",
            "name",
            "kind",
            "data",
            "steps",
            "model",
            "turn",
        )
        return json.dumps({name: content[name] for name in kept if name in content})

    return Counter(f"{line['kind']} {text_of(line)}" for line in lines)


def repeated(api: httpx.Client, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    """Repeat a call until its job is completed; return the job."""
    for _ in range(40):
        answer = api.post(path, json=body)
        assert answer.status_code in (200, 202), answer.text
        if answer.status_code == 200:
            job: dict[str, Any] = answer.json()
            return job
    raise AssertionError("the job never completes")


def test_a_lost_tenant_is_restored_with_everything_that_it_had(
    api: httpx.Client, tenant: Tenant, state: LocalState
) -> None:
    lost, copy = tenant(), tenant()
    for user in ("ann", "bob"):
        fill(api, lost, user)
    before = lines_of(api, lost)
    kinds = {"scope", "record", "user", "conversation", "message", "run", "event", "episode", "item"}
    assert kinds <= {line["kind"] for line in before}
    backup = repeated(api, f"/admin/tenants/{lost}/backups")
    assert backup["counts"]["lines"] == len(before)
    assert "ann@shop.example" not in "".join(map(str, state.r2(f"backups/{lost}/").values()))
    [listed] = api.get(f"/admin/tenants/{lost}/backups").json()["backups"]
    assert (listed["backup_id"], listed["lines"]) == (backup["job_id"], len(before))

    job = repeated(api, f"/admin/tenants/{copy}/restore", {"from": lost})
    assert job["counts"]["items"] == 6
    assert texts(lines_of(api, copy)) == texts(before)
    assert api.get(f"/admin/tenants/{copy}/items/shop/ann/preferences/p").json()["value"] == PERSON
    recalled = api.post(f"/admin/tenants/{copy}/memories/recall", json={"query": "who likes tea", "user_id": "ann"})
    assert "ann likes tea." in [memory["content"] for memory in recalled.json()["memories"]]
    conversation = api.get(f"/v1/agents/{copy}/instances").json()["instances"]
    assert {one["instance_id"] for one in conversation} == {"ann", "bob"}

    with state.d1_transaction() as database:  # the database is lost, the bucket is not
        for table in (
            "agent_runs",
            "run_events",
            "memory_episodes",
            "conversations",
            "conversation_messages",
            "backup_jobs",
        ):
            database.execute(f"DELETE FROM {table} WHERE tenant_id = ?", (lost,))
    repeated(api, f"/admin/tenants/{lost}/restore", {})
    assert texts(lines_of(api, lost)) == texts(before)
    assert api.get(f"/admin/tenants/{lost}/history/verify").json()["problem"] is None


def test_who_was_erased_is_in_no_backup_and_returns_from_none(
    api: httpx.Client, tenant: Tenant, state: LocalState
) -> None:
    name = tenant()
    for user in ("zoelupus", "bob"):
        fill(api, name, user)
    backup = repeated(api, f"/admin/tenants/{name}/backups")["job_id"]

    def erased() -> httpx.Response:
        return api.post(f"/admin/tenants/{name}/erase", json={"user": "zoelupus"})

    first = erased()
    assert api.post(f"/admin/tenants/{name}/backups").json().get("code") in ("erasure_running", None)
    receipt = eventually(
        lambda: first if first.status_code == 200 else erased(), lambda one: one.status_code == 200, within_s=120
    )
    assert receipt.json()["receipt"]["counts"]["backup_lines"] > 0
    assert not any(b"zoelupus" in content for content in state.r2("backups/").values())
    repeated(api, f"/admin/tenants/{name}/restore", {"backup": backup})
    found = json.dumps(lines_of(api, name))
    assert "zoelupus" not in found
    assert "bob likes tea." in found
    assert {place for place in places(state.root, "zoelupus") if not place.startswith("do:")} <= {"d1/erased_users"}


def test_the_daily_brief_backs_up_nothing_unless_that_is_set(
    api: httpx.Client, tenant: Tenant, state: LocalState
) -> None:
    name = tenant()
    fill(api, name, "ann")
    assert api.get("/cdn-cgi/handler/scheduled", params={"cron": "0 4 * * *"}).text == "ok"
    brief = json.loads(next(iter(state.r2("briefs/").values())))
    assert brief["backups"]["daily"] == {}
    assert api.get(f"/admin/tenants/{name}/backups").json() == {"backups": [], "cursor": None}
    missing = api.post(f"/admin/tenants/{name}/restore", json={"at_ms": 5})
    assert (missing.status_code, missing.json()["code"]) == (404, "no_such_backup")
    backup = repeated(api, f"/admin/tenants/{name}/backups")
    assert api.delete(f"/admin/tenants/{name}/backups/{backup['job_id']}").status_code == 204
    assert state.r2(f"backups/{name}/") == {}
