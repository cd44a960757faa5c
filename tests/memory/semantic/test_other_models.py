"""Embedding models whose vectors all point one way: unrelated texts have a cosine near 1, and recall is the same."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import closing

import pytest

from retain.host.vectors import SqliteVectorIndex
from retain.memory.recall.recall import RecallQuery
from tests.memory.semantic.substrate import Substrate
from tests.support.instances import shipped_embedder

FACTS = [
    "The doctor recommended tablets of aspirin.",
    "The ferry to the island leaves at noon.",
    "Her knee hurts after a long run.",
    "The printer on the third floor is out of toner.",
    "Maria collects old maps of harbours.",
    "The garden needs rain before June.",
    "Two windows of the shop were broken.",
    "The choir sings in the chapel on Sundays.",
    "His brother repairs violins.",
    "The invoice was paid late.",
    "They painted the kitchen yellow.",
    "The train was full of students.",
]


class OneWay:
    """The shipped table's vectors, which share so much of their direction that every cosine is at least `common`."""

    def __init__(self, common: float) -> None:
        self.model = f"one-way-{common}"
        self._table = shipped_embedder()
        self._common = common
        self.dimensions = self._table.dimensions + 1

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        own = math.sqrt(1 - self._common)
        return [
            [math.sqrt(self._common), *[own * value for value in vector]] for vector in await self._table.embed(texts)
        ]


@pytest.fixture(params=[0.5, 0.9])
def substrate(request: pytest.FixtureRequest) -> Iterator[Substrate]:
    with closing(Substrate()) as made:
        made.embedder = embedder = OneWay(request.param)
        made.index = SqliteVectorIndex.open(embedder.dimensions)
        yield made


async def test_texts_that_a_model_puts_near_each_other_do_not_count_as_repetitions(substrate: Substrate) -> None:
    for fact in FACTS:
        await substrate.store(fact)
    found = await substrate.memory().search(RecallQuery("physician medicine medication", top_k=len(FACTS)))
    assert found[0].record.content == FACTS[0]
    assert not [hit for hit in found if "repeated" in hit.components]


async def test_meaning_counts_as_much_as_with_the_table(substrate: Substrate) -> None:
    with closing(Substrate()) as plain:
        for fact in FACTS:
            await substrate.store(fact)
            await plain.store(fact)
        query = RecallQuery("physician medicine medication", top_k=1)
        [own], [usual] = await substrate.memory().search(query), await plain.memory().search(query)
    assert own.record.content == usual.record.content
    assert own.components["vector"] == pytest.approx(usual.components["vector"], abs=0.6)
    assert own.relevance == pytest.approx(usual.relevance, abs=0.02)
