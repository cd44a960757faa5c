"""Which language a text is in, of those with stems of their own: by its script, its frequent words and its letters.

A text that shows none of them is taken for English, so an English text is not stemmed as another one. What is told apart
is only what Retain stems: a text in Swedish or Polish counts as English. Their words and letters are known so far that they
are not taken for German or French (`languages.others`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from retain.memory.recall.languages.others import LETTERS_OF_OTHERS, OTHERS
from retain.memory.recall.languages.stop_words import STOP

ENGLISH = "en"
LATIN = ("de", "fr", "es", "pt", "it", "nl")
"""Languages in Latin letters that are told apart, besides English."""
CYRILLIC = ("ru",)

_LONGEST_WORDS = 300
_LONGEST_CHARACTERS = 3000
"""How much of a text is looked at, from its beginning."""
_ENOUGH = 1.0
"""The least score for a language: one word that is its own."""
_RUSSIAN = re.compile("[\u0430-\u044f]")
_OTHER_CYRILLIC = re.compile("[\u0456\u0457\u0454\u0491\u045e\u0458\u0459\u045a\u045f\u0452\u045b]")
"""Letters of Ukrainian, Belarusian and Serbian."""
_ALPHABETS = {
    "de": "äöüß",
    "fr": "àâæçèéêëîïôœùûüÿ",
    "es": "áéíóúüñ",
    "pt": "àáâãçéêíóôõúü",
    "it": "àèéìíîòóùú",
    "nl": "áèéêëíïóöúü",
}
"""The letters of each language that are not in English, or not in every text of it."""
_LETTERS = {
    language: re.compile(pattern)
    for language, pattern in {
        "de": "[\u00df\u00e4\u00f6\u00fc]|(?:schaft|ung|keit|heit)(?:en)?\\b|\\w(?:scht|cht)\\b",
        "fr": "[\u0153\u00f9\u00fb\u00ee]|[\u00e8\u00e9]\\w*e\\b|"
        "\\b(?:[cdjlmnst]|qu)['\u2019](?=[a-z\u00e0-\u00ff])|\u00e9e?\\b",
        "es": "[\u00f1\u00bf\u00a1]|(?:\u00f3n|\u00e9s|\u00eda)\\b",
        "pt": "[\u00e3\u00f5]|\\b\u00e9\\b|\\w(?:nh|lh)[ao]s?\\b|\u00eas\\b|\\b\u00e0s?\\b",
        "it": "\\w[\u00e0\u00f2\u00ec]\\b|\\b\u00e8\\b|zion[ei]\\b|"
        "\\b(?:dell|nell|all|sull|dall|un|quell)['\u2019](?=[a-z\u00e0-\u00ff])",
        "nl": "\\w(?:ij|aa|uu|oe)\\w*",
    }.items()
}
"""Letters and parts of words that the others hardly have."""
_EACH_LETTER, _MOST_LETTERS = 0.6, 1.8
_FOREIGN = 0.6
"""What a word with a letter that the language does not have takes away from its score."""
_WORD = re.compile(r"[^\W\d_]+")
COMMON = {
    language: frozenset(words.split())
    for language, words in {
        "de": "frau herr herrn dr tag tage tagen gestern heute morgen woche jahr jahre uhr wohnt kunde kundin gern",
        "fr": "madame monsieur mademoiselle jour jours hier semaine annee heure heures habite aime client cliente rue",
        "es": "senor senora don dona dia dias ayer hoy manana semana ano hora horas vive cliente quiere calle prefiero",
        "pt": "senhor senhora dia dias ontem hoje amanha semana ano horas mora cliente quer rua prefiro posso gostaria",
        "it": "signor signora giorno giorni ieri oggi domani settimana anno ore abita cliente vuole chiude"
        " preferisco posso puoi vorrei",
        "nl": "mevrouw meneer dag dagen gisteren vandaag morgen week jaar uur woont klant graag",
    }.items()
}
"""Frequent words with a meaning of their own, folded: they show a language, but are not stop words."""


def language_of(text: str, found: Sequence[str], english: frozenset[str]) -> str | None:
    """Return the code of a text's language: one with stems of its own, `ENGLISH`, or None when none shows.

    found: the text's folded words. english: the stop words of English.
    """
    lowered = text[:_LONGEST_CHARACTERS].lower()
    plain = lowered.isascii()
    if not plain and _RUSSIAN.search(lowered):
        return None if _OTHER_CYRILLIC.search(lowered) else CYRILLIC[0]
    weights = _weights(english)
    scores = dict.fromkeys((ENGLISH, *LATIN, *OTHERS), 0.0)
    for word in found[:_LONGEST_WORDS]:
        for language, weight in weights.get(word, {}).items():
            scores[language] += weight
    for language, letters in (*_LETTERS.items(), *LETTERS_OF_OTHERS.items()):
        if scores[language] or not plain:
            scores[language] += min(_MOST_LETTERS, _EACH_LETTER * len(letters.findall(lowered)))
    if not plain:
        accented = [word for word in _WORD.findall(lowered) if not word.isascii()]
        accents = [{letter for letter in word if not letter.isascii()} for word in accented]
        for language, own in _ALPHABETS.items():
            scores[language] -= _FOREIGN * sum(not letters.issubset(own) for letters in accents)
    best = max(LATIN, key=scores.__getitem__)
    others = [score for language, score in scores.items() if language != best]
    if scores[best] >= _ENOUGH and scores[best] > max(others):
        return best
    return ENGLISH if scores[ENGLISH] else None


@lru_cache(maxsize=1)
def _weights(english: frozenset[str]) -> Mapping[str, Mapping[str, float]]:
    """Return what each word shows: of n languages that have it, each the less the more they are.

    A stop word of English shows English alone. A language without stems takes nothing from those that have them.
    """
    weights: dict[str, dict[str, float]] = {}
    for word in frozenset[str]().union(english, *STOP.values(), *COMMON.values(), *OTHERS.values()):
        having = [one for one in LATIN if word in STOP[one] or word in COMMON[one]]
        if word in english:
            weights[word] = {} if having else {ENGLISH: 1.0}
        elif word not in _ENGLISH_TOO:
            others = [one for one in OTHERS if word in OTHERS[one]]
            weights[word] = {one: len(having) ** -0.5 for one in having}
            weights[word] |= {one: (len(having) + 1) ** -0.5 for one in others}
    return weights


_ENGLISH_TOO = frozenset(
    """
    ad am at ben bis com come da dan dei den des die dir don dove dr e em en est et fin fur gab hat hen il ja la las le les
    li lo los ma mag mal man men mes met mi mon moi mute nu over per plus pour quel rue sans se seen sera si sin son sono sta
    sua sui sur ten toe tot tu un uni van vi via war week wit ya ze
    """.split()
)
"""Stop words of other languages that are English words, abbreviations or parts of names: they show nothing."""
