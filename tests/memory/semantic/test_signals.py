"""Signals of the ranking formula: who said it, what was recorded around it, and what is similar to it."""

from __future__ import annotations

import pytest

from retain.memory.recall.candidates import Visible
from retain.memory.recall.sources.instructed import instructed
from retain.memory.recall.times.dates import DAY_MS
from retain.memory.recall.weights import Weights
from retain.memory.records.record import Kind, NewRecord, Utterance
from retain.memory.scope import Reach, Scope
from tests.memory.semantic.notes import NOTES, fill
from tests.memory.semantic.substrate import AGENT, AGENT_SOURCE, Substrate

NOW = 1_773_847_800_000
OTHER = Scope(AGENT.tenant_id, "writer")
ASKED = "I deploy my site with Netlify."
ANSWERED = "You deploy your site with Netlify, and Netlify builds your site on each deploy of your site."
PAGE = "The minutes of the council concern pavements, drains and street lamps. Members spoke in turn and voted. " * 60
FACTS = (
    "Marta refuses to fly and takes the train.",
    "Jonas sold his motorbike in March.",
    "Clara keeps bees behind the barn.",
    "Paul is allergic to walnuts.",
)


async def talk(substrate: Substrate) -> None:
    """Store what a user said and what the assistant answered, one call for both."""
    turns = [
        NewRecord(content, utterance=Utterance("chat", place, speaker, NOW))
        for place, (speaker, content) in enumerate((("user", ASKED), ("assistant", ANSWERED)))
    ]
    await substrate.memory().store_all(turns, AGENT_SOURCE)


async def test_what_the_user_said_comes_before_the_answer_that_repeats_it(substrate: Substrate) -> None:
    await talk(substrate)
    hits = await substrate.hits("With which service do I deploy my site?")
    assert [hit.record.content for hit in hits] == [ASKED, ANSWERED]
    assert [hit.components["assistant"] < 0 for hit in hits] == [False, True]


@pytest.mark.parametrize("query", ["How did you say that I deploy my site?", "Summarise how I deploy my site"])
async def test_a_query_for_an_answer_or_a_summary_does_not_put_answers_below(substrate: Substrate, query: str) -> None:
    await talk(substrate)
    assert {hit.components["assistant"] for hit in await substrate.hits(query)} == {0.0}


@pytest.mark.parametrize(("speaker", "lower"), [("Ann", False), ("?", False), ("AI", True), ("tool", True)])
async def test_only_the_roles_of_an_assistant_are_put_below(substrate: Substrate, speaker: str, lower: bool) -> None:
    await substrate.store(ASKED, utterance=Utterance("chat", 0, speaker, NOW))
    [hit] = await substrate.hits("deploy site")
    assert (hit.components["assistant"] < 0) == lower


async def test_a_fact_next_to_a_chat_is_not_put_below_what_the_user_said(substrate: Substrate) -> None:
    for place, content in enumerate(
        ("What do you use a phone for?", "I use the phone for films.", "Films on a phone are fun.")
    ):
        await substrate.store(content, utterance=Utterance("chat", place, "user", NOW))
    await substrate.store("My phone is a Fairphone 5.")
    hits = await substrate.hits("Which phone do I use?")
    assert hits[0].record.content == "My phone is a Fairphone 5."


async def test_what_was_recorded_around_a_good_hit_comes_before_what_was_recorded_at_another_time(
    substrate: Substrate,
) -> None:
    for content, day in (("Photo of a receipt, far away", 0), ("Photo of a receipt, on a desk", 40)):
        substrate.clock.set(NOW + day * DAY_MS)
        await substrate.store(content)
    await substrate.store("Paid the garage for the new clutch.")
    hits = await substrate.hits("How was the garage paid for the clutch? receipt photo")
    order = [hit.record.content for hit in hits]
    assert order.index("Photo of a receipt, on a desk") < order.index("Photo of a receipt, far away")
    around = {hit.record.content: hit.components["around"] for hit in hits}
    assert around["Photo of a receipt, on a desk"] > 3 * around["Photo of a receipt, far away"]


