"""What code can find out about a query, without a model."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from retain.errors import InvalidInput, LimitExceeded
from retain.memory.recall.languages.dates import in_english
from retain.memory.recall.languages.detection import ENGLISH, LATIN
from retain.memory.recall.languages.kinds import KINDS
from retain.memory.recall.languages.reading import language_of_kinds, seen_by_patterns, statement_terms
from retain.memory.recall.languages.talk import TALK
from retain.memory.recall.languages.terms import all_terms, detected, phrase_terms, telling_terms
from retain.memory.recall.times.dates import DAY_MS, Interval, dates, without_dates
from retain.memory.recall.times.positions import Positions, positions
from retain.memory.recall.words import stem, without_runs, words

MAX_QUERY_BYTES = 8 * 1024
MAX_EXACT_TERMS = 8
MAX_CONTEXT_TURNS = 20
MAX_CONTEXT_BYTES = 32 * 1024
"""Of the last turns of a conversation, together."""
CONTEXT_CHARACTERS = 400
"""How many of their characters are read with the query: the last ones."""
CONTEXT_WORDS = 20
"""The last of their words that rank what is found."""
ROLES = frozenset(("user", "assistant", "system", "tool", "human", "ai"))
"""Speakers whose name does not identify a person."""
_ASSISTANTS = frozenset(("assistant", "ai", "system", "tool"))
QUOTATION = 0.1
"""Weight of a quotation, which is often mere emphasis; an address or an id has 1."""

_QUOTED = re.compile('["\u201c]([^"\u201c\u201d]{2,80})["\u201d]')
# An address begins only where a run of its characters does, and a word is checked after it is matched: looking ahead
# from every position would take quadratic time.
_EXACT = re.compile(r"(?<![\w.+-])[\w.+-]+@[\w-]+\.[\w.-]*\w|[\w-]{4,}|#\d{2,}")
_QUANTITY = re.compile(r"\d+-?[a-z]+(?:-[a-z\d]+)*")
_PERIOD = re.compile(r"\d{4}-\d\d(?:-\d\d)?|(?:19|20)\d\d-(?:19|20)\d\d")
# A number is an id after one of these words, and anywhere when it is long and not round.
_NUMBERED = re.compile(
    r"\b(?:accounts?|bookings?|cases?|claims?|contracts?|customers?|deliver(?:y|ies)|flights?|ids?|invoices?|issues?|"
    r"items?|members?|numbers?|orders?|parcels?|po|references?|ref|refunds?|reservations?|rma|rooms?|shipments?|sku|tickets?|"
    r"tracking|transactions?)\b[ .:]{1,3}(?:(?:no|nr|number|id)\b[ .:]{1,3})?#?(\d{3,})(?![\w%]|[.,-]\d)",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"(?<![\w$€£¥.,@+-])\d{5,}(?![\w%-]|[.,]\d)")


@dataclass(frozen=True, slots=True)
class Query:
    """An analysed query.

    stems: of its words in order, without stop words unless it has nothing else. exact: addresses, ids (not quantities such
    as "12th" or "30-minute") and quotations as stems in order, with the weight of each. message: it continues a conversation
    ("we", "my"), rather than beginning with a question or looking back at an earlier one. of_user: it does not ask for what
    an assistant answered, nor for a summary. request: it asks for help or advice, or for what is not the asker's own past,
    so that standing instructions matter. advice: it asks for help or advice, so that preferences matter. asks_when: it asks
    for a time. times: the spans of time that it asks for; a message asks for those that are over, and makes plans for the
    others. positions: the conversations that it names by their position. named: the records in them, which only the memory
    knows. only_dated: it asks for what was said at its times, and for nothing else. telling: it has words that tell what it
    is about. context: the end of the conversation's last turns. context_stems: of its last words that the query does not
    have. forms: of a stem, the other terms that stand for it in the index (see `languages.terms`). language: the code of the
    one by whose kinds it was read (see `languages.kinds`).
    """

    text: str
    stems: tuple[str, ...]
    exact: Mapping[tuple[str, ...], float]
    message: bool
    of_user: bool
    request: bool
    advice: bool
    asks_when: bool
    times: tuple[Interval, ...]
    positions: Positions | None = None
    named: frozenset[str] = frozenset()
    only_dated: bool = False
    telling: bool = True
    context: str = ""
    context_stems: tuple[str, ...] = ()
    forms: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    language: str = ENGLISH

    @property
    def counted_stems(self) -> tuple[str, ...]:
        """The stems that count when what was found is ranked: the query's, and those of the turns before it."""
        return (*self.stems, *self.context_stems)

    def terms(self, stem: str) -> tuple[str, ...]:
        """Return the terms that stand for one of the stems in the index, itself first."""
        return (stem, *self.forms.get(stem, ()))

    def dates(self, at_ms: int) -> bool:
        """Return whether the query asks for this time."""
        return any(at_ms in span for span in self.times)

    def may_report(self, at_ms: int) -> bool:
        """Return whether what was said at this time may be of a time that the query asks for: then, or the day after."""
        return any(span.from_ms <= at_ms < span.to_ms + DAY_MS for span in self.times)

    def asks_for(self, record_id: str, at_ms: int) -> bool:
        """Return whether the query asks for this time, or for a conversation that the record is in."""
        return record_id in self.named or self.dates(at_ms)

    def names(self, speaker: str | None) -> bool:
        """Return whether the query contains a word of the speaker's name; a role, such as "user", is not a name."""
        if speaker is None or speaker.lower() in ROLES:
            return False
        asked = {term for one in self.stems for term in self.terms(one)}
        return any(stem(word) in asked for word in words(speaker))


