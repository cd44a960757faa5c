"""A query of a running conversation is read together with the turns before it."""

from __future__ import annotations

import pytest

from retain.errors import LimitExceeded
from retain.limits.vectorize import LAG_MS
from retain.memory.recall.query import (
    CONTEXT_CHARACTERS,
    MAX_CONTEXT_BYTES,
    MAX_CONTEXT_TURNS,
    analyse,
    latest,
)
from retain.memory.recall.relevance import MIN_SCORE
from tests.memory.semantic.counting import CountingSql
from tests.memory.semantic.substrate import Substrate
from tests.memory.semantic.test_degraded import AwayIndex

NOW = 1_773_847_800_000
KAYAK = "A day with the blue kayak costs forty francs."
PRICES = [
    KAYAK,
    "A night in the tent costs thirty francs.",
    "The bicycle costs twenty francs.",
    "The sauna costs fifteen francs.",
    "A place in the harbour costs sixty francs.",
    "The cable car costs nine francs.",
]
TALK = ("Can I hire a boat at the lake?", "Yes, we have a blue kayak for two.")


async def stored(substrate: Substrate) -> None:
    for content in PRICES:
        await substrate.store(content)


async def test_what_a_question_refers_to_is_in_the_turns_before_it(substrate: Substrate) -> None:
    await stored(substrate)
    for context in (TALK, TALK[1:], (" ", *TALK, "")):
        assert (await substrate.found("How much does it cost?", context=context))[0] == KAYAK
    sauna = ("Is there a sauna in the house?",)
    assert (await substrate.found("How much does it cost?", context=sauna))[0] == PRICES[3]


async def test_a_query_of_stop_words_is_about_what_was_said_before(substrate: Substrate) -> None:
    await stored(substrate)
    assert await substrate.found("And what about it?", min_score=MIN_SCORE) == []
    assert (await substrate.found("And what about it?", context=TALK))[0] == KAYAK
    assert await substrate.found("And what about it?", min_score=MIN_SCORE, context=TALK[1:]) == [KAYAK]


async def test_words_of_the_context_rank_and_do_not_search(substrate: Substrate) -> None:
    await stored(substrate)
    await substrate.reconcile()
    substrate.clock.advance(LAG_MS + 1)
    substrate.index = AwayIndex(substrate.vectors._connection, 256)
    assert await substrate.found("sauna", context=TALK) == [PRICES[3]]
    assert (await substrate.found("francs", context=TALK))[0] == KAYAK


async def test_a_context_takes_no_further_trip(substrate: Substrate) -> None:
    await stored(substrate)
    trips: list[int] = []
    for context in ((), TALK):
        counting = CountingSql(substrate.d1)
        substrate.sql = counting
        await substrate.hits("How much does it cost?", context=context)
        trips.append(counting.trips)
    assert trips[0] == trips[1] > 0


async def test_what_the_query_says_itself_counts_more(substrate: Substrate) -> None:
    await stored(substrate)
    assert (await substrate.found("What does a night in the tent cost?", context=TALK))[0] == PRICES[1]


def test_the_end_of_the_last_turns_is_read() -> None:
    assert latest(()) == latest((" ", "\n")) == ""
    assert latest(("one", " two ")) == "one\ntwo"
    long = latest(["first " * 200, "second " * 100])
    assert len(long) <= CONTEXT_CHARACTERS
    assert long.split() == ["second"] * len(long.split())
    assert latest(["x" * 1_000]) == "x" * CONTEXT_CHARACTERS
    query = analyse("the price of the kayak", NOW, TALK)
    assert query.stems == ("price", "kayak")
    assert query.context_stems == ("hire", "boat", "lake", "ye", "blue", "two")


@pytest.mark.parametrize(
    "turns", [["x"] * (MAX_CONTEXT_TURNS + 1), ["x" * MAX_CONTEXT_BYTES, "x"], ["ж" * (MAX_CONTEXT_BYTES // 2 + 1)]]
)
async def test_a_context_has_bounds(substrate: Substrate, turns: list[str]) -> None:
    with pytest.raises(LimitExceeded) as raised:
        await substrate.found("tea", context=turns)
    assert raised.value.code == "context_too_large"


async def test_the_largest_context_is_read(substrate: Substrate) -> None:
    await stored(substrate)
    for turns in (["kayak"] * MAX_CONTEXT_TURNS, ["x" * (MAX_CONTEXT_BYTES - 6), " kayak"]):
        assert (await substrate.found("francs", context=turns))[0] == KAYAK
