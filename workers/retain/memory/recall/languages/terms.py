"""What the full-text index holds of a text in its language, and what a query looks for.

English, and every language without stems here, has the term of a word alone: its stem, as Porter makes it. A word of a
German text has German's mark before its German stem: so "die" there is not what "die" is in English, and no language
ranks by another one's counts. What belongs to no language has no mark in any text: numbers, ids, addresses. Names are
indexed both ways, since a question in another language has them, too; a query looks for both terms of each word, and finds
texts whose language does not show, and those indexed before there were marks. A Chinese word is looked for in traditional
and in simplified characters (`languages.han`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from retain.memory.recall.languages.detection import CYRILLIC, ENGLISH, LATIN, language_of
from retain.memory.recall.languages.han import other_forms
from retain.memory.recall.languages.stems import dutch, french, german, iberian, italian, russian
from retain.memory.recall.languages.stop_words import STOP
from retain.memory.recall.wording import undisguised
from retain.memory.recall.words import STOP as ENGLISH_STOP
from retain.memory.recall.words import fold, indexed_words, stem, telling, words

_STEMMERS: Mapping[str, Callable[[str], str]] = {
    "de": german.stem,
    "fr": french.stem,
    "es": iberian.spanish,
    "pt": iberian.portuguese,
    "it": italian.stem,
    "nl": dutch.stem,
    "ru": russian.stem,
}
_MARKS = {language: chr(0xE000 + number) for number, language in enumerate((*LATIN, *CYRILLIC))}
"""A character of Unicode's private use for each language: FTS5 takes it for a letter, and no word of a text has it.

Source: https://sqlite.org/fts5.html#unicode61_tokenizer
"""
_SHORTEST, _LONGEST = 3, 64
"""Only words of these lengths have a stem other than themselves."""
_UNDETECTED_WORDS = 3
"""A query with more words shows its language; that of a shorter one may be any."""
_NEUTRAL = re.compile(r"[\d@_/\\]|\w\.\w")
"""What makes a part of a text between spaces an id, a number or an address."""
_CAPITALISED = re.compile(r"\b(?=[^\W\d_])\w+")


def language(text: str) -> str:
    """Return the code of the language that a text is indexed in."""
    return detected(text) or ENGLISH


def detected(text: str) -> str | None:
    """Return the code of a text's language, `ENGLISH` if that shows, or None if none does."""
    return language_of(text, words(text), ENGLISH_STOP)


def index_terms(text: str, code: str) -> list[str]:
    """Return the terms that the index holds of a text in a language, in order, then names and single letters, each once.

    A word that looks like another one (`retain.memory.recall.wording`) is also indexed as that, so that it is found by what
    a reader sees.
    """
    if code == ENGLISH:
        return [*(stem(word) for word in indexed_words(text)), *_seen(text)]
    found: list[str] = []
    names = dict.fromkeys(stem(word) for word in words(" ".join(_capitalised(text, code))))
    for part in text.split():
        found += [stem(word) for word in words(part)] if _NEUTRAL.search(part) else _marked(words(part), code)
    return [*found, *(name for name in names if name not in found), *_seen(text)]


def phrase_terms(text: str, code: str) -> tuple[str, ...]:
    """Return the terms of a phrase in order, as a text of the language has them."""
    return tuple(stem(word) for word in words(text)) if _NEUTRAL.search(text) else tuple(_marked(words(text), code))


def telling_terms(text: str, code: str | None) -> dict[str, tuple[str, ...]]:
    """Return the terms of a query's words that tell what it is about, each with its other forms in the index.

    code: as `detected`. When the language does not show, the words of a short query are looked for in every language.
    """
    found = words(text)
    if code is None or code == ENGLISH:
        return _terms(telling(found), () if code == ENGLISH or len(found) > _UNDETECTED_WORDS else LATIN)
    return _terms([word for word in found if word not in STOP[code]], (code,), own=True)


def all_terms(text: str, code: str | None) -> dict[str, tuple[str, ...]]:
    """Return the same of all words of a query: for one that has only stop words."""
    plain = code is None or code == ENGLISH
    return _terms(words(text), () if code is None or plain else (code,), own=not plain)


def _terms(found: Sequence[str], languages: Sequence[str], *, own: bool = False) -> dict[str, tuple[str, ...]]:
    """Return each word's plain term with those in the languages. own: the plain one comes after the language's."""
    terms: dict[str, tuple[str, ...]] = {}
    for word in found:
        marked = [_term(word, one) for one in languages if own or _has_stem(word)]
        plain = [stem(word), *other_forms(word)]
        first, *others = dict.fromkeys([*marked, *plain] if own else [*plain, *marked])
        terms[first] = tuple(others)
    return terms


def _seen(text: str) -> list[str]:
    """Return the terms of the words that a reader sees in a text and that are spelled otherwise there, each once."""
    shown = undisguised(text)
    if shown == text:
        return []
    spelled = set(words(text))
    return list(dict.fromkeys(stem(word) for word in words(shown) if word not in spelled))


def _marked(found: Sequence[str], code: str) -> list[str]:
    return [_term(word, code) for word in found]


def _term(word: str, code: str) -> str:
    """Return the term of a word in a text of a language other than English: a number or a foreign script has no mark."""
    if any(c.isdigit() for c in word) or code == ENGLISH or (word.isascii() == (code in CYRILLIC)):
        return stem(word)
    return _MARKS[code] + (_STEMMERS[code](word) if _has_stem(word) else word)


def _has_stem(word: str) -> bool:
    return _SHORTEST <= len(word) <= _LONGEST and word.isalpha()


def _capitalised(text: str, code: str) -> list[str]:
    """Return the words with a capital letter that are not stop words: among them are the names."""
    if code in CYRILLIC:
        return []
    return [one for one in _CAPITALISED.findall(text) if one[0].isupper() and fold(one) not in STOP[code]]
