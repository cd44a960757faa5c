"""What Snowball's stemmers have in common: regions of a word, and its longest ending of a list.

All words are folded: lower case, without diacritics. So "habitación" and "habitacion", as many write it, have one stem.
Source: https://snowballstem.org/texts/r1r2.html
"""

from __future__ import annotations

from collections.abc import Iterable

VOWELS = frozenset("aeiouy")


def listed(text: str) -> tuple[str, ...]:
    """Return the endings of a text, longest first."""
    return tuple(sorted(set(text.split()), key=lambda ending: (-len(ending), ending)))


def marked(word: str, letters: str, vowels: frozenset[str] = VOWELS) -> str:
    """Return the word with those of the letters in upper case that are between vowels: there they are consonants."""
    return "".join(
        letter.upper()
        if letter in letters and {word[place - 1 : place], word[place + 1 : place + 2]} <= vowels
        else letter
        for place, letter in enumerate(word)
    )


def longest(word: str, endings: Iterable[str], start: int = 0) -> str:
    """Return the first of the endings with which the word ends from `start` on, or "". endings: longest first."""
    region = word[start:]
    return next((ending for ending in endings if region.endswith(ending)), "")


def after_vowel(word: str, start: int, vowels: frozenset[str] = VOWELS) -> int:
    """Return the position after the first consonant that follows a vowel from `start` on; the end if there is none."""
    for place in range(start + 1, len(word)):
        if word[place] not in vowels and word[place - 1] in vowels:
            return place + 1
    return len(word)


def r1_r2(word: str, vowels: frozenset[str] = VOWELS) -> tuple[int, int]:
    """Return where the regions R1 and R2 begin."""
    r1 = after_vowel(word, 0, vowels)
    return r1, after_vowel(word, r1, vowels)


def romance_rv(word: str, vowels: frozenset[str]) -> int:
    """Return where the region RV begins in Spanish, Portuguese and Italian.

    Source: https://snowballstem.org/algorithms/spanish/stemmer.html
    """
    if len(word) < 3:
        return len(word)
    if word[1] not in vowels:
        return next((place + 1 for place in range(2, len(word)) if word[place] in vowels), len(word))
    if word[0] in vowels:
        return next((place + 1 for place in range(2, len(word)) if word[place] not in vowels), len(word))
    return 3


def without(word: str, endings: Iterable[str], start: int) -> str:
    """Return the word without the first of the endings that it has, if that begins at `start` or later."""
    ending = longest(word, endings)
    return word[: -len(ending)] if ending and len(word) - len(ending) >= start else word