async def test_turns_of_one_conversation_do_not_warm_each_other_by_time(substrate: Substrate) -> None:
    await talk(substrate)
    assert {hit.components["around"] for hit in await substrate.hits("Where do I deploy my site?")} == {0.0}


async def test_a_short_record_outside_conversations_makes_up_for_what_turns_borrow_from_their_neighbours(
    substrate: Substrate,
) -> None:
    await fill(substrate, ("The tent is in the cellar.", f"The tent is in the loft. {PAGE}"))
    assert {hit.components["alone"] for hit in await substrate.hits("Where is the tent?")} == {0.0}
    await substrate.store("The tent leaks.", utterance=Utterance("chat", 0, "Ann", NOW))
    alone = {hit.record.content[:20]: hit.components["alone"] for hit in await substrate.hits("Where is the tent?")}
    assert alone == {"The tent is in the c": 1.0, "The tent is in the l": 0.0, "The tent leaks.": 0.0}


async def test_unrelated_documents_do_not_come_before_short_facts(substrate: Substrate) -> None:
    await fill(substrate, (*NOTES, *FACTS))
    await fill(substrate, tuple(f"{PAGE} Page {number} of the minutes." for number in range(10)))
    queries = ("Who refuses to fly?", "Who sold a motorbike?", "Who keeps bees?", "What is Paul allergic to?")
    assert [(await substrate.hits(query))[0].record.content for query in queries] == list(FACTS)


async def test_a_document_comes_before_short_facts_when_it_alone_has_the_words(substrate: Substrate) -> None:
    await fill(substrate, (*NOTES, *FACTS, f"{PAGE} A meteor hit the old observatory. {PAGE}"))
    assert (await substrate.hits("What did the meteor hit at the observatory?"))[0].record.content.startswith(PAGE[:40])


INSTRUCTION = "Always give distances in miles when I ask about routes."


async def test_a_standing_instruction_is_found_by_a_request_for_something_else(substrate: Substrate) -> None:
    unimportant = tuple(f"Steep path {number}" for number in range(120))
    await fill(substrate, unimportant, importance=0.0, confidence=0.0)
    await fill(substrate, (INSTRUCTION,))
    substrate.clock.advance(DAY_MS)
    hits = await substrate.hits("How high is the climb?", top_k=50)
    assert {hit.record.content for hit in hits if hit.components["standing"] > 0} == {INSTRUCTION}


@pytest.mark.parametrize("query", ["Which route did I take?", "When was my last walk on a route?"])
async def test_a_question_about_the_askers_past_prefers_neither_instructions_nor_preferences(
    substrate: Substrate, query: str
) -> None:
    await fill(substrate, (INSTRUCTION, "I prefer flat routes.", "I took the coastal route."))
    hits = await substrate.hits(query)
    assert {(hit.components["standing"], hit.components["preference"]) for hit in hits} == {(0.0, 0.0)}


@pytest.mark.parametrize(
    ("speaker", "content", "raised"),
    [
        ("user", INSTRUCTION, True),
        ("Ann", INSTRUCTION, True),
        ("assistant", INSTRUCTION, False),
        ("user", f"{INSTRUCTION} {'The path is muddy. ' * 25}", False),
        ("user", "Always look both ways on a route.", False),
    ],
    ids=["user", "person", "assistant", "long", "other words"],
)
async def test_what_counts_as_a_standing_instruction(
    substrate: Substrate, speaker: str, content: str, *, raised: bool
) -> None:
    await substrate.store(content, utterance=Utterance("chat", 0, speaker, NOW))
    [hit] = await substrate.hits("Show me a route")
    assert (hit.components["standing"] > 0) == raised


