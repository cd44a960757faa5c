"""What was known at a time is found by the words and the meaning that it had then, and where it was valid then."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from retain.memory.records.record import NewRecord
from retain.memory.scope import Scope
from tests.memory.semantic.agreement import check_agreement
from tests.memory.semantic.indexes import SilentIndex
from tests.memory.semantic.substrate import AGENT, AGENT_SOURCE, HOUSE, PERSON, TENANT, Substrate

NAMES = (
    "Ann Bob Cem Dora Eli Fay Gus Hana Ivo Jana Kim Lea Max Nora Otto Pia Quin Rosa Sam Tess Ulf Vera Will Xena Yan"
).split()
PLACES = "kitchen garden office cellar garage attic balcony hallway library studio".split()
THINGS = (
    "a telescope", "an accordion", "a canoe", "a beehive", "a typewriter", "a loom", "a kayak", "an easel", "a drum",
    "a globe", "a chess set", "an aquarium", "a sewing machine", "a printing press", "a wheelbarrow", "a tent",
    "a grandfather clock", "a microscope", "a violin", "a rowing machine", "a toolbox", "a lantern", "a bicycle",
    "an anvil", "a compass",
)  # fmt: skip
PARAPHRASES = {
    "The doctor prescribed antibiotics to the patient.": "Which medicine did the physician order?",
    "The invoice has to be paid within fourteen days.": "bill payment deadline",
    "Her puppy is afraid of thunderstorms.": "What is the young dog scared of?",
    "The train to the capital was late this morning.": "railway delay",
}


async def test_an_edited_record_is_found_as_of_a_time_before_by_the_words_that_it_had(substrate: Substrate) -> None:
    """104 facts, 25 of which are edited to be about something else: each is still the first as of the time before."""
    kept = [f"The {place} of house {number} was painted." for place in PLACES for number in range(8)][:79]
    stated = [f"{name} keeps {thing} at home." for name, thing in zip(NAMES, THINGS, strict=True)]
    everything = [*kept, *stated]
    random.Random(4).shuffle(everything)
    results = await substrate.memory().store_all([NewRecord(text) for text in everything], AGENT_SOURCE)
    ids = {text: result.id for text, result in zip(everything, results, strict=True)}
    substrate.clock.advance(1000)
    at_ms = substrate.clock()
    questions = {
        f"What does {name} keep at home? Is it {thing}?": text
        for name, thing, text in zip(NAMES, THINGS, stated, strict=True)
    }
    before = {question: (await substrate.found(question, top_k=1))[0] for question in questions}
    assert before == questions
    substrate.clock.advance(1000)
    for number, text in enumerate(stated):
        await substrate.memory().edit(
            ids[text], {"content": f"Parcel {number} was sent to the museum of trains."}, PERSON
        )
    await substrate.reconcile()
    found = {question: (await substrate.found(question, top_k=1, as_of_ms=at_ms))[:1] for question in questions}
    right = [question for question, text in questions.items() if found[question] == [text]]
    assert len(right) == len(questions) == 25
    now = [await substrate.found(question, top_k=50) for question in questions]
    assert not {text for texts in now for text in texts} & set(stated)
    await check_agreement(substrate)


@pytest.mark.parametrize("edits", [1, 3])
async def test_an_edited_record_is_found_as_of_a_time_before_by_its_meaning_then(
    substrate: Substrate, edits: int
) -> None:
    ids = [await substrate.store(text) for text in PARAPHRASES]
    await substrate.store("The museum opens at nine.")
    substrate.clock.advance(1000)
    at_ms = substrate.clock()
    assert [(await substrate.found(question, top_k=1))[0] for question in PARAPHRASES.values()] == list(PARAPHRASES)
    for number in range(edits):
        substrate.clock.advance(1000)
        for record_id in ids:
            await substrate.memory().edit(record_id, {"content": f"Parcel {number} of {record_id} was sent."}, PERSON)
    for text, question in PARAPHRASES.items():
        [hit] = await substrate.hits(question, top_k=1, as_of_ms=at_ms)
        assert (hit.record.content, hit.record.updated_at_ms) == (text, hit.record.recorded_at_ms)


async def test_what_has_the_words_only_now_does_not_come_before_what_had_them_then(substrate: Substrate) -> None:
    weather = await substrate.store("It rains in Oslo.")
    await substrate.store("Ann keeps bees in the garden.")
    substrate.clock.advance(1000)
    at_ms = substrate.clock()
    substrate.clock.advance(1000)
    await substrate.memory().edit(weather, {"content": "Ann keeps bees, many bees, and only bees."}, PERSON)
    hits = await substrate.hits("Who keeps bees?", as_of_ms=at_ms)
    assert [hit.record.content for hit in hits] == ["Ann keeps bees in the garden.", "It rains in Oslo."]
    assert hits[1].components["words"] == 0


async def test_an_exact_term_that_was_edited_away_is_found_as_of_the_time_before(substrate: Substrate) -> None:
    substrate.index = SilentIndex(substrate.vectors)
    order = await substrate.store("The customer complained about order 48213.")
    for number in range(10):
        await substrate.store(f"The customer complained about order 9000{number}.")
    at_ms = substrate.clock()
    substrate.clock.advance(1000)
    await substrate.memory().edit(order, {"content": "Solved."}, PERSON)
    assert (await substrate.found("complaint about order 48213", as_of_ms=at_ms))[
        0
    ] == "The customer complained about order 48213."


async def test_only_present_texts_are_read_for_the_present(substrate: Substrate) -> None:
    record_id = await substrate.store("Ann likes tea.")
    substrate.clock.advance(1000)
    await substrate.memory().edit(record_id, {"content": "Ann likes coffee."}, PERSON)
    asked: list[str] = []
    inner = substrate.d1

    class Watching:
        async def run(self, sql: str, *values: Any) -> Any:
            asked.append(sql)
            return await inner.run(sql, *values)

        async def batch(self, statements: Any) -> Any:
            asked.extend(sql for sql, _ in statements)
            return await inner.batch(statements)

    substrate.sql = Watching()
    assert await substrate.found("tea") == ["Ann likes coffee."]
    assert not [sql for sql in asked if "memory_earlier" in sql]


async def test_an_equal_content_that_was_not_valid_does_not_hide_the_one_that_was(substrate: Substrate) -> None:
    """The tenant's copy was closed before the time, and changed after it; the agent's was valid all along."""
    ofs = await substrate.store("Ann likes tea.", TENANT)
    await substrate.store("Ann likes tea.", AGENT)
    substrate.clock.advance(1000)
    await substrate.memory(TENANT).invalidate(ofs, substrate.clock(), PERSON)
    substrate.clock.advance(1000)
    at_ms = substrate.clock()
    substrate.clock.advance(1000)
    await substrate.memory(TENANT).edit(ofs, {"metadata": {"checked": True}}, PERSON)
    [hit] = await substrate.hits("Who likes tea?", as_of_ms=at_ms)
    assert (hit.record.content, hit.record.scope_id) == ("Ann likes tea.", AGENT.scope_id)


async def test_what_has_an_equal_content_only_now_does_not_hide_what_had_it_then(substrate: Substrate) -> None:
    theirs = await substrate.store("Ann likes coffee.", TENANT)
    await substrate.store("Ann likes tea.", AGENT)
    substrate.clock.advance(1000)
    at_ms = substrate.clock()
    substrate.clock.advance(1000)
    await substrate.memory(TENANT).edit(theirs, {"content": "Ann likes tea."}, PERSON)
    assert sorted(await substrate.found("What does Ann like?", as_of_ms=at_ms)) == [
        "Ann likes coffee.",
        "Ann likes tea.",
    ]
    assert await substrate.found("What does Ann like?") == ["Ann likes tea."]


async def test_what_was_equal_then_is_shown_once(substrate: Substrate) -> None:
    theirs = await substrate.store("Ann likes tea.", TENANT)
    await substrate.store("Ann likes tea.", AGENT)
    substrate.clock.advance(1000)
    at_ms = substrate.clock()
    substrate.clock.advance(1000)
    await substrate.memory(TENANT).edit(theirs, {"content": "Ann likes coffee."}, PERSON)
    assert await substrate.found("What does Ann like?", as_of_ms=at_ms) == ["Ann likes tea."]


WORDS = ("harbour", "violin")
SCOPES = (TENANT, HOUSE, AGENT)


@dataclass
class Known:
    """One state of a record: what it said, where, and whether it was valid then, from a time on."""

    since: int
    content: str | None


class PastOfTexts(RuleBasedStateMachine):
    """Texts are stored, edited, closed, restored and deleted in scopes that see each other; every past stays as it was."""

    @initialize()
    def begin(self) -> None:
        self.runner = asyncio.Runner()
        self.substrate = Substrate()
        self.states: dict[str, tuple[Scope, list[Known]]] = {}
        self.changed: list[int] = []

    def teardown(self) -> None:
        try:
            for number, (changed, scope) in enumerate(itertools.product(self.changed[-12:], SCOPES)):
                self.check(changed + 5, number % len(WORDS), scope)
            self.run(check_agreement(self.substrate))
        finally:
            self.substrate.close()
            self.runner.close()

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return self.runner.run(coroutine)

    def text(self, word: int, number: int) -> str:
        return f"The {WORDS[word]} has number {number}."

    def note(self, record_id: str, content: str | None) -> None:
        """Note the state of a record from now on; each change has its own millisecond."""
        self.states[record_id][1].append(Known(self.substrate.clock(), content))
        self.changed.append(self.substrate.clock())
        self.substrate.clock.advance(10)

    def one(self, number: int) -> tuple[str, Scope, Known]:
        record_id = sorted(self.states)[number % len(self.states)]
        scope, states = self.states[record_id]
        return record_id, scope, states[-1]

    def holders(self, scope: Scope, content: str) -> list[str]:
        return [
            row["id"]
            for row in self.run(
                self.substrate.rows(
                    "SELECT id FROM memory_records WHERE scope_id = ? AND content = ?", scope.scope_id, content
                )
            )
        ]

    @rule(word=st.integers(0, 1), number=st.integers(0, 1), scope=st.sampled_from(SCOPES))
    def store(self, word: int, number: int, scope: Scope) -> None:
        content = self.text(word, number)
        record_id = self.run(self.substrate.store(content, scope, PERSON))
        self.states.setdefault(record_id, (scope, []))
        self.note(record_id, content)

    @precondition(lambda self: self.states)
    @rule(which=st.integers(0, 20), word=st.integers(0, 1), number=st.integers(0, 1))
    def edit(self, which: int, word: int, number: int) -> None:
        record_id, scope, known = self.one(which)
        content = self.text(word, number)
        if self.holders(scope, content):
            return
        self.run(self.substrate.memory(TENANT).edit(record_id, {"content": content}, PERSON))
        self.note(record_id, None if known.content is None else content)

    @precondition(lambda self: self.states)
    @rule(which=st.integers(0, 20))
    def close(self, which: int) -> None:
        record_id, _, _ = self.one(which)
        self.run(self.substrate.memory(TENANT).invalidate(record_id, self.substrate.clock(), PERSON))
        self.note(record_id, None)

    @precondition(lambda self: self.states)
    @rule(which=st.integers(0, 20))
    def restore(self, which: int) -> None:
        record_id, _, _ = self.one(which)
        record = self.run(self.substrate.memory(TENANT).restore(record_id, PERSON))
        self.note(record_id, record.content)

    @precondition(lambda self: self.states)
    @rule(which=st.integers(0, 20))
    def delete(self, which: int) -> None:
        record_id, _, _ = self.one(which)
        self.run(self.substrate.memory(TENANT).delete(record_id, PERSON))
        del self.states[record_id]

    @rule()
    def settle(self) -> None:
        self.run(self.substrate.reconcile())

    @precondition(lambda self: self.changed)
    @rule(change=st.integers(0, 100), word=st.integers(0, 1), scope=st.sampled_from(SCOPES))
    def recall_as_of(self, change: int, word: int, scope: Scope) -> None:
        self.check(self.changed[change % len(self.changed)] + 5, word, scope)

    def check(self, at_ms: int, word: int, scope: Scope) -> None:
        visible = {node.scope_id for node in scope.path()}
        expected = {
            last.content
            for where, states in self.states.values()
            for last in [known for known in states if known.since <= at_ms][-1:]
            if where.scope_id in visible and last.content is not None
        }
        found = self.run(self.substrate.found(f"Which number has the {WORDS[word]}?", scope, as_of_ms=at_ms, top_k=50))
        assert len(found) == len(set(found))
        assert set(found) == expected
        named = [WORDS[word] in text for text in found]
        assert named == sorted(named, reverse=True), "what has the word comes first"


TestPastOfTexts = PastOfTexts.TestCase
TestPastOfTexts.settings = settings(
    max_examples=30,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
