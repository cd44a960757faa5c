"""What each schedule does, through the entrypoint: every step of the daily brief leaves its mark."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from retain.errors import Misconfigured, Unavailable
from tests.shell.test_requests import logged
from tests.shell.worker import Worker, serving

PRUNE, BRIEF, CATCH_UP, DAY_MS = "0 3 * * SUN", "0 4 * * *", "*/5 * * * *", 86_400_000
EPISODE = (
    "INSERT INTO memory_episodes (episode_id, tenant_id, agent_type, instance_id, run_id, turn, content, created_at_ms)"
    " VALUES (?, 'acme', 'sdr', 'main', 'r', 1, 'text', ?)"
)
ENDED_RUN = (
    "INSERT INTO agent_runs"
    " (run_id, tenant_id, agent_type, instance_id, status, input, model, created_at_ms, completed_at_ms)"
    " VALUES (?, 'acme', 'sdr', 'main', 'completed', '{}', 'scripted', ?, ?)"
)


async def briefed(worker: Worker) -> dict[str, Any]:
    """Let the daily brief run, and return what it wrote."""
    await worker.cron(BRIEF)
    content = await worker.cold.store.get(f"briefs/{worker.clock() // DAY_MS}.json")
    assert content is not None
    report: dict[str, Any] = json.loads(content)
    assert worker.cold.types[f"briefs/{worker.clock() // DAY_MS}.json"] == "application/json"
    return report


async def stored(worker: Worker, *contents: str, tenant: str = "acme") -> list[str]:
    """Store memories, each a second after the one before."""
    ids = []
    for content in contents:
        answer = await worker.request("POST", f"/admin/tenants/{tenant}/memories", {"content": content})
        assert answer.status == 201, answer.body
        ids.append(answer.content["id"])
        worker.clock.advance(1000)
    return ids


async def state_of(worker: Worker, path: str) -> str:
    answer = await worker.request("GET", path)
    content = answer.content.get("receipt", answer.content)
    return str(content["state"])


@pytest.mark.parametrize("schedule", [PRUNE, "0 3 * * 0", BRIEF])
async def test_every_schedule_prunes_once_and_as_long_as_the_setting_says(
    schedule: str, capsys: pytest.CaptureFixture[str]
) -> None:
    async with serving(RUNS_RETENTION_DAYS="100") as worker:
        await worker.tenant()
        now = worker.clock()
        for number, age in enumerate((90 * DAY_MS + 1, 90 * DAY_MS)):
            await worker.rows(EPISODE, f"episode-{number}", now - age)
        for number, age in enumerate((100 * DAY_MS + 1, 99 * DAY_MS)):
            await worker.rows(ENDED_RUN, f"run-{number}", now - age, now - age)
        await worker.cron(schedule)
        left = await worker.rows("SELECT episode_id AS id FROM memory_episodes UNION SELECT run_id FROM agent_runs")
        assert {row["id"] for row in left} == {"episode-1", "run-1"}
        assert len(logged(capsys.readouterr().out, "pruned")) == 1


@pytest.mark.parametrize("schedule", ["9 9 * * *", "", "0 4 * * SUN"])
async def test_a_schedule_without_work_is_an_error(worker: Worker, schedule: str) -> None:
    with pytest.raises(Misconfigured, match=re.escape(f"the schedule '{schedule}'")) as raised:
        await worker.cron(schedule)
    assert raised.value.code == "unknown_schedule"


async def test_the_pruning_alone_writes_no_brief(worker: Worker) -> None:
    await worker.cron(PRUNE)
    assert worker.cold.types == {}


async def test_the_brief_says_what_was_done_and_counts_the_tables(worker: Worker) -> None:
    await worker.tenant()
    await worker.rows("INSERT INTO episode_counts (tenant_id, episodes) VALUES ('acme', 80000), ('other', 79999)")
    report = await briefed(worker)
    rows = {"tenants": 2, "agent_runs": 0, "run_events": 0, "memory_episodes": 0, "memory_records": 0}
    assert report.pop("pruned")["complete"] is True
    assert report.pop("capacity")
    assert report == {
        "at_ms": worker.clock(),
        "rows": {**rows, "memory_outbox": 0, "outbox_failures": 0},
        "tenants_near_episode_limit": {"acme": 80_000},
        "episodes_refused": {},
        "vector_outbox": {"settled": 0, "failed": 0},
        "consolidation": {"closed": 0, "deleted": 0, "superseded": 0, "compared": 0, "failed": 0},
        "erasures": {},
        "reindexings": {},
        "documents": {"tenants_failed": 0},
        "overdue_runs": {"asked": 0, "failed": 0},
        "overdue_schedules": {"asked": 0, "failed": 0},
        "overdue_deliveries": {"asked": 0, "failed": 0},
        "unlisted_writes": {"parked": 0},
        "earlier_copies": {"removed": 0},
        "attachment_objects": {"removed": 0},
        "mutations": {"sealed": 1, "removed": 0},
        "histories_that_lost_their_head": [],
        "abandoned_uploads": 0,
        "ingests": {"completed": 0, "running": 0, "failed": 0},
        "evaluations": {},
        "items": {"expired": 0, "objects": 0},
        "backups": {"pruned": 0, "continued": {}, "daily": {}},
        "continued_within_minutes": [],
    }


async def test_the_brief_demotes_items_that_nobody_uses() -> None:
    patient = {"preferences": {"tier": "warm", "prefix": "preferences/", "latency_ms": 5000}}
    async with serving(MEMORY_PLACEMENTS=json.dumps(patient)) as worker:
        await worker.tenant()
        item = "/admin/tenants/acme/items/shop/s-1/preferences/one"
        assert (await worker.request("PUT", item, {"value": "x" * 2000})).content["tier"] == "warm"
        worker.clock.advance(30 * DAY_MS)
        assert (await briefed(worker))["items"]["moved"] == 1
        [row] = await worker.rows("SELECT tier, value FROM memory_items")
        assert (row["tier"], row["value"]) == ("cold", None)
        assert [key for key in worker.cold.types if key.startswith("preferences/shop:acme:s-1:preferences:one@")]
        assert (await worker.request("GET", item)).content["value"] == "x" * 2000


async def test_the_brief_removes_memories_that_have_expired(worker: Worker) -> None:
    await worker.tenant()
    content = {"content": "Ann is away.", "expires_at_ms": worker.clock() + DAY_MS}
    answer = await worker.request("POST", "/admin/tenants/acme/memories", content)
    worker.clock.advance(2 * DAY_MS)
    assert (await briefed(worker))["consolidation"]["deleted"] == 1
    path = f"/admin/tenants/acme/memories/{answer.content['id']}"
    assert (await worker.request("GET", path)).status == 404


async def test_the_brief_settles_what_the_vector_index_is_owed(worker: Worker) -> None:
    await worker.tenant()
    [record] = await stored(worker, "Ann prefers e-mail.")
    worker.vectors.down = True
    path = f"/admin/tenants/acme/memories/{record}"
    assert (await worker.request("DELETE", path)).status == 204
    worker.vectors.down = False
    assert len(await worker.vectors.store.get_by_ids([f"{record}#0"])) == 1
    worker.clock.advance(2 * 3_600_000)
    report = await briefed(worker)
    assert report["vector_outbox"] == {"settled": 1, "failed": 0}
    assert await worker.vectors.store.get_by_ids([f"{record}#0"]) == []


async def test_the_brief_continues_erasures(worker: Worker) -> None:
    await worker.tenant()
    await stored(worker, "Ann prefers e-mail.")
    worker.vectors.down = True
    refused = await worker.request("POST", "/admin/tenants/acme/erase", {"tenant": True, "confirm": "acme"})
    assert refused.status == 503, refused.body
    [row] = await worker.rows("SELECT receipt_id FROM erasure_receipts")
    path = f"/admin/tenants/acme/erase/{row['receipt_id']}"
    assert await state_of(worker, path) == "running"
    worker.vectors.down = False
    for _ in range(5):
        worker.clock.advance(DAY_MS)
        report = await briefed(worker)
    assert await state_of(worker, path) == "completed"
    assert report["erasures"] == {}


async def test_the_brief_continues_reindexings(worker: Worker) -> None:
    await worker.tenant()
    await stored(worker, "Ann prefers e-mail.")
    worker.vectors.down = True
    assert (await worker.request("POST", "/admin/tenants/acme/reindex")).status == 503
    worker.vectors.down = False
    worker.clock.advance(DAY_MS)
    assert (await briefed(worker))["reindexings"] == {"completed": 1}


async def test_the_brief_continues_ingests_and_forgets_what_no_ingest_took(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: object) -> None:
        raise Unavailable("the model is away")

    await worker.tenant()
    conversation = {"conversation": "c-1", "messages": [{"speaker": "Ann", "content": "I moved to Oslo."}]}
    with monkeypatch.context() as patch:
        patch.setattr("retain.models.embedders.static.StaticEmbedder.embed", away)
        await worker.request("POST", "/admin/tenants/acme/memories/ingest", conversation)
        await worker.settled()
    await worker.rows(
        "INSERT INTO ingest_uploads (tenant_id, upload_id, message_index, message_key, speaker, content, created_at_ms)"
        " VALUES ('acme', 'u', 0, 'k', 'Ann', 'text', 0)"
    )
    worker.clock.advance(DAY_MS)
    assert (await briefed(worker))["ingests"] == {"completed": 1, "running": 0, "failed": 0}
    assert await worker.rows("SELECT * FROM ingest_uploads") == []
    assert len(await worker.rows("SELECT * FROM memory_records WHERE content LIKE '%Oslo%'")) == 2, "text and fact"


async def test_the_brief_continues_evaluations(worker: Worker) -> None:
    await worker.tenant()
    cases = [{"id": f"case-{n}", "input": "Good morning!", "expected": {"exact": "x"}} for n in range(6)]
    dataset = {"target": {"agent": "order_triage"}, "cases": cases}
    assert (await worker.request("PUT", "/admin/tenants/acme/evals/datasets/set", dataset)).status == 201
    begun = await worker.request("POST", "/admin/tenants/acme/evals/runs", {"dataset": "set"})
    assert begun.status == 202
    path = f"/admin/tenants/acme/evals/runs/{begun.content['run']['run_id']}"
    assert (await worker.request("GET", path)).content["state"] == "running"
    states = []
    for _ in range(4):
        worker.clock.advance(DAY_MS)
        states += (await briefed(worker))["evaluations"]
    assert states[-1] == "completed"
    run = (await worker.request("GET", path)).content
    assert (run["state"], run["summary"]["total"]) == ("completed", 6)


async def test_the_brief_keeps_the_heads_of_histories_and_says_which_were_cut(worker: Worker) -> None:
    await worker.tenant()
    await stored(worker, "Ann prefers e-mail.", "Bob prefers a call.")
    assert (await briefed(worker))["histories_that_lost_their_head"] == []
    assert f"history_heads/{worker.clock() // DAY_MS}.json" in worker.cold.types
    await worker.rows("DELETE FROM world_history WHERE tenant_id = 'acme'")
    worker.clock.advance(DAY_MS)
    assert (await briefed(worker))["histories_that_lost_their_head"] == ["acme"]


async def test_a_step_that_fails_stops_no_other_and_is_in_the_brief(
    worker: Worker, capsys: pytest.CaptureFixture[str]
) -> None:
    await worker.tenant()
    worker.env.MEMORY_NAMESPACE_LEGACY_PATTERNS = "not JSON"
    worker.restart()
    report = await briefed(worker)
    assert report["items"] == {"error": "invalid_legacy_pattern"}
    assert report["evaluations"] == {}
    assert "items failed" in capsys.readouterr().out


async def test_what_the_index_is_owed_is_settled_within_minutes_of_its_return(worker: Worker) -> None:
    await worker.tenant()
    worker.vectors.down = True
    [record] = await stored(worker, "Ann prefers e-mail.")
    worker.clock.advance(61_000)
    await worker.cron(CATCH_UP)
    worker.vectors.down = False
    worker.clock.advance(61_000)
    await worker.cron(CATCH_UP)
    assert await worker.vectors.store.get_by_ids([f"{record}#0"])


async def test_a_copy_of_an_earlier_user_s_item_is_removed_within_minutes(worker: Worker) -> None:
    await worker.tenant()
    path, key = "/admin/tenants/acme/items/shop/s-1/cart/c-1", "shop:acme:s-1:cart:c-1"
    for user in ("ann", "bob"):
        assert (await worker.request("PUT", path, {"value": f"of {user}", "user_id": user})).status == 200
    await worker.kv.store.put(key, "retain1 1 0\nof ann")
    await worker.cron(CATCH_UP)
    assert await worker.kv.store.get(key) is not None, "a read may be under way"
    worker.clock.advance(300_000)
    worker.kv.down = True
    await worker.cron(CATCH_UP)
    [parked] = await worker.rows("SELECT concerns, code, attempts FROM error_ledger")
    assert dict(parked) == {"concerns": "earlier_copies", "code": "kv_unavailable", "attempts": 1}
    worker.kv.down = False
    worker.clock.advance(60_000)
    await worker.cron(CATCH_UP)
    assert await worker.kv.store.get(key) is not None, "what failed has a pause"
    worker.clock.advance(240_000)
    await worker.cron(CATCH_UP)
    assert await worker.kv.store.get(key) is None
    assert await worker.rows("SELECT * FROM memory_item_earlier_users") == []
    assert (await worker.request("GET", path)).content["value"] == "of bob"


async def test_a_debt_that_keeps_failing_is_tried_after_longer_and_longer_pauses(worker: Worker) -> None:
    await worker.tenant()
    worker.vectors.down = True
    [record] = await stored(worker, "Ann prefers e-mail.")
    tried = []
    for minute in range(1, 40):
        worker.clock.advance(60_001)
        before = len(worker.vectors.calls)
        await worker.cron(CATCH_UP)
        tried += [minute] if len(worker.vectors.calls) > before else []
    assert tried == [1, 2, 4, 8, 16, 32]
    [parked] = await worker.rows("SELECT stage, state FROM error_ledger")
    assert (parked["stage"], parked["state"]) == ("vectors", "parked")
    worker.vectors.down = False
    worker.clock.advance(3_600_000)
    await worker.cron(CATCH_UP)
    [parked] = await worker.rows("SELECT state FROM error_ledger")
    assert (parked["state"], len(await worker.vectors.store.get_by_ids([f"{record}#0"]))) == ("replayed", 1)


async def test_a_brief_that_r2_does_not_take_stops_nothing_and_is_written_within_minutes(worker: Worker) -> None:
    await worker.tenant()
    await worker.rows(EPISODE, "old", worker.clock() - 91 * DAY_MS)
    worker.cold.down = True
    await worker.cron(BRIEF)
    assert await worker.rows("SELECT * FROM memory_episodes") == [], "the other steps were done"
    parked = await worker.rows("SELECT concerns, code FROM error_ledger ORDER BY concerns")
    failed = ["backups", "brief", "histories_that_lost_their_head"]
    assert [(row["concerns"], row["code"]) for row in parked] == [(name, "r2_unavailable") for name in failed]
    worker.clock.advance(300_000)
    await worker.cron(CATCH_UP)
    assert (await worker.rows("SELECT MIN(attempts) AS tried FROM error_ledger"))[0]["tried"] == 2
    worker.cold.down = False
    worker.clock.advance(300_000)
    await worker.cron(CATCH_UP)
    assert worker.cold.types == {}, "the pause has doubled"
    worker.clock.advance(300_000)
    await worker.cron(CATCH_UP)
    day = worker.clock() // DAY_MS
    assert {f"briefs/{day}.json", f"history_heads/{day}.json"} <= worker.cold.types.keys()
    states = await worker.rows("SELECT DISTINCT state FROM error_ledger")
    assert [row["state"] for row in states] == ["replayed"]


async def test_a_step_with_a_fault_stops_no_other(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    async def faulty(*_: object) -> None:
        raise ValueError("a fault of Retain")

    await worker.tenant()
    monkeypatch.setattr("retain.admin.maintenance.forget_abandoned", faulty)
    report = await briefed(worker)
    assert (report["abandoned_uploads"], report["evaluations"]) == ({"error": "internal"}, {})


async def test_a_brief_whose_work_uses_up_its_calls_is_written_and_the_next_one_continues(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with serving() as worker:
        await worker.tenant()
        await stored(worker, *(f"Ann owns book number {number}." for number in range(30)))
        await worker.rows("UPDATE memory_outbox SET state = 'owed', due_at_ms = 0")
        worker.clock.advance(DAY_MS)
        with monkeypatch.context() as patch:
            patch.setattr("retain.admin.maintenance.WORK_CALLS", 10)
            patch.setattr("retain.admin.maintenance.SETTLING_CALLS", 3)
            short = await briefed(worker)
        stopped = {"error": "d1_calls_used_up"}
        assert [short[part] for part in ("pruned", "ingests", "evaluations", "items")] == [stopped] * 4
        assert 0 < short["vector_outbox"]["settled"] < 30
        assert short["rows"]["memory_records"] == 30
        assert {"pruned", "ingests", "evaluations", "items", "mutations"} <= set(short["continued_within_minutes"])
        assert await worker.rows("SELECT * FROM error_ledger") == [], "to be continued is no error"
        worker.clock.advance(5 * 60_000)
        await worker.cron(CATCH_UP)
        assert await worker.rows("SELECT * FROM steps_left") == []
        worker.clock.advance(DAY_MS)
        whole = await briefed(worker)
        assert all(whole[part] != stopped for part in ("pruned", "ingests", "evaluations", "items"))
        assert await worker.rows("SELECT * FROM memory_outbox WHERE state = 'owed'") == []


async def test_a_step_that_needs_all_calls_leaves_those_of_the_others_and_is_continued_within_minutes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tenants = [f"tenant-{number}" for number in range(8)]
    compared = "SELECT COUNT(*) AS n FROM memory_likeness WHERE key IS NOT NULL"
    async with serving() as worker:
        for tenant in tenants:
            await worker.tenant(tenant)
            await stored(worker, "Ann owns a book.", tenant=tenant)
        with monkeypatch.context() as patch:
            patch.setattr("assembly.scheduled.CALLS", {"consolidation": 10})
            report = await briefed(worker)
        assert report["continued_within_minutes"] == ["consolidation"]
        assert report["consolidation"]["failed"] == 0
        assert report["mutations"]["sealed"] >= len(tenants)
        [row] = await worker.rows(compared)
        assert 0 < row["n"] < len(tenants)
        with monkeypatch.context() as patch:
            patch.setattr("retain.admin.catching_up.STEP_CALLS", 20)
            worker.clock.advance(5 * 60_000)
            await worker.cron(CATCH_UP)
            assert len(await worker.rows("SELECT * FROM steps_left")) == 1
        worker.clock.advance(5 * 60_000)
        await worker.cron(CATCH_UP)
        assert await worker.rows(compared) == [{"n": len(tenants)}]
        assert await worker.rows("SELECT * FROM steps_left") == []
        assert await worker.rows("SELECT * FROM error_ledger") == []


async def test_a_brief_makes_no_more_calls_of_d1_than_an_invocation_may(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving() as worker:
        await worker.tenant()
        await stored(worker, "Ann owns a book.")
        await worker.rows(
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)"
            " INSERT INTO memory_outbox (record_id, tenant_id, scope_id, parts, state, at_ms, due_at_ms)"
            " SELECT 'lost-' || i, 'acme', 'tenant', 1, 'owed', 0, 0 FROM n"
        )
        worker.clock.advance(DAY_MS)
        calls: list[str] = []
        for method in ("all", "batch"):
            counted(monkeypatch, worker.db, method, calls)
        worker.vectors.down = True  # each debt fails on its own, and its failure is noted
        await briefed(worker)
        assert 300 < len(calls) < 1000
        del calls[:]
        worker.vectors.down = False
        worker.clock.advance(DAY_MS)
        assert (await briefed(worker))["vector_outbox"] == {"settled": 500, "failed": 0}
        assert len(calls) < 200, "debts are settled in groups"


def counted(monkeypatch: pytest.MonkeyPatch, binding: object, method: str, calls: list[str]) -> None:
    """Note every call of a binding's method."""
    call = getattr(binding, method)

    async def noting(*arguments: object) -> object:
        calls.append(method)
        return await call(*arguments)

    monkeypatch.setattr(binding, method, noting)
