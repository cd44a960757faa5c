"""What the rules have to know of a language: how people speak about themselves in it, and where what they name ends."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cache, cached_property
from typing import Literal

from retain.ingest.languages.rule import ExtractionRule

MAX_THING_WORDS = 8
_WORDS = re.compile(r"[\w'&/+.-]+")
_PART = re.compile(r"<([A-Z]+)>")


class Expression:
    """A regular expression without case, compiled when it is first used: most deployments are spoken to in one language."""

    def __init__(self, text: str) -> None:
        """Take the expression as text. Raises nothing, whatever it is."""
        self._text = text

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile(self._text, re.IGNORECASE)

    def match(self, text: str) -> re.Match[str] | None:
        """Return the match at the beginning of a text. Raises: re.error when it is no expression, as the others."""
        return self._pattern.match(text)

    def search(self, text: str) -> re.Match[str] | None:
        """Return the first match in a text."""
        return self._pattern.search(text)

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        """Yield all matches in a text."""
        return self._pattern.finditer(text)

    def without(self, text: str) -> str:
        """Return the text without what matches."""
        return self._pattern.sub("", text)


@dataclass(frozen=True, slots=True)
class Ending:
    """What a clause ends or denies. positive: the clause that states it. kind: `denied` if it may never have been so."""

    positive: str
    kind: Literal["ended", "denied"]


@dataclass(frozen=True, slots=True, eq=False)
class Speech:
    """Which sentences and clauses state something plainly about who speaks.

    personal: words without which nobody speaks about themselves or what they want. asking: the beginning of a question.
    hedged: conditions, guesses, jokes and fiction. reported: the words of others. negated: what denies, or may do so.
    lead: introductory words. new_subject: where a clause may begin, `joined` if it matches what is between the clauses.
    contrast: the end of a piece that says what is not so instead (group `other`), None to read none.
    """

    personal: Expression
    asking: Expression
    hedged: Expression
    reported: Expression
    negated: Expression
    lead: Expression
    new_subject: Expression
    joined: Expression
    contrast: Expression | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Things:
    """How the object of a rule is read.

    ends: patterns of what does not belong to a thing any more, removed in their order. none: what begins no thing.
    definite: refers to something in the conversation, unless a name or something unique follows. pointing: refers to
    somebody or something, anywhere. unfinished: the end of words that were cut apart. deed_ends: where what is to be done
    ends.
    """

    ends: tuple[Expression, ...]
    none: Expression
    definite: Expression
    pointing: Expression
    unfinished: Expression
    deed_ends: Expression

    def thing(self, text: str) -> str | None:
        """Return the thing that a text begins with, None if there is none."""
        for end in self.ends:
            text = end.without(text)
        text = text.strip(" ,.'")
        return text if self._is_thing(text) else None

    def deed(self, text: str) -> str:
        """Return what a text says to do."""
        return self.deed_ends.without(text)

    def _is_thing(self, text: str) -> bool:
        words = _WORDS.findall(text)
        return 0 < len(words) <= MAX_THING_WORDS and not (
            self.none.match(text)
            or self.definite.match(text)
            or self.pointing.search(text)
            or self.unfinished.search(text)
        )


@dataclass(frozen=True, slots=True, eq=False)
class Language:
    """A language that the rules read.

    parts: what `<PART>` in a rule's pattern stands for. endings: what a clause (of a sentence) ends or denies. after_ended:
    what may follow the object of a fact that is over. ended_phrase: turns a rule's phrase into the one for what has ended.
    names: words of relations in the spelling, and the language, that their names have. stating: the pattern of what somebody
    says of themselves with a verb, which is `<VERBS>` in it.
    """

    code: str
    speech: Speech
    things: Things
    parts: Mapping[str, str]
    rules: tuple[ExtractionRule, ...]
    endings: Callable[[str, str], Iterator[Ending]]
    after_ended: Expression
    ended_phrase: Callable[[str], str]
    names: Mapping[str, str] = field(default_factory=dict)
    stating: str = ""

    def pattern(self, rule: ExtractionRule) -> re.Pattern[str]:
        """Return a rule's pattern, compiled with its verbs and parts filled in."""
        return _compiled(
            self, self.stating.replace("<VERBS>", rule.verbs) + rule.pattern if rule.verbs else rule.pattern
        )

    def compile(self) -> None:
        """Compile its rules, and the expressions by which sentences and things are read."""
        for rule in self.rules:
            self.pattern(rule)
        for part in (self.speech, self.things):
            for found in fields(part):
                value = getattr(part, found.name)
                for expression in value if isinstance(value, tuple) else (value,):
                    if expression is not None:
                        expression.match("")

    def relation(self, words: str) -> str:
        """Return words as part of a relation's name, in one spelling: a favourite colour is a favorite color."""
        return "_".join(self.names.get(word, word) for word in re.split(r"\W+", words.casefold()) if word)


@cache
def _compiled(language: Language, pattern: str) -> re.Pattern[str]:
    return re.compile(_PART.sub(lambda place: language.parts[place[1]], pattern))
