"""Earlier texts of edited records move, are rebuilt, verified and erased with their records."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from retain.lifecycle.export import export_page
from retain.lifecycle.importing import import_lines
from retain.lifecycle.reindexing import Reindexing
from retain.lifecycle.verification import verify_page
from retain.memory.records.record import NewRecord
from tests.lifecycle import erasable, of_users
from tests.lifecycle.other_models import OtherModel
from tests.lifecycle.world import AGENT, PERSON, World, living

BEFORE = "Ann keeps a lupuscanary in the kitchen."
AFTER = "The parcel was sent."
QUESTION = "What does Ann keep in the kitchen?"
USER = "ann@shop.example"


@pytest.fixture
def world() -> Iterator[World]:
    with living() as world:
        yield world


async def edited(world: World, user_id: str | None = None) -> tuple[str, int]:
    """Store a record and edit it twice; return its id and a time before the edits."""
    memory = world.memory("acme", user_id=user_id)
    record_id = (await memory.store(NewRecord(BEFORE, subject="lupuscanary"), AGENT)).id
    await world.store("Bob likes tea.", subject="bob")
    world.clock.advance(1000)
    at_ms = world.clock()
    for text in ("Ann keeps nothing.", AFTER):
        world.clock.advance(1000)
        await memory.edit(record_id, {"content": text, "subject": None}, PERSON)
    await world.rest()
    return record_id, at_ms


def earlier(world: World) -> list[str]:
    rows = world.sql_now(
        "SELECT t.content FROM memory_earlier e JOIN memory_earlier_text t ON t.rowid = e.number ORDER BY e.event_id"
    )
    return [row["content"] for row in rows]


async def found(world: World, at_ms: int, tenant: str = "acme") -> list[str]:
    return [hit.record.content for hit in await world.recall(QUESTION, tenant=tenant, as_of_ms=at_ms)]


async def test_they_are_imported_with_their_record(world: World) -> None:
    _, at_ms = await edited(world)
    first = await found(world, at_ms)
    assert first[0] == BEFORE
    text, cursor = "", None
    for _ in range(2):
        page = await export_page(world.stores(), "acme", cursor)
        text, cursor = text + page.text, page.cursor
    for _ in range(2):
        await import_lines(world.stores(), "copy", text)
        assert await found(world, at_ms, "copy") == first
        assert len(earlier(world)) == 4
    await world.rest()
    assert await found(world, at_ms, "copy") == first
    assert await world.drift("copy") == set()


async def test_an_edit_that_is_imported_later_leaves_the_text_before_it_to_be_found(world: World) -> None:
    record_id = await world.store(BEFORE)
    await import_lines(world.stores(), "copy", (await export_page(world.stores(), "acme", None)).text)
    await import_lines(world.stores(), "copy", (await export_page(world.stores(), "acme", "records.0")).text)
    at_ms = world.clock()
    world.clock.advance(1000)
    await world.memory().edit(record_id, {"content": AFTER}, PERSON)
    await import_lines(world.stores(), "copy", (await export_page(world.stores(), "acme", "records.0")).text)
    assert await found(world, at_ms, "copy") == [BEFORE]
    assert len(earlier(world)) == 2
    await world.rest()
    assert await world.drift("copy") == set()


async def test_reindexing_rebuilds_them_for_another_model(world: World) -> None:
    _, at_ms = await edited(world)
    world.embedder = OtherModel()
    while (await Reindexing(world.stores()).advance("acme")).state != "completed":
        pass
    rows = world.sql_now("SELECT DISTINCT embedding_model FROM memory_earlier")
    assert [row["embedding_model"] for row in rows] == ["another-model"]
    assert (await found(world, at_ms))[0] == BEFORE
    assert await world.drift() == set()


@pytest.mark.parametrize(
    "tamper",
    ["DELETE FROM memory_earlier", "UPDATE memory_earlier SET until_ms = until_ms + 1, embedding_model = 'old'"],
)
async def test_those_that_are_lost_or_wrong_are_drift_and_are_repaired(world: World, tamper: str) -> None:
    record_id, at_ms = await edited(world)
    words = earlier(world)
    world.sql_now(tamper)
    report = await verify_page(world.stores(), "acme", None, repair=True)
    assert report.drift == {"earlier_text_missing": [record_id]}
    assert earlier(world) == words
    assert (await found(world, at_ms))[0] == BEFORE
    await world.rest()
    assert await world.drift() == set()


async def test_they_go_with_the_record_when_it_is_deleted(world: World) -> None:
    record_id, at_ms = await edited(world)
    await world.memory().delete(record_id, PERSON)
    assert earlier(world) == []
    assert world.sql_now("SELECT * FROM memory_earlier_text") == []
    assert BEFORE not in await found(world, at_ms)


@pytest.mark.parametrize("erasure", ["subject", "mention", "user", "tenant"])
async def test_an_erasure_leaves_no_word_of_them_on_disk(world: World, erasure: str) -> None:
    """With `subject` and `mention` the record stays, since it no longer names the subject: only its past is erased."""
    await edited(world, USER if erasure == "user" else None)
    assert words_on_disk(world) > 0
    match erasure:
        case "user":
            await of_users.erased(world, USER)
        case "tenant":
            await erasable.erased(world, tenant="acme")
        case _:
            await erasable.erased(world, subject="lupuscanary", match=erasure)
    assert words_on_disk(world) == 0
    assert earlier(world) == []
    assert AFTER in [row["content"] for row in world.sql_now("SELECT content FROM memory_records")] or erasure in (
        "user",
        "tenant",
    )


def words_on_disk(world: World) -> int:
    """Return how many blocks of the full-text indexes have a part of the word, which FTS5 cuts where words begin alike."""
    blocks = [
        bytes(row["block"])
        for name in ("memory_text_data", "memory_earlier_text_data")
        for row in world.sql_now(f"SELECT block FROM {name}")
    ]
    return sum(b"uscanary" in block or b"puscanari" in block for block in blocks)
