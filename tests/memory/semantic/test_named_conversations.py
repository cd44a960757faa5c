"""A query for what was said at a time, or in a conversation by its position, finds what was said then."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retain.memory.recall.query import analyse
from retain.memory.recall.sources.conversations import LOOKED_AT
from retain.memory.recall.times.dates import DAY_MS
from retain.memory.recall.times.positions import MAX_POSITION, Positions, positions
from retain.memory.records.record import NewRecord, Utterance
from tests.memory.semantic.counting import CountingSql
from tests.memory.semantic.substrate import AGENT_SOURCE, TENANT, Substrate

NOW = 1_773_847_800_000  # Wednesday, 18 March 2026, 15:30
TALKS = {
    "c-boats": (20, ("Hello! How are you today?", "I sold the green boat to my uncle Peter.", "Peter will paint it.")),
    "b-bread": (9, ("Good morning, what's up?", "My bread recipe needs two spoons of honey.", "Rye flour is best.")),
    "a-choir": (1, ("Hi there!", "The choir sings in Ghent this spring.", "We rehearse on the third floor.")),
}
"""By conversation, in the order of their times, which is not that of their names: days before `NOW`, and turns."""


async def talk(substrate: Substrate, *, at_once: bool = False) -> None:
    """Store the conversations as they are held, or all of them a day after the last."""
    for conversation, (days, turns) in TALKS.items():
        uttered_ms = NOW - days * DAY_MS
        substrate.clock.set(NOW if at_once else uttered_ms)
        new = [
            NewRecord(text, kind="event", utterance=Utterance(conversation, place, "Ann", uttered_ms + place * 1000))
            for place, text in enumerate(turns)
        ]
        await substrate.memory().store_all(new, AGENT_SOURCE)
    substrate.clock.set(NOW)


@pytest.mark.parametrize("at_once", [False, True])
@pytest.mark.parametrize(
    ("query", "conversation"),
    [
        ("What did we talk about last time?", "a-choir"),
        ("Tell me what we discussed yesterday.", "a-choir"),
        ("What did we talk about in our last conversation?", "a-choir"),
        ("Summarize our previous session", "a-choir"),
        ("What did we discuss in the second to last session?", "b-bread"),
        ("What did we discuss two sessions ago?", "b-bread"),
        ("What came up last week?", "b-bread"),
        ("What did we chat about on March 9th?", "b-bread"),
        ("In our second conversation, what did we talk about?", "b-bread"),
        ("What did we discuss in our first session?", "c-boats"),
        ("What happened between February 20 and March 2?", "c-boats"),
        ("Was haben wir letztes Mal besprochen?", "a-choir"),
        ("De quoi avons-nous parlé hier ?", "a-choir"),
        ("¿De qué hablamos la última vez?", "a-choir"),
        ("O que conversamos ontem?", "a-choir"),
        ("Di cosa abbiamo parlato ieri?", "a-choir"),
        ("Waar hebben we het gisteren over gehad?", "a-choir"),
        ("我们上次聊了什么?", "a-choir"),
        ("前回の会話の内容を教えてください", "a-choir"),
    ],
)
async def test_what_was_said_then_comes_first(
    substrate: Substrate, query: str, conversation: str, *, at_once: bool
) -> None:
    await talk(substrate, at_once=at_once)
    hits = await substrate.hits(query, min_score=0.3)
    first = [hit.record.utterance.conversation for hit in hits[:3] if hit.record.utterance]
    assert first == [conversation] * 3
    assert [hit.relevance for hit in hits[:3]] == [1.0] * 3
    assert hits[0].record.content != TALKS[conversation][1][0], "a greeting says less than what followed"


async def test_several_conversations_are_found_by_their_positions(substrate: Substrate) -> None:
    await talk(substrate)
    hits = await substrate.hits("What did we discuss over sessions 1 through 2?", top_k=6, min_score=0.3)
    assert {hit.record.utterance.conversation for hit in hits if hit.record.utterance} == {"b-bread", "c-boats"}
    hits = await substrate.hits("What were the last two conversations about?", top_k=6, min_score=0.3)
    assert {hit.record.utterance.conversation for hit in hits if hit.record.utterance} == {"a-choir", "b-bread"}


async def test_words_decide_when_there_are_others(substrate: Substrate) -> None:
    await talk(substrate)
    [first, *_] = await substrate.found("What did I say of my uncle last time?")
    assert first == "I sold the green boat to my uncle Peter."
    [first, *_] = await substrate.found("In our first conversation, what did I say of the honey?")
    assert first == "My bread recipe needs two spoons of honey."
    hits = await substrate.hits("In our first conversation, whom did I name?")
    assert {hit.components["dated"] > 0 for hit in hits if hit.record.content.startswith("I sold")} == {True}


async def test_without_anything_of_that_time_a_recall_is_as_any_other(substrate: Substrate) -> None:
    await talk(substrate)
    hits = await substrate.hits("What did we talk about 400 days ago?")
    assert {hit.components["dated"] for hit in hits} == {0.0}
    assert max(hit.components["words"] + hit.components["vector"] for hit in hits) > 0
    assert await substrate.hits("What did we discuss 9 sessions ago?", min_score=0.6) == []


async def test_a_conversation_of_another_scope_or_that_is_over_counts_as_none(substrate: Substrate) -> None:
    await talk(substrate)
    other = NewRecord("The secret is out.", utterance=Utterance("z-other", 0, "Bob", NOW - 1000))
    await substrate.memory(TENANT).store_all([other], AGENT_SOURCE)  # a wider scope is visible
    [first, *_] = await substrate.found("What did we talk about last time?")
    assert first == "The secret is out."
    [record_id] = [hit.record.id for hit in await substrate.hits("secret", top_k=1)]
    await substrate.memory(TENANT).invalidate(record_id, NOW, AGENT_SOURCE)
    substrate.clock.advance(1)
    [best, *_] = await substrate.hits("What did we talk about last time?")
    assert best.record.utterance is not None
    assert best.record.utterance.conversation == "a-choir"


async def test_what_was_imported_is_found_by_when_it_was_said(substrate: Substrate) -> None:
    """A hundred nearer texts of other days are what the vector index returns, and it knows the day of import alone."""
    await talk(substrate, at_once=True)
    others = [
        NewRecord(
            f"What we talked about, discussion {number} of the boat.",
            utterance=Utterance(f"other-{number}", 0, "Ann", NOW - 30 * DAY_MS),
        )
        for number in range(130)
    ]
    await substrate.memory().store_all(others, AGENT_SOURCE)
    substrate.clock.advance(DAY_MS)
    hits = await substrate.hits("What did we talk about on 9 March?", top_k=3)
    assert {hit.record.utterance.conversation for hit in hits if hit.record.utterance} == {"b-bread"}
    assert all("dates" in hit.found_by for hit in hits)


async def test_what_was_stored_as_it_was_said_has_no_row_of_its_time(substrate: Substrate) -> None:
    """A row more for each message would cost every deployment, and the vector index knows when these were recorded."""
    await talk(substrate)
    plan = "SELECT COUNT(*) AS found FROM memory_records INDEXED BY memory_records_uttered_earlier WHERE tenant_id = 'acme'"
    plan += " AND COALESCE(said_at_ms, valid_from_ms) < recorded_at_ms - 3600000"
    assert [row["found"] for row in await substrate.rows(plan)] == [0]


async def test_what_was_imported_is_looked_up_by_its_time_and_not_by_reading_the_scope(substrate: Substrate) -> None:
    """The statement's condition has to be the index's, or each such recall reads every record."""
    await talk(substrate, at_once=True)
    substrate.sql = counting = CountingSql(substrate.d1)
    await substrate.hits("What did we talk about on March 9th?")
    [(text, values)] = [one for one in counting.statements if "t.value ->> 0" in one[0]]
    plan = [str(row["detail"]) for row in await substrate.rows(f"EXPLAIN QUERY PLAN {text}", *values)]
    assert any("memory_records_uttered_earlier" in step for step in plan), plan
    assert not any(step.startswith("SCAN memory_records") for step in plan), plan


async def test_a_position_costs_one_trip_more_and_a_bounded_number_of_rows(substrate: Substrate) -> None:
    await talk(substrate)
    counting = CountingSql(substrate.d1)
    substrate.sql = counting
    await substrate.hits("What did we talk about on March 9th?")
    dated = counting.trips
    await substrate.hits("What did we talk about in our first session?")
    assert (dated, counting.trips - dated) == (2, 3)
    assert LOOKED_AT == 500


@given(st.text(alphabet="the last first second 12 th 0 sessions ago through to before conversation-\n", max_size=60))
def test_any_text_names_conversations_within_bounds_or_none(text: str) -> None:
    for alone in (True, False):
        found, rest = positions(text, "en", alone=alone)
        assert found is None or 1 <= found.first <= found.last <= MAX_POSITION
        assert found is not None or rest == text


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("When was the last time I went to the dentist?", None),
        ("What did I do in the last session with my trainer?", None),
        ("Show me the session 12 notes from ACME", None),
        ("What is the third discussion of the paper about?", None),
        ("How many conversations did I have?", None),
        ("What did we discuss in the 100th session?", Positions(100, 100, from_end=False)),
        ("What did we discuss in the 101st session?", None),
        ("What did we discuss in session 0?", None),
        ("What did we discuss in sessions 5 to 2?", None),
        ("What did we say in our 3rd chat?", Positions(3, 3, from_end=False)),
        ("the fifth through seventh sessions", Positions(5, 7, from_end=False)),
        ("the first three sessions", Positions(1, 3, from_end=False)),
        ("the session before last", Positions(2, 2, from_end=True)),
        ("what did we say the last time we spoke?", Positions(1, 1, from_end=True)),
        ("a conversation ago", Positions(1, 1, from_end=True)),
        ("What did we say of bread in our last chat?", Positions(1, 1, from_end=True)),
        ("What was our last chat about?", Positions(1, 1, from_end=True)),
        ("Which bread was it in our last chat about bread?", None),
        ("Which bread did we choose the last time we talked about bread?", None),
        ("Which bread was it in our previous chat?", None),
        ("What did we say in our previous chat?", Positions(1, 1, from_end=True)),
        ("Welches Brot war es in unserem letzten Gespräch über Brot?", None),
        ("Quel pain était-ce dans notre dernière conversation sur le pain ?", None),
        ("¿Qué pan era en nuestra última conversación sobre el pan?", None),
    ],
)
def test_a_position_is_one_of_conversations_alone(query: str, named: Positions | None) -> None:
    assert analyse(query, NOW).positions == named


@pytest.mark.parametrize(
    "query",
    [
        "Which store did I visit yesterday?",
        "What was my coverage in 2023?",
        "Which speakers did I buy last week?",
        "What was the conversion last month?",
        "Welchen Sprachkurs hatte ich letzte Woche?",
        "Was war mit der Bezahlung gestern?",
        "¿Qué contrato tuve ayer?",
        "¿Qué tratamiento tuve ayer?",
        "O que foi o contrato ontem?",
        "Che cosa ha fatto il parlamento ieri?",
        "Qu'a fait le parlement hier ?",
    ],
)
def test_a_word_that_only_looks_like_one_of_talking_is_asked_for(query: str) -> None:
    asked = analyse(query, NOW)
    assert (len(asked.times), asked.only_dated) == (1, False)
