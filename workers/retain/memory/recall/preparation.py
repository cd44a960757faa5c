"""What a write indexes of a record. Nothing here depends on other records, so writing is incremental."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache

from retain.memory.recall.languages.dates import in_english
from retain.memory.recall.languages.detection import ENGLISH
from retain.memory.recall.languages.terms import index_terms, language
from retain.memory.records.record import Utterance
from retain.ports import Vector

PART_CHARACTERS = 800
"""Length of a part: each part of a long text has a vector of its own."""
MAX_PARTS = 192
"""More parts than the largest content has, so nothing is left out."""
WINDOW_LIMIT = 2000
"""A record with more characters is ranked alone, without its neighbours."""
SPAN = 3
"""Turns of context on either side."""
SIGNATURE_BITS = 1024

_SENTENCE_END = re.compile(r"[.!?]+")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
NAMES_TIME = re.compile(
    r"\b(?:yesterday|today|tonight|tomorrow|ago|last|next|this (?:week|month|year|morning|weekend)|weekend|since|recently|"
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)day|january|february|march|april|may|june|july|august|september|october|"
    r"november|december|\d{4})\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class PreparedRecord:
    """What the index holds of one record, except its vectors.

    parts: the texts to embed, each after the head. stems: of every word, in order, then single letters of scripts
    without spaces. terms: the distinct stems, "" for records too long to use their neighbours. length: in characters.
    span: turns of context on either side. asking: share of its sentences that are questions.
    """

    parts: tuple[str, ...]
    stems: tuple[str, ...]
    terms: str
    length: int
    span: int
    names_time: bool
    asking: float


def prepare(content: str, utterance: Utterance | None) -> PreparedRecord:
    """Return what the index is to hold of a record, except its vectors."""
    head = _head(utterance)
    code = language(content)
    stems = (*index_terms(head, ENGLISH), *index_terms(content, code))
    short = len(content) <= WINDOW_LIMIT
    return PreparedRecord(
        parts=tuple(head + part for part in cut(content)),
        stems=stems,
        terms=" ".join(sorted(set(stems))) if short else "",
        length=len(content),
        span=SPAN if short and utterance is not None else 0,
        names_time=NAMES_TIME.search(in_english(content, code)) is not None,
        asking=min(1.0, content.count("?") / max(1, len(_SENTENCE_END.findall(content)))),
    )


def _head(utterance: Utterance | None) -> str:
    """Return the date and speaker that precede an utterance: who said it, and when, is part of its meaning."""
    if utterance is None:
        return ""
    if utterance.at_ms is None:
        return f"{utterance.speaker}: "
    at = datetime.fromtimestamp(utterance.at_ms / 1000, UTC)
    return f"{at.day} {at:%B}, {at.year} ({at:%A}) {utterance.speaker}: "


def cut(text: str, size: int = PART_CHARACTERS) -> list[str]:
    """Cut a text at sentences and lines into parts of about `size` characters, at most `MAX_PARTS`."""
    parts: list[str] = []
    current = ""
    for sentence in _SENTENCE.split(text):
        piece = sentence
        while len(piece) > size * 3 // 2:
            place = piece.rfind(" ", size // 2, size)
            place = place if place > 0 else size
            if current:
                parts.append(current)
                current = ""
            parts.append(piece[:place])
            piece = piece[place:]
        if not piece.strip():
            continue
        if current and len(current) + len(piece) > size:
            parts.append(current)
            current = piece
        else:
            current = f"{current} {piece}" if current else piece
    if current:
        parts.append(current)
    return (parts or [text])[:MAX_PARTS]


def signature(vectors: Sequence[Vector]) -> str:
    """Return the signs of sparse random projections of the mean vector, in hexadecimal; "0" without vectors.

    The share of equal bits of two signatures grows with the cosine of their vectors, and comparing them is one xor.
    Source: https://doi.org/10.1145/509907.509965
    """
    if not vectors:
        return "0"
    mean = [sum(column) for column in zip(*vectors, strict=True)]
    bits = [
        "1" if mean[a] + mean[b] + mean[c] + mean[d] > mean[e] + mean[f] + mean[g] + mean[h] else "0"
        for a, b, c, d, e, f, g, h in _projections(len(mean))
    ]
    return f"{int(''.join(bits), 2):x}"


@lru_cache(maxsize=4)
def _projections(dimensions: int) -> list[tuple[int, ...]]:
    """Return four dimensions to add and four to subtract per bit. Never changes: from a linear congruential generator.

    Source of the constants: https://doi.org/10.1090/S0025-5718-99-00996-5
    """
    state = 1
    found: list[tuple[int, ...]] = []
    for _ in range(SIGNATURE_BITS):
        chosen: list[int] = []
        while len(chosen) < 8:
            state = (state * 6364136223846793005 + 1442695040888963407) & 0xFFFFFFFFFFFFFFFF
            dimension = (state >> 33) % dimensions
            if dimension not in chosen:
                chosen.append(dimension)
        found.append(tuple(chosen))
    return found
