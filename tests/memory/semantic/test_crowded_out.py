"""What must be found although many nearer vectors are closed, belong to somebody else, or are not shown yet."""

from __future__ import annotations

from typing import Any

import pytest

from retain.errors import Unavailable
from retain.limits.vectorize import LAG_MS
from retain.memory.recall.recall import RecallQuery
from retain.memory.recall.sources import matching, nearest
from retain.memory.records.record import NewRecord
from retain.ports import VectorMatch
from tests.memory.semantic.indexes import SilentIndex
from tests.memory.semantic.substrate import AGENT_SOURCE, Substrate

HOUR_MS = 3_600_000


async def crowd(substrate: Substrate, contents: list[str], **fields: Any) -> None:
    """Store contents, each a second after the one before, and let the index show them."""
    for content in contents:
        substrate.clock.advance(1000)
        await substrate.store(content, **fields)
    substrate.clock.advance(HOUR_MS)
    await substrate.reconcile()


@pytest.mark.parametrize("versions", [90, 150, 300])
async def test_closed_versions_of_a_fact_do_not_crowd_out_the_current_one(substrate: Substrate, versions: int) -> None:
    fact = {"subject": "pat", "predicate": "treatment"}
    await crowd(substrate, [f"The doctor prescribed antibiotics, course {n}" for n in range(versions)], **fact)
    await crowd(substrate, ["The doctor recommended tablets of aspirin"], **fact)
    found = await substrate.found("physician medicine medication")
    assert found == ["The doctor recommended tablets of aspirin"]


async def test_a_filter_finds_the_oldest_of_many_although_those_of_others_are_nearer(substrate: Substrate) -> None:
    await crowd(substrate, ["Paul keeps his automobile in a garage at home"], metadata={"patient": "b"})
    await crowd(substrate, [f"Invoice {n} was sent to the insurer" for n in range(150)], metadata={"patient": "b"})
    await crowd(substrate, [f"The car is parked on level {n}" for n in range(300)], metadata={"patient": "a"})
    found = await substrate.found("where is the car parked", filter={"patient": "b"})
    assert found[0] == "Paul keeps his automobile in a garage at home"


