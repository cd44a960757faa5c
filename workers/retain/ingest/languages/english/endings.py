"""Ended and denied states: "I no longer work at Acme", "I'm not vegetarian any more", "I used to live in Rome".

A clause that says so is turned into the one that states the opposite ("I work at Acme"), which the rules read. What they
find in it has ended, or was denied; it is never stored as a fact that is valid.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from retain.ingest.languages.language import Ending, Expression

_FLAGS = re.IGNORECASE
_SUBJECT = r"(?P<subject>I|we)"
_BE = {"i": "am", "we": "are"}
_AT_END = r"(?: any ?more| any longer| these days)(?=\s*(?:$|[,.;!)]|-\s|\b(?:and|but|so|since|because|now|after)\b))"
_LIMITED = (
    r"(?!(?:only|just|yet|really|exactly|quite|always|necessarily|sure|even|merely|simply|entirely|totally|the only)\b)"
)
"""After "not" these words deny something else: "not only vegetarian"."""
_STOPPED = r"(?: have| '?ve|'ve)?(?: just| recently| finally| already| now)* (?:stopped|quit|given up|gave up|ceased)"
_FEW = 4
"""Words of something that somebody stopped taking: more are about something else."""
AFTER_ENDED = Expression(
    r"\s*(?:$|[.,;:!)(]|-\s|\b(?:and|but|since|now|because|so|as of|after|due|though|either|at all|"
    r"currently|daily|to|any ?more|"
    r"last|this|yesterday|today|recently|(?:a|an|one|two|three|some) \w+ ago|in (?:\d|January|February|March|April|May|June|"
    r"July|August|September|October|November|December)|any longer|for my|against my)\b)",
)
"""What may follow the object of a fact that is over."""
_PHRASE = re.compile(r"^(?P<subject>\{speaker\}(?:'s (?:[\w-]+|\{\w+\}) ?(?:[\w-]+|\{what\})?)?) (?P<verb>\w+|\{be\})")
_STILL = Expression(r"\b(?:still|again|yet)\b")


def endings(clause: str, sentence: str) -> Iterator[Ending]:
    """Yield what a clause of a sentence ends or denies; nothing for a clause that does neither."""
    for pattern, positive in _ENDED:
        match = pattern.match(clause)
        if match is not None:
            # "I used to live in Rome, and I still do"
            if not _STILL.search(sentence if positive is _used_to else clause):
                yield from (Ending(text, "ended") for text in positive(match))
            return
    for pattern, positive in _DENIED:
        match = pattern.match(clause)
        if match is not None:
            yield from (Ending(text, "denied") for text in positive(match))
            return


def ended_phrase(phrase: str) -> str:
    """Return the sentence for a fact that has ended, from a rule's for one that holds."""
    return _PHRASE.sub(_no_longer, phrase, count=1)


def _no_longer(found: re.Match[str]) -> str:
    verb = found["verb"]
    return f"{found['subject']} {verb} no longer" if verb in {"is", "{be}"} else f"{found['subject']} no longer {verb}"


def _joined(*names: str) -> Callable[[re.Match[str]], Iterator[str]]:
    def positive(match: re.Match[str]) -> Iterator[str]:
        yield " ".join(" ".join((match[name] or "") for name in names).split())

    return positive


def _without_end(match: re.Match[str]) -> str:
    return re.sub(_AT_END, "", match["rest"], count=1, flags=_FLAGS)


def _being(match: re.Match[str]) -> Iterator[str]:
    rest = match["rest"] if "any" not in match.groupdict() else _without_end(match)
    yield f"{match['subject']} {_BE[match['subject'].casefold()]} {rest}".strip()


def _doing(match: re.Match[str]) -> Iterator[str]:
    yield f"{match['subject']} {_without_end(match)}".strip()


def _used_to(match: re.Match[str]) -> Iterator[str]:
    rest = match["rest"]
    if rest.casefold().startswith("be "):
        yield f"{match['subject']} {_BE[match['subject'].casefold()]} {rest[3:]}"
    else:
        yield f"{match['subject']} {rest}"


