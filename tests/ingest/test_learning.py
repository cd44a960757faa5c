"""Facts become records by rule: the newer closes the older, repetition changes nothing, and nothing else changes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from retain.ingest.extraction import ExtractedFact
from retain.ingest.learning import SourcedFact, learned
from retain.memory.records.limits import MAX_PART_BYTES
from retain.memory.records.record import RecordSource
from tests.ingest.substrate import FixedExtractor, IngestSubstrate, turns
from tests.memory.semantic.substrate import AGENT, PERSON

DAY = 86_400_000
START = 1_600_000_000_000


async def say(substrate: IngestSubstrate, day: int, *lines: str) -> None:
    job = await substrate.ingest("chat", turns(*lines, at_ms=START + day * DAY))
    assert job.state == "completed"


async def test_a_newer_fact_closes_the_older_one(substrate: IngestSubstrate) -> None:
    await say(substrate, 0, "Bea: I live in Paris.")
    await say(substrate, 9, "Bea: I've just moved to Rome.")
    old, new = await substrate.facts()
    assert (old.content, old.valid_from_ms, old.valid_to_ms) == ("Bea lives in Paris", START, START + 9 * DAY)
    assert old.superseded_by == new.id
    assert (new.content, new.valid_to_ms) == ("Bea lives in Rome", None)
    assert (new.subject, new.predicate, new.object) == ("speaker:bea", "lives_in", "Rome")
    assert new.confidence == 0.85


@pytest.mark.parametrize("letter", ["\u6797", "\u0939", "\U00020000"], ids=["Chinese", "Devanagari", "rare"])
async def test_a_fact_whose_object_has_many_bytes_keeps_its_beginning_and_stops_no_message(
    substrate: IngestSubstrate, letter: str
) -> None:
    await say(substrate, 0, f"Bea: I like {letter * 240}.", "Bea: I live in Paris.")
    liked, lives = await substrate.facts()
    assert (liked.content, lives.object) == (f"Bea likes {letter * 240}", "Paris")
    assert liked.object == letter * (MAX_PART_BYTES // len(letter.encode()))


async def test_what_differs_in_a_sign_alone_is_liked_and_disliked_side_by_side(substrate: IngestSubstrate) -> None:
    await say(substrate, 0, "Bea: I love C++.")
    await say(substrate, 1, "Bea: I love C#.")
    await say(substrate, 2, "Bea: I hate F#.")
    await say(substrate, 3, "Bea: I hate C.")
    assert await substrate.true_facts() == ["Bea dislikes C", "Bea dislikes F#", "Bea likes C#", "Bea likes C++"]


async def test_speakers_whose_names_differ_in_a_vowel_sign_or_are_emoji_keep_their_own_facts(
    substrate: IngestSubstrate,
) -> None:
    names = ("\u092e\u0940\u0928\u093e", "\u092e\u094b\u0928\u093e", "\U0001f431", "\U0001f436")
    await say(substrate, 0, *(f"{name}: I live in {place}." for name, place in zip(names, "ABCD", strict=True)))
    assert len(await substrate.true_facts()) == 4


@pytest.mark.parametrize(
    ("lines", "true"),
    [
        (("I live in Paris.", "I live in Rome, not Paris."), ["lives in Rome"]),
        (("I work at Acme.", "I work at Beta and not at Acme."), ["works at Beta"]),
        (("I'm married.", "I'm engaged with a customer right now."), ["is married"]),
        (("I'm vegan.", "I'm no longer vegan.", "I'm vegan again."), ["is vegan"]),
        (("I'm single.", "I'm married to Tom."), ["is married", "is married to Tom"]),
        (("I'm married.", "I'm no longer married.", "I'm married again."), ["is married"]),
    ],
    ids=lambda value: value[-1],
)
async def test_what_was_said_last_is_true(substrate: IngestSubstrate, lines: tuple[str, ...], true: list[str]) -> None:
    for day, line in enumerate(lines):
        await say(substrate, day, f"Bea: {line}")
    assert await substrate.true_facts() == [f"Bea {one}" for one in true]


async def test_a_favourite_colour_is_a_favorite_color(substrate: IngestSubstrate) -> None:
    await say(substrate, 0, "Bea: My favorite color is blue.")
    await say(substrate, 1, "Bea: My favourite colour is red.")
    assert await substrate.true_facts() == ["Bea's favorite colour is red"]


async def test_a_newer_fact_closes_the_older_one_within_one_request(substrate: IngestSubstrate) -> None:
    await say(substrate, 0, "Bea: I live in Paris.", "Bea: I live in Rome.", "Bea: I live in Oslo.")
    assert await substrate.true_facts() == ["Bea lives in Oslo"]
    assert len(await substrate.facts()) == 3


async def test_facts_that_can_be_true_together_do_not_close_each_other(substrate: IngestSubstrate) -> None:
    await say(substrate, 0, "Bea: I like tea.", "Bea: I like coffee.", "Bea: My daughter Mia met my daughter Ida.")
    assert await substrate.true_facts() == [
        "Bea has a daughter named Ida",
        "Bea has a daughter named Mia",
        "Bea likes coffee",
        "Bea likes tea",
    ]


async def test_speakers_do_not_close_each_others_facts(substrate: IngestSubstrate) -> None:
    await say(substrate, 0, "Bea: I live in Paris.", "Tom: I live in Rome.")
    assert await substrate.true_facts() == ["Bea lives in Paris", "Tom lives in Rome"]


async def test_an_earlier_statement_that_arrives_later_closes_nothing(substrate: IngestSubstrate) -> None:
    await say(substrate, 9, "Bea: I live in Rome.")
    await say(substrate, 0, "Bea: I live in Paris.")
    assert await substrate.true_facts() == ["Bea lives in Rome"]


@pytest.mark.parametrize("together", [True, False], ids=["in one request", "day by day"])
async def test_what_is_true_again_becomes_valid_again(substrate: IngestSubstrate, *, together: bool) -> None:
    talk = [
        turn
        for day, place in enumerate(("Paris", "Rome", "Paris", "Paris"))
        for turn in turns(f"Bea: I live in {place}.", at_ms=START + day * DAY)
    ]
    for request in [talk] if together else [[turn] for turn in talk]:
        assert (await substrate.ingest("chat", request)).state == "completed"
    assert [(record.content, record.valid_from_ms, record.valid_to_ms) for record in await substrate.facts()] == [
        ("Bea lives in Paris", START, None),
        ("Bea lives in Rome", START + DAY, START + 2 * DAY),
    ]
    assert (await substrate.facts())[0].gaps == ((START + DAY, START + 2 * DAY),)


async def test_a_fact_that_a_person_closed_is_not_learned_again(substrate: IngestSubstrate) -> None:
    await say(substrate, 0, "Bea: I live in Paris.")
    [fact] = await substrate.facts()
    await substrate.memory().invalidate(fact.id, START + DAY, PERSON)
    await say(substrate, 2, "Bea: I live in Paris.")
    assert await substrate.true_facts() == []


async def test_a_dislike_closes_the_like_of_the_same_thing_and_vice_versa(substrate: IngestSubstrate) -> None:
    await say(substrate, 0, "Bea: I like tea.", "Bea: I like coffee.")
    await say(substrate, 1, "Bea: I don't like tea.")
    assert await substrate.true_facts() == ["Bea dislikes tea", "Bea likes coffee"]
    await say(substrate, 2, "Bea: I love tea!")
    assert await substrate.true_facts() == ["Bea likes coffee", "Bea likes tea"]


async def test_a_statement_of_what_is_valid_anyway_outlasts_one_that_arrives_later(substrate: IngestSubstrate) -> None:
    await say(substrate, 0, "Bea: I live in Paris.")
    await say(substrate, 5, "Bea: I live in Paris.")
    await say(substrate, 3, "Bea: I live in Rome.")
    assert [
        (record.content, record.valid_from_ms, record.valid_to_ms, record.gaps) for record in await substrate.facts()
    ] == [
        ("Bea lives in Paris", START, None, ((START + 3 * DAY, START + 5 * DAY),)),
        ("Bea lives in Rome", START + 3 * DAY, START + 5 * DAY, ()),
    ]


async def test_the_same_fact_in_other_words_is_another_statement_of_it(substrate: IngestSubstrate) -> None:
    memory = substrate.memory()
    paris = _fact("lives_in", "Paris", 0)
    await memory.learn(learned([paris]))
    reworded = replace(paris.fact, content="Bea's home is Paris", object="paris")
    await memory.learn(learned([replace(paris, fact=reworded, at_ms=START + DAY)]))
    [record] = await substrate.listed()
    assert (record.content, record.claims) == ("Bea lives_in Paris", ((START, None), (START + DAY, None)))


async def test_what_a_person_wrote_gets_no_claims_of_others(substrate: IngestSubstrate) -> None:
    await substrate.store(
        "Bea lives in Paris", AGENT, PERSON, subject="speaker:bea", predicate="lives_in", object="Paris"
    )
    before = await substrate.listed()
    substrate.clock.advance(DAY)
    await substrate.ingest("chat", turns("Bea: I live in Paris."))
    assert [record for record in await substrate.listed() if record.utterance is None] == before


HISTORIES: tuple[tuple[str, tuple[tuple[int, str], ...], tuple[str, ...]], ...] = (
    ("a diet ends", ((0, "I'm vegetarian."), (5, "I'm not vegetarian any more.")), ("Bea is no longer vegetarian",)),
    ("a job ends", ((0, "I work at Acme."), (5, "I no longer work at Acme.")), ("Bea no longer works at Acme",)),
    ("a home is left", ((0, "I live in Rome."), (5, "We moved out of Rome.")), ("Bea no longer lives in Rome",)),
    ("a medicine is stopped", ((0, "I take ibuprofen daily."), (5, "I stopped taking ibuprofen.")),
     ("Bea no longer takes ibuprofen",)),
    ("a habit is quit", ((0, "I'm a smoker."), (5, "I quit smoking.")), ("Bea is no longer a smoker",)),
    ("it used to be so", ((0, "I work as a nurse."), (5, "I used to work as a nurse.")),
     ("Bea's job is no longer nurse",)),
    ("a thing is sold", ((0, "I own a boat."), (5, "I sold my boat.")), ("Bea no longer has a boat",)),
    ("a denial stores nothing", ((0, "I'm vegetarian."), (5, "I'm not vegetarian.")), ()),
    ("a taste ends", ((0, "I like jazz."), (5, "I used to like jazz.")), ("Bea no longer likes jazz",)),
    ("another one ends", ((0, "I live in Rome."), (5, "I no longer live in Oslo.")),
     ("Bea lives in Rome", "Bea no longer lives in Oslo")),
    ("it begins again", ((0, "I live in Rome."), (5, "I no longer live in Rome."), (9, "I live in Rome.")),
     ("Bea lives in Rome",)),
    ("it moves on", ((0, "I live in Rome."), (5, "I just moved from Rome to Oslo.")),
     ("Bea lives in Oslo", "Bea no longer lives in Rome")),
    ("only something is denied", ((0, "I'm vegetarian."), (5, "I'm not only vegetarian but vegan.")),
     ("Bea is vegetarian",)),
    ("a limit is no end", ((0, "I work at Acme."), (5, "I work no longer than eight hours.")), ("Bea works at Acme",)),
    ("a part of it ends", ((0, "I work at Acme."), (5, "I don't work at Acme on Fridays.")), ("Bea works at Acme",)),
)  # fmt: skip


@pytest.mark.parametrize("backwards", [False, True], ids=["in order", "out of order"])
@pytest.mark.parametrize(
    ("statements", "valid"), [history[1:] for history in HISTORIES], ids=[one[0] for one in HISTORIES]
)
async def test_what_has_ended_is_closed_when_it_was_said_in_any_order_of_arrival(
    substrate: IngestSubstrate, statements: tuple[tuple[int, str], ...], valid: tuple[str, ...], *, backwards: bool
) -> None:
    if backwards and valid == ():  # a denial stores nothing, so what arrives later does not meet it
        valid = ("Bea is vegetarian",)
    for day, text in reversed(statements) if backwards else statements:
        await say(substrate, day, f"Bea: {text}")
    assert await substrate.true_facts() == sorted(valid)


async def test_an_ended_fact_is_closed_at_the_time_of_the_statement(substrate: IngestSubstrate) -> None:
    await say(substrate, 0, "Bea: I'm vegetarian.")
    await say(substrate, 5, "Bea: I'm not vegetarian any more.")
    vegetarian, over = await substrate.facts()
    assert (vegetarian.content, vegetarian.valid_from_ms, vegetarian.valid_to_ms) == (
        "Bea is vegetarian",
        START,
        START + 5 * DAY,
    )
    assert (over.predicate, over.object, over.valid_from_ms) == (
        "no_longer:diet:vegetarian",
        "vegetarian",
        START + 5 * DAY,
    )
    before = await substrate.rows("SELECT * FROM memory_events ORDER BY event_id")
    await say(substrate, 5, "Bea: I'm not vegetarian any more.")
    assert await substrate.rows("SELECT * FROM memory_events ORDER BY event_id") == before


async def test_a_statement_ends_nothing_that_a_person_wrote(substrate: IngestSubstrate) -> None:
    fields = {"subject": "speaker:bea", "predicate": "diet", "object": "vegetarian", "valid_from_ms": START}
    await substrate.store("Bea is vegetarian", AGENT, PERSON, **fields)
    await say(substrate, 5, "Bea: I'm not vegetarian any more.")
    assert (await substrate.listed())[0].valid_to_ms is None


async def test_dislike_does_not_close_what_a_person_wrote(substrate: IngestSubstrate) -> None:
    await substrate.store(
        "Bea likes tea", AGENT, PERSON, subject="speaker:bea", predicate="likes:tea", object="tea", valid_from_ms=START
    )
    await say(substrate, 1, "Bea: I don't like tea.")
    assert (await substrate.listed())[0].valid_to_ms is None


@pytest.mark.parametrize("at_ms", [START, None], ids=["dated", "undated"])
async def test_a_fact_names_the_message_it_was_drawn_from(substrate: IngestSubstrate, at_ms: int | None) -> None:
    substrate.extractor = lambda: FixedExtractor({"Hm.": [("p", "q")]})
    await substrate.ingest("chat", turns("Bea: Hm.", first_id=7, at_ms=at_ms))
    utterance, fact = await substrate.listed()
    assert fact.source == {"origin": "extraction", "message": "m7", "record_id": utterance.id}
    assert fact.valid_from_ms == (substrate.clock() if at_ms is None else START)
    assert fact.utterance is None


async def test_learning_twice_changes_nothing(substrate: IngestSubstrate) -> None:
    await say(substrate, 0, "Bea: I live in Paris.", "Bea: I like tea.")
    [record, *_] = await substrate.listed()
    facts = [
        _fact("lives_in", "Rome", 1, record.id),
        _fact("lives_in", "Paris", 2, record.id),
        _fact("dislikes:tea", "tea", 2, record.id),
    ]
    memory = substrate.memory()
    await memory.learn(learned(facts))
    before = await substrate.rows("SELECT * FROM memory_events ORDER BY event_id")
    assert len(before) > 6
    await memory.learn(learned(facts))
    assert await substrate.rows("SELECT * FROM memory_events ORDER BY event_id") == before


def test_facts_are_learned_in_the_order_in_which_they_were_stated() -> None:
    facts = [_fact("lives_in", "Rome", 2), _fact("lives_in", "Paris", 1), _fact("not:lives_in:rome", "Rome", 3)]
    paris, rome, not_rome = learned(facts)
    assert [one.new.object for one in (paris, rome, not_rome)] == ["Paris", "Rome", "Rome"]
    assert (paris.opposites, paris.denied) == (("no_longer:lives_in:paris",), False)
    assert (not_rome.opposites, not_rome.denied) == (("lives_in:rome", "lives_in"), True)


def _fact(predicate: str, value: str, day: int, record_id: str = "01HF0000000000000000000000") -> SourcedFact:
    content = f"Bea {predicate.partition(':')[0]} {value}"
    fact = ExtractedFact("speaker:bea", predicate, value, content, "fact", 0.8, record_id)
    return SourcedFact(fact, RecordSource("extraction", record_id=record_id), START + day * DAY)
