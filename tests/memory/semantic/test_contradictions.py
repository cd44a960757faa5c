"""What contradicts comes before what it contradicts, and variations of one statement do not crowd out the answer."""

from __future__ import annotations

import pytest

from retain.memory.recall.times.dates import DAY_MS
from retain.memory.records.record import NewRecord, Utterance
from tests.memory.semantic.notes import NOTES, fill
from tests.memory.semantic.substrate import AGENT_SOURCE, Substrate

ROOM = "Ravi sits in room 214."
MOVED = "Ravi moved and sits in room 309."


async def stored(substrate: Substrate, *contents: str) -> None:
    """Store the contents, one a day, among notes."""
    await fill(substrate, NOTES)
    for content in contents:
        substrate.clock.advance(DAY_MS)
        await substrate.store(content)


@pytest.mark.parametrize(
    ("query", "earlier", "later"),
    [
        ("In which room does Ravi sit?", ROOM, MOVED),
        ("Who leads the choir?", "Bea leads the choir.", "Bea handed the lead of the choir to Omar."),
        ("Where are the spare keys?", "The spare keys are in the desk.", "The spare keys are no longer in the desk."),
        ("In which room does Ravi sit?", ROOM, "Ravi sits in room 309, not 214."),
        ("At what time is the standup?", "The standup is at nine.", "The standup is not at nine but at ten."),
        ("Who leads the choir?", "Bea leads the choir.", "Omar rather than Bea leads the choir."),
    ],
    ids=["moved", "handed over", "no longer", "not that", "not that but this", "rather than that"],
)
async def test_a_correction_comes_before_what_it_corrects(
    substrate: Substrate, query: str, earlier: str, later: str
) -> None:
    await stored(substrate, earlier, later)
    assert (await substrate.found(query))[:2] == [later, earlier]
    [best, second] = await substrate.hits(query, top_k=2)
    assert (best.components["contradicted"], second.components["contradicted"] < 0) == (0.0, True)
    assert second.score == pytest.approx(sum(second.components.values()))


async def test_an_earlier_change_corrects_nothing(substrate: Substrate) -> None:
    await stored(substrate, MOVED, ROOM)
    assert {hit.components["contradicted"] for hit in await substrate.hits("In which room does Ravi sit?")} == {0.0}


@pytest.mark.parametrize("query", ["In which room did Ravi sit before?", "Which room did Ravi sit in on 3 May 2026?"])
async def test_a_query_for_what_was_is_not_corrected(substrate: Substrate, query: str) -> None:
    await stored(substrate, ROOM, MOVED)
    assert {hit.components["contradicted"] for hit in await substrate.hits(query)} == {0.0}


async def test_a_message_with_a_plan_asks_for_what_is(substrate: Substrate) -> None:
    await stored(substrate, ROOM, MOVED)
    query = "I will visit Ravi tomorrow. In which room does he sit?"
    assert (await substrate.found(query))[:2] == [MOVED, ROOM]
    assert min(hit.components["contradicted"] for hit in await substrate.hits(query)) < 0.0


async def test_what_changed_about_another_corrects_nothing(substrate: Substrate) -> None:
    await stored(substrate, ROOM, "Ann moved and sits in room 309.")
    assert (await substrate.found("In which room does Ravi sit?"))[0] == ROOM


@pytest.mark.parametrize(
    "later",
    [
        "Ravi sits in room 309, not 117.",
        "Ann sits in room 309, not 214.",
        "Ravi sits not only in room 214 but also in room 309.",
    ],
    ids=["something else", "of another", "not only that"],
)
async def test_what_does_not_deny_a_statement_corrects_nothing(substrate: Substrate, later: str) -> None:
    await stored(substrate, ROOM, later)
    hits = {hit.record.content: hit for hit in await substrate.hits("In which room does Ravi sit?")}
    assert hits[ROOM].components["contradicted"] == 0.0


async def test_a_correction_of_what_was_denied_before_comes_first(substrate: Substrate) -> None:
    first, second = "Ravi sits in room 309, not 214.", "Ravi sits in room 214, not 309."
    await stored(substrate, first, second)
    assert (await substrate.found("In which room does Ravi sit?"))[:2] == [second, first]


async def test_a_turn_of_a_conversation_corrects_nothing(substrate: Substrate) -> None:
    turns = [
        NewRecord(one, utterance=Utterance("talk", place, "Ravi", place)) for place, one in enumerate((ROOM, MOVED))
    ]
    await substrate.memory().store_all(turns, AGENT_SOURCE)
    assert {hit.components["contradicted"] for hit in await substrate.hits("In which room does Ravi sit?")} == {0.0}


ALLOWED, FORBIDDEN = "Dogs are allowed on the ferry to Corsica.", "Dogs are not allowed on the ferry to Capri."


@pytest.mark.parametrize("order", [(ALLOWED, FORBIDDEN), (FORBIDDEN, ALLOWED)], ids=["first", "last"])
async def test_what_says_the_opposite_comes_after_what_is_asked(substrate: Substrate, order: tuple[str, str]) -> None:
    await stored(substrate, *order)
    assert (await substrate.found("On which ferry are dogs allowed?"))[:2] == [ALLOWED, FORBIDDEN]
    assert (await substrate.found("On which ferry are dogs not allowed?"))[:2] == [FORBIDDEN, ALLOWED]


async def test_variations_of_a_question_leave_room_for_its_answer(substrate: Substrate) -> None:
    policy = "Refunds are paid within thirty days after the purchase, if the goods are unused."
    asked = [f"Customer {number} asked whether a refund is possible after thirty days." for number in range(11, 36)]
    await stored(substrate, policy, *asked)
    found = await substrate.found("Is a refund possible after thirty days?", top_k=5)
    assert policy in found
    assert len({*found} & {*asked}) >= 3
