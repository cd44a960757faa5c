"""Erasure despite crashes, failures, runs and writes under way, and late writes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from retain.agents.identity import identity_of
from retain.errors import Conflict, RetainError, Unavailable
from retain.lifecycle.erasure import subject
from retain.lifecycle.erasure import tenant as tenant_steps
from retain.lifecycle.erasure.eraser import Erasure, Outcome
from retain.lifecycle.erasure.receipts import ErasureJob
from retain.lifecycle.erasure.slices import Slice
from retain.lifecycle.stores import Stores
from retain.memory.records.record import NewRecord
from retain.memory.records.rows import record_of
from retain.memory.records.vector_names import vector_namespace
from retain.ports import VectorEntry, VectorMatch
from retain.tenants.register import Tenants
from tests.lifecycle.erasable import ANN, HISTORY, MAIL, erased, filled, rows_of
from tests.lifecycle.world import MINUTE_MS, World, living
from tests.support.faults import Crash, Fault
from tests.support.machines import soaking


@pytest.fixture
def world() -> Iterator[World]:
    with living(filled()) as world:
        yield world


@pytest.mark.soak
@pytest.mark.parametrize(("error", "first"), [(Crash(), 2), (Unavailable("down"), 6)], ids=["dies", "fails"])
@pytest.mark.parametrize(("tenant", "match"), [("acme", None), (None, "mention"), (None, "subject")])
async def test_an_erasure_that_stops_anywhere_is_finished_by_the_next_call(
    tenant: str | None, match: str | None, error: BaseException, first: int
) -> None:
    """In a soak it stops at every point, in the ordinary suite at every fourth, where crashes and failures take turns."""
    start, stride = (2, 2) if soaking() else (first, 8)  # only after each call: before the next one is the same point
    with living(filled()) as world:
        await erased(world, tenant, match=match)
        undisturbed = await _end_state(world)
    for points in count(start, stride):
        with living(filled()) as world:
            world.faults.plan(Fault(error, nth=points, owner="lifecycle"))
            with suppress(Crash, RetainError):
                await erased(world, tenant, match=match)
            if world.faults.pending:
                break
            point = world.faults.trace[-1]
            await world.restart()
            await erased(world, tenant, match=match)
            assert await _end_state(world) == undisturbed, f"stopped at {point}, the {points}. point"
    assert points > 20


async def _end_state(world: World) -> dict[str, Any]:
    """Return what an erasure leaves, without what varies at random and names no person: ids, times and digests."""
    await world.rest()
    found = {
        name: sorted(str(row[1:] if name == "d1/mutation_subjects" else row) for row in rows)  # without their numbers
        for name, rows in world.everything().items()
        if name.partition("/")[2]
        not in (*HISTORY, "memory_events", "erasure_receipts", "erased_tenants", "agent_runs", "error_ledger")
    }
    assert [row for row in world.sql_now("SELECT * FROM error_ledger") if row["state"] != "replayed"] == []
    receipts = world.sql_now("SELECT state, kind, counts FROM erasure_receipts")
    entries = {row["kind"] for row in world.sql_now("SELECT kind FROM world_history WHERE tenant_id = 'acme'")}
    return {
        **found,
        # Called again after its last answer was lost, a subject's erasure finds nothing and reports that.
        "receipts": [{**row, "counts": counts} for row in receipts if (counts := _counts(row))],
        "entries": entries,
        "events": sorted((e["record_id"], e["kind"]) for e in world.sql_now("SELECT * FROM memory_events")),
        "runs": sorted((r["run_id"], "erased" in r["input"]) for r in world.sql_now("SELECT * FROM agent_runs")),
        "verdict": (await world.stores().history().verify("acme")).problem,
    }


def _counts(receipt: dict[str, Any]) -> dict[str, int]:
    """Return the erased counts without the instances that were asked: an erasure that finds nothing asks them, too."""
    return {name: n for name, n in json.loads(receipt["counts"]).items() if name != "durable_objects"}


async def test_the_late_outbox_of_an_unknown_instance_resurrects_nothing(world: World) -> None:
    await world.run("sdr", "Write to ann@shop.example.", tenant="acme", instance="late")
    world.faults.down = {"sql"}
    await world.settled()
    world.faults.down = set()
    assert world.local("sdr:acme:late", "SELECT * FROM outbox") != []
    await world.sql.run("DELETE FROM agent_runs WHERE instance_id = 'late'")  # D1 does not know the instance
    await erased(world, "acme")
    await world.recover()
    assert world.local("sdr:acme:late", "SELECT * FROM outbox") == []
    assert rows_of(world, "acme", without=("identity",)).keys() <= {"object sdr:acme:late/turn_state"}
    await world.sql.run("INSERT INTO tenants (tenant_id, created_at_ms) VALUES ('acme', 1)")
    await world.run("sdr", "A new beginning.", tenant="acme", instance="new")
    await world.settled()
    assert len(world.sql_now("SELECT * FROM agent_runs WHERE tenant_id = 'acme'")) == 1


async def _run_while_d1_is_down(world: World) -> None:
    """Run an instance that D1 knows, and leave its writes in its outbox."""
    world.faults.plan(Fault(Unavailable("down"), point="sql.batch", nth=3, owner="order_triage:acme:main"))
    await world.run("order_triage", f"{MAIL} And of AB-1004.", tenant="acme")
    world.faults.down = {"sql"}
    await world.settled()
    world.faults.down = set()
    world.faults.cancel()
    assert world.local("order_triage:acme:main", "SELECT * FROM outbox") != []


async def test_a_known_instance_drops_its_outbox_when_its_tenant_is_erased(world: World) -> None:
    await _run_while_d1_is_down(world)
    await erased(world, "acme")
    assert world.local("order_triage:acme:main", "SELECT * FROM outbox") == []
    assert world.local("order_triage:acme:main", "SELECT * FROM identity") == []
    await world.recover()
    assert rows_of(world, "acme") == {}


async def test_an_instance_flushes_its_outbox_before_mentions_are_searched(world: World) -> None:
    await _run_while_d1_is_down(world)
    await erased(world)
    await world.recover()
    left = [row for rows in rows_of(world, "acme").values() for row in rows if ANN in str(row).lower()]
    assert [row for row in left if f"jo{ANN}.com" not in str(row)] == []
    assert len(world.sql_now("SELECT 1 FROM agent_runs WHERE tenant_id = 'acme' AND input LIKE '%erased%'")) == 4


async def test_what_arrives_before_the_erasure_completes_is_erased_as_well(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = {"tenant_id": "acme", "agent_type": "sdr", "instance_id": "late", "status": "completed"}
    arrived: list[str] = []

    async def later(stores: Stores, job: ErasureJob) -> Slice:
        if not arrived:
            arrived.append("7ZZZZZZZZZZZZZZZZZZZZZZZZZ")
            world.plant("agent_runs", run_id=arrived[0], **late)
        return await tenant_steps.finish(stores, job)

    monkeypatch.setattr(tenant_steps, "STEPS", {**tenant_steps.STEPS, "finish": later})
    monkeypatch.setattr("retain.lifecycle.erasure.eraser.STEPS", tenant_steps.STEPS)
    assert (await erased(world, "acme")).receipt.counts["d1.agent_runs"] == 4
    assert rows_of(world, "acme") == {}


async def test_rows_of_runs_that_began_during_the_erasure_are_ignored_when_they_arrive(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = iter(["01HF7YAT00", "01HF7YAT09"])
    monkeypatch.setattr(tenant_steps, "new_id", lambda: next(times) + "A" * 16)
    await erased(world, "acme")
    await world.sql.run("INSERT INTO tenants (tenant_id, created_at_ms) VALUES ('acme', 1)")
    run = {"tenant_id": "acme", "agent_type": "sdr", "instance_id": "late", "status": "completed"}
    for run_id in ("01HF7YAT00AAAAAAAAAAAAAAAA", "01HF7YAT05AAAAAAAAAAAAAAAA", "01HF7YAT0AAAAAAAAAAAAAAAAA"):
        world.plant("agent_runs", run_id=run_id, **run)
        world.plant("run_events", run_id=run_id, tenant_id="acme")
        world.plant("memory_episodes", episode_id=f"{run_id}.001", run_id=run_id, tenant_id="acme")
    for table in ("agent_runs", "run_events", "memory_episodes"):
        assert world.sql_now(f"SELECT run_id FROM {table} WHERE tenant_id = 'acme'") == [
            {"run_id": "01HF7YAT0AAAAAAAAAAAAAAAAA"}
        ]


@pytest.mark.parametrize("tenant", ["acme", None], ids=["tenant", "mention"])
async def test_an_erasure_waits_for_a_run_that_is_under_way(world: World, tenant: str | None) -> None:
    name = "order_triage:acme:main"
    [local] = [storage for key, storage in world.storages.items() if key == name]
    await world.describe("order_triage", tenant="acme")
    instance = world.living(
        name, identity_of({"tenant_id": "acme", "agent_type": "order_triage", "instance_id": "main"})
    )
    vars(instance)["_active"] = True
    erasure = Erasure(world.stores())
    for _ in range(3):
        outcome = await (erasure.erase_tenant("acme") if tenant else erasure.erase_subject("acme", ANN, "mention"))
        assert (outcome.receipt.state, outcome.retry_after_ms) == ("running", 10_000)
    assert local.run("SELECT * FROM turn_state").rows != []
    vars(instance)["_active"] = False
    await erased(world, tenant)
    assert local.run("SELECT * FROM turn_state WHERE context LIKE '%ann@%'").rows == []


@pytest.mark.parametrize("tenant", ["acme", None], ids=["tenant", "subject"])
async def test_an_erasure_waits_for_a_write_that_may_be_under_way(world: World, tenant: str | None) -> None:
    [record] = world.sql_now("SELECT * FROM memory_records WHERE tenant_id = 'acme' AND content LIKE '%coffee.'")
    writing = world.stores().indexer()
    owed = writing.owe(record_of(record), 1)
    await world.sql.batch([owed])
    outcome = await _once(world, tenant)
    assert (outcome.receipt.state, outcome.retry_after_ms) == ("running", 10_000)
    world.clock.advance(MINUTE_MS)
    await erased(world, tenant, match="subject")
    assert f"{record['id']}#0" not in world.vectors()


async def _once(world: World, tenant: str | None) -> Outcome:
    """Repeat the call until the erasure waits."""
    erasure = Erasure(world.stores())
    for _ in range(20):
        outcome = await (erasure.erase_tenant(tenant) if tenant else erasure.erase_subject("acme", ANN, "subject"))
        if outcome.retry_after_ms != 0:
            return outcome
    raise AssertionError("it never waits")


async def test_vectors_unknown_to_d1_are_erased_with_the_tenant(world: World) -> None:
    vector = [1.0] + [0.0] * (world.embedder.dimensions - 1)
    strays = [VectorEntry(f"stray#{n}", vector, vector_namespace("acme"), {"tenant_id": "acme"}) for n in range(150)]
    await world.index.upsert(strays)
    await erased(world, "acme")
    assert {v["tenant_id"] for v in world.vectors().values()} == {"neighbour"}


async def test_an_erasure_is_not_complete_while_the_index_still_shows_a_vector(world: World) -> None:
    deleting = world.index.delete_by_ids
    lagging: list[str] = []

    async def later(ids: Sequence[str]) -> str:
        lagging.extend(ids)
        return "mutation"

    vars(world.index)["delete_by_ids"] = later
    outcome = await _once(world, "acme")
    assert (outcome.receipt.state, outcome.retry_after_ms) == ("running", 10_000)
    vars(world.index)["delete_by_ids"] = deleting
    for start in range(0, len(lagging), 1000):
        await deleting(lagging[start : start + 1000])
    assert (await erased(world, "acme")).receipt.state == "completed"


async def test_a_closed_tenant_stores_nothing_until_it_is_registered_again(world: World) -> None:
    await _once(world, "acme")
    await erased(world, "acme")
    for _ in range(2):
        with pytest.raises(Conflict):
            await world.store("Come back.", tenant="acme")
    assert rows_of(world, "acme") == {}
    await Tenants(world.sql, world.clock).register("acme")
    await world.store("A new beginning.", tenant="acme")
    assert [hit.record.content for hit in await world.recall("beginning", tenant="acme")] == ["A new beginning."]
    assert (await world.stores().history().verify("acme")).problem is None
    assert (await erased(world, "acme")).receipt.counts["d1.memory_records"] == 1


async def test_a_tenant_cannot_be_registered_while_it_is_erased(world: World) -> None:
    vars(world.index)["query"] = _shows_something
    await _once(world, "acme")
    with pytest.raises(Conflict):
        await Tenants(world.sql, world.clock).register("acme")


async def _shows_something(*_: Any, **__: Any) -> list[VectorMatch]:
    return [VectorMatch("x#0", 1.0)]


async def test_an_erased_tenant_answers_with_its_receipt_when_asked_again(world: World) -> None:
    first = await erased(world, "acme")
    assert (await erased(world, "acme")).receipt == replace(first.receipt, salt=None)


async def test_a_record_stored_while_a_subject_is_erased_is_erased_with_it(world: World) -> None:
    erasure = Erasure(world.stores())
    for number in range(250):  # more than one slice
        await world.store(f"{ANN} visited shop {number}.", subject=ANN)
    await world.rest()
    stored = 0
    for _ in range(60):
        if stored < 3:
            await world.store(f"{ANN} came again {stored}.", subject=ANN)
            world.clock.advance(MINUTE_MS)
            stored += 1
        world.faults.plan(Fault(Unavailable("down"), nth=30, owner="lifecycle"))
        with suppress(Unavailable):
            if (await erasure.erase_subject("acme", ANN, "subject")).retry_after_ms is None:
                break
        world.faults.cancel()
    assert stored == 3
    assert world.sql_now("SELECT * FROM memory_records WHERE tenant_id = 'acme' AND subject = ?", ANN) == []


async def test_a_record_stored_at_the_last_moment_of_an_erasure_is_erased_with_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    finish = subject._finish
    stored: list[str] = []

    async def later(stores: Stores, job: ErasureJob, read_to: int) -> Slice:
        if not stored:
            stored.append(await world.store(f"{ANN} came in the last moment.", subject=ANN))
        return await finish(stores, job, read_to)

    monkeypatch.setattr(subject, "_finish", later)
    await erased(world, match="subject")
    assert stored
    assert world.sql_now("SELECT * FROM memory_records WHERE id = ?", stored[0]) == []
    assert world.sql_now("SELECT * FROM memory_events WHERE record_id = ?", stored[0]) == []


async def test_erasing_more_than_one_page_of_everything_counts_all_of_it(world: World) -> None:
    await world.store_all([NewRecord(f"{ANN} bought lamp {n}.", subject=ANN) for n in range(100)])
    await world.store_all([NewRecord(f"{ANN} bought shelf {n}.", subject=ANN) for n in range(150)])
    for number in range(90):
        await world.kv.put(f"agent_working:acme:main:note{number:03d}", json.dumps(MAIL))
        await world.objects_store.put(f"tenants/acme/more/{number:03d}", MAIL.encode())
    await world.rest()
    outcome = await erased(world)
    # In KV: 90 notes, the earlier mail, and a conversation.
    assert [outcome.receipt.counts[name] for name in ("kv", "r2", "d1.memory_records")] == [92, 91, 256]
    assert [row for row in world.everything()["kv/kv"] if b"acme" in row[0] and ANN in row[1]] == []


@pytest.mark.parametrize(("tenant", "match"), [("acme", None), (None, "mention"), (None, "subject")])
async def test_two_concurrent_continuations_of_an_erasure_count_everything_once(
    world: World, tenant: str | None, match: str | None
) -> None:
    with living(filled()) as alone:
        counts = (await erased(alone, tenant, match=match)).receipt.counts
    outcomes = await asyncio.gather(*[erased(world, tenant, match=match) for _ in range(3)])
    assert {outcome.receipt.state for outcome in outcomes} == {"completed"}
    receipts = world.sql_now("SELECT counts FROM erasure_receipts")
    assert [found for row in receipts if (found := json.loads(row["counts"])) and _counts(row)] == [dict(counts)]
    assert (await world.stores().history().verify("acme")).problem is None
