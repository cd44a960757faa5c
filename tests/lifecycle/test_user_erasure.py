"""Erasing a user: nothing of them is left in any store, everybody else's is whole, and nothing late is written."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import replace
from typing import Any, cast

import pytest

from retain.agents.identity import InstanceIdentity
from retain.agents.schedules.owed import KeepSchedule
from retain.errors import Conflict, NotFound
from retain.identifiers import new_id
from retain.ingest.extraction import ExtractedFact, SourceMessage
from retain.ingest.extractors.rule_extractor import RuleExtractor
from retain.ingest.ingestion import Ingestion, IngestReceipt
from retain.lifecycle.backups.backing_up import Backups
from retain.lifecycle.erasure.eraser import Erasure
from retain.lifecycle.erasure.receipts import ErasureJob
from retain.lifecycle.erasure.slices import MAX_UNITED, Slice, Step, union_of
from retain.lifecycle.erasure.user import STEPS
from retain.lifecycle.moving.relations import FOLLOWING
from retain.lifecycle.stores import Stores
from retain.memory.records.record import NewRecord, RecordSource
from retain.memory.scope import Scope
from retain.outbox import Outbox
from retain.tenant_tables import TENANT_TABLES
from retain.tenants.tables import TenantTable
from tests.e2e.puppet import order
from tests.lifecycle.of_users import ANN, BOB, canary, erased, fill, shop
from tests.lifecycle.world import MINUTE_MS, World
from tests.ports import raises
from tests.support.faults import Crash, Fault

KEPT = ("d1/erased_users",)
"""Tables that name an erased user for a while, so that nothing late brings them back."""


@asynccontextmanager
async def filled() -> AsyncIterator[World]:
    with closing(shop()) as world:
        await world.sql.run("INSERT INTO tenants (tenant_id, created_at_ms) VALUES ('acme', 0)")
        for user in (ANN, BOB):
            await fill(world, user)
        await world.settled()
        yield world


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with filled() as world:
        yield world


@pytest.fixture
def empty() -> Iterator[World]:
    """Without rows: for the tables alone."""
    with closing(shop()) as world:
        yield world


def found(world: World, user: str) -> set[str]:
    """Return the tables with a canary of the user, or with their id."""
    sought = (canary(user, ""), user)
    return {table for text in sought for table in world.mentions(text) if table not in KEPT}


def held_of(world: World, user: str) -> dict[str, list[Any]]:
    """Return every row with a canary of the user, or with their id."""
    sought = (canary(user, ""), user)
    return {
        table: mine
        for table, rows in world.everything().items()
        if (mine := [row for row in rows if any(text in str(value) for text in sought for value in row)])
    }


async def test_nothing_of_an_erased_user_is_left_in_any_store_and_everybody_else_s_is_whole(world: World) -> None:
    areas = {"agent_runs", "run_events", "memory_episodes", "conversation_messages", "conversations", "users", "scopes"}
    areas |= {"memory_records", "memory_events", "ingest_jobs", "ingest_messages", "memory_items"}
    assert found(world, ANN) >= {f"d1/{area}" for area in areas | {"outbox_failures"}}
    assert {table.partition("/")[0].partition(" ")[0] for table in found(world, ANN)} == {"d1", "kv", "r2", "object"}
    bobs, vectors = held_of(world, BOB), world.vectors()
    outcome = await erased(world, ANN)
    assert found(world, ANN) == set()
    assert held_of(world, BOB) == bobs
    left = world.vectors()
    assert len(left) == len(vectors) / 2
    assert left.items() <= vectors.items()
    [objects] = [count for name, count in outcome.receipt.counts.items() if name == "durable_objects"]
    assert objects == 3
    assert {name.partition(".")[0] for name in outcome.receipt.counts} == {
        "d1",
        "kv",
        "r2",
        "vectorize",
        "durable_objects",
    }
    assert outcome.receipt.counts["d1.agent_runs"] == 3
    assert outcome.receipt.counts["d1.memory_records"] == 4


async def test_others_runs_and_history_verify_after_the_erasure(world: World) -> None:
    outcome = await erased(world, ANN)
    verdict = await world.stores().history().verify("acme")
    [entry] = world.sql_now("SELECT * FROM world_history WHERE kind = 'user_erased'")
    assert (verdict.problem, entry["subject_id"], entry["digest"]) == (
        None,
        outcome.receipt.receipt_id,
        outcome.receipt.digest,
    )
    assert ANN not in str(world.sql_now("SELECT * FROM erasure_receipts"))
    runs = world.sql_now("SELECT run_id, parent_run_id, instance_id FROM agent_runs")
    assert sorted(run["instance_id"].split(".")[-1] for run in runs) == ["desk-bob", "desk-bob", "helper"]
    result = await world.run(
        "clerk", order(("recall_memory", {"query": canary(BOB, "stored")})), instance="desk-bob", user={"id": BOB}
    )
    assert canary(BOB, "stored") in result["output"]


async def test_a_later_run_of_the_user_begins_again_with_nothing(world: World) -> None:
    await erased(world, ANN)
    ask = order(("recall_memory", {"query": "canary", "top_k": 20}), ("get_working_memory", {}))
    result = await world.run("clerk", ask, instance="desk-ann", user={"id": ANN})
    assert json.loads(result["output"]) == [{"memories": []}, {}]
    await world.run(
        "clerk", order(("store_memory", {"content": "Likes tea."}), say="ok"), user={"id": ANN}, instance="new"
    )
    await world.settled()
    [user] = world.sql_now("SELECT * FROM users WHERE user_id = ?", ANN)
    assert user["name"] is None
    assert len(world.sql_now("SELECT 1 FROM agent_runs WHERE user_id = ?", ANN)) == 2
    again = await erased(world, ANN)
    assert again.receipt.counts["d1.agent_runs"] == 2
    assert found(world, ANN) == set()


async def test_a_run_in_the_millisecond_of_the_erasure_is_a_later_one(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("retain.lifecycle.erasure.user.new_id", lambda: f"{new_id()[:10]}{'Z' * 16}")
    monkeypatch.setattr("retain.agents.queueing.run_queue.new_id", lambda: f"{_mark(world)[:10]}{'8' * 16}")
    await erased(world, ANN)
    await world.run("clerk", order(say="ok"), user={"id": ANN}, instance="new")
    await world.settled()
    assert len(world.sql_now("SELECT 1 FROM agent_runs WHERE user_id = ?", ANN)) == 1


def _mark(world: World) -> str:
    [row] = world.sql_now("SELECT last_run_id FROM erased_users WHERE user_id = ?", ANN)
    return str(row["last_run_id"])


async def test_what_an_instance_owed_when_its_user_was_erased_is_not_written(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def asleep(_: Outbox) -> bool:
        return False

    store = ("store_memory", {"content": canary(ANN, "stored")})
    with monkeypatch.context() as patched:
        patched.setattr(Outbox, "flush", asleep)
        for instance in ("unknown-1", "unknown-2"):
            await world.run(
                "clerk", order(say=canary(ANN, "said")), instance=instance, user={"id": ANN, "name": "late"}
            )
        await world.settled()
    owed = {row["statement"] for row in world.local("clerk:acme:unknown-1", "SELECT statement FROM outbox")}
    assert owed >= {"start_run_of_version", "meet_user", "open_conversation", "append_message", "append_event"}
    await erased(world, ANN)
    before = {table: rows for table, rows in world.everything().items() if table.startswith("d1/")}
    assert await world.living("clerk:acme:unknown-1", _identity("unknown-1"))._outbox.flush()
    assert {table: rows for table, rows in world.everything().items() if table.startswith("d1/")} == before
    later = await world.run("clerk", order(store, say="ok"), instance="unknown-2", user={"id": ANN})
    await world.settled()
    [run] = world.sql_now("SELECT run_id, user_id FROM agent_runs WHERE instance_id = 'unknown-2'")
    assert run == {"run_id": later["run_id"], "user_id": ANN}


async def test_a_run_from_before_the_erasure_stores_nothing_for_the_user(world: World) -> None:
    [run] = world.sql_now("SELECT MAX(run_id) AS id FROM agent_runs WHERE user_id = ?", ANN)
    await erased(world, ANN)
    memory = world.memory("acme", "clerk", house="shop", user_id=ANN)
    with raises(Conflict):
        await memory.store(NewRecord("late"), RecordSource("agent", run_id=run["id"]))
    assert found(world, ANN) == set()
    await memory.store(NewRecord("later"), RecordSource("agent", run_id=new_id()))
    await memory.store(NewRecord("by a person"), RecordSource("person"))
    contents = world.sql_now(
        "SELECT content FROM memory_records r JOIN scopes s USING (scope_id) WHERE user_id = ?", ANN
    )
    assert {row["content"] for row in contents} == {"later", "by a person"}


async def test_the_instance_of_another_user_keeps_what_it_holds(world: World) -> None:
    await erased(world, ANN)
    write = order(("set_working_memory", {"key": "note", "value": "Bob's"}), say="ok")
    await world.run("clerk", write, instance="desk-ann", user={"id": BOB})
    await world.settled()
    world.plant(  # as if the first erasure had been interrupted after the instance
        "conversation_messages", message_id="x.0", tenant_id="acme", agent_type="clerk", instance_id="desk-ann",
        run_id="x", role="user", user_id=ANN,
    )  # fmt: skip
    await erased(world, ANN)
    kept = await world.describe("clerk", instance="desk-ann")
    assert kept["working"] == {"note": "Bob's"}
    assert world.sql_now("SELECT 1 FROM conversation_messages WHERE message_id = 'x.0'") == []
    assert len(world.sql_now("SELECT 1 FROM agent_runs WHERE instance_id = 'desk-ann'")) == 1


@pytest.mark.parametrize("lost", ["known", "lost", "put aside"])
async def test_what_is_nobody_s_in_an_instance_with_a_schedule_for_the_user_stays_there_and_in_backups(
    world: World, lost: str
) -> None:
    await erased(world, ANN)  # what waits for something else there
    await world.run("clerk", order(say="for nobody"), instance="shared")
    request = {"input": canary(ANN, "scheduled"), "metadata": {}, "user": {"id": ANN}}
    cron: dict[str, Any] = {"cron": "0 9 * * *", "timezone": "UTC", "at_ms": None}
    await world.ask("clerk", "schedule", instance="shared", request=request, **cron)
    world.sql_now("DELETE FROM outbox_failures")
    await world.settled()
    backups = Backups(world.stores(), 14)
    while (await backups.advance("acme")).state == "running":
        pass
    if lost == "lost":
        await world.lose("clerk:acme:shared")
    if lost == "put aside":
        [row] = world.sql_now("DELETE FROM schedules RETURNING schedule_id, tenant_id, user_id, request")
        entry = {"statement": KeepSchedule.NAME, "parameters": json.dumps(list(row.values()))}
        world.plant("outbox_failures", instance_key="clerk:acme:shared", tenant_id="acme", **entry)
    await erased(world, ANN)
    assert found(world, ANN) == set()
    assert lost == "lost" or world.local("clerk:acme:shared", "SELECT 1 FROM schedules") == []
    pages = [row[1] for name, rows in world.everything().items() if name.startswith("r2/") for row in rows]
    assert any(b"for nobody" in page for page in pages if isinstance(page, bytes))
    for table, rows in {"agent_runs": 1, "conversation_messages": 2, "memory_episodes": 1}.items():
        assert len(world.sql_now(f"SELECT 1 FROM {table} WHERE instance_id = 'shared'")) == rows, table


async def test_the_erasure_waits_for_a_run_under_way_and_for_texts_that_are_arriving(world: World) -> None:
    world.plant("ingest_uploads", tenant_id="acme", upload_id="up", message_index=0, created_at_ms=world.clock())
    waiting = await Erasure(world.stores()).erase_user("acme", ANN)
    assert (waiting.retry_after_ms, waiting.receipt.state) == (10_000, "running")
    world.clock.advance(61 * MINUTE_MS)
    world.plant("ingest_uploads", tenant_id="acme", upload_id="later", message_index=0, created_at_ms=world.clock())
    await erased(world, ANN)
    assert [row["upload_id"] for row in world.sql_now("SELECT upload_id FROM ingest_uploads")] == ["later"]
    assert found(world, ANN) == set()


@pytest.mark.parametrize("step", ["records", "rows", "attachments", "scopes", "finish"])
async def test_what_is_stored_for_the_user_before_a_step_is_erased_as_well(
    world: World, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    own, stored = STEPS[step], list[str]()

    async def met(stores: Stores, job: ErasureJob) -> Slice:
        if not stored:
            for place in ({"agent_type": "clerk", "house": "shop"}, {}):
                memory = world.memory("acme", **place, user_id=ANN)
                late = NewRecord(f"{canary(ANN, 'late')} {len(place)}")
                stored.append((await memory.store(late, RecordSource("person"))).id)
        return await own(stores, job)

    monkeypatch.setitem(cast("dict[str, Step]", STEPS), step, met)
    await erased(world, ANN)
    assert stored
    assert found(world, ANN) == set()
    assert world.sql_now("SELECT id FROM memory_records WHERE scope_id NOT IN (SELECT scope_id FROM scopes)") == []


async def test_an_erasure_that_stops_anywhere_is_finished_by_the_next_call() -> None:
    points, counts = 1, set()
    while True:
        points += 7
        async with filled() as world:
            world.faults.plan(Fault(Crash(), nth=points, owner="lifecycle"))
            with suppress(Crash):
                await erased(world, ANN)
            if world.faults.pending:
                break
            await world.restart()
            await erased(world, ANN)
            assert found(world, ANN) == set(), f"stopped at the {points}. point"
            first = world.sql_now("SELECT counts FROM erasure_receipts WHERE state = 'completed' ORDER BY receipt_id")[
                0
            ]
            counts.add(
                json.dumps(
                    {name: n for name, n in sorted(json.loads(first["counts"]).items()) if "durable" not in name}
                )
            )
    assert points > 50
    assert len(counts) == 1, "what was erased is counted once"


def test_every_table_with_a_column_that_could_name_a_user_declares_how_theirs_are_found(empty: World) -> None:
    columns = empty.sql_now(
        "SELECT m.name AS name, c.name AS col FROM sqlite_master m, pragma_table_info(m.name) c WHERE m.type = 'table'"
    )
    of_tables: dict[str, set[str]] = {}
    for row in columns:
        of_tables.setdefault(row["name"], set()).add(row["col"])
    naming = {"user_id", "run_id", "instance_id", "instance_key", "scope_id"}
    for table in TENANT_TABLES:
        assert (table.users is not None) or not naming & of_tables[table.name], table.name
        match table.users:
            case "user":
                assert "user_id" in of_tables[table.name]
            case "instance":
                assert {"agent_type", "instance_id"} <= of_tables[table.name]
                assert "user_id" not in of_tables[table.name]
            case "instance and user" | "served":
                assert {"user_id", "agent_type", "instance_id"} <= of_tables[table.name]
            case "owed":
                assert {"instance_key", "parameters"} <= of_tables[table.name]
            case "scope":
                assert "scope_id" in of_tables[table.name]
            case "part":
                assert any(table.name in owner.parts for owner in TENANT_TABLES)
            case "follows":
                assert table.name in FOLLOWING
            case "arriving":
                assert "created_at_ms" in of_tables[table.name]
            case "nobody":
                assert "user_id" not in of_tables[table.name]
        assert table.lease is None or table.lease in of_tables[table.name]


@pytest.mark.parametrize("table", TENANT_TABLES, ids=[table.name for table in TENANT_TABLES])
def test_a_table_s_keys_identify_its_rows(empty: World, table: TenantTable) -> None:
    indexes = empty.sql_now(f"SELECT name FROM pragma_index_list('{table.name}') WHERE \"unique\" AND NOT partial")
    unique = [
        {row["name"] for row in empty.sql_now(f"SELECT name FROM pragma_index_info('{index['name']}')")}
        for index in indexes
    ]
    columns = empty.sql_now(f"SELECT name FROM pragma_table_info('{table.name}') WHERE pk > 0")
    unique.append({row["name"] for row in columns})
    assert any(found and found <= set(table.keys) for found in unique)


def _identity(instance: str) -> InstanceIdentity:
    return InstanceIdentity(Scope("acme", "clerk"), instance)


@pytest.mark.parametrize("count", [1, MAX_UNITED, MAX_UNITED + 1, MAX_UNITED**2 + 1])
async def test_queries_are_united_however_many_they_are(empty: World, count: int) -> None:
    selects = [f"SELECT {number % 7} AS seen" for number in range(count)]
    rows = (await empty.sql.run(f"{union_of(selects)} ORDER BY seen")).rows
    assert [row["seen"] for row in rows] == list(range(min(count, 7)))


async def test_messages_that_were_received_for_a_user_of_whom_nothing_is_stored_yet_are_erased(world: World) -> None:
    memory = world.memory(agent_type="clerk", user_id="carol")
    ingestion = Ingestion(memory, world.sql, RuleExtractor, world.clock)
    received = await ingestion.receive("chat", [{"speaker": "Carol", "content": "I live in Carolsecret."}])
    await erased(world, "carol")
    assert (await world.sql.run("SELECT 1 FROM ingest_messages WHERE content LIKE '%Carolsecret%'")).rows == []
    with raises(NotFound, code="no_such_job"):
        await ingestion.work(received.job.job_id)


async def _late_ingest(world: World) -> tuple[Ingestion, IngestReceipt]:
    """Return the ingest of a message of Carol's, erased while the worker that has its lease was away."""
    ingestion = Ingestion(world.memory(agent_type="clerk", user_id="carol"), world.sql, RuleExtractor, world.clock)
    message = {"speaker": "Carol", "content": "I live in Carolsecret."}
    receipt = await ingestion.receive("chat", [message], leased=True)
    await erased(world, "carol")
    return ingestion, receipt


