"""The floor of recall: what has nothing to do with a query is left out, what answers it stays, however it was found."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import closing
from operator import mul

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retain.errors import InvalidInput
from retain.memory.recall.query import analyse
from retain.memory.recall.relevance import MIN_SCORE, UNRELATED_TEXTS, mean_cosine, rarity
from retain.memory.recall.sources.statistics import inverse_frequency
from retain.memory.semantic import RecallQuery
from retain.models.embedding import Embedder
from tests.memory.semantic.substrate import Substrate
from tests.support.instances import shipped_embedder

FACTS = (
    "Bob is allergic to peanuts.",
    "Our lawyer is on holiday until the end of August.",
    "The office in Lyon moved to 12 rue Garibaldi.",
    "Sara Lee (sara@example.com) was refunded 49 EUR for order SO-4411.",
    "田中さんはピーナッツアレルギーがあります。",
)
UNRELATED = (
    "What is 2+2?",
    "Hi!",
    "Tell me a joke.",
    "What is the capital of Australia?",
    "Who are you?",
    "Never mind.",
)
ANSWERED = (
    ("Which food is dangerous for Bob?", 0),
    ("lawyer", 1),
    ("Where do we have an office in France, in Lyon?", 2),
    ("Decide about SO-4411", 3),
    ("田中さんのアレルギーは何ですか。", 4),
)


async def remembering(substrate: Substrate, facts: Sequence[str] = FACTS) -> None:
    for fact in facts:
        await substrate.store(fact)


@pytest.mark.parametrize("question", UNRELATED)
async def test_a_question_about_nothing_remembered_brings_nothing(question: str) -> None:
    with closing(Substrate()) as substrate:
        await remembering(substrate)
        assert len(await substrate.found(question)) >= 4, "without a floor"
        assert await substrate.found(question, min_score=MIN_SCORE) == []


@pytest.mark.parametrize(("question", "place"), ANSWERED, ids=["meaning", "one word", "both", "an id", "no vector"])
async def test_what_answers_a_question_stays_however_it_was_found(question: str, place: int) -> None:
    with closing(Substrate()) as substrate:
        await remembering(substrate)
        found = await substrate.found(question, min_score=MIN_SCORE)
        assert found[0] == FACTS[place]


async def test_a_record_that_only_a_word_finds_passes_although_its_vector_is_far() -> None:
    with closing(Substrate()) as substrate:
        await remembering(substrate)
        substrate.embedder = Turned(substrate.embedder)
        [hit] = await substrate.hits("lawyer", min_score=MIN_SCORE)
        assert hit.record.content == FACTS[1]
        assert hit.components["vector"] < 0


async def test_a_quotation_makes_nothing_relevant() -> None:
    with closing(Substrate()) as substrate:
        await remembering(substrate)
        question = 'Translate "is on" into Latin.'
        [quoted] = [hit for hit in await substrate.hits(question) if hit.components["exact"]]
        assert quoted.record.content == FACTS[1]
        assert await substrate.found(question, min_score=MIN_SCORE) == []


async def test_one_of_many_ids_of_a_long_message_is_enough() -> None:
    ids = ", ".join(f"SO-{number}" for number in range(4411, 4419))
    with closing(Substrate()) as substrate:
        await remembering(substrate)
        found = await substrate.found(f"Please look at these: {ids}.", min_score=MIN_SCORE)
        assert found == [FACTS[3]]


def test_common_words_tell_little_and_stop_words_nothing() -> None:
    def weight(text: str, having: int) -> float:
        query = analyse(text, 0)
        return rarity(query, dict.fromkeys(query.stems, inverse_frequency(1000, having)), 1000)

    assert weight("permit", 1) == weight("a permit for the fair", 1) == 1
    assert weight("permit", 0) > 1, "a word that no record has takes nothing from those that are found"
    assert 0 < weight("thanks", 300) < 0.05
    assert weight("permit", 2) < 1
    for nothing in ("Who are you?", "Hi!", "?!", "What is his?"):
        assert weight(nothing, 1) == 0


@pytest.mark.parametrize("turns", [["👍"], ["?!", "…"], ["Hi!"]], ids=["a sign", "signs", "a stop word"])
async def test_a_query_without_a_word_after_turns_that_tell_nothing_is_answered(turns: list[str]) -> None:
    with closing(Substrate()) as substrate:
        await remembering(substrate)
        assert rarity(analyse("👍", 0, turns), {}, 1000) == 0
        assert all(hit.components["words"] == 0 for hit in await substrate.hits("👍", context=turns))


async def test_the_floor_leaves_out_and_changes_neither_order_nor_scores() -> None:
    with closing(Substrate()) as substrate:
        await remembering(substrate)
        question = "Has Bob or our lawyer been refunded?"
        everything = await substrate.hits(question)
        for floor in (0.0, 0.1, 0.2, 0.3, 0.5, 1.0):
            kept = await substrate.hits(question, min_score=floor)
            assert kept == [hit for hit in everything if hit.relevance >= floor]


async def test_the_next_record_follows_instead_of_one_that_the_floor_leaves_out() -> None:
    with closing(Substrate()) as substrate:
        await substrate.store("It was said that all of it is very important.", importance=1.0)
        await substrate.store("Bob cannot eat peanuts.", importance=0.0, confidence=0.1)
        question = "Is there anything important about peanuts?"
        assert len(await substrate.found(question, top_k=1, min_score=0.0)) == 1
        hits = await substrate.hits(question, top_k=2)
        floor = max(hit.relevance for hit in hits)
        [only] = await substrate.hits(question, top_k=1, min_score=floor)
        assert only.relevance == floor


class Turned:
    """Gives queries the opposite of their vectors, so that what a query means is far from all that resembles it."""

    def __init__(self, inner: Embedder) -> None:
        self._inner = inner
        self.dimensions = inner.dimensions
        self.model = inner.model

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        return [[-value for value in vector] for vector in await self._inner.embed(texts)]


class Crowded:
    """A model whose texts all have much in common: every vector has the same large part, so unrelated texts are near."""

    model = "crowded"

    def __init__(self, inner: Embedder, share: float) -> None:
        self._inner = inner
        self._share = share
        self.dimensions = inner.dimensions

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        common, own = math.sqrt(self._share), math.sqrt(1 - self._share)
        crowded = []
        for vector in await self._inner.embed(texts):
            mixed = [own * value for value in vector]
            mixed[0] += common
            norm = math.hypot(*mixed)
            crowded.append([value / norm for value in mixed])
        return crowded


async def test_a_model_that_finds_all_texts_alike_admits_as_little_as_another() -> None:
    with closing(Substrate()) as substrate:
        substrate.embedder = Crowded(substrate.embedder, 0.5)
        await remembering(substrate, FACTS[:4])
        for question in UNRELATED:
            asked, *known = await substrate.embedder.embed([question, *FACTS[:4]])
            cosines = [sum(map(mul, asked, vector)) for vector in known]
            assert max(cosines) > MIN_SCORE, "the cosines alone would pass"
            assert await substrate.found(question, min_score=MIN_SCORE) == []
        for question, place in ANSWERED[:4]:
            assert (await substrate.found(question, min_score=MIN_SCORE))[0] == FACTS[place]


async def test_the_shipped_model_gives_unrelated_texts_a_cosine_near_zero() -> None:
    vectors = await shipped_embedder().embed(list(UNRELATED_TEXTS))
    assert 0 <= mean_cosine(vectors) < 0.05


def test_the_mean_cosine_of_no_pair_is_zero() -> None:
    assert mean_cosine([]) == 0
    assert mean_cosine([[1.0, 0.0], [0.0, 0.0]]) == 0
    assert mean_cosine([[1.0, 0.0], [1.0, 0.0]]) == 0.95
    assert mean_cosine([[1.0, 0.0], [0.6, 0.8]]) == pytest.approx(0.6)


@given(st.text(min_size=1, max_size=80).filter(str.strip))
async def test_relevance_is_between_0_and_1_for_any_query(question: str) -> None:
    with closing(Substrate()) as substrate:
        await substrate.store(FACTS[0])
        assert all(0 <= hit.relevance <= 1 for hit in await substrate.hits(question))


@pytest.mark.parametrize("floor", [-0.01, 1.01, math.nan, math.inf])
def test_a_floor_outside_0_and_1_is_refused(floor: float) -> None:
    with pytest.raises(InvalidInput) as refused:
        RecallQuery("tea", min_score=floor)
    assert refused.value.code == "invalid_min_score"
