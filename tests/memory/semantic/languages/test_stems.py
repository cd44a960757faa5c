"""Stems in seven languages: as Snowball's own implementation makes them, of words without accents."""

import importlib
import json
from collections.abc import Callable

import pytest
import snowballstemmer
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.probes import PROBES
from retain.memory.recall.languages.stems import dutch, french, german, iberian, italian, russian
from retain.memory.recall.words import fold, words

STEMMERS: dict[str, tuple[Callable[[str], str], str]] = {
    "de": (german.stem, "german"),
    "fr": (french.stem, "french"),
    "es": (iberian.spanish, "spanish"),
    "pt": (iberian.portuguese, "portuguese"),
    "it": (italian.stem, "italian"),
    "nl": (dutch.stem, "dutch_porter"),
    "ru": (russian.stem, "russian"),
}

TOGETHER = {
    "de": (
        "Rechnung Rechnungen",
        "Kunde Kunden",
        "freundlich freundliche freundlichen",
        "Krankheit Krankheiten",
    ),
    "fr": (
        "commande commandes",
        "livraison livraisons",
        "cherche chercher cherchez",
        "heureux heureuse",
        "national nationaux",
    ),
    "es": (
        "habitación habitaciones habitacion",
        "reserva reservas",
        "viajo viajar viajando",
    ),
    "pt": ("fatura faturas", "telefone telefones", "instalação instalações"),
    "it": (
        "tavolo tavoli",
        "stazione stazioni",
        "parlare parlato parlando",
        "gonfio gonfie gonfi",
        "rapido rapidamente",
    ),
    "nl": ("winkel winkels", "bestelling bestellingen", "mogelijk mogelijke", "vrijheid vrijheden"),
    "ru": ("задача задачи задачу задачей", "проверка проверки проверку", "ошибка ошибки ошибкой", "хранит хранить"),
}


@pytest.mark.parametrize("language", STEMMERS)
def test_forms_of_a_word_have_one_stem(language: str) -> None:
    stem = STEMMERS[language][0]
    for group in TOGETHER[language]:
        assert len({stem(fold(word)) for word in group.split()}) == 1, group


@pytest.mark.parametrize("language", STEMMERS)
def test_stems_are_those_of_snowball(language: str) -> None:
    """At least 95 of 100 of the probes' words: accents tell some words apart that are folded here."""
    stem, name = STEMMERS[language]
    reference = snowballstemmer.stemmer(name)
    found = sorted(
        {
            word
            for path in (PROBES / language).glob("*/*.jsonl")
            for line in path.read_text().splitlines()
            for text in (json.loads(line).get("text") or json.loads(line)["question"],)
            for word in text.lower().split()
            if word.isalpha()
        }
    )
    agreeing = [word for word in found if fold(reference.stemWord(word)) == stem(fold(word))]
    assert len(found) > 150
    assert len(agreeing) / len(found) >= 0.95, sorted({*found} - {*agreeing})


@pytest.mark.parametrize("language", STEMMERS)
@given(text=st.text(st.characters(max_codepoint=0x0500), max_size=30))
def test_any_word_has_a_stem_that_is_not_longer_by_more_than_an_ending(language: str, text: str) -> None:
    for word in words(text):
        if len(word) >= 3:
            assert 0 < len(STEMMERS[language][0](word)) <= len(word) + 1


def test_each_language_has_its_module() -> None:
    for module in ("german", "french", "iberian", "italian", "dutch", "russian"):
        assert importlib.import_module(f"retain.memory.recall.languages.stems.{module}").__doc__
