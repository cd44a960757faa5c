"""A message that states what is no longer so does not come before what is so now."""

from __future__ import annotations

import pytest

from retain.memory.recall.outdated import facts_of_messages
from retain.memory.recall.recall import RecallQuery
from tests.ingest.substrate import IngestSubstrate, turns
from tests.memory.semantic.substrate import AGENT, PERSON

DAY = 86_400_000
START = 1_600_000_000_000

Statements = tuple[tuple[int, str], ...]
CASES: tuple[tuple[str, Statements, str, str, tuple[str, ...]], ...] = (
    ("a move", ((0, "I live in Paris."), (5, "I just moved to Berlin.")),
     "Where does Bea live?", "Bea lives in Berlin", ("I live in Paris.",)),
    ("two moves", ((0, "I live in Paris."), (5, "I just moved to Berlin."), (9, "I just moved to Rome.")),
     "Where does Bea live?", "Bea lives in Rome", ("I live in Paris.", "I just moved to Berlin.")),
    ("said twice", ((0, "I live in Paris."), (2, "As you know, I live in Paris."), (5, "I just moved to Berlin.")),
     "Where does Bea live?", "Bea lives in Berlin", ("I live in Paris.", "As you know, I live in Paris.")),
    ("a diet that ended", ((0, "I'm vegetarian."), (5, "I'm not vegetarian any more.")),
     "Is Bea vegetarian?", "Bea is no longer vegetarian", ("I'm vegetarian.",)),
    ("a message of several facts", ((0, "I live in Paris and I love tea."), (5, "I just moved to Berlin.")),
     "Where does Bea live?", "Bea lives in Berlin", ("I live in Paris and I love tea.",)),
    ("a taste", ((0, "I like jazz."), (5, "I hate jazz.")),
     "Does Bea like jazz?", "Bea dislikes jazz", ("I like jazz.",)),
)  # fmt: skip


async def ingested(substrate: IngestSubstrate, statements: Statements) -> None:
    for day, text in statements:
        await substrate.ingest("chat", turns(f"Bea: {text}", at_ms=START + day * DAY))


async def recalled(substrate: IngestSubstrate, query: str, as_of_ms: int | None = None) -> list[str]:
    hits = await substrate.memory(AGENT).search(RecallQuery(query, 20, as_of_ms=as_of_ms))
    for hit in hits:
        assert hit.score == pytest.approx(sum(hit.components.values()))
    assert [hit.score for hit in hits] == sorted([hit.score for hit in hits], reverse=True)
    return [hit.record.content for hit in hits]


@pytest.mark.parametrize(
    ("statements", "query", "now", "outdated"), [one[1:] for one in CASES], ids=[one[0] for one in CASES]
)
async def test_what_is_so_now_comes_before_every_message_that_says_otherwise(
    substrate: IngestSubstrate, statements: Statements, query: str, now: str, outdated: tuple[str, ...]
) -> None:
    await ingested(substrate, statements)
    found = await recalled(substrate, query)
    assert set(outdated) <= set(found), "what was said is still found"
    assert all(found.index(now) < found.index(message) for message in outdated), found


async def test_the_fact_comes_first_after_a_move(substrate: IngestSubstrate) -> None:
    await ingested(substrate, CASES[0][1])
    assert (await recalled(substrate, "Where does Bea live?"))[0] == "Bea lives in Berlin"


async def test_a_message_keeps_its_rank_for_what_still_holds_in_it(substrate: IngestSubstrate) -> None:
    await ingested(substrate, ((0, "I love green tea, and I live in Paris."), (5, "I just moved to Berlin.")))
    found = await recalled(substrate, "Which tea does Bea love?")
    assert found.index("I love green tea, and I live in Paris.") < found.index("Bea lives in Berlin")


async def test_the_answer_explains_that_a_message_is_outdated(substrate: IngestSubstrate) -> None:
    await ingested(substrate, CASES[0][1])
    hits = await substrate.memory(AGENT).search(RecallQuery("Where does Bea live?", 20))
    marked = {hit.record.content for hit in hits if hit.components.get("outdated", 0.0) < 0}
    assert marked == {"I live in Paris."}


async def test_what_became_true_again_is_not_outdated(substrate: IngestSubstrate) -> None:
    await ingested(substrate, (*CASES[0][1], (9, "I live in Paris.")))
    hits = await substrate.memory(AGENT).search(RecallQuery("Where does Bea live?", 20))
    marked = {hit.record.content for hit in hits if hit.components.get("outdated", 0.0) < 0}
    assert marked == {"I just moved to Berlin."}


async def test_a_deleted_fact_leaves_its_message_as_it_is(substrate: IngestSubstrate) -> None:
    await ingested(substrate, CASES[0][1])
    for fact in await substrate.facts():
        await substrate.memory().delete(fact.id, PERSON)
    hits = await substrate.memory(AGENT).search(RecallQuery("Where does Bea live?", 20))
    assert all(hit.components.get("outdated", 0.0) == 0 for hit in hits)


async def test_as_of_a_time_before_the_move_the_message_is_not_outdated(substrate: IngestSubstrate) -> None:
    await substrate.ingest("chat", turns("Bea: I live in Paris."))
    substrate.clock.advance(DAY)
    before = substrate.clock()
    substrate.clock.advance(DAY)
    await substrate.ingest("chat", turns("Bea: I just moved to Berlin."))
    hits = await substrate.memory(AGENT).search(RecallQuery("Where does Bea live?", 20, as_of_ms=before))
    assert {hit.record.content for hit in hits} == {"I live in Paris.", "Bea lives in Paris"}
    assert all(hit.components.get("outdated", 0.0) == 0 for hit in hits)


async def test_looking_for_what_messages_stated_reads_no_table_whole(substrate: IngestSubstrate) -> None:
    sql, values = facts_of_messages("acme", ["a"], 1, None)
    plan = [row["detail"] for row in (await substrate.sql.run(f"EXPLAIN QUERY PLAN {sql}", *values)).rows]
    scans = [
        step for step in plan if step.startswith("SCAN") and "VIRTUAL TABLE" not in step and "subquery" not in step
    ]
    assert scans == [], plan