async def test_an_acknowledged_write_is_found_by_a_paraphrase_before_the_index_shows_it(
    substrate: Substrate, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def nothing(*_: object, **__: object) -> list[object]:
        return []

    await substrate.store("The doctor recommended tablets of aspirin")
    for start in range(0, 700, 50):
        substrate.clock.advance(10)
        await substrate.memory().store_all(
            [NewRecord(f"Parcel {number} left the depot.") for number in range(start, start + 50)], AGENT_SOURCE
        )
    monkeypatch.setattr(substrate.vectors, "query", nothing)
    monkeypatch.setattr(substrate.vectors, "lag_ms", LAG_MS)
    assert (await substrate.found("physician medicine medication", top_k=1)) == [
        "The doctor recommended tablets of aspirin"
    ]


@pytest.mark.parametrize("late", [False, True], ids=["shows writes at once", "shows writes late"])
async def test_what_was_sent_is_compared_here_only_while_the_index_may_not_show_it(
    substrate: Substrate, *, late: bool
) -> None:
    substrate.index = silent = SilentIndex(substrate.vectors)
    silent.lag_ms = LAG_MS if late else 0
    await substrate.store("The doctor recommended tablets of aspirin")
    substrate.clock.advance(1)
    found = await substrate.memory().search(RecallQuery("physician medicine medication"))
    assert [hit.found_by for hit in found] == ([("recent",)] if late else [])


async def test_what_could_not_be_sent_is_compared_here_whatever_the_index_promises(substrate: Substrate) -> None:
    substrate.index = silent = SilentIndex(substrate.vectors)
    silent.lag_ms = 0
    await substrate.store("The doctor recommended tablets of aspirin")
    await substrate.d1.run("UPDATE memory_outbox SET state = 'owed'")
    substrate.clock.advance(1)
    found = await substrate.memory().search(RecallQuery("physician medicine medication"))
    assert [hit.found_by for hit in found] == [("recent",)]


def counted_queries(substrate: Substrate, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that has one element for each query of the index from now on."""
    asked: list[str] = []
    answer = substrate.vectors.query

    async def counted(*given: Any, **more: Any) -> list[VectorMatch]:
        asked.append("query")
        return await answer(*given, **more)

    monkeypatch.setattr(substrate.vectors, "query", counted)
    return asked


GARAGE = "Paul keeps his automobile in a garage at home"


async def far_away(substrate: Substrate, monkeypatch: pytest.MonkeyPatch, nearer: int) -> None:
    """Store one record, more of the same patient than are compared by signatures, and nearer ones of another."""
    monkeypatch.setattr(matching, "MATCHING_LIMIT", 20)
    monkeypatch.setattr(matching, "HELD_LIMIT", 20)
    await crowd(substrate, [GARAGE], metadata={"patient": "b"})
    await crowd(substrate, [f"Invoice {n} was sent to the insurer" for n in range(40)], metadata={"patient": "b"})
    await crowd(substrate, [f"The car is parked on level {n}" for n in range(nearer)], metadata={"patient": "a"})


@pytest.mark.parametrize("past", [False, True], ids=["now", "as of then"])
async def test_a_wide_filter_looks_beyond_the_nearest_hundred(
    substrate: Substrate, monkeypatch: pytest.MonkeyPatch, past: bool
) -> None:
    await far_away(substrate, monkeypatch, 250)
    wanted = RecallQuery(
        "where is the car parked", filter={"patient": "b"}, as_of_ms=substrate.clock() - 1 if past else None
    )
    result = await substrate.memory().recall(wanted)
    assert (result.hits[0].record.content, result.degraded) == (GARAGE, ())


async def test_a_recall_that_ends_before_it_found_enough_says_so(
    substrate: Substrate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nearest, "MAX_QUERIES", 2)
    await far_away(substrate, monkeypatch, 250)
    result = await substrate.memory().recall(RecallQuery("where is the car parked", filter={"patient": "b"}))
    assert result.degraded == ("width",)
    assert len(result.hits) == 5, "and answers with what it has"


async def test_an_index_that_fails_while_a_recall_is_widened_ends_it(
    substrate: Substrate, monkeypatch: pytest.MonkeyPatch
) -> None:
    await far_away(substrate, monkeypatch, 120)
    asked: list[int] = []
    answer = substrate.vectors.query

    async def once(*given: Any, **more: Any) -> list[VectorMatch]:
        asked.append(1)
        if len(asked) > 1:
            raise Unavailable("away", code="vector_index_unavailable")
        return await answer(*given, **more)

    monkeypatch.setattr(substrate.vectors, "query", once)
    result = await substrate.memory().recall(RecallQuery("where is the car parked", filter={"patient": "b"}))
    assert (result.degraded, len(result.hits)) == (("width",), 5)


async def test_a_recall_that_sees_enough_asks_the_index_once(
    substrate: Substrate, monkeypatch: pytest.MonkeyPatch
) -> None:
    await far_away(substrate, monkeypatch, 130)
    asked = counted_queries(substrate, monkeypatch)
    await substrate.found("where is the car parked")
    await substrate.found("where is the car parked", filter={"patient": "a"})
    assert len(asked) == 2


async def test_a_filter_that_few_records_meet_asks_the_index_once(
    substrate: Substrate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of them are compared by their signatures, so a wider search could find nothing more."""
    await far_away(substrate, monkeypatch, 130)
    monkeypatch.setattr(matching, "MATCHING_LIMIT", 50)
    asked = counted_queries(substrate, monkeypatch)
    assert (await substrate.found("where is the car parked", filter={"patient": "b"}))[0] == GARAGE
    assert len(asked) == 1


async def test_closed_versions_that_the_index_does_not_show_yet_crowd_out_nothing(substrate: Substrate) -> None:
    substrate.index = SilentIndex(substrate.vectors)
    versions = [f"The doctor prescribed antibiotics, course {n}" for n in range(100)]
    for content in [*versions, "The doctor recommended tablets of aspirin"]:
        substrate.clock.advance(10)
        await substrate.store(content, subject="pat", predicate="treatment")
    found = await substrate.found("physician medicine medication")
    assert found == ["The doctor recommended tablets of aspirin"]


async def test_what_was_stored_at_once_crowds_out_nothing_stored_before(
    substrate: Substrate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matching, "MATCHING_LIMIT", 20)
    monkeypatch.setattr(matching, "HELD_LIMIT", 20)
    await substrate.store(GARAGE, metadata={"patient": "b"})
    bills = [NewRecord(f"Invoice {n} was sent to the insurer", metadata={"patient": "b"}) for n in range(40)]
    cars = [NewRecord(f"The car is parked on level {n}", metadata={"patient": "a"}) for n in range(150)]
    for news in (bills, cars):
        substrate.clock.advance(4000)
        await substrate.memory().store_all(news, AGENT_SOURCE)
    substrate.clock.advance(HOUR_MS)
    await substrate.reconcile()
    result = await substrate.memory().recall(RecallQuery("where is the car parked", filter={"patient": "b"}))
    assert (result.hits[0].record.content, result.degraded) == (GARAGE, ())
