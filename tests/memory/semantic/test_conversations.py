"""Turns of a conversation are found through their neighbours, and through no other record."""

from __future__ import annotations

import pytest

from retain.memory.records.record import NewRecord, Utterance
from retain.memory.scope import Scope
from tests.memory.semantic.indexes import SilentIndex
from tests.memory.semantic.substrate import AGENT, AGENT_SOURCE, HOUSE, PERSON, Substrate


def talk(*turns: str, conversation: str = "chat-1", start: int = 0) -> list[NewRecord]:
    speakers = ("Ann", "Bob")
    return [
        NewRecord(turn, utterance=Utterance(conversation, start + number, speakers[number % 2]))
        for number, turn in enumerate(turns)
    ]


HOLIDAY = talk(
    "Good morning!",
    "Hello.",
    "Where did you spend your holidays?",
    "Lisbon, and it was lovely.",
    "Nice.",
    "Shall we start?",
)


async def test_a_turn_is_found_through_its_neighbours(substrate: Substrate) -> None:
    """The answer has no word of the query, and no vector finds it: it is found through the question before it."""
    substrate.index = SilentIndex(substrate.vectors)
    await substrate.memory().store_all(HOLIDAY, AGENT_SOURCE)
    substrate.clock.advance(3_600_000)
    hits = await substrate.hits("spend holidays")
    found = [hit.record.content for hit in hits]
    assert set(found) == {"Hello.", "Where did you spend your holidays?", "Lisbon, and it was lovely."}
    assert found.index("Lisbon, and it was lovely.") < found.index("Hello."), "answers follow their questions"


@pytest.mark.parametrize(
    ("scope", "conversation", "position"),
    [(AGENT, "chat-2", 3), (HOUSE, "chat-1", 3), (AGENT, "chat-1", 13)],
    ids=["another conversation", "another scope", "far away"],
)
async def test_turns_that_do_not_belong_together_lend_each_other_nothing(
    substrate: Substrate, scope: Scope, conversation: str, position: int
) -> None:
    substrate.index = SilentIndex(substrate.vectors)
    await substrate.memory().store_all(talk("Where did you spend your holidays?", start=2), AGENT_SOURCE)
    answer = talk("Lisbon, and it was lovely.", conversation=conversation, start=position)
    await substrate.memory(scope).store_all(answer, AGENT_SOURCE)
    substrate.clock.advance(3_600_000)
    assert await substrate.found("spend holidays") == ["Where did you spend your holidays?"]


@pytest.mark.parametrize(
    ("scope", "conversation"), [(HOUSE, "chat-1"), (AGENT, "chat-2")], ids=["scope", "conversation"]
)
async def test_turns_of_another_conversation_lend_nothing_even_if_both_are_found(
    substrate: Substrate, scope: Scope, conversation: str
) -> None:
    """Only the conversation differs: next to its question the answer has all the words, elsewhere only its own."""
    await substrate.memory().store_all(talk("Where did you spend your holidays?", start=2), AGENT_SOURCE)
    await substrate.memory().store_all(talk("Lisbon was lovely.", start=3), AGENT_SOURCE)
    await substrate.memory(scope).store_all(
        talk("Lisbon was lovely!", conversation=conversation, start=3), AGENT_SOURCE
    )
    words = {hit.record.content: hit.components["words"] for hit in await substrate.hits("lovely holidays to spend")}
    assert words["Lisbon was lovely!"] < 0.6 * words["Lisbon was lovely."]


async def test_the_same_words_at_another_position_are_another_memory(substrate: Substrate) -> None:
    results = await substrate.memory().store_all(
        [*talk("Yes.", "No.", "Yes."), *talk("Yes.", conversation="c")], PERSON
    )
    assert len({result.id for result in results}) == 4
    again = await substrate.memory().store_all(talk("Yes.", "No.", "Yes."), PERSON)
    assert [result.id for result in again] == [result.id for result in results[:3]]


async def test_a_turn_that_is_not_valid_any_more_lends_no_words(substrate: Substrate) -> None:
    substrate.index = SilentIndex(substrate.vectors)
    stored = await substrate.memory().store_all(HOLIDAY, AGENT_SOURCE)
    substrate.clock.advance(3_600_000)
    await substrate.memory().invalidate(stored[2].id, substrate.clock(), PERSON)
    assert await substrate.found("spend holidays") == []