@pytest.mark.parametrize("kind", ["instruction", "fact"])
async def test_a_record_of_the_kind_is_an_instruction_whatever_its_words(substrate: Substrate, kind: Kind) -> None:
    unimportant = tuple(f"Steep path {number}" for number in range(120))
    await fill(substrate, unimportant, importance=0.0, confidence=0.0)
    long = "Distances in miles, and heights in feet." * 20
    await fill(substrate, ("Distances in miles, please.", long), kind=kind)
    substrate.clock.advance(DAY_MS)
    hits = await substrate.hits("How high is the climb?", top_k=50)
    raised = {hit.record.content for hit in hits if hit.components["standing"] > 0}
    assert raised == ({"Distances in miles, please.", long} if kind == "instruction" else set())
    hits = await substrate.hits("When was my last climb?", top_k=50)
    assert {hit.components["standing"] for hit in hits} == {0.0}, "not a request"


async def test_instructions_of_others_are_neither_seen_nor_read(substrate: Substrate) -> None:
    for number in range(30):
        await substrate.store(f"Distances of way {number} in miles.", OTHER, kind="instruction")
    await substrate.store("The path is steep.")
    hits = await substrate.hits("How high is the climb?", top_k=50)
    assert [hit.record.content for hit in hits] == ["The path is steep."]
    own, whole = Reach("acme", (AGENT.scope_id,)), Reach("acme", ("tenant",), whole=True)
    for reach, found, index in ((own, 0, "of_instructions"), (whole, 20, "by_rare_kind")):
        sql, values = instructed(Visible(reach, substrate.clock(), None, "1", ()))
        assert len(await substrate.rows(sql, *values)) == found
        plan = " ".join(str(row["detail"]) for row in await substrate.rows(f"EXPLAIN QUERY PLAN {sql}", *values))
        assert f"INDEX memory_records_{index}" in plan
        assert "TEMP B-TREE" not in plan, "no more than the newest is read"


async def test_a_request_prefers_what_states_a_preference(substrate: Substrate) -> None:
    await fill(substrate, ("I prefer flat routes.", "I know flat routes."))
    hits = await substrate.hits("Can you suggest flat routes?")
    assert [hit.components["preference"] > 0 for hit in hits] == [True, False]


async def test_a_preference_counts_as_much_as_it_is_about_what_is_asked(substrate: Substrate) -> None:
    await fill(substrate, ("I avoid olives on a pizza.", "I avoid tunnels.", "A pizza has cheese."))
    hits = await substrate.hits("Can you recommend a pizza?")
    preferred = {hit.record.content: hit.components["preference"] for hit in hits}
    assert preferred["I avoid olives on a pizza."] == Weights().preference
    assert 0.0 <= preferred["I avoid tunnels."] < Weights().preference / 2
    assert preferred["A pizza has cheese."] == 0.0


async def test_a_standing_instruction_was_not_known_before_it_was_given(substrate: Substrate) -> None:
    substrate.clock.set(NOW)
    await substrate.store("The coastal route is closed.")
    substrate.clock.set(NOW + DAY_MS)
    await substrate.store(INSTRUCTION)
    [hit] = await substrate.hits("Show me a route", as_of_ms=NOW + 1)
    assert hit.record.content == "The coastal route is closed."
    assert len(await substrate.hits("Show me a route", as_of_ms=NOW + 2 * DAY_MS)) == 2


async def test_what_was_said_at_the_time_is_not_cut_before_times_are_compared(substrate: Substrate) -> None:
    """The first choice keeps eighty candidates: there the time of those that full text found counts already."""
    for number in range(120):
        substrate.clock.set(NOW + number)
        await substrate.store(f"Bread {number}")
    substrate.clock.set(NOW + 60 * DAY_MS)
    await substrate.store("Bread from the neighbours was on the table when we came home.")
    substrate.clock.set(NOW + 61 * DAY_MS)
    hits = await substrate.hits("Which bread did Ann see yesterday?", top_k=50)
    assert [hit.record.content[:10] for hit in hits if hit.components["dated"] > 0] == ["Bread from"]
