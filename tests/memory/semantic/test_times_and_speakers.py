"""A query that names a time or a speaker prefers records of that time or speaker, and drops no others."""

from __future__ import annotations

import pytest

from retain.memory.recall.times.dates import DAY_MS, HOUR_MS
from retain.memory.recall.weights import Weights
from retain.memory.records.record import NewRecord, Utterance
from tests.memory.semantic.substrate import AGENT_SOURCE, Substrate

NOW = 1_773_847_800_000  # Wednesday, 18 March 2026, 15:30
CALLS = {"Ann called about her contract again.": 9, "Ann called about her contract.": 1, "Ann called, contract!": 0}


async def record_calls(substrate: Substrate) -> None:
    """Store one call for each of these numbers of days before `NOW`."""
    for content, days in CALLS.items():
        substrate.clock.set(NOW - days * DAY_MS)
        await substrate.store(content)
    substrate.clock.set(NOW + HOUR_MS)


@pytest.mark.parametrize(
    ("when", "first"),
    [
        ("today", "Ann called, contract!"),
        ("yesterday", "Ann called about her contract."),
        ("last week", "Ann called about her contract again."),
        ("9 days ago", "Ann called about her contract again."),
        ("on 17 March 2026", "Ann called about her contract."),
    ],
)
async def test_what_was_recorded_then_ranks_first_and_nothing_is_dropped(
    substrate: Substrate, when: str, first: str
) -> None:
    await record_calls(substrate)
    hits = await substrate.hits(f"Why did Ann call {when}?")
    assert {hit.record.content for hit in hits} == set(CALLS)
    assert hits[0].record.content == first
    assert [hit.components["dated"] > 0 for hit in hits] == [True, False, False]


async def test_a_query_without_a_date_raises_no_score(substrate: Substrate) -> None:
    await record_calls(substrate)
    assert {hit.components["dated"] for hit in await substrate.hits("Why did Ann call?")} == {0.0}


async def test_yesterday_is_relative_to_the_time_that_is_asked_about(substrate: Substrate) -> None:
    await record_calls(substrate)
    hits = await substrate.hits("Why did Ann call yesterday?", as_of_ms=NOW - 8 * DAY_MS)
    assert [(hit.record.content, hit.components["dated"] > 0) for hit in hits] == [
        ("Ann called about her contract again.", True)
    ]


async def test_the_time_of_a_turn_counts_not_the_time_of_its_storage(substrate: Substrate) -> None:
    substrate.clock.set(NOW)
    turns = [
        NewRecord(content, utterance=Utterance("chat", place, "Ann", NOW - days * DAY_MS))
        for place, (content, days) in enumerate(
            [("The lamp broke.", 3), ("The lamp broke!", 1), ("The lamp broke?", 0)]
        )
    ]
    await substrate.memory().store_all(turns, AGENT_SOURCE)
    dated = {hit.record.content: hit.components["dated"] for hit in await substrate.hits("What broke three days ago?")}
    assert dated["The lamp broke."] > 0.0 == dated["The lamp broke!"] == dated["The lamp broke?"]


async def test_among_turns_alone_the_day_after_tells_of_a_day_as_much_as_the_day_itself(substrate: Substrate) -> None:
    substrate.clock.set(NOW)
    turns = [
        NewRecord(content, utterance=Utterance(f"chat-{days}", 0, "Ann", NOW - days * DAY_MS))
        for content, days in [("The lamp broke.", 3), ("The lamp broke!", 2), ("The lamp broke?", 1)]
    ]
    await substrate.memory().store_all(turns, AGENT_SOURCE)

    async def dated() -> dict[str, float]:
        hits = await substrate.hits("Why did the lamp break three days ago?")
        return {hit.record.content: hit.components["dated"] for hit in hits}

    reported = Weights().reported
    assert await dated() == {"The lamp broke.": reported, "The lamp broke!": reported, "The lamp broke?": 0.0}
    await substrate.store("The lamp is broken.")  # a note: what is dated is no longer turns alone
    assert {one for one, gained in (await dated()).items() if gained == Weights().dated} == {"The lamp broke."}


async def test_a_turn_by_a_speaker_whom_the_query_names_gains(substrate: Substrate) -> None:
    turns = [
        NewRecord("The lamp broke.", utterance=Utterance(f"chat-{speaker}", 0, speaker))
        for speaker in ("Ann", "Bob", "user")
    ]
    await substrate.memory().store_all(turns, AGENT_SOURCE)
    speaker = {
        hit.record.utterance.speaker: hit.components["speaker"]
        for hit in await substrate.hits("What did Bob tell the user of the lamp?")
        if hit.record.utterance is not None
    }
    assert speaker["Bob"] > 0.0 == speaker["Ann"] == speaker["user"]


async def test_a_turn_gains_from_a_close_answer(substrate: Substrate) -> None:
    """An answer repeats words of its question; nothing is lent to earlier turns, or outside a conversation."""
    texts = ("Nice to see you.", "I did it at last!", "Congratulations on buying the bicycle!")
    turns = [NewRecord(text, utterance=Utterance("chat", place, "Ann")) for place, text in enumerate(texts)]
    await substrate.memory().store_all(turns, AGENT_SOURCE)
    await substrate.store("The bicycle was bought.")
    substrate.clock.advance(HOUR_MS)
    following = {hit.record.content: hit.components["following"] for hit in await substrate.hits("buying a bicycle")}
    assert following["I did it at last!"] > 0.5
    assert following["Congratulations on buying the bicycle!"] == following["The bicycle was bought."] == 0.0


async def test_an_answer_of_whom_the_query_names_gains_from_what_was_asked(substrate: Substrate) -> None:
    """It means little without its question; nobody else's turn, and none after a statement, gains."""
    utterances = (
        ("Bob", "What made you buy a bicycle?"),
        ("Ann", "I wanted more fresh air."),
        ("Bob", "Buying a bicycle was my plan, too."),
        ("Ann", "It is a good one."),
        ("Ann", "Why did you not buy a bicycle?"),
        ("Bob", "No money."),
    )
    turns = [NewRecord(text, utterance=Utterance("chat", place, name)) for place, (name, text) in enumerate(utterances)]
    await substrate.memory().store_all(turns, AGENT_SOURCE)
    substrate.clock.advance(HOUR_MS)
    hits = await substrate.hits("Why did Ann buy a bicycle?", top_k=6)
    gained = {hit.record.content for hit in hits if hit.components["answering"] > 0.0}
    assert gained == {"I wanted more fresh air."}
    assert not any(hit.components["answering"] for hit in await substrate.hits("Why buy a bicycle?"))
