"""What code can tell about a query, without a model."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from retain.errors import InvalidInput, LimitExceeded
from retain.memory.recall.words import STOP, stem, without_runs, words

MAX_QUERY_BYTES = 8 * 1024
MAX_EXACT_TERMS = 8
QUOTATION = 0.1
"""Weight of a quotation, which is often mere emphasis, against that of an address or an id."""

_CONVERSATIONAL = re.compile(r"\b(?:i|me|my|we|our|us|let's|you|your)\b", re.IGNORECASE)
_WHEN = re.compile(r"\s*(?:when|how long|(?:what|which) (?:date|day|week|month|year|time))\b", re.IGNORECASE)
_QUOTED = re.compile('["\u201c]([^"\u201c\u201d]{2,80})["\u201d]')
# An address begins where a run of its characters does, and a word is judged once it is cut out: looking ahead from every
# place would take quadratic time.
_EXACT = re.compile(r"(?<![\w.+-])[\w.+-]+@[\w-]+\.[\w.-]*\w|[\w-]{4,}|#\d{2,}")
_QUANTITY = re.compile(r"\d+-?[a-z]+(?:-[a-z\d]+)*")


@dataclass(frozen=True, slots=True)
class Query:
    """A query taken apart.

    stems: those it asks for, without stop words unless there is nothing else, in order. exact: addresses, ids (not
    quantities as "12th" or "30-minute") and quotations as stems in order, with the weight of each. message: it belongs
    to a running conversation ("we", "my"), rather than asking about a named third person. asks_when: it asks for a time.
    """

    text: str
    stems: tuple[str, ...]
    exact: Mapping[tuple[str, ...], float]
    message: bool
    asks_when: bool


def analyse(text: str) -> Query:
    """Take a query apart. Raises: InvalidInput for an empty one, LimitExceeded for a too long one."""
    if not text.strip():
        raise InvalidInput("a recall needs a query", code="empty_query")
    if len(text.encode("utf-8", "replace")) > MAX_QUERY_BYTES:
        raise LimitExceeded("the query is too long", code="query_too_large", limit_bytes=MAX_QUERY_BYTES)
    found = words(text)
    stems = dict.fromkeys(stem(word) for word in [word for word in found if word not in STOP] or found)
    exact: dict[tuple[str, ...], float] = {}
    for pattern, weight in ((_EXACT, 1.0), (_QUOTED, QUOTATION)):
        for match in pattern.findall(without_runs(text) if pattern is _EXACT else text):
            if pattern is _EXACT and not _is_exact(match):
                continue
            phrase = tuple(stem(word) for word in words(match))
            if phrase and len(exact) < MAX_EXACT_TERMS:
                exact.setdefault(phrase, weight)
    return Query(text, tuple(stems), exact, bool(_CONVERSATIONAL.search(text)), bool(_WHEN.match(text)))


def _is_exact(match: str) -> bool:
    """Tell whether a match is an address, a numbered sign, or a word of digits and letters that is no quantity."""
    if "@" in match or match.startswith("#"):
        return True
    word = match.strip("-")
    digits, letters = any(c.isdigit() for c in word), any(c.isascii() and c.isalpha() for c in word)
    return len(word) >= 4 and digits and letters and _QUANTITY.fullmatch(word) is None
