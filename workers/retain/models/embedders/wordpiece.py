"""Word pieces: text to words, words to the pieces of an uncased BERT vocabulary.

Source: https://huggingface.co/docs/tokenizers/components (BertNormalizer, BertPreTokenizer, WordPiece) and
https://arxiv.org/abs/1810.04805.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping

MAX_WORD_CHARACTERS = 100
"""A longer word has no pieces: it is data, not language."""

_PUNCTUATION = r"!-/:-@\[-`{-~"
_WORD = re.compile(rf"[{_PUNCTUATION}]|[^\s{_PUNCTUATION}]+")


class _Fold(dict[int, int | str | None]):
    """Maps each character to its replacement, for `str.translate`.

    Only ASCII is kept in the table: other characters are computed each time, so that no text can make it grow.
    """

    def __missing__(self, code: int) -> int | str | None:
        category = unicodedata.category(chr(code))
        if category == "Mn" or category.startswith("C"):
            return None
        if category.startswith("P") or _is_cjk(code):
            return " "  # it would be a word of its own, for which the vocabulary has no piece
        return code


def _is_cjk(code: int) -> bool:
    return 0x3400 <= code <= 0x9FFF or 0xF900 <= code <= 0xFAFF or 0x20000 <= code <= 0x2FA1F


_FOLD = _Fold({code: code if chr(code).isprintable() or chr(code) in "\t\n\r" else None for code in range(128)})


def words(text: str) -> list[str]:
    """Split text into lower-case words without accents; each ASCII punctuation mark is a word of its own.

    Control characters vanish without splitting a word. Punctuation outside ASCII and CJK ideographs split words and are
    dropped.
    """
    return _WORD.findall(unicodedata.normalize("NFD", text).translate(_FOLD).lower())


def split_word(word: str, vocabulary: Mapping[str, int]) -> list[int]:
    """Return the numbers of the longest pieces that make up the word, from left to right.

    A piece that does not begin a word is listed in the vocabulary with `##` in front. BERT turns a word with one
    unknown character into one unknown piece; here the character is skipped, so that the rest keeps its meaning.
    """
    pieces: list[int] = []
    if len(word) > MAX_WORD_CHARACTERS:
        return pieces
    start, prefix = 0, ""
    while start < len(word):
        for end in range(len(word), start, -1):
            piece = vocabulary.get(prefix + word[start:end])
            if piece is not None:
                pieces.append(piece)
                start = end
                break
        else:
            start += 1
        prefix = "##"
    return pieces
