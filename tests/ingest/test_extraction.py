"""The names of facts: subjects, predicates and keys."""

from __future__ import annotations

import pytest

from retain.errors import Misconfigured
from retain.ingest.extraction import entity, predicate_of, subject_of
from retain.ingest.extractors.rule_extractor import RuleExtractor
from retain.ingest.extractors.selection import extractor
from retain.memory.records.object_keys import key_of
from tests.ingest.substrate import IngestSubstrate, turns
from tests.ports import raises


def _no_model() -> object:
    raise AssertionError("a model was made")


@pytest.mark.parametrize("name", ["Dr. Bea  Lang", "dr bea lang", " DR. BEA LANG ", "\uff24r. Bea Lang"])
def test_a_speaker_is_one_subject_in_any_spelling_of_the_name(name: str) -> None:
    assert subject_of(name) == "speaker:dr_bea_lang"


def test_subjects_of_any_length_fit_and_stay_distinct() -> None:
    long = ["x" * 512, "x" * 511, "ü" * 256, "!" * 512]
    assert len({subject_of(name) for name in long}) == 4
    assert all(len(subject_of(name).encode()) <= 512 for name in long)
    assert entity("Bea") == "entity:bea"


def test_a_predicate_with_one_value_at_a_time_is_used_without_its_object() -> None:
    assert predicate_of("lives_in", "Paris") == "lives_in"
    assert predicate_of("likes", "Green Tea!") == "likes:green_tea"
    assert predicate_of("favorite_color", "red", functional=True) == "favorite_color"


def test_long_objects_make_keys_that_stay_distinct() -> None:
    one, other = key_of("to call " + "mom " * 50), key_of("to call " + "mom " * 51)
    assert one != other
    assert max(len(one), len(other)) <= 80


@pytest.mark.parametrize(
    "texts",
    [
        ("C", "C++", "C#", "C++17", "C 17"),
        ("A", "A+", "A-"),
        ("5", "-5", "5%", "$5", "\u20ac5", "<5", ">5"),
        ("103", "10\u00b3", "10\u2083"),
        ("11/2", "1\u00bd"),
        ("\u092e\u0940\u0928\u093e", "\u092e\u094b\u0928\u093e"),  # two names in Devanagari
        ("\u0e2a\u0e38\u0e14\u0e32", "\u0e2a\u0e34\u0e14\u0e32"),  # two names in Thai
        ("\U0001f431", "\U0001f436"),
    ],
    ids=lambda texts: texts[0],
)
def test_texts_that_a_sign_or_a_vowel_sign_tells_apart_have_keys_of_their_own(texts: tuple[str, ...]) -> None:
    assert len({key_of(text) for text in texts}) == len(texts)
    assert len({subject_of(text) for text in texts}) == len(texts)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("Johnson & Johnson, Inc.", "johnson_johnson_inc"),
        ("bea@new.example", "bea_new_example"),
        ("+49 30 1234567", "49_30_1234567"),
        ("well-known caf\u00e9s (24/7)", "well_known_caf\u00e9s_24_7"),
        ("tea - green, 3-5 cups", "tea_green_3_5_cups"),
        ("sushi!! =) \U0001f363 <3", "sushi_3"),
        ("#1 of snake_case", "1_of_snake_case"),
        ("\u0130brahim", "i_brahim"),
        ("60 m\u00b2", "60_m2"),
        ("\u2212\uff15", "-5"),
        ("\u2764\ufe0f", "\u2764"),
        ("?!", "_"),
    ],
)
def test_plain_punctuation_and_decoration_make_no_difference_to_a_key(text: str, key: str) -> None:
    assert key_of(text) == key


async def test_speakers_with_the_longest_names_get_facts(substrate: IngestSubstrate) -> None:
    job = await substrate.ingest("chat", turns(f"{'x' * 512}: I live in Paris."))
    assert (job.state, job.extracted) == ("completed", 1)


def test_the_extractor_is_chosen_by_its_name() -> None:
    assert isinstance(extractor("rules", _no_model), RuleExtractor)  # type: ignore[arg-type]
    with raises(Misconfigured, code="unknown_extractor"):
        extractor("magic", _no_model)  # type: ignore[arg-type]