async def test_an_ingest_whose_worker_was_away_for_longer_than_its_lease_stores_nothing_that_was_erased(
    world: World,
) -> None:
    ingestion, receipt = await _late_ingest(world)
    with raises(NotFound, code="no_such_job"):
        await ingestion.process(receipt)
    assert world.mentions("carol") == [*KEPT]


async def test_an_ingest_that_does_not_know_how_late_it_is_stores_and_notes_nothing_that_was_erased(
    world: World,
) -> None:
    ingestion, receipt = await _late_ingest(world)
    with raises(NotFound, code="no_such_job"):
        await ingestion.process(replace(receipt, job=replace(receipt.job, lease_until_ms=world.clock() + 1)))
    assert world.mentions("carol") == [*KEPT]


async def test_an_ingest_ends_when_its_user_is_erased_while_the_model_answers(world: World) -> None:
    class Erasing(RuleExtractor):
        local = False

        async def extract(self, messages: Sequence[SourceMessage]) -> list[ExtractedFact]:
            await erased(world, "carol")
            return await super().extract(messages)

    ingestion = Ingestion(world.memory(agent_type="clerk", user_id="carol"), world.sql, Erasing, world.clock)
    receipt = await ingestion.receive("chat", [{"speaker": "Carol", "content": "I live in Carolsecret."}], leased=True)
    with raises(NotFound, code="no_such_job"):
        await asyncio.wait_for(ingestion.process(receipt), 60)
    assert world.mentions("carol") == [*KEPT]
