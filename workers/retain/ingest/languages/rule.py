"""A rule of extraction: what it looks for, and the fact that it makes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

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
    position. lasting: what it finds cannot end, as a birthplace. verbs: one of them is before what the pattern reads, as the
    language's `stating` has them; empty, where the pattern says all.
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
    verbs: str = ""

    @property
    def can_end(self) -> bool:
        """Whether what the rule finds can end or be denied."""
        return self.kind == "fact" and self.denial == "refused" and not (self.lasting or self.whole or self.anywhere)

    def may_read(self, text: str) -> bool:
        """Return whether one of its verbs is in a text in small letters: most rules need not be tried, nor compiled."""
        return not self.verbs or any(verb in text for verb in self.verbs.split("|"))
