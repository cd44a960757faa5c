"""The lifecycle on the real Worker: routes, Durable Objects, the daily brief."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from retain.cli.history import main
from tests.e2e.calls import run
from tests.e2e.local_state import LocalState

pytestmark = pytest.mark.workerd

ANN = "ann@shop.example"
NDJSON = {"content-type": "application/x-ndjson"}
Tenant = Callable[[], str]


def _store(api: httpx.Client, tenant: str, content: str, **fields: Any) -> str:
    answer = api.post(f"/admin/tenants/{tenant}/memories", json={"content": content, **fields})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def _recall(api: httpx.Client, tenant: str, query: str) -> list[tuple[str, float]]:
    answer = api.post(f"/admin/tenants/{tenant}/memories/recall", json={"query": query, "top_k": 20})
    assert answer.status_code == 200, answer.text
    return [(memory["content"], memory["score"]) for memory in answer.json()["memories"]]


def _exported(api: httpx.Client, tenant: str) -> list[str]:
    pages: list[str] = []
    cursor: str | None = None
    while True:
        answer = api.get(f"/admin/tenants/{tenant}/export", params={} if cursor is None else {"cursor": cursor})
        assert (answer.status_code, answer.headers["content-type"]) == (200, "application/x-ndjson")
        pages.append(answer.text)
        last = json.loads(answer.text.split("\n")[-2])
        cursor = answer.headers.get("x-next-cursor")
        assert (last["kind"], last["cursor"]) == ("page", cursor)
        if cursor is None:
            return pages


def _erased(api: httpx.Client, tenant: str, body: dict[str, Any]) -> dict[str, Any]:
    for _ in range(30):
        answer = api.post(f"/admin/tenants/{tenant}/erase", json=body)
        assert answer.status_code in (200, 202), answer.text
        if answer.status_code == 200:
            found: dict[str, Any] = answer.json()
            return found
        assert answer.json()["retry_after_ms"] == 0
    raise AssertionError("the erasure never completes")


def test_an_import_is_recalled_like_its_export(api: httpx.Client, tenant: Tenant) -> None:
    first, second = tenant(), tenant()
    lamp = _store(api, first, "Ann's lamp SO-4411 was refunded.", metadata={"order": "SO-4411"})
    _store(api, first, "Bob likes tea, \u2028 and “cake”.", agent_type="sdr")
    api.patch(f"/admin/tenants/{first}/memories/{lamp}", json={"importance": 0.9})
    pages = _exported(api, first)
    for page in pages * 2:
        answer = api.post(f"/admin/tenants/{second}/import", content=page.encode(), headers=NDJSON)
        assert answer.status_code == 200, answer.text
    assert answer.json() == {
        "scopes": 0,
        "users": 0,
        "created": 0,
        "changed": 0,
        "unchanged": 0,
        "duplicates": 0,
        "events": 0,
        "erased": 0,
        "items": 0,
        "rows": 0,
    }
    for query in ("refund of SO-4411", "who likes tea"):
        assert _recall(api, second, query) == _recall(api, first, query) != []
    history = api.get(f"/admin/tenants/{second}/history/verify").json()
    assert (history["problem"], history["entries"]) == (None, 3)


def test_a_bad_line_of_an_import_is_named(api: httpx.Client, tenant: Tenant) -> None:
    answer = api.post(f"/admin/tenants/{tenant()}/import", content='\n{"kind": "record"}\n', headers=NDJSON)
    assert (answer.status_code, answer.json()["code"], answer.json()["line"]) == (400, "invalid_line", 2)


def test_an_import_leaves_out_what_was_erased_and_refuses_the_future(api: httpx.Client, tenant: Tenant) -> None:
    name = tenant()
    _store(api, name, "Ann likes tea.", subject="ann")
    pages = _exported(api, name)
    path = f"/admin/tenants/{name}/import"
    _erased(api, name, {"subject": "ann"})
    for wanted, expected in (("", (1, 0)), ("?include_erased=true", (0, 1)), ("", (0, 0))):
        done = [api.post(f"{path}{wanted}", content=page.encode(), headers=NDJSON).json() for page in pages]
        assert (sum(one["erased"] for one in done), sum(one["created"] for one in done)) == expected
        assert bool(_recall(api, name, "tea")) == (expected != (1, 0))
    entries = api.get(f"/admin/tenants/{name}/history").json()["entries"]
    assert [entry["kind"] for entry in entries].count("erased_imported") == 1
    [line] = [line for page in pages for line in page.split("\n") if '"Ann likes tea."' in line]
    record = json.loads(line)
    del record["record"]
    record["events"][0]["at_ms"] += 10**12
    answer = api.post(path, content=json.dumps(record), headers=NDJSON)
    assert (answer.status_code, answer.json()["code"], answer.json()["line"]) == (400, "invalid_line", 1)
    assert "future" in answer.json()["problems"][0]


def test_an_index_is_verified_repaired_and_rebuilt(api: httpx.Client, tenant: Tenant, state: LocalState) -> None:
    name = tenant()
    lamp = _store(api, name, "A lamp.")
    for number in range(3):
        _store(api, name, f"Shelf {number}.")
    with state.d1_transaction() as database:
        database.execute(
            "UPDATE memory_search SET terms = 'x' WHERE number = (SELECT number FROM memory_records WHERE id = ?)",
            (lamp,),
        )
    found = api.post(f"/admin/tenants/{name}/verify", params={"repair": "true"}).json()
    assert (found["drift"], found["repaired"]) == (
        {"search_differs": {"count": 1, "ids": [lamp]}},
        {"owed": 1, "settled": True},
    )
    job = api.post(f"/admin/tenants/{name}/reindex")
    assert (job.status_code, job.json()["state"], job.json()["done"]) == (200, "completed", 4)
    assert api.get(f"/admin/tenants/{name}/reindex/{job.json()['job_id']}").json() == job.json()
    assert api.post(f"/admin/tenants/{name}/verify").json()["drift"] == {}


def test_a_mention_and_then_the_tenant_are_erased_from_every_store(
    api: httpx.Client, tenant: Tenant, state: LocalState
) -> None:
    name = tenant()
    _store(api, name, f"{ANN} likes tea.", subject=ANN)
    _store(api, name, "Bob likes cake.", subject="bob")
    run(api, name, "order_triage", f"From {ANN}: where is my order AB-1003?", instance_id="main")
    receipt = _erased(api, name, {"subject": ANN, "match": "mention"})["receipt"]
    assert {store: receipt["counts"].get(store) for store in ("d1.memory_records", "vectorize")} == {
        "d1.memory_records": 1,
        "vectorize": 1,
    }
    assert receipt["counts"]["durable_objects"] >= 1
    assert ANN not in json.dumps(
        [*_rows(state, name), state.instance(name, "order_triage", "main", "SELECT * FROM turn_state")]
    )
    assert _recall(api, name, "likes")[0][0] == "Bob likes cake."
    assert api.get(f"/admin/tenants/{name}/history/verify").json()["problem"] is None

    refused = api.post(f"/admin/tenants/{name}/erase", json={"tenant": True, "confirm": "another"})
    assert (refused.status_code, refused.json()["code"]) == (400, "not_confirmed")
    receipt = _erased(api, name, {"tenant": True, "confirm": name})["receipt"]
    assert _rows(state, name) == []
    assert state.kv(f"agent_working:{name}:") == {}
    with pytest.raises(LookupError):
        state.instance(name, "order_triage", "main", "SELECT 1")
    assert api.get(f"/admin/tenants/{name}/memories").json()["code"] == "unknown_tenant"
    assert api.get(f"/admin/tenants/{name}/erase/{receipt['receipt_id']}").json() == receipt
    assert _erased(api, name, {"tenant": True, "confirm": name})["receipt"] == receipt
    assert api.get(f"/admin/tenants/{name}/history/verify").json()["problem"] is None
    assert api.put(f"/admin/tenants/{name}").status_code == 201
    _store(api, name, "A new beginning.")
    assert [content for content, _ in _recall(api, name, "beginning")] == ["A new beginning."]


def _rows(state: LocalState, tenant: str) -> list[dict[str, Any]]:
    """Return all rows of a tenant in D1 except those that an erasure keeps."""
    tables = state.d1(
        "SELECT m.name FROM sqlite_master m, pragma_table_info(m.name) c WHERE m.type = 'table' AND c.name = 'tenant_id'"
        " AND m.name NOT IN ('tenants', 'world_history', 'mutation_log', 'erasure_receipts', 'erased_tenants')"
    )
    return [row for table in tables for row in state.d1(f"SELECT * FROM {table['name']} WHERE tenant_id = ?", tenant)]


def test_the_daily_brief_consolidates_and_stores_the_heads_that_the_command_compares(
    api: httpx.Client, tenant: Tenant, state: LocalState, capsys: pytest.CaptureFixture[str]
) -> None:
    name = tenant()
    body = {"tenant": name, "agent_type": "sdr", "memories": [{"content": "Bob likes tea."}]}
    assert api.post("/admin/seed-memory", json=body).status_code == 201
    assert api.get("/cdn-cgi/handler/scheduled", params={"cron": "0 4 * * *"}).text == "ok"
    heads = json.loads(state.r2("history_heads/latest.json")["history_heads/latest.json"])
    *_, brief = [json.loads(content) for _, content in sorted(state.r2("briefs/").items())]
    assert brief["consolidation"]["failed"] == 0
    assert "failed" not in {**brief["erasures"], **brief["reindexings"]}  # those of other tests may have continued
    assert brief["histories_that_lost_their_head"] == []
    seq, digest = heads[name]
    page = api.get(f"/admin/tenants/{name}/history", params={"limit": 1}).json()
    assert (page["entries"][0]["kind"], page["cursor"]) == ("record_stored", "1")
    arguments = ["verify", "--url", str(api.base_url), "--tenant", name, "--head", f"{seq}:{digest}"]
    assert main(arguments) == 0
    assert capsys.readouterr().out.splitlines()[0] == f"{seq} entries, head {seq}:{digest}"
    with state.d1_transaction() as database:
        database.execute("DELETE FROM world_history WHERE tenant_id = ?", (name,))
        database.execute("DELETE FROM memory_events WHERE tenant_id = ?", (name,))
    assert main(arguments) == 1


def test_what_happens_to_an_item_is_listed_sealed_and_verified(
    api: httpx.Client, tenant: Tenant, state: LocalState
) -> None:
    name = tenant()
    item = f"/admin/tenants/{name}/items/shop/s-1/order_history/o-1"
    for value in ("one", "two"):
        assert api.put(item, json={"value": value}).status_code == 200
    key = f"shop:{name}:s-1:order_history:o-1"
    history = f"/admin/tenants/{name}/history"

    def listed(**only: str | int) -> tuple[list[str], str | None]:
        page = api.get(f"{history}/mutations", params=only).json()
        return [entry["kind"] for entry in page["entries"]], page["cursor"]

    assert listed(thing="item", key=key) == (["item_written", "item_written"], None)
    assert listed(limit=1) == (["tenant_registered"], "1")
    assert listed(limit=1, after=1, kind="item_written") == (["item_written"], "2")
    assert api.get(f"{history}/mutations", params={"thing": "item"}).json()["code"] == "invalid_filter"
    assert api.delete(item).status_code in (200, 204)
    assert listed(thing="item", key=key)[0][2:] == ["item_deleted"]
    assert api.get("/cdn-cgi/handler/scheduled", params={"cron": "0 4 * * *"}).text == "ok"
    [seal] = [entry for entry in api.get(history).json()["entries"] if entry["kind"] == "mutations_sealed"]
    assert seal["subject_id"] == "1-4"
    assert api.get(f"{history}/verify").json()["problem"] is None
    with state.d1_transaction() as database:
        database.execute("UPDATE mutation_log SET kind = 'item_moved' WHERE tenant_id = ? AND number = 2", (name,))
    verdict = api.get(f"{history}/verify").json()
    assert (verdict["problem"], verdict["broken_at"]) == ("mutations_changed", seal["seq"])
