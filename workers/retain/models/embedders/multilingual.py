"""Words and pieces of a table for many scripts: text to folded words, words to the longest pieces of its vocabulary.

Scripts without spaces between words (Chinese, Japanese, Thai …) are cut by the vocabulary alone: the longest piece is
taken from left to right, as in maximum matching.
Source: https://aclanthology.org/C96-1035/ (maximum matching).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping

MAX_WORD_CHARACTERS = 100
"""A longer word has no pieces: it is data, not language. Runs of scripts without spaces are cut at this length."""

_SHORTEST_INNER = 3
"""The fewest letters of a word that may be found inside another one, as in a compound: shorter ones are accidental."""

_UNSPACED = (
    "\u0e01-\u0e4e\u0e81-\u0ece\u1000-\u103f\u1780-\u17d3"  # Thai, Lao, Myanmar, Khmer
    "\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff"  # Japanese
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003fffd"  # Chinese
)
_INDIC = "\u0900-\u0963\u0971-\u0d7f"
"""Letters and vowel signs of India's scripts: `re` does not take the signs for letters, but they are part of a word."""
_WORD = re.compile(rf"[{_UNSPACED}]{{1,{MAX_WORD_CHARACTERS}}}|\d+|[{_INDIC}]+|(?:(?![{_UNSPACED}{_INDIC}])[^\W\d_])+")
_RUN = re.compile(f"[{_UNSPACED}]")
_MARKS = re.compile("[\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0670]")
"""Signs that are often left out: accents, and the vowels of Hebrew and Arabic."""


def fold(text: str) -> str:
    """Return the text without case, accents and compatibility forms (full width, ligatures)."""
    if text.isascii():
        return text.lower()
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    return unicodedata.normalize("NFC", _MARKS.sub("", plain))


def words(text: str) -> list[str]:
    """Return the folded words of a text in order: letters, digits, and runs of scripts without spaces, each apart.

    Punctuation and symbols are left out.
    """
    return _WORD.findall(fold(text))


def split_word(word: str, vocabulary: Mapping[str, int]) -> list[int]:
    """Return the numbers of the longest pieces that make up the word, from left to right.

    A piece within a word is listed with `##` in front, or is a word of at least three letters, as in a compound. In a run
    of a script without spaces every piece begins a word. Characters without a piece are skipped.
    """
    pieces: list[int] = []
    if len(word) > MAX_WORD_CHARACTERS:
        return pieces
    unspaced = _RUN.match(word) is not None
    start = 0
    while start < len(word):
        for end in range(len(word), start, -1):
            part = word[start:end]
            piece = vocabulary.get(part) if unspaced or not start else _inner(part, vocabulary)
            if piece is not None:
                pieces.append(piece)
                start = end
                break
        else:
            start += 1
    return pieces


def _inner(part: str, vocabulary: Mapping[str, int]) -> int | None:
    """Return the number of a piece that does not begin its word; None if there is none."""
    piece = vocabulary.get(f"##{part}")
    return vocabulary.get(part) if piece is None and len(part) >= _SHORTEST_INNER and part.isalpha() else piece
