"""Which sentences the rules take at their word: corrections, but not questions in any script, nor what others say."""

from __future__ import annotations

import pytest

from retain.ingest.extraction import ExtractedFact, SourceMessage
from retain.ingest.extractors.rule_extractor import facts_of

STATED: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("I live in Rome, not Paris.", ("lives_in=Rome",)),
    ("No, I live in Rome, not in Paris!", ("lives_in=Rome",)),
    ("I actually live in Rome and not in Paris.", ("lives_in=Rome",)),
    ("I live in Rome \u2014 not Paris \u2014 and I work at Acme.", ("lives_in=Rome", "works_at=Acme")),
    ("My email is a@new.example, not a@old.example.", ("email=a@new.example",)),
    ("My name is Bea, not Bee.", ("name=Bea",)),
    ("I work at Beta, not Acme.", ("works_at=Beta",)),
    ("I'm a nurse, not a doctor.", ("works_as=nurse",)),
    ("I like tea, not coffee.", ("likes:tea=tea",)),
    ("I'm vegan and not a fan of mushrooms.", ("diet=vegan",)),
    ("Sorry, I meant I live in Rome.", ("lives_in=Rome",)),
    ("I meant to say that my name is Bea.", ("name=Bea",)),
    ("I mean, I live in Rome.", ("lives_in=Rome",)),
    ("I love sushi\uff01I hate tea\u3002", ("likes:sushi=sushi", "dislikes:tea=tea")),
    ("I love jazz\u061f I hate tea.", ("dislikes:tea=tea",)),
    ("I love Rome, it was like home.", ("likes:rome=Rome",)),
)
NOTHING: tuple[str, ...] = (
    # Denied as a whole, or in part.
    "I love sushi, not!",
    "I live in Paris, not any more.",
    "I like jazz, not really.",
    "I like tea, not so much.",
    "I eat meat, not often.",
    "I love jazz, not a bit.",
    "I live in Paris, not in a million years.",
    "I work at Acme, not on Fridays.",
    # Questions.
    "I love sushi?\U0001f914",
    "I love sushi\uff1f",
    "I hate dogs\u061f",
    "I love sushi?\u2026",
    "I like jazz?~",
    "I like jazz \u203d",
    # What others say.
    "My boss was like, I hate meetings.",
    "He was all like I hate meetings.",
    "She's like, I love garlic.",
    "And my mom goes, I love garlic.",
)


@pytest.mark.parametrize(("text", "expected"), STATED, ids=[text for text, _ in STATED])
def test_of_a_correction_what_is_so_is_a_fact(text: str, expected: tuple[str, ...]) -> None:
    assert sorted(f"{fact.predicate}={fact.object}" for fact in _facts(text)) == sorted(expected)


@pytest.mark.parametrize("text", NOTHING)
def test_what_is_denied_asked_or_reported_is_not_a_fact(text: str) -> None:
    assert [fact.content for fact in _facts(text)] == []


@pytest.mark.timeout(30)
@pytest.mark.parametrize("filling", [", not a", " and not", " - not ", ", ", "- ", "not ", "a, not in "])
def test_the_longest_sentence_with_corrections_needs_no_exponential_search(filling: str) -> None:
    _facts(("I live in Rome" + filling * 400)[:400])


def _facts(text: str) -> list[ExtractedFact]:
    return facts_of(SourceMessage("m", "Bea", text))
