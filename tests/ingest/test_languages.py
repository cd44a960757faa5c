"""What the rules find in languages other than English."""

from __future__ import annotations

import pytest

from retain.ingest.extraction import SourceMessage
from retain.ingest.extractors.rule_extractor import facts_of
from retain.ingest.languages import LANGUAGES
from retain.ingest.languages.language import Language
from retain.ingest.languages.rule import ExtractionRule
from retain.ingest.speech.sentences import MAX_SENTENCE
from tests.ingest.languages import french, german, italian, spanish

CASES = {"de": german, "fr": french, "es": spanish, "it": italian}
FACTS = [(text, facts) for cases in CASES.values() for text, facts in (*cases.FACTS, *cases.OVER)]
NOTHING = [text for cases in CASES.values() for text in cases.NOTHING]
OTHERS = [language for language in LANGUAGES if language.code != "en"]
RULES = [(language, rule) for language in OTHERS for rule in language.rules]
NO_MORE = {"de": "nicht mehr", "fr": "plus", "es": "ya no", "it": "più"}


def _facts(text: str) -> list[str]:
    return [f"{fact.predicate}={fact.object}" for fact in facts_of(SourceMessage("m", "Bea", text))]


def test_each_language_is_tested() -> None:
    assert [language.code for language in OTHERS] == list(CASES)


@pytest.mark.parametrize(("text", "expected"), FACTS, ids=[text for text, _ in FACTS])
def test_a_statement_yields_its_facts_and_no_more(text: str, expected: tuple[str, ...]) -> None:
    assert sorted(_facts(text)) == sorted(expected)


@pytest.mark.parametrize("text", NOTHING)
def test_what_is_not_plainly_stated_yields_no_facts(text: str) -> None:
    assert _facts(text) == []


@pytest.mark.parametrize(("language", "rule"), RULES, ids=[f"{language.code} {rule.name}" for language, rule in RULES])
def test_every_rule_finds_something_and_says_what_has_ended(language: Language, rule: ExtractionRule) -> None:
    assert 0 < rule.confidence < 1
    texts = [
        text.replace("\u2019", "'").rstrip(".!")
        for text, _ in (*CASES[language.code].FACTS, *CASES[language.code].OVER)
    ]
    assert any(language.pattern(rule).search(text) for text in texts)
    if rule.can_end:
        assert NO_MORE[language.code] in language.ended_phrase(rule.phrase)


@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    "filling",
    [
        "a ", "A ", "A-", "Aa, ", "und ", "et ", "de ", "l'", "sehr gern ", "beaucoup ", "mucho ", "y ", "molto ", " ",
        "seit ja ja ", "depuis an ", "desde hace un ", "da un anno ",
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "start",
    [
        "Ich mag ", "Ich wohne ", "Ich bin ", "Mein Hund ", "J'aime ", "J'habite ", "Je suis ", "Mon chien ",
        "Me gusta ", "Vivo en ", "Soy ", "Mi perro ", "No como ", "Llevo ",
        "Mi piace ", "Vivo a ", "Sono ", "Il mio cane ", "Non mangio ",
    ],
)  # fmt: skip
def test_the_longest_sentence_that_rules_read_needs_no_exponential_search(start: str, filling: str) -> None:
    room = MAX_SENTENCE - len(start)
    facts_of(SourceMessage("m", "Bea", start + (filling * room)[:room]))


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        ("Odio il rumore.", "Bea detesta il rumore"),
        ("Odio los domingos.", "Bea detesta los domingos"),
        ("Adoro la musica.", "Bea ama la musica"),
        ("Adoro la música.", "A Bea le gusta la música"),
    ],
)
def test_a_verb_of_two_languages_is_read_in_the_one_that_its_object_has(text: str, phrase: str) -> None:
    assert [fact.content for fact in facts_of(SourceMessage("m", "Bea", text))] == [phrase]


def test_what_cannot_end_is_not_denied_either() -> None:
    assert _facts("I'm not from Rome.") == []


@pytest.mark.parametrize(
    "relation", ["age", "anniversary", "avoids", "birth_year", "birthday", "born_in", "comes_from", "grew_up_in"]
)
def test_a_relation_that_lasts_does_so_in_every_language(relation: str) -> None:
    rules = [rule for language in LANGUAGES for rule in language.rules if rule.predicate == relation]
    assert rules
    assert not [rule for rule in rules if rule.can_end]


def test_a_statement_in_one_language_ends_what_another_stated() -> None:
    predicates = {
        _facts(text)[0].partition("=")[0]
        for text in ("I live in Rome.", "Ich wohne in Rom.", "J'habite à Rome.", "Vivo en Roma.", "Vivo a Roma.")
    }
    assert predicates == {"lives_in"}
