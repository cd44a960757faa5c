"""Reindexing: from records alone, in slices, while recall continues; and verification, which reports the need."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from retain.errors import NotFound, RetainError, Unavailable
from retain.lifecycle.reindexing import IndexJob, Reindexing
from retain.lifecycle.verification import verify_page
from retain.memory.recall.words import indexed_text
from retain.memory.records.record import NewRecord
from retain.memory.scope import Scope
from retain.memory.semantic import SemanticMemory
from tests.lifecycle.other_models import OtherModel
from tests.lifecycle.world import MINUTE_MS, PERSON, World, living
from tests.support.faults import Crash, Fault

QUERIES = ("lamp 7", "Bob's tea", "shelf")


@pytest.fixture
def world() -> Iterator[World]:
    with living() as world:
        yield world


async def fill(world: World, lamps: int = 30) -> None:
    await world.store("Bob likes tea.", agent_type="sales")
    await world.store_all([NewRecord(f"Lamp {n} was sold. " + "It shines. " * (n % 3 * 90)) for n in range(lamps)])
    gone = await world.store("A shelf.")
    await world.memory().delete(gone, PERSON)
    await world.store("A shelf and a half.", tenant="neighbour")
    await world.rest()


async def completed(world: World, tenant: str = "acme") -> IndexJob:
    for _ in range(40):
        job = await Reindexing(world.stores()).advance(tenant)
        if job.state == "completed":
            return job
        assert job.state == "running"
    raise AssertionError("the job never completes")


async def ranked(world: World) -> list[list[tuple[str, float]]]:
    return [[(hit.record.id, hit.score) for hit in await world.recall(query)] for query in QUERIES]


def _index(world: World) -> dict[str, Any]:
    tables = world.everything()
    vectors = {row[0]: row[2:] for row in tables["vectors/vectors"]}
    return {"search": tables["d1/memory_search"], "text": tables["d1/memory_text"], "vectors": vectors}


async def test_an_index_that_was_lost_is_rebuilt_from_the_records(world: World) -> None:
    await fill(world)
    before, index = await ranked(world), _index(world)
    world.sql_now("DELETE FROM memory_search WHERE tenant_id = 'acme'")
    world.sql_now("DELETE FROM memory_text WHERE rowid IN (SELECT number FROM memory_records WHERE tenant_id = 'acme')")
    world.sql_now("UPDATE scopes SET records = 0, words = 0 WHERE tenant_id = 'acme'")
    await world.index.delete_by_ids([vector for vector, of in world.vectors().items() if of["tenant_id"] == "acme"])
    job = await completed(world)
    assert (job.done, job.total, job.refused) == (31, 31, 0)
    assert await ranked(world) == before
    assert _index(world) == index


async def test_a_job_continues_from_call_to_call_and_shows_its_progress(world: World) -> None:
    await fill(world, lamps=280)
    jobs = [await Reindexing(world.stores()).advance("acme") for _ in range(2)]
    assert [(job.state, job.done, job.total) for job in jobs] == [("running", 200, 281), ("completed", 281, 281)]
    assert {job.job_id for job in jobs} == {jobs[0].job_id}
    assert await Reindexing(world.stores()).job("acme", jobs[0].job_id) == jobs[1]
    with pytest.raises(NotFound):
        await Reindexing(world.stores()).job("neighbour", jobs[0].job_id)
    assert (await Reindexing(world.stores()).advance("acme")).job_id != jobs[0].job_id


async def test_another_model_takes_over_while_recall_continues(world: World) -> None:
    await fill(world, lamps=150)
    world.embedder = OtherModel()
    assert [hit.record.content[:7] for hit in await world.recall("lamp 120", top_k=1)] == ["Lamp 12"]  # by words alone
    job = await Reindexing(world.stores()).advance("acme")
    assert job.state == "running"
    assert [hit.record.content[:7] for hit in await world.recall("lamp 120", top_k=1)] == ["Lamp 12"]
    job = await completed(world)
    assert job.model == "another-model"
    models = {v["model"] for v in world.vectors().values() if v["tenant_id"] == "acme"}
    assert models == {"another-model"}
    assert {
        row["embedding_model"] for row in world.sql_now("SELECT * FROM memory_search WHERE tenant_id = 'acme'")
    } == models
    assert {v["model"] for v in world.vectors().values() if v["tenant_id"] == "neighbour"} == {"static-minilm-256"}
    assert (await world.recall("lamp 120", top_k=1))[0].components["vector"] > 0


async def test_what_is_written_meanwhile_is_not_lost_and_what_is_deleted_not_restored(world: World) -> None:
    await fill(world, lamps=280)
    before = world.embedder
    world.embedder = OtherModel()
    await Reindexing(world.stores()).advance("acme")
    world.embedder = before  # an isolate that does not know the new model yet
    late = await world.store("A chair, written late.")
    edited = (await world.recall("lamp 7", top_k=1))[0].record.id
    await world.memory().edit(edited, {"content": "Lamp 7 was given back."}, PERSON)
    gone = (await world.recall("lamp 9", top_k=1))[0].record.id
    await world.memory().delete(gone, PERSON)
    world.embedder = OtherModel()
    await completed(world)
    report = await verify_page(world.stores(), "acme", None, repair=False)
    assert report.drift == {}
    contents = [hit.record.id for hit in await world.recall("chair written late, lamp 7 given back", top_k=2)]
    assert set(contents) == {late, edited}
    assert f"{gone}#0" not in world.vectors()


async def test_a_job_completes_only_when_no_record_is_refused_any_more(world: World) -> None:
    await fill(world)
    cursed = await world.store("The cursed lamp.")
    model = OtherModel(refuses="cursed")
    world.embedder = model
    job = await Reindexing(world.stores()).advance("acme")
    for _ in range(3):
        assert (job.state, job.refused, job.error) == ("failed", 1, "records_refused")
        assert sum(v["model"] == "another-model" for v in world.vectors().values()) >= 31
        job = await Reindexing(world.stores()).advance("acme")
    assert world.sql_now("SELECT record_id, last_error FROM memory_outbox WHERE state = 'owed'") == [
        {"record_id": cursed, "last_error": "upstream_failed"}
    ]
    model.refuses = None
    assert (await completed(world)).job_id == job.job_id


async def test_a_job_whose_store_fails_reports_it_and_continues(world: World) -> None:
    await fill(world)
    world.faults.plan(Fault(Unavailable("down", code="vector_index_unavailable"), point="index.upsert"))
    with pytest.raises(Unavailable):
        await Reindexing(world.stores()).advance("acme")
    [row] = world.sql_now("SELECT * FROM index_jobs")
    assert (row["state"], row["error"], row["completed_at_ms"]) == ("failed", "vector_index_unavailable", None)
    assert (await completed(world)).job_id == row["job_id"]


async def test_two_concurrent_reindexings_are_one_job(world: World) -> None:
    await fill(world, lamps=120)
    world.embedder = OtherModel()
    jobs = await asyncio.gather(*[completed(world) for _ in range(3)])
    assert {(job.state, job.done, job.model) for job in jobs} == {("completed", 121, "another-model")}
    assert (await verify_page(world.stores(), "acme", None, repair=False)).drift == {}


async def test_fresh_writes_stay_fresh(world: World) -> None:
    await fill(world)
    fresh = await world.store("Just now: a chair.")
    await completed(world)
    assert world.sql_now("SELECT record_id, state FROM memory_outbox") == [{"record_id": fresh, "state": "sent"}]


async def test_a_reindexing_that_stops_anywhere_is_finished_by_the_next_call(world: World) -> None:
    await fill(world, lamps=8)
    base = world.snapshot()
    world.embedder = OtherModel()
    await completed(world)
    await world.rest()
    undisturbed = _index(world)
    for error in (Crash(), Unavailable("down")):
        points = 0
        while True:
            points += 2
            with living(base) as stopped:
                stopped.embedder = OtherModel()
                stopped.faults.plan(Fault(error, nth=points))
                with suppress(Crash, RetainError):
                    await completed(stopped)
                if stopped.faults.pending:
                    break
                await stopped.restart()
                assert [hit.record.content[:6] for hit in await stopped.recall("lamp 7", top_k=1)] == ["Lamp 7"]
                job = await completed(stopped)
                await stopped.rest()
                assert _index(stopped) == undisturbed, f"stopped at point {points}"
                assert job.done == job.total
        assert points > 15


@pytest.mark.parametrize(
    ("tamper", "kinds"),
    [
        pytest.param("DELETE FROM memory_search WHERE number = :n", {"search_missing"}, id="no search row"),
        pytest.param("UPDATE memory_search SET terms = 'x' WHERE number = :n", {"search_differs"}, id="other terms"),
        pytest.param(
            "UPDATE memory_search SET scope_id = 'agent.sales' WHERE number = :n", {"search_differs"}, id="other scope"
        ),
        pytest.param(
            "UPDATE memory_search SET embedding_model = 'old' WHERE number = :n", {"other_model"}, id="other model"
        ),
        pytest.param("UPDATE memory_search SET parts = 2 WHERE number = :n", {"part_count"}, id="part count"),
        pytest.param("DELETE FROM memory_text WHERE rowid = :n", {"text_missing"}, id="no full text"),
        pytest.param("UPDATE memory_text SET content = 'x' WHERE rowid = :n", {"text_differs"}, id="other full text"),
    ],
)
async def test_drift_in_d1_is_found_by_kind_and_repaired(world: World, tamper: str, kinds: set[str]) -> None:
    await fill(world)
    lamp = (await world.recall("lamp 6", top_k=1))[0].record.id
    before, index = await ranked(world), _index(world)
    number = world.sql_now("SELECT number FROM memory_records WHERE id = ?", lamp)[0]["number"]
    world.sql_now(tamper.replace(":n", str(number)))
    report = await verify_page(world.stores(), "acme", None, repair=False)
    assert {kind: ids for kind, ids in report.drift.items() if kind != "scope_counts"} == {
        kind: [lamp] for kind in kinds
    }
    assert (report.checked, report.cursor) == (31, None)
    repaired = await verify_page(world.stores(), "acme", None, repair=True)
    assert repaired.to_json()["repaired"] == {"owed": 1, "settled": True}
    assert (await verify_page(world.stores(), "acme", None, repair=False)).drift == {}
    assert (await ranked(world), _index(world)) == (before, index)


async def test_drift_in_the_vector_index_is_found_by_kind_and_repaired(world: World) -> None:
    await fill(world)
    ids = [row["id"] for row in world.sql_now("SELECT id FROM memory_records WHERE tenant_id = 'acme' ORDER BY number")]
    index = _index(world)
    vectors = {entry.id: entry for start in range(5) for entry in await world.index.get_by_ids([f"{ids[start]}#0"])}
    await world.index.delete_by_ids([f"{ids[0]}#0"])
    wrong = vectors[f"{ids[1]}#0"]
    await world.index.upsert(
        [type(wrong)(wrong.id, wrong.values, wrong.namespace, {**wrong.metadata, "scope_id": "agent.other"})]
    )
    elsewhere = vectors[f"{ids[2]}#0"]
    await world.index.upsert(
        [type(wrong)(elsewhere.id, elsewhere.values, "agent_memory_semantic:neighbour", elsewhere.metadata)]
    )
    await world.index.upsert([type(wrong)(f"{ids[4]}#1", wrong.values, wrong.namespace, wrong.metadata)])
    report = await verify_page(world.stores(), "acme", None, repair=True)
    assert report.drift == {
        "vector_missing": [ids[0]],
        "vector_metadata": [ids[1], ids[2]],
        "vector_surplus": [ids[4]],
    }
    assert (await verify_page(world.stores(), "acme", None, repair=False)).drift == {}
    assert _index(world) == index


async def test_word_statistics_that_drifted_are_found_and_repaired(world: World) -> None:
    await fill(world)
    before = await ranked(world)
    world.sql_now("UPDATE scopes SET words = words + 1000 WHERE tenant_id = 'acme' AND scope_id = 'tenant'")
    assert await ranked(world) != before
    report = await verify_page(world.stores(), "acme", None, repair=True)
    assert report.drift == {"scope_counts": ["tenant"]}
    assert await ranked(world) == before


async def test_rows_without_a_record_are_surplus_and_those_of_another_tenant_are_left_alone(world: World) -> None:
    await fill(world)
    index = _index(world)
    row = world.sql_now("SELECT * FROM memory_search WHERE tenant_id = 'acme' LIMIT 1")[0] | {"number": 9999}
    world.sql_now(f"INSERT INTO memory_search ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})", *row.values())
    [text] = world.sql_now("SELECT content FROM memory_text WHERE rowid = (SELECT MIN(rowid) FROM memory_text)")
    world.sql_now("INSERT INTO memory_text (rowid, content) VALUES (9998, ?)", text["content"])
    assert (await verify_page(world.stores(), "neighbour", None, repair=True)).drift == {}
    report = await verify_page(world.stores(), "acme", None, repair=True)
    assert report.drift == {"search_surplus": ["9999"], "text_surplus": ["9998"]}
    assert world.sql_now("SELECT SUM(records) AS n FROM scopes WHERE tenant_id = 'acme'") == [{"n": 31}]
    assert (await verify_page(world.stores(), "acme", None, repair=False)).drift == {}
    assert _index(world) == index


async def test_full_texts_of_many_houses_without_a_record_are_found_in_one_call(world: World) -> None:
    for number in range(40):
        scope = ("acme", f"house.h{number}", "tenant", "house")
        world.sql_now("INSERT INTO scopes (tenant_id, scope_id, parent_id, kind) VALUES (?, ?, ?, ?)", *scope)
        text = indexed_text("acme", f"house.h{number}", ["cran", "berth"])
        world.sql_now("INSERT INTO memory_text (rowid, content) VALUES (?, ?)", 9000 + number, text)
    report = await verify_page(world.stores(), "acme", None, repair=True)
    assert report.drift == {"text_surplus": [str(9000 + number) for number in range(40)]}
    world.faults.trace.clear()
    assert (await verify_page(world.stores(), "acme", None, repair=False)).drift == {}
    assert len(world.faults.trace) < 40


@pytest.mark.parametrize(
    ("tamper", "kind"),
    [
        ("UPDATE memory_records SET importance = 1 WHERE id = ?", "record_differs"),
        ("UPDATE memory_records SET metadata = '{\"a\": 1}' WHERE id = ?", "record_differs"),
        ("UPDATE memory_records SET content_hash = 'x' WHERE id = ?", "record_differs"),
        ("UPDATE memory_events SET data = json_set(data, '$.confidence', 0.1) WHERE record_id = ?", "record_differs"),
        ("DELETE FROM memory_events WHERE record_id = ?", "record_differs"),
        ("DELETE FROM memory_records WHERE id = ?", "record_missing"),
    ],
)
async def test_a_record_that_differs_from_its_events_is_reported_and_left_to_a_person(
    world: World, tamper: str, kind: str
) -> None:
    await fill(world)
    lamp = (await world.recall("lamp 6", top_k=1))[0].record.id
    world.sql_now(tamper, lamp)
    for _ in range(2):
        report = await verify_page(world.stores(), "acme", None, repair=True)
        assert report.drift[kind] == [lamp]


async def test_an_index_debt_is_not_drift(world: World) -> None:
    await fill(world)
    fresh = await world.store("Just now: a chair.")
    await world.index.delete_by_ids([f"{fresh}#0"])
    report = await verify_page(world.stores(), "acme", None, repair=False)
    assert (report.drift, report.pending) == ({}, 1)


async def test_vectors_of_a_deleted_record_with_an_index_debt_are_found_and_repaired(world: World) -> None:
    await fill(world)
    chair = await world.store("A chair.")
    world.faults.down = {"index"}
    failing = world.stores()
    await SemanticMemory(Scope("acme"), failing.sql, failing.index, world.embedder, world.clock).delete(chair, PERSON)
    world.faults.down = set()
    world.clock.advance(1000)
    assert (await verify_page(world.stores(), "acme", None, repair=True)).drift == {}  # it may be a write under way
    world.clock.advance(2 * MINUTE_MS)
    report = await verify_page(world.stores(), "acme", None, repair=True)
    assert report.drift == {"vector_surplus": [chair]}
    assert f"{chair}#0" not in world.vectors()


async def test_verification_proceeds_page_by_page(world: World) -> None:
    await fill(world, lamps=250)
    checked, cursor, calls = 0, None, 0
    world.sql_now("DELETE FROM memory_text WHERE rowid > 20")
    found: list[str] = []
    while True:
        report = await verify_page(world.stores(), "acme", cursor, repair=False)
        checked, cursor, calls = checked + report.checked, report.cursor, calls + 1
        found += report.drift.get("text_missing", [])
        shown = report.to_json()["drift"].get("text_missing", {"count": 0, "ids": []})
        assert len(shown["ids"]) == min(shown["count"], 20)
        if cursor is None:
            break
    assert (checked, calls, len(found)) == (251, 3, 231)