def _stopped(match: re.Match[str]) -> Iterator[str]:
    rest = re.sub(r"^being ", "", match["rest"], flags=_FLAGS)
    yield f"{match['subject']} {_BE[match['subject'].casefold()]} {rest}"
    if rest.casefold().startswith("taking ") and len(rest.split()) <= _FEW:
        yield f"{match['subject']} take {rest[7:]} daily"
    if re.match(r"smoking\b", rest, _FLAGS):
        yield f"{match['subject']} {_BE[match['subject'].casefold()]} a smoker"


def _living(match: re.Match[str]) -> Iterator[str]:
    yield f"{match['subject']} live in {match['place']}"


def _working(match: re.Match[str]) -> Iterator[str]:
    yield f"{match['subject']} work at {match['rest']}"


def _owning(match: re.Match[str]) -> Iterator[str]:
    article = "an" if match["rest"][:1].casefold() in "aeiou" else "a"
    yield f"{match['subject']} own {article} {match['rest']}"


def _compiled(pattern: str) -> Expression:
    return Expression(pattern.replace("<SUBJECT>", _SUBJECT))


_ENDED: tuple[tuple[Expression, Callable[[re.Match[str]], Iterator[str]]], ...] = (
    (_compiled(r"<SUBJECT>(?:'m| am|'re| are) no longer (?!than\b)(?P<rest>.+)$"), _being),
    (_compiled(r"<SUBJECT> no longer (?!than\b)(?P<verb>.+)$"), _joined("subject", "verb")),
    (
        _compiled(r"(?P<subject>my [\w' -]{1,60}?) (?P<be>is|are) no longer (?!than\b)(?P<rest>.+)$"),
        _joined("subject", "be", "rest"),
    ),
    (_compiled(rf"<SUBJECT>(?:'m| am|'re| are) not {_LIMITED}(?P<rest>.+?(?P<any>{_AT_END}).*)$"), _being),
    (_compiled(rf"<SUBJECT>(?: do not| don't| dont) {_LIMITED}(?P<rest>.+?(?P<any>{_AT_END}).*)$"), _doing),
    (
        _compiled(rf"(?P<subject>my [\w' -]{{1,60}}?) (?P<be>is|are)(?: not|n't) {_LIMITED}(?P<rest>.+?){_AT_END}"),
        _joined("subject", "be", "rest"),
    ),
    (_compiled(r"<SUBJECT> used to (?P<rest>.+)$"), _used_to),
    (_compiled(rf"<SUBJECT>{_STOPPED} (?P<rest>\w+ing\b.*)$"), _stopped),
    (
        _compiled(
            r"<SUBJECT>(?:'ve| have)?(?: just| recently| finally| already)? moved (?:out of|away from|from) "
            r"(?P<place>.+?)(?= to\b| and\b|$|[,.;])"
        ),
        _living,
    ),
    (
        _compiled(
            r"<SUBJECT>(?:'ve| have|'m| am| was| got)?(?: just| recently| finally| been)? "
            r"(?:(?:quit|left|lost|resigned from) my (?:job|position|role) (?:at|with)|laid off (?:from|by|at)|"
            r"fired (?:from|by)|let go (?:from|by)|resigned from|retired from) (?P<rest>.+)$"
        ),
        _working,
    ),
    (_compiled(r"<SUBJECT>(?:'ve| have)?(?: just| recently| finally)? sold (?:my|our) (?P<rest>.+)$"), _owning),
)
_DENIED: tuple[tuple[Expression, Callable[[re.Match[str]], Iterator[str]]], ...] = (
    (_compiled(rf"<SUBJECT>(?:'m| am|'re| are) not {_LIMITED}(?P<rest>.+)$"), _being),
    (_compiled(rf"<SUBJECT>(?: do not| don't| dont) {_LIMITED}(?P<verb>.+)$"), _joined("subject", "verb")),
    (
        _compiled(rf"(?P<subject>my [\w' -]{{1,60}}?) (?P<be>is|are)(?: not|n't) {_LIMITED}(?P<rest>.+)$"),
        _joined("subject", "be", "rest"),
    ),
)
