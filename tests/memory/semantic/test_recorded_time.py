"""Recorded time is the time of the transaction: whenever it is asked, one state of the tenant's memory was known."""

from __future__ import annotations

from collections.abc import Sequence

from retain.host.clock import ManualClock
from retain.memory.records.record import NewRecord
from retain.models.embedding import Embedder
from tests.memory.semantic.agreement import check_agreement
from tests.memory.semantic.substrate import AGENT, AGENT_SOURCE, PERSON, Substrate
from tests.support.instances import shipped_embedder

PLANS = ("Basic", "Pro", "Team")
QUERY = "Which plan does Ann have?"


class SlowEmbedder:
    """Embeds as the shipped one does, and takes a while."""

    def __init__(self, clock: ManualClock, duration_ms: int) -> None:
        self._inner: Embedder = shipped_embedder()
        self._clock = clock
        self._duration_ms = duration_ms

    @property
    def model(self) -> str:
        return self._inner.model

    @property
    def dimensions(self) -> int:
        return self._inner.dimensions

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        self._clock.advance(self._duration_ms)
        return await self._inner.embed(texts)


async def test_while_an_update_is_embedded_only_the_older_fact_is_known(substrate: Substrate) -> None:
    quick = substrate.embedder
    began: list[int] = []
    for plan in PLANS:
        substrate.embedder = SlowEmbedder(substrate.clock, 1500)
        began.append(substrate.clock())
        await substrate.store(f"Ann has the plan {plan}.", subject="ann", predicate="plan")
        substrate.embedder = quick
        substrate.clock.advance(500)
    for at_ms in range(began[0], substrate.clock(), 100):
        known = await substrate.found(QUERY, AGENT, as_of_ms=at_ms)
        expected = [plan for plan, start in zip(PLANS, began, strict=True) if start + 1500 <= at_ms][-1:]
        assert known == [f"Ann has the plan {plan}." for plan in expected], (
            f"{at_ms - began[0]} ms after the first call"
        )
    await check_agreement(substrate, settled=False)


async def test_all_events_of_one_mutation_have_its_time(substrate: Substrate) -> None:
    await substrate.store("Ann has the plan Basic.", subject="ann", predicate="plan")
    substrate.embedder, began = SlowEmbedder(substrate.clock, 1500), substrate.clock()
    news = [NewRecord(f"Ann has the plan {plan}.", subject="ann", predicate="plan") for plan in PLANS]
    await substrate.memory().store_all(news, AGENT_SOURCE)
    events = await substrate.rows("SELECT DISTINCT at_ms FROM memory_events ORDER BY at_ms")
    entries = await substrate.rows("SELECT DISTINCT at_ms FROM world_history ORDER BY at_ms")
    assert len(events) == 2
    assert events == entries
    record = (await substrate.listed())[-1]
    assert (record.recorded_at_ms, record.valid_from_ms) == (began + 1500, began)


async def test_a_slower_clock_does_not_put_a_mutation_before_the_one_that_it_follows(substrate: Substrate) -> None:
    """Two isolates: the second one's clock is a second late, and it closes what the first one stored."""
    await substrate.store("Ann has the plan Basic.", subject="ann", predicate="plan")
    substrate.clock.advance(10_000)
    first = substrate.clock()
    await substrate.store("Bob has a dog.")
    substrate.clock.advance(-1000)
    record_id = await substrate.store("Ann has the plan Pro.", subject="ann", predicate="plan")
    assert [hit.record.id for hit in await substrate.hits(QUERY, top_k=1)] == [record_id]
    substrate.clock.advance(10_000)
    assert (await substrate.record(record_id)).recorded_at_ms == first
    for at_ms in range(first - 2000, first + 2000, 250):
        known = [text for text in await substrate.found(QUERY, AGENT, as_of_ms=at_ms) if "plan" in text]
        assert known == ["Ann has the plan Pro." if at_ms >= first else "Ann has the plan Basic."]


async def test_an_edit_is_recorded_when_it_is_committed(substrate: Substrate) -> None:
    record_id = await substrate.store("Ann has the plan Basic.")
    substrate.clock.advance(1000)
    substrate.embedder = SlowEmbedder(substrate.clock, 1500)
    began = substrate.clock()
    await substrate.memory().edit(record_id, {"content": "Ann has the plan Pro."}, PERSON)
    assert (await substrate.record(record_id)).updated_at_ms == began + 1500
