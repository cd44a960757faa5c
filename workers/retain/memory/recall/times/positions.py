"""Conversations that a query names by their position: the last one, the first, the second, three sessions ago."""

from __future__ import annotations

import re
from dataclasses import dataclass

from retain.memory.recall.languages.talk import FIRST, LAST, LAST_TIME
from retain.memory.recall.times.dates import ORDINALS

MAX_POSITION = 100
"""Conversations farther from the end or the beginning are not looked for."""
_SMALL = dict(zip("a one two three four five six seven eight nine ten".split(), (1, *range(1, 11)), strict=True))
_NOUNS = "(?:sessions?|conversations?|chats?|discussions?)"
_NAMED = re.compile("session|conversation|chat|discussion", re.IGNORECASE)
"""Few queries name any, and looking for these is faster than looking for all forms."""
_NUMBER = rf"(?:\d{{1,3}}|{'|'.join(_SMALL)})"
_NTH = rf"(?:\d{{1,3}}(?:st|nd|rd|th)|{'|'.join(reversed(ORDINALS))})"
_OURS = "(?:(?:our|my|your|the|of) )*"
_ENGLISH = re.compile(
    rf"\b(?:(?P<ago>{_NUMBER}) {_NOUNS} ago"
    rf"|{_OURS}(?:(?P<lately>last|past|previous)|first) (?P<many>{_NUMBER}) {_NOUNS}"
    rf"|{_OURS}(?P<before>second|third)[ -]to[ -]last {_NOUNS}|{_OURS}{_NOUNS} before (?P<last>last|the last(?: one)?)"
    rf"|{_OURS}(?P<nth>{_NTH})(?: ?(?:-|to|through|thru|and|until) ?(?:the )?(?P<nth_to>{_NTH}))? {_NOUNS}"
    r"(?! (?:with|of|at|for)\b)"
    rf"|{_OURS}{_NOUNS} (?:number )?(?P<number>{_NUMBER})(?: ?(?:-|to|through|thru|and|until) ?(?P<to>{_NUMBER}))?)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Positions:
    """Conversations by their positions in the order of time, the first and the last of them included, from 1.

    from_end: counted from the newest one.
    """

    first: int
    last: int
    from_end: bool


def positions(text: str, language: str, *, alone: bool) -> tuple[Positions | None, str]:
    """Return which conversations a query names, and the rest of it.

    text: as `languages.reading.seen_by_patterns` returns it. alone: it asks for nothing else, so that "last time" and
    "session 3" mean conversations, and not the last time or a session of anything else.
    """
    match = _ENGLISH.search(text) if _NAMED.search(text) else None
    if match is not None and (alone or match["number"] is None):
        found = _numbered(match)
        if 1 <= found.first <= found.last <= MAX_POSITION:
            return found, text[: match.start()] + " " + text[match.end() :]
    forms = ((LAST, True), (FIRST, False), *(((LAST_TIME, True),) if alone else ()))
    for patterns, from_end in forms:
        rest, count = patterns[language].subn(" ", text)
        if count:
            return Positions(1, 1, from_end), rest
    return None, text


def _numbered(match: re.Match[str]) -> Positions:
    """Return the positions of a match of `_ENGLISH`."""
    named = {name: found.lower() for name, found in match.groupdict().items() if found}
    if "ago" in named:
        return Positions(_count(named["ago"]), _count(named["ago"]), from_end=True)
    if "many" in named:
        return Positions(1, _count(named["many"]), from_end="lately" in named)
    if "before" in named or "last" in named:
        position = ORDINALS.index(named.get("before", "second")) + 1
        return Positions(position, position, from_end=True)
    if "nth" in named:
        position = _ordinal(named["nth"])
        return Positions(position, _ordinal(named["nth_to"]) if "nth_to" in named else position, from_end=False)
    first = _count(named["number"])
    return Positions(first, _count(named["to"]) if "to" in named else first, from_end=False)


def _count(text: str) -> int:
    return int(text) if text.isdecimal() else _SMALL[text]


def _ordinal(text: str) -> int:
    return ORDINALS.index(text) + 1 if text in ORDINALS else int(text[:-2])
