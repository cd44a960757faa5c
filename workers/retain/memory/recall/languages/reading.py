"""Read a query or a statement by the kinds of its language (`languages.kinds`). One that has none is read as English."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from retain.memory.recall.languages.detection import ENGLISH
from retain.memory.recall.languages.han import simplified
from retain.memory.recall.languages.kinds import CHINESE, JAPANESE, KINDS
from retain.memory.recall.languages.terms import phrase_terms, telling_terms
from retain.memory.recall.words import fold, stem, telling, words

_UNSPACED = (CHINESE, JAPANESE)
_KANA = re.compile("[\u3041-\u309f\u30a1-\u30fa]")
_HAN = re.compile("[\u3400-\u9fff]")
_GRAMMAR = frozenset("的了是在有和与就都也很吗呢吧着过这那我你您他她它们为被把从到给请谁哪什么几")
"""Letters of Chinese words that tell little: pairs with them connect, they do not name."""
_HIRAGANA = re.compile("[\u3041-\u309f]+")


def language_of_kinds(text: str, code: str | None) -> str:
    """Return the code of the language by whose kinds a text is read. code: as `terms.detected` returns it."""
    if code is None and not text.isascii():
        if _KANA.search(text):
            return JAPANESE
        if _HAN.search(text):
            return CHINESE
    return code if code is not None and code in KINDS else ENGLISH


def seen_by_patterns(text: str, language: str) -> str:
    """Return a text as the patterns of a language expect it."""
    if language == CHINESE:
        return simplified(text)
    if language in (ENGLISH, JAPANESE):
        return text
    return fold(text).replace("\u2019", "'")


def signs_in(text: str, language: str, signs: frozenset[str]) -> frozenset[str]:
    """Return which of the words a text has; in Chinese and Japanese, which of the parts of a text."""
    if language in _UNSPACED:
        seen = seen_by_patterns(text, language)
        return frozenset(sign for sign in signs if sign in seen)
    return signs.intersection(words(text))


def denials(text: str, language: str) -> tuple[list[str], str]:
    """Return what a statement contrasts with the truth, and the statement without that: "Friday" of "Monday, not Friday"."""
    seen, pattern = seen_by_patterns(text, language), KINDS[language].denied
    denied = [next(part for part in found.groups() if part) for found in pattern.finditer(seen)]
    return denied, pattern.sub(" ", seen) if denied else text


def statement_terms(text: str, language: str) -> frozenset[str]:
    """Return the terms of the words that indicate what a text is about, as `comparable` has those of a query."""
    if language not in _UNSPACED:
        return frozenset(telling_terms(text, language))
    return frozenset(
        stem(word)
        for word in telling(words(seen_by_patterns(text, language)))
        if _GRAMMAR.isdisjoint(word) and (language == CHINESE or not _HIRAGANA.fullmatch(word))
    )


def comparable(stems: Sequence[str], language: str) -> frozenset[str]:
    """Return the stems of a query as `statement_terms` has them: of a Chinese one in simplified characters."""
    return frozenset(map(simplified, stems) if language == CHINESE else stems)


@cache
def indexed_phrases(phrases: tuple[str, ...], language: str) -> tuple[tuple[str, ...], ...]:
    """Return phrases of a language as the index has them: with its mark and, where a text did not show it, without."""
    marked = [phrase_terms(phrase, ENGLISH if language in _UNSPACED else language) for phrase in phrases]
    return tuple(dict.fromkeys([*marked, *(phrase_terms(phrase, ENGLISH) for phrase in phrases)]))
