"""What code can tell about a query, without a model."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from retain.errors import InvalidInput, LimitExceeded
from retain.memory.recall.dates import Interval, dates
from retain.memory.recall.words import STOP, stem, without_runs, words

MAX_QUERY_BYTES = 8 * 1024
MAX_EXACT_TERMS = 8
ROLES = frozenset(("user", "assistant", "system", "tool", "human", "ai"))
"""Speakers whose name says nothing about who they are."""
QUOTATION = 0.1
"""Weight of a quotation, which is often mere emphasis, against that of an address or an id."""

_CONVERSATIONAL = re.compile(r"\b(?:i|me|my|we|our|us|let's|you|your)\b", re.IGNORECASE)
_WHEN = re.compile(r"\s*(?:when|how long|(?:what|which) (?:date|day|week|month|year|time))\b", re.IGNORECASE)
_QUOTED = re.compile('["\u201c]([^"\u201c\u201d]{2,80})["\u201d]')
# An address begins where a run of its characters does, and a word is judged once it is cut out: looking ahead from every
# place would take quadratic time.
_EXACT = re.compile(r"(?<![\w.+-])[\w.+-]+@[\w-]+\.[\w.-]*\w|[\w-]{4,}|#\d{2,}")
_QUANTITY = re.compile(r"\d+-?[a-z]+(?:-[a-z\d]+)*")
_PERIOD = re.compile(r"\d{4}-\d\d(?:-\d\d)?|(?:19|20)\d\d-(?:19|20)\d\d")
# What a number is the number of: behind such a word it is an id, and alone when it is long and not round.
_NUMBERED = re.compile(
    r"\b(?:accounts?|bookings?|cases?|claims?|contracts?|customers?|deliver(?:y|ies)|flights?|ids?|invoices?|issues?|"
    r"items?|members?|numbers?|orders?|parcels?|po|references?|ref|refunds?|reservations?|rma|rooms?|shipments?|sku|tickets?|"
    r"tracking|transactions?)\b[ .:]{1,3}(?:(?:no|nr|number|id)\b[ .:]{1,3})?#?(\d{3,})(?![\w%]|[.,-]\d)",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"(?<![\w$€£¥.,@+-])\d{5,}(?![\w%-]|[.,]\d)")


@dataclass(frozen=True, slots=True)
class Query:
    """A query taken apart.

    stems: those it asks for, without stop words unless there is nothing else, in order. exact: addresses, ids (not
    quantities as "12th" or "30-minute") and quotations as stems in order, with the weight of each. message: it belongs
    to a running conversation ("we", "my"), rather than asking about a named third person. asks_when: it asks for a time.
    times: the spans of time that it names.
    """

    text: str
    stems: tuple[str, ...]
    exact: Mapping[tuple[str, ...], float]
    message: bool
    asks_when: bool
    times: tuple[Interval, ...]

    def names(self, speaker: str | None) -> bool:
        """Tell whether a word of the speaker's name is asked for; a role, as "user", names nobody."""
        if speaker is None or speaker.lower() in ROLES:
            return False
        return any(stem(word) in self.stems for word in words(speaker))


def analyse(text: str, now_ms: int) -> Query:
    """Take a query apart; its relative dates are relative to `now_ms`.

    Raises: InvalidInput for an empty one, LimitExceeded for a too long one.
    """
    if not text.strip():
        raise InvalidInput("a recall needs a query", code="empty_query")
    if len(text.encode("utf-8", "replace")) > MAX_QUERY_BYTES:
        raise LimitExceeded("the query is too long", code="query_too_large", limit_bytes=MAX_QUERY_BYTES)
    found = words(text)
    stems = dict.fromkeys(stem(word) for word in [word for word in found if word not in STOP] or found)
    return Query(
        text,
        tuple(stems),
        _exact_terms(text),
        bool(_CONVERSATIONAL.search(text)),
        bool(_WHEN.match(text)),
        dates(text, now_ms),
    )


def _exact_terms(text: str) -> dict[tuple[str, ...], float]:
    """Return addresses, ids, numbers and quotations as stems in order, with the weight of each."""
    spaced = without_runs(text)
    found = [(match, 1.0) for match in _EXACT.findall(spaced) if _is_exact(match)]
    found += [(number, 1.0) for number in _NUMBERED.findall(spaced)]
    found += [(number, 1.0) for number in _NUMBER.findall(spaced) if not number.endswith("000")]
    found += [(quotation, QUOTATION) for quotation in _QUOTED.findall(text)]
    exact: dict[tuple[str, ...], float] = {}
    for match, weight in found:
        phrase = tuple(stem(word) for word in words(match))
        if phrase and len(exact) < MAX_EXACT_TERMS:
            exact.setdefault(phrase, weight)
    return exact


def _is_exact(match: str) -> bool:
    """Tell whether a match is an address, a numbered sign, a word of digits and letters that is no quantity, or digits
    and hyphens that are no date.
    """
    if "@" in match or match.startswith("#"):
        return True
    word = match.strip("-")
    digits, letters = any(c.isdigit() for c in word), any(c.isascii() and c.isalpha() for c in word)
    if digits and not letters:
        return "-" in word and sum(c.isdigit() for c in word) >= 6 and _PERIOD.fullmatch(word) is None
    return len(word) >= 4 and digits and letters and _QUANTITY.fullmatch(word) is None
