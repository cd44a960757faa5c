"""Scheduled work: pruning and the daily brief."""

from __future__ import annotations

import json
import logging
import tomllib
from collections.abc import Iterator
from contextlib import closing
from types import SimpleNamespace
from typing import Any, cast

import pytest

from retain.admin.catching_up import CATCH_UP
from retain.admin.maintenance import BRIEF, JOBS_A_TIME, PRUNE, brief, evaluations, prune, pruned
from retain.errors import Unavailable
from retain.evaluation.runner import Runner
from retain.host.objects import SqliteObjects
from retain.lifecycle.stores import Stores
from retain.memory.episodes import MAX_PER_TENANT, WARN_PER_TENANT
from retain.memory.indexer import Indexer
from retain.retention import STATEMENTS, TEXT_KEPT_MS
from tests.support.faults import Fault
from tests.support.instances import ROOT, Deployment, shipped_embedder

DAY_MS = 86_400_000
EPISODE = (
    "INSERT INTO memory_episodes (episode_id, tenant_id, agent_type, instance_id, run_id, turn, content, created_at_ms)"
    " VALUES (?, 'acme', 'sdr', 'main', 'r', 1, 'text', ?)"
)


@pytest.fixture
def deployment() -> Iterator[Deployment]:
    with closing(Deployment()) as made:
        yield made


@pytest.fixture
def objects() -> Iterator[SqliteObjects]:
    with closing(SqliteObjects.open()) as made:
        yield made


async def briefed(deployment: Deployment, objects: SqliteObjects, *, down: str | None = None) -> dict[str, Any]:
    """Return the brief. down: a port that fails meanwhile."""
    life = deployment.faults.life("cron")
    sql = deployment.faults.wrap("sql", deployment.sql, life)
    index = deployment.faults.wrap("index", deployment.index, life)
    if down is not None:
        deployment.faults.down.add(down)
    return await brief(sql, objects, Indexer(sql, index, shipped_embedder(), deployment.clock), deployment.clock)


def test_the_deployment_schedules_exactly_what_there_is_work_for() -> None:
    config = tomllib.loads((ROOT / "wrangler.toml").read_text())
    assert sorted(config["triggers"]["crons"]) == sorted([PRUNE, BRIEF, CATCH_UP])
    assert (PRUNE, BRIEF, CATCH_UP) == ("0 3 * * SUN", "0 4 * * *", "*/5 * * * *")