def is_assistant(speaker: str | None) -> bool:
    """Return whether a speaker is an assistant, by role."""
    return speaker is not None and speaker.lower() in _ASSISTANTS


def latest(turns: Sequence[str]) -> str:
    """Return the end of a conversation's last turns, as much as is read with a query. turns: the last one comes last."""
    whole = "\n".join([turn.strip() for turn in turns if turn.strip()][-MAX_CONTEXT_TURNS:])
    end = whole[-CONTEXT_CHARACTERS:]
    return end if len(end) == len(whole) else end.partition(" ")[2] or end


def analyse(text: str, now_ms: int, turns: Sequence[str] = ()) -> Query:
    """Return the analysed query, its relative dates resolved against `now_ms`.

    turns: the last ones of the conversation to which the query belongs, oldest first. The search is for the query's words;
    one that has only stop words ("And then?") is searched for by those of the last turns.
    Raises: InvalidInput when it is empty, LimitExceeded when it or the turns are too long.
    """
    if not text.strip():
        raise InvalidInput("a recall needs a query", code="empty_query")
    if len(text.encode("utf-8", "replace")) > MAX_QUERY_BYTES:
        raise LimitExceeded("the query is too long", code="query_too_large", limit_bytes=MAX_QUERY_BYTES)
    if (
        len(turns) > MAX_CONTEXT_TURNS
        or sum(len(turn.encode("utf-8", "replace")) for turn in turns) > MAX_CONTEXT_BYTES
    ):
        raise LimitExceeded(
            "the context has too many turns or is too long", code="context_too_large", limit_bytes=MAX_CONTEXT_BYTES
        )
    context = latest(turns)
    spoken = telling_terms(context, detected(context))
    code = detected(text)
    language = language_of_kinds(text, code)
    kinds, seen = KINDS[language], seen_by_patterns(text, language)
    times = dates(in_english(text, code), now_ms)
    advice = kinds.advice.search(seen) is not None
    looking_back = kinds.looking_back.search(seen) is not None
    message = not looking_back and kinds.conversational.search(seen) is not None and kinds.question.match(seen) is None
    named, only_dated, rest = _conversations(text, code, language, dated=bool(times))
    if message and not only_dated:
        times = tuple(span for span in times if span.to_ms <= now_ms)
    significant = telling_terms(rest, code)
    terms = significant or dict(list(spoken.items())[-CONTEXT_WORDS:]) or all_terms(text, code)
    return Query(
        text,
        tuple(terms),
        _exact_terms(text, code or ENGLISH),
        message,
        not looking_back and kinds.answered.search(seen) is None,
        advice or kinds.own_past.search(seen) is None,
        advice,
        bool(kinds.when.match(seen)),
        times,
        named,
        frozenset(),
        only_dated,
        bool(significant),
        context,
        tuple(one for one in spoken if one not in terms)[-CONTEXT_WORDS:],
        {stem: forms for stem, forms in (spoken | terms).items() if forms},
        language,
    )


def _conversations(text: str, code: str | None, language: str, *, dated: bool) -> tuple[Positions | None, bool, str]:
    """Return the conversations that a query names, whether it only asks for what was said then, or at its times, and
    the text that tells what it is about.

    code: of its language; if none shows it may be any of those in Latin letters. dated: it names times.
    """
    any_named = False
    for one in (language, *(LATIN if code is None and language == ENGLISH else ())):
        named, rest = positions(seen_by_patterns(text, one), one, alone=True)
        any_named = any_named or named is not None
        if named is None and not dated:
            continue
        rest = seen_by_patterns(without_dates(in_english(rest, code)), one)
        if not statement_terms(TALK[one].sub(" ", rest), one):
            return named, True, text
    if not any_named:
        return None, False, text
    named, rest = positions(seen_by_patterns(text, language), language, alone=False)
    return named, False, text if named is None else rest


def _exact_terms(text: str, code: str) -> dict[tuple[str, ...], float]:
    """Return addresses, ids, numbers and quotations as stems in order, with the weight of each."""
    spaced = without_runs(text)
    found = [(match, 1.0) for match in _EXACT.findall(spaced) if _is_exact(match)]
    found += [(number, 1.0) for number in _NUMBERED.findall(spaced)]
    found += [(number, 1.0) for number in _NUMBER.findall(spaced) if not number.endswith("000")]
    found += [(quotation, QUOTATION) for quotation in _QUOTED.findall(text)]
    exact: dict[tuple[str, ...], float] = {}
    for match, weight in found:
        phrase = phrase_terms(match, code)
        if phrase and len(exact) < MAX_EXACT_TERMS:
            exact.setdefault(phrase, weight)
    return exact


def _is_exact(match: str) -> bool:
    """Return whether a match is an address, a number after "#", a word of digits and letters other than a quantity, or
    digits and hyphens other than a date.
    """
    if "@" in match or match.startswith("#"):
        return True
    word = match.strip("-")
    digits, letters = any(c.isdigit() for c in word), any(c.isascii() and c.isalpha() for c in word)
    if digits and not letters:
        return "-" in word and sum(c.isdigit() for c in word) >= 6 and _PERIOD.fullmatch(word) is None
    return len(word) >= 4 and digits and letters and _QUANTITY.fullmatch(word) is None
