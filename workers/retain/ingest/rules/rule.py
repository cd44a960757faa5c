"""A rule of extraction: what it looks for, and the fact that it makes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Literal

from retain.ingest.rules.vocabulary import PARTS
from retain.memory.records.record import Kind

Reading = Literal["plain", "thing", "deed"]
"""How an object is read: unchanged; as a thing, cut where something else begins; as something to do."""
Denial = Literal["refused", "required", "either"]
"""Whether a rule skips, requires or ignores a denial in a clause."""


@dataclass(frozen=True, slots=True)
class ExtractionRule:
    """One rule.

    pattern: tried at the start of a clause; has the group `object`, those that `predicate` and `phrase` name, and the
    vocabulary's parts as `<PART>`. predicate: of the fact; `predicate_of` adds the object unless `functional`.
    functional: the predicate has one object at a time; None looks it up in `extraction.FUNCTIONAL`. phrase: the fact as
    a sentence. confidence: below 1. whole: read sentences instead of clauses. anywhere: try the pattern at every
    position. lasting: what it finds cannot end, as a birthplace.
    """

    name: str
    pattern: str
    predicate: str
    phrase: str
    confidence: float
    kind: Kind = "fact"
    functional: bool | None = None
    reading: Reading = "plain"
    denial: Denial = "refused"
    whole: bool = False
    anywhere: bool = False
    lasting: bool = False

    @property
    def can_end(self) -> bool:
        """Whether what the rule finds can end or be denied."""
        return self.kind == "fact" and self.denial == "refused" and not (self.lasting or self.whole or self.anywhere)

    @property
    def ended_phrase(self) -> str:
        """The sentence for a fact that has ended."""
        return _ENDED.sub(_no_longer, self.phrase, count=1)


_ENDED = re.compile(r"^(?P<subject>\{speaker\}(?:'s (?:[\w-]+|\{\w+\}) ?(?:[\w-]+|\{what\})?)?) (?P<verb>\w+|\{be\})")


def _no_longer(found: re.Match[str]) -> str:
    verb = found["verb"]
    return f"{found['subject']} {verb} no longer" if verb in {"is", "{be}"} else f"{found['subject']} no longer {verb}"


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    """Return a rule's pattern, compiled with its parts filled in."""
    return re.compile(re.sub(r"<([A-Z]+)>", lambda place: PARTS[place[1]], pattern))