async def test_pruning_goes_by_the_clock_and_reports_each_tenant_s_loss(
    deployment: Deployment, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    await deployment.rows("INSERT INTO tenants (tenant_id, created_at_ms) VALUES ('acme', 0)")
    for number, age in enumerate((TEXT_KEPT_MS + 1, TEXT_KEPT_MS, 0)):
        await deployment.rows(EPISODE, str(number), deployment.clock() - age)
    for advance_ms, lost in ((0, {"acme": 1}), (0, {}), (1, {"acme": 1})):
        deployment.clock.advance(advance_ms)
        pruned = await prune(deployment.sql, deployment.clock, 400)
        assert pruned.by_rule["memory_episodes"] == lost
    logged = [vars(record)["pruned"] for record in caplog.records if record.message == "pruned"]
    assert [report["tenants"].get("memory_episodes") for report in logged] == [{"acme": 1}, None, {"acme": 1}]
    assert {report["complete"] for report in logged} == {True}


async def test_a_pruning_that_is_not_complete_says_so_and_the_brief_continues_it(
    deployment: Deployment, caplog: pytest.LogCaptureFixture
) -> None:
    many = 30 * 5000
    await deployment.rows(
        "INSERT INTO run_events WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)"
        " SELECT 'r', i, 'acme', 'model_asked', 1, '{}', 0 FROM n",
        many,
    )
    first = await prune(deployment.sql, deployment.clock, 400)
    assert (first.complete, first.statements) == (False, STATEMENTS)
    assert "the pruning is not complete; the daily brief continues it" in caplog.messages
    second = await pruned(deployment.sql, deployment.clock, 400)
    assert isinstance(second, dict)
    assert second["complete"]
    assert first.by_rule["run_events"]["acme"] + second["rows"]["run_events"] == many


async def test_the_brief_names_the_tenants_whose_turns_were_refused_for_a_week(
    deployment: Deployment, objects: SqliteObjects, caplog: pytest.LogCaptureFixture
) -> None:
    now = deployment.clock()
    for number, (tenant, age_days) in enumerate([("acme", 0), ("acme", 6.9), ("acme", 7.1), ("old", 8)]):
        at_ms = int(now - age_days * DAY_MS)
        await deployment.rows("INSERT INTO refused_episodes VALUES (?, ?, ?)", str(number), tenant, at_ms)
    report = await briefed(deployment, objects)
    assert report["episodes_refused"] == {"acme": 2}
    errors = [vars(record) for record in caplog.records if record.levelno == logging.ERROR]
    assert [(error["tenant_id"], error["episodes"]) for error in errors] == [("acme", 2)]


async def test_the_brief_counts_the_tables_and_is_kept_under_its_day(
    deployment: Deployment, objects: SqliteObjects
) -> None:
    await deployment.run("order_triage", "ann@shop.example wants a refund of AB-1001")
    await deployment.recover()
    report = await briefed(deployment, objects)
    tables = ("tenants", "agent_runs", "run_events", "memory_episodes", "memory_records", "outbox_failures")
    for table in tables:
        [row] = await deployment.rows(f"SELECT COUNT(*) AS n FROM {table}")
        assert report["rows"][table] == row["n"], table
    assert (report["rows"]["agent_runs"], report["rows"]["memory_records"]) == (2, 1)
    assert report["at_ms"] == deployment.clock()
    kept = await objects.get(f"briefs/{deployment.clock() // DAY_MS}.json")
    assert kept is not None
    assert json.loads(kept) == report


async def test_a_second_brief_of_a_day_replaces_the_first(deployment: Deployment, objects: SqliteObjects) -> None:
    await briefed(deployment, objects)
    await deployment.rows("INSERT INTO tenants (tenant_id, created_at_ms) VALUES ('acme', 0)")
    second = await briefed(deployment, objects)
    deployment.clock.advance(DAY_MS)
    await briefed(deployment, objects)
    day = deployment.clock() // DAY_MS - 1
    assert (await objects.list("briefs/")).keys == [f"briefs/{day}.json", f"briefs/{day + 1}.json"]
    assert json.loads(await objects.get(f"briefs/{day}.json") or b"") == second


async def test_the_brief_warns_of_tenants_with_80000_episodes_or_more(
    deployment: Deployment, objects: SqliteObjects, caplog: pytest.LogCaptureFixture
) -> None:
    held = {"below": WARN_PER_TENANT - 1, "near": WARN_PER_TENANT, "full": MAX_PER_TENANT}
    for tenant, episodes in held.items():
        await deployment.rows("INSERT INTO episode_counts (tenant_id, episodes) VALUES (?, ?)", tenant, episodes)
    report = await briefed(deployment, objects)
    assert report["tenants_near_episode_limit"] == {"full": 100_000, "near": 80_000}
    warned = [vars(record)["tenant_id"] for record in caplog.records if record.levelno == logging.WARNING]
    assert warned == ["full", "near"]


async def test_the_brief_says_what_is_used_of_the_database_and_the_vector_index(
    deployment: Deployment, objects: SqliteObjects, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    await deployment.seed("sdr", ["Ann prefers blue.", "Bob prefers red."])
    for number, tenant in enumerate(("acme", "other")):
        await deployment.rows(
            "INSERT INTO vector_documents (namespace_key, document_id, tenant_id, document, embedding, indexed)"
            " VALUES ('k', ?, ?, '[]', '', 0)",
            str(number),
            tenant,
        )
    capacity = (await briefed(deployment, objects))["capacity"]
    assert capacity["vectors"] == {"used": 2, "limit": 10_000_000}
    assert capacity["vector_namespaces"] == {"used": 3, "limit": 50_000}
    assert capacity["database_bytes"]["used"] > 100_000
    assert capacity["database_bytes"]["limit"] == 10_000_000_000
    assert "a limit of the platform is near" not in caplog.messages
    monkeypatch.setattr("retain.admin.capacity.MAX_NAMESPACES", 3)
    monkeypatch.setattr("retain.admin.capacity.MAX_VECTORS", 3)
    await briefed(deployment, objects)
    warned = [vars(record) for record in caplog.records if record.message == "a limit of the platform is near"]
    assert [(one["limit"], one["used"], one["of"]) for one in warned] == [("vector_namespaces", 3, 3)]


async def test_a_brief_is_written_though_the_vector_index_does_not_say_what_it_holds(
    deployment: Deployment, objects: SqliteObjects
) -> None:
    assert (await briefed(deployment, objects, down="index"))["capacity"]["vectors"]["used"] is None


async def test_the_brief_is_logged_as_an_error_while_there_are_failed_outbox_entries(
    deployment: Deployment, objects: SqliteObjects, caplog: pytest.LogCaptureFixture
) -> None:
    await briefed(deployment, objects)
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []
    await deployment.rows("INSERT INTO outbox_failures VALUES ('sdr:acme:main', 1, 'acme', 's', '[]', 'e', 0)")
    report = await briefed(deployment, objects)
    assert report["rows"]["outbox_failures"] == 1
    assert len([record for record in caplog.records if record.levelno >= logging.ERROR]) == 1


async def test_the_brief_settles_what_the_vector_index_is_owed(deployment: Deployment, objects: SqliteObjects) -> None:
    await deployment.seed("sdr", ["Ann prefers blue."])
    await deployment.rows("UPDATE memory_outbox SET state = 'owed'")
    [record] = await deployment.rows("SELECT id FROM memory_records")
    await deployment.index.delete_by_ids([f"{record['id']}#0"])
    deployment.clock.advance(DAY_MS)
    failed = await briefed(deployment, objects, down="index")
    assert failed["vector_outbox"] == {"settled": 0, "failed": 1}
    deployment.faults.down.clear()
    deployment.clock.advance(DAY_MS)
    settled = await briefed(deployment, objects)
    assert settled["vector_outbox"] == {"settled": 1, "failed": 0}
    assert len(await deployment.index.get_by_ids([f"{record['id']}#0"])) == 1


async def test_a_brief_that_cannot_count_is_not_written(deployment: Deployment, objects: SqliteObjects) -> None:
    deployment.faults.plan(Fault(Unavailable("D1 is down"), 2, "sql.batch"))
    with pytest.raises(Unavailable):
        await briefed(deployment, objects)
    assert (await objects.list("")).keys == []


class Evaluations:
    """Stands in for the runner of evaluations. waits_ms: what each call tells the cron to wait; None for one that fails."""

    def __init__(self, **waits_ms: list[int | None]) -> None:
        self.waits_ms = waits_ms
        self.called: list[str] = []

    async def open(self, limit: int) -> list[tuple[str, str]]:
        assert limit == JOBS_A_TIME + 1
        return [("acme", run_id) for run_id in self.waits_ms]

    async def advance(self, tenant_id: str, run_id: str) -> SimpleNamespace:
        assert tenant_id == "acme"
        self.called.append(run_id)
        wait_ms = self.waits_ms[run_id].pop(0)
        if wait_ms is None:
            raise Unavailable("down")
        return SimpleNamespace(run=SimpleNamespace(state="running"), retry_after_ms=wait_ms)


async def test_the_brief_continues_an_evaluation_until_it_has_to_wait_and_names_one_that_stops(
    deployment: Deployment, caplog: pytest.LogCaptureFixture
) -> None:
    runner = Evaluations(broken=[None], briefly=[0, 1], later=[0, 0, 500])
    stores = cast(Stores, SimpleNamespace(sql=deployment.sql, clock=deployment.clock))
    assert await evaluations(stores, cast(Runner, runner)) == {"stopped": 1, "running": 2}
    assert runner.called == ["broken", "briefly", "briefly", "later", "later", "later"]
    [logged] = [vars(record) for record in caplog.records if record.message == "an evaluation stopped"]
    assert (logged["run_id"], logged["code"]) == ("broken", "unavailable")
